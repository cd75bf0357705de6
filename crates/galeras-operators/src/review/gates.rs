//! The thresholds that ratings must reach before rows continue.

use super::Args;
use galeras_operator::StepError;
use galeras_ratings::QuestionAgreement;

/// The rounding error allowed in a share or a kappa.
const ROUNDING: f64 = 1e-9;

/// An error that lists for every question the missing ratings or agreement.
pub(super) fn check(
    args: &Args,
    agreements: &[(QuestionAgreement, usize)],
) -> Result<(), StepError> {
    let missing: Vec<String> =
        agreements.iter().flat_map(|(numbers, _)| missing(args, numbers)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let message = format!("the ratings do not allow it yet: {}", missing.join("; "));
    let help = "`galeras view` has the page on which people rate, and shows how far they agree; \
                lower the limits only if you mean it";
    Err(StepError::new(message).help(help))
}

fn missing(args: &Args, numbers: &QuestionAgreement) -> Vec<String> {
    let mut missing = Vec::new();
    let question = &numbers.question;
    if let Some(limit) = args.min_rated
        && (numbers.rated_by_all as u64) < limit
    {
        let (found, raters) = (numbers.rated_by_all, args.raters);
        let people = if raters == 1 { "person" } else { "people" };
        missing.push(format!(
            "`{question}`: {found} points have the answers of {raters} {people}, and min_rated \
             asks for {limit}"
        ));
    }
    if let (Some(limit), Some(found)) = (args.min_valid, numbers.least_yes)
        && found < limit - ROUNDING
    {
        missing.push(format!(
            "`{question}`: a rater says yes to {} of the points, and min_valid asks for {limit}",
            number(found)
        ));
    }
    if let (Some(limit), Some((name, found))) = (args.min_kappa, numbers.beyond_chance())
        && found < limit - ROUNDING
    {
        let left = match numbers.undecided {
            0 => String::new(),
            left => format!(" (they differ on {left} points)"),
        };
        missing.push(format!(
            "`{question}`: {name} is {}, and min_kappa asks for {limit}{left}",
            number(found)
        ));
    }
    missing
}

/// Four decimals, without trailing zeros.
fn number(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}
