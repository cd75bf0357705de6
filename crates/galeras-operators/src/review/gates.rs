//! The thresholds that ratings must reach before rows continue.

use super::Args;
use galeras_operator::StepError;
use galeras_ratings::QuestionAgreement;

/// The rounding error allowed in a share or a kappa.
const ROUNDING: f64 = 1e-9;

/// An error that lists the missing ratings, and for every question the missing agreement. `rated`
/// is the number of points with enough answers.
pub(super) fn check(
    args: &Args,
    agreements: &[(QuestionAgreement, usize)],
    rated: usize,
) -> Result<(), StepError> {
    let agreements = agreements.iter().map(|(numbers, _)| numbers);
    let mut missing: Vec<String> = too_few(args, agreements.clone(), rated).into_iter().collect();
    missing.extend(agreements.flat_map(|numbers| disagreement(args, numbers)));
    if missing.is_empty() {
        return Ok(());
    }
    let message = format!("the ratings do not allow it yet: {}", missing.join("; "));
    let help = "`galeras view` has the page on which people rate, and shows how far they agree; \
                lower the limits only if you mean it";
    Err(StepError::new(message).help(help))
}

/// The problem, if fewer points than wanted are rated, with the question that lacks most answers.
fn too_few<'a>(
    args: &Args,
    agreements: impl Iterator<Item = &'a QuestionAgreement>,
    rated: usize,
) -> Option<String> {
    let limit = args.min_rated.filter(|limit| (rated as u64) < *limit)?;
    let lacking = |numbers: &&QuestionAgreement| numbers.points - numbers.rated_by_all;
    let most = agreements.max_by_key(lacking).filter(|numbers| lacking(numbers) > 0);
    let most = most.map_or_else(String::new, |numbers| {
        let QuestionAgreement { question, points, rated_by_all, .. } = numbers;
        format!(" (`{question}`: {rated_by_all} of {points})")
    });
    let raters = args.raters;
    let people = if raters == 1 { "person" } else { "people" };
    Some(format!(
        "{rated} points have the answers of {raters} {people} to all of their questions, and \
         min_rated asks for {limit}{most}"
    ))
}

fn disagreement(args: &Args, numbers: &QuestionAgreement) -> Vec<String> {
    let mut missing = Vec::new();
    let question = &numbers.question;
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
