//! Prompts that were asked without an answer: how many, why, and if the step may end without them.

use std::collections::BTreeMap;

use super::rows::{ModelAnswer, NoAnswer};
use super::server::with_kept;
use super::tables::SampleOutcome;
use galeras_base::prose::thousands;
use galeras_operator::StepError;

/// The asked prompts of a step, each counted once per sample. A row without a prompt is not asked.
#[derive(Debug, Default)]
pub(super) struct Unanswered<'a> {
    answered: u64,
    /// By the rule: how often, and the reason of the first.
    missing: BTreeMap<&'a str, (u64, &'a str)>,
}

impl<'a> Unanswered<'a> {
    pub(super) fn of(
        outcomes: &[SampleOutcome],
        results: &'a [Result<ModelAnswer, NoAnswer>],
    ) -> Self {
        let mut unanswered = Self::default();
        for outcome in outcomes {
            match &results[outcome.answer] {
                Ok(_) => unanswered.answered += 1,
                Err(why) if why.again => {
                    let first = (0, why.reason.as_str());
                    unanswered.missing.entry(why.rule.as_str()).or_insert(first).0 += 1;
                }
                Err(_) => {}
            }
        }
        unanswered
    }

    pub(super) fn missing(&self) -> u64 {
        self.missing.values().map(|(count, _)| count).sum()
    }

    /// The warning about missing answers, if there are any.
    ///
    /// # Errors
    /// If less than the share `least` of the asked prompts has an answer.
    pub(super) fn allowed(&self, least: f64) -> Result<Option<String>, StepError> {
        let missing = self.missing();
        if missing == 0 {
            return Ok(None);
        }
        let asked = self.answered + missing;
        let share = self.answered as f64 / asked as f64;
        let lost = missing_answers(missing as usize, asked as usize);
        if share >= least {
            return Ok(Some(format!("{lost} (the next run asks again): {}", self.reasons())));
        }
        let error = StepError::new(format!("{lost}: {}", self.reasons()));
        let mut help = "run again to ask for the missing ones".to_string();
        if self.answered > 0 {
            // Rounded down, so that the same answers pass.
            let accepted = (100.0 * share).floor() / 100.0;
            help += &format!(", or accept fewer with `min_answered: {accepted}` (it is {least})");
        }
        Err(with_kept(error.help(help), self.answered))
    }

    /// The reasons, the most frequent first.
    fn reasons(&self) -> String {
        let mut all: Vec<_> = self.missing.iter().collect();
        all.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
        let reason = |(rule, (count, reason)): &(&&str, &(u64, &str))| match all.len() {
            1 => format!("{rule}, {reason}"),
            _ => format!("{}: {rule}, {reason}", thousands(*count as usize)),
        };
        all.iter().map(reason).collect::<Vec<_>>().join("; ")
    }
}

/// `1 of 4 answers is missing`.
pub(super) fn missing_answers(missing: usize, asked: usize) -> String {
    let are = if missing == 1 { "is" } else { "are" };
    format!("{} of {} answers {are} missing", thousands(missing), thousands(asked))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(rule: &str, again: bool) -> Result<ModelAnswer, NoAnswer> {
        let reason = format!("why {rule}");
        Err(NoAnswer { rule: rule.into(), reason, again, unread: None })
    }

    #[test]
    fn missing_answers_are_counted_and_fail_a_step_below_its_share() {
        let ok = || Ok(ModelAnswer::new());
        let (down, filtered) = (|| failed("down", true), || failed("filter", true));
        let share = |n: usize, of: usize| {
            (0..of).map(|at| if at < n { ok() } else { down() }).collect::<Vec<_>>()
        };
        let without_prompt = failed("messages", false);
        for (results, least, wanted) in [
            (vec![ok(), without_prompt.clone()], 1.0, Ok(None)),
            (vec![without_prompt.clone()], 1.0, Ok(None)),
            (vec![ok(), down()], 1.0, Err("1 of 2 answers is missing: down, why down")),
            // 0.55 * 100 is more than 55 in binary.
            (
                share(55, 100),
                0.55,
                Ok(Some("45 of 100 answers are missing (the next run asks again): down, why down")),
            ),
            (share(54, 100), 0.55, Err("46 of 100 answers are missing: down, why down")),
            (
                vec![filtered(), down(), down(), without_prompt],
                0.5,
                Err("3 of 3 answers are missing: 2: down, why down; 1: filter, why filter"),
            ),
            (
                share(0, 1),
                0.0,
                Ok(Some("1 of 1 answers is missing (the next run asks again): down, why down")),
            ),
        ] {
            let outcomes: Vec<SampleOutcome> = (0..results.len())
                .map(|row| SampleOutcome { row, model: 0, sample: 0, answer: row })
                .collect();
            let found = Unanswered::of(&outcomes, &results).allowed(least);
            let found = found.map_err(|error| error.to_string());
            let found = found.as_ref().map(Option::as_deref).map_err(String::as_str);
            assert_eq!(found, wanted, "{results:?}");
        }
        let results = share(64, 99);
        let outcomes: Vec<SampleOutcome> =
            (0..99).map(|row| SampleOutcome { row, model: 0, sample: 0, answer: row }).collect();
        let error = Unanswered::of(&outcomes, &results).allowed(1.0).unwrap_err();
        assert_eq!(
            error.advice(),
            Some(
                "run again to ask for the missing ones, or accept fewer with `min_answered: 0.64` \
                 (it is 1); the answers for 64 rows are kept"
            )
        );
    }
}
