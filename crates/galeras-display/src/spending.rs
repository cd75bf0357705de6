//! Money in words: planned requests, their maximum cost, and spending.

use std::collections::BTreeMap;

use galeras_chat::Usd;

use super::lines::ReportLines;
use super::text;
use super::units::count;
use galeras_operator::event::{LimitState, StepRequests, StepSpending};

/// The most lines about steps.
const MOST_STEPS: usize = 20;

/// The requests of a step, as a clause: `9,000 requests to m at https://…, at most $1.20`.
pub fn requests_text(asked: &StepRequests) -> String {
    let mut parts = vec![addressed(asked.requests, &whom(asked))];
    if asked.answered > 0 {
        parts.push(format!("{} answered already", count(asked.answered)));
    }
    if asked.requests.is_some_and(|requests| requests > 0) {
        let read = count(asked.prompt_tokens);
        let written = match asked.completion_tokens {
            Some(written) => format!("{} written", count(written)),
            None => "those written not limited".into(),
        };
        parts.push(format!("at most {read} tokens read, {written}"));
        parts.push(cost(asked.usd, asked.completion_tokens));
    }
    parts.join(", ")
}

/// A limit and its spent part, as a clause; `None` if nothing is limited.
pub fn limit_text(limit: &LimitState) -> Option<String> {
    let spent = limit.spent_usd.unwrap_or(Usd::ZERO);
    let mut parts = Vec::new();
    if let Some(most) = limit.max_usd {
        let before = match spent > Usd::ZERO {
            true => format!(", {} of it spent by runs that did not finish", spent.rounded_up()),
            false => String::new(),
        };
        parts.push(format!("`max_usd` of {} allows {most}{before}", limit.owner));
    }
    if let Some(most) = limit.max_requests {
        let before = match limit.spent_requests {
            0 => String::new(),
            sent => format!(", {} of them sent by runs that did not finish", count(sent)),
        };
        let owner = &limit.owner;
        parts.push(format!("`max_requests` of {owner} allows {} requests{before}", count(most)));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn whom(asked: &StepRequests) -> String {
    format!("{} at {}", asked.model, asked.server)
}

fn number(requests: u64) -> String {
    match requests {
        1 => "1 request".into(),
        n => format!("{} requests", count(n)),
    }
}

fn addressed(requests: Option<u64>, whom: &str) -> String {
    match requests {
        Some(requests) => format!("{} to {whom}", number(requests)),
        None => format!("requests to {whom}, how many is not known yet"),
    }
}

/// The maximum cost of answers with at most so many tokens.
fn cost(usd: Option<Usd>, completion_tokens: Option<u64>) -> String {
    match (usd, completion_tokens) {
        (Some(usd), _) => format!("at most {}", usd.rounded_up()),
        (None, Some(_)) => "at a cost that is not known without `price`".into(),
        (None, None) => "at a cost that is not known without `price` and `max_tokens`".into(),
    }
}

/// The sum, if all parts are known.
fn sum<T>(parts: impl Iterator<Item = Option<T>>, plus: fn(T, T) -> T) -> Option<T> {
    parts.reduce(|sum, part| sum.zip(part).map(|(sum, part)| plus(sum, part))).flatten()
}

impl ReportLines {
    /// One paragraph: the models, the number of requests and their maximum cost.
    pub(super) fn requests(&self, steps: &[StepRequests], limits: &[LimitState]) -> Vec<String> {
        let mut models: BTreeMap<String, Vec<&StepRequests>> = BTreeMap::new();
        for asked in steps {
            models.entry(whom(asked)).or_default().push(asked);
        }
        let clause = |(whom, asked): (&String, &Vec<&StepRequests>)| {
            let requests = sum(asked.iter().map(|asked| asked.requests), u64::saturating_add);
            let usd = sum(asked.iter().map(|asked| asked.usd), Usd::plus);
            let written = asked.iter().map(|asked| asked.completion_tokens);
            let cost = cost(usd, sum(written, u64::saturating_add));
            match requests {
                Some(_) => format!("{}, {cost}", addressed(requests, whom)),
                None => addressed(None, whom),
            }
        };
        let mut clauses: Vec<String> = models.iter().map(clause).collect();
        if models.len() > 1 {
            let requests = sum(steps.iter().map(|asked| asked.requests), u64::saturating_add);
            let usd = sum(steps.iter().map(|asked| asked.usd), Usd::plus);
            if let (Some(requests), Some(_)) = (requests, usd) {
                clauses.push(format!("in all {}, {}", number(requests), cost(usd, None)));
            }
        }
        let answered = steps.iter().map(|asked| asked.answered).fold(0, u64::saturating_add);
        if answered > 0 {
            clauses.push(format!("{} answered already", count(answered)));
        }
        clauses.extend(limits.iter().filter_map(limit_text));
        let line = format!("asks models: {}", text::escape(&clauses.join("; ")));
        text::wrap(&line, self.width)
    }

    /// The spending by step and in total.
    pub(super) fn spent(&self, steps: &[StepSpending]) -> Vec<String> {
        let total =
            |of: fn(&StepSpending) -> u64| steps.iter().map(of).fold(0, u64::saturating_add);
        let all = StepSpending {
            step: String::new(),
            requests: total(|s| s.requests),
            unknown: total(|s| s.unknown),
            prompt_tokens: total(|s| s.prompt_tokens),
            completion_tokens: total(|s| s.completion_tokens),
            usd: sum(steps.iter().map(|s| s.usd), Usd::plus),
        };
        let mut lines = text::wrap(&format!("spent: {}", spending_text(&all)), self.width);
        if steps.len() > 1 {
            for step in steps.iter().take(MOST_STEPS) {
                let name = text::left(&self.short(&step.step), self.name);
                lines.extend(text::wrap(&format!("  {name}  {}", spending_text(step)), self.width));
            }
            if steps.len() > MOST_STEPS {
                lines.push(format!("  … {} more steps", count((steps.len() - MOST_STEPS) as u64)));
            }
        }
        lines
    }
}

/// `9,000 requests, 1,200,000 tokens read, 300,000 written, $1.20`
fn spending_text(spent: &StepSpending) -> String {
    let mut parts = vec![
        number(spent.requests),
        format!("{} tokens read", count(spent.prompt_tokens)),
        format!("{} written", count(spent.completion_tokens)),
    ];
    parts.extend(spent.usd.map(|usd| usd.rounded_up().to_string()));
    if spent.unknown > 0 {
        let counted = match spent.usd {
            Some(_) => ", counted at the most that they may have cost",
            None => "",
        };
        parts.push(format!("{} of them without reported usage{counted}", spent.unknown));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usd(text: &str) -> Usd {
        text.parse().unwrap()
    }

    fn asked(step: &str, model: &str, requests: Option<u64>, cost: Option<&str>) -> StepRequests {
        StepRequests {
            step: step.into(),
            model: model.into(),
            server: "https://api.example.org".into(),
            requests,
            answered: 10,
            prompt_tokens: 5_000,
            completion_tokens: Some(800),
            usd: cost.map(usd),
        }
    }

    fn lines(steps: &[StepRequests], limits: &[LimitState]) -> String {
        ReportLines::new(Some(1_000), false).requests(steps, limits).join("\n")
    }

    #[test]
    fn cells_of_one_model_are_said_together() {
        let limit = LimitState {
            owner: "the step `gen`".into(),
            max_usd: Some(usd("5")),
            max_requests: Some(1_000),
            spent_usd: Some(usd("0.5")),
            spent_requests: 7,
        };
        let steps = [
            asked("gen[model=a,seed=1]", "a", Some(100), Some("1.5")),
            asked("gen[model=a,seed=2]", "a", Some(100), Some("1.5")),
            asked("gen[model=b\u{1b}[2J]", "b\u{1b}[2J", Some(1), Some("0.1")),
        ];
        let expected = "asks models: 200 requests to a at https://api.example.org, at most $3.00; \
                        1 request to b\\u{1b}[2J at https://api.example.org, at most $0.10; in all \
                        201 requests, at most $3.10; 30 answered already; `max_usd` of the step \
                        `gen` allows $5.00, $0.50 of it spent by runs that did not finish; \
                        `max_requests` of the step `gen` allows 1,000 requests, 7 of them sent by \
                        runs that did not finish";
        assert_eq!(lines(&steps, &[limit]), expected);
    }

    #[test]
    fn what_is_not_known_is_not_made_up() {
        let text = lines(&[asked("gen", "a", Some(3), None)], &[]);
        assert!(text.contains("3 requests to a at"), "{text}");
        assert!(text.contains("not known without `price`;"), "{text}");
        let endless = StepRequests { completion_tokens: None, ..asked("gen", "a", Some(3), None) };
        let text = lines(&[endless], &[]);
        assert!(text.contains("not known without `price` and `max_tokens`"), "{text}");
        let text = requests_text(&asked("gen", "a", None, None));
        assert!(
            text.starts_with("requests to a at https://") && text.contains("is not known yet"),
            "{text}"
        );
        assert!(!text.contains("tokens"), "{text}");
    }

    #[test]
    fn what_was_spent_is_said_by_step_and_in_all() {
        let spent = |step: &str, unknown, cost: Option<&str>| StepSpending {
            step: step.into(),
            requests: 1_000,
            unknown,
            prompt_tokens: 20_000,
            completion_tokens: 5_000,
            usd: cost.map(usd),
        };
        let text = ReportLines::new(Some(200), false)
            .spent(&[spent("a", 0, Some("0.25")), spent("b", 2, Some("0.5"))])
            .join("\n");
        let unknown = "2 of them without reported usage, counted at the most that they may have \
                       cost";
        let expected = format!(
            "spent: 2,000 requests, 40,000 tokens read, 10,000 written, $0.75, {unknown}\n  \
             a           1,000 requests, 20,000 tokens read, 5,000 written, $0.25\n  \
             b           1,000 requests, 20,000 tokens read, 5,000 written, $0.50, {unknown}"
        );
        assert_eq!(text, expected);
        let text = ReportLines::new(Some(200), false).spent(&[spent("a", 0, None)]).join("\n");
        assert_eq!(text, "spent: 1,000 requests, 20,000 tokens read, 5,000 written");
    }
}
