//! The requests of paid steps for `plan`: how often they would ask a model, and the most that it
//! costs.

use galeras_chat::Usd;

use super::context::{Failure, Surveyed};
use galeras_base::visible::escape;
use galeras_display::{count, limit_text, requests_text};
use galeras_engine::runner::{Forecast, StepState, limit_states, step_requests};
use galeras_operator::event::{LimitState, StepRequests};

/// The requests that the steps of a plan would send.
pub(super) struct PlannedRequests {
    /// By position in the plan; `None` for steps without requests, or with a stored result.
    pub(super) steps: Vec<Option<StepRequests>>,
    pub(super) limits: Vec<LimitState>,
}

impl PlannedRequests {
    /// Reads the inputs of paid steps and the answers to them. Sends no request.
    pub(super) async fn of(surveyed: &Surveyed) -> Result<Self, Failure> {
        let (plan, store, done) = (&surveyed.plan, &surveyed.store, surveyed.done());
        let mut steps = Vec::with_capacity(plan.steps.len());
        let elsewhere = |step: usize| matches!(surveyed.states[step].forecast, Forecast::RemoteHit);
        for (at, state) in surveyed.states.iter().enumerate() {
            steps.push(match state.forecast {
                Forecast::Hit | Forecast::RemoteHit | Forecast::Broken(_) => None,
                // Tables in another store are not fetched for this.
                _ if plan.steps[at].upstream().any(elsewhere) => None,
                Forecast::Runs { .. } | Forecast::Waits { .. } => {
                    step_requests(plan, store, at, &done, false).await?
                }
            });
        }
        let limits = limit_states(plan, |at| steps[at].is_some())?;
        Ok(Self { limits, steps })
    }

    pub(super) fn line(&self, surveyed: &Surveyed, at: usize) -> Option<String> {
        let asked = self.steps[at].as_ref()?;
        let text = requests_text(asked);
        let line = match &surveyed.states[at] {
            StepState { forecast: Forecast::Waits { on }, .. } => {
                let names: Vec<String> =
                    on.iter().map(|at| format!("`{}`", surveyed.plan.steps[*at].name)).collect();
                let wait = format!("{} {} run", names.join(", "), have(on.len()));
                match text.strip_suffix("is not known yet") {
                    Some(text) => format!("{text}is known when {wait}"),
                    None => text,
                }
            }
            _ => text,
        };
        Some(escape(&line))
    }

    pub(super) fn summary(&self) -> Vec<String> {
        let asked: Vec<&StepRequests> = self.steps.iter().flatten().collect();
        let known: Vec<&StepRequests> =
            asked.iter().copied().filter(|asked| asked.requests.is_some()).collect();
        let mut lines = Vec::new();
        if asked.len() > 1 && !known.is_empty() {
            let requests = known.iter().filter_map(|asked| asked.requests);
            let requests = count(requests.fold(0, u64::saturating_add));
            let cost = known.iter().try_fold(Usd::ZERO, |sum, asked| Some(sum.plus(asked.usd?)));
            let cost = cost.map(|usd| format!(", at most {}", usd.rounded_up()));
            let more = match asked.len() - known.len() {
                0 => String::new(),
                n => format!(", without those of {} steps that are not known yet", count(n as u64)),
            };
            lines.push(format!("{requests} requests in all{}{more}", cost.unwrap_or_default()));
        }
        let limits = self.limits.iter().filter_map(limit_text);
        lines.extend(limits.map(|line| escape(&line)));
        lines
    }
}

fn have(steps: usize) -> &'static str {
    if steps == 1 { "has" } else { "have" }
}
