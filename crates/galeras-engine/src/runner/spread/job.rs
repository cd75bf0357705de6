//! The coordinator of a job: stores its order, hands the items to the engine, watches the store for
//! their outcomes, and hands out missing items again, a limited number of times.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::super::context::StepContext;
use super::super::error::RunError;
use super::order::{DONE, Failure, JobOrder, ORDER, Outcome, StepOrder, WorkItem};
use super::{Engine, EngineError};
use galeras_operator::event::RunEvent;
use galeras_operator::{StepError, Tell};

/// The most times that an item is handed out.
const ROUNDS: u32 = 4;
/// The shortest and the longest pause between checks of the store. The pause grows with the time
/// without an outcome, of which it is one of this many parts.
const POLL: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(250));
const POLL_SHARE: u32 = 16;
/// A slow store gets pauses of this many times its response time.
const POLL_REST: u32 = 2;
/// The time for which an unreachable engine is tried again without other progress.
const PATIENCE: Duration = Duration::from_secs(120);
/// Between two attempts to reach it.
const PAUSE: Duration = Duration::from_millis(500);

/// Coordinates the jobs of a step.
pub(super) struct Coordinator<'a> {
    pub(super) cx: &'a StepContext,
    pub(super) engine: &'a dyn Engine,
    pub(super) step: StepOrder,
}

struct Job<'a> {
    cx: &'a StepContext,
    name: String,
    items: Vec<WorkItem>,
    ended: BTreeMap<u32, Outcome>,
    /// The work of the items counts as the step's progress.
    counts: bool,
    last: Instant,
}

impl Coordinator<'_> {
    /// Has these items computed; `None` if one of them can only be computed here.
    pub(super) async fn run(
        &self,
        items: Vec<WorkItem>,
        fresh: bool,
        counts: bool,
    ) -> Result<Option<Vec<Outcome>>, RunError> {
        let store = &self.cx.store;
        let name = store.new_job();
        let (ended, last) = (BTreeMap::new(), Instant::now());
        let mut job = Job { cx: self.cx, name, items, ended, counts, last };
        let done = self.rounds(&mut job, fresh).await;
        // The remains of a job do no harm.
        let _ = store.end_job(&job.name).await;
        Ok(done?.then(|| job.ended.into_values().collect()))
    }

    async fn rounds(&self, job: &mut Job<'_>, fresh: bool) -> Result<bool, RunError> {
        let order = JobOrder {
            build: self.engine.build().to_string(),
            step: self.step.clone(),
            items: job.items.clone(),
            fresh,
        };
        self.cx.store.put_work(&job.name, ORDER, &order).await?;
        let (mut round, mut failed_before) = (1, Vec::new());
        loop {
            let mut missing = job.missing();
            if missing.is_empty() {
                return Ok(true);
            }
            // Twice, so that an executor that can compute it gets it as well as one that cannot.
            missing.append(&mut failed_before);
            let name = job.name.clone();
            let error = job.watch(self.engine.scatter(&name, &missing)).await?;
            match error {
                None => {}
                Some(EngineError::Unreachable(why)) if job.last.elapsed() < PATIENCE => {
                    self.waiting(&why);
                    sleep(PAUSE).await;
                    continue;
                }
                Some(EngineError::Unreachable(why) | EngineError::Refused(why)) => {
                    return Err(StepError::new(why).into());
                }
            }
            let failed = job.take_failures();
            if let Some((_, outcome, failure)) = failed.iter().find(|(_, _, f)| f.only_there) {
                let (why, by) = (&failure.message, &outcome.executor);
                tracing::info!("{by} cannot do it: {why}; it is done here");
                return Ok(false);
            }
            if let Some((item, outcome, failure)) =
                failed.iter().find(|(_, _, failure)| !failure.again || round >= ROUNDS)
            {
                let name = job.items[*item as usize].name();
                let (why, by) = (&failure.message, &outcome.executor);
                let error = StepError::new(format!("{why} (executor {by}, {name})"));
                return Err(match &failure.help {
                    Some(help) => error.help(help.as_str()).into(),
                    None => error.into(),
                });
            }
            for (item, outcome, failure) in &failed {
                let name = job.items[*item as usize].name();
                let (why, by) = (&failure.message, &outcome.executor);
                self.cx.warn(format!("{name}, by {by}: {why}; it is handed out again"));
                self.cx.store.forget_work(&job.name, &format!("{DONE}/{item}")).await?;
            }
            failed_before = failed.into_iter().map(|(item, ..)| item).collect();
            let missing = job.missing();
            if missing.is_empty() {
                return Ok(true);
            }
            if round >= ROUNDS {
                return Err(job.unended(&missing).into());
            }
            tracing::debug!(missing = missing.len(), round, "handed out again");
            round += 1;
        }
    }

    fn waiting(&self, why: &str) {
        let text = format!("waits for {}: {why}", self.engine.address().unwrap_or_default());
        (self.cx.lower.tell)(Tell::Waiting(text));
    }
}

impl Job<'_> {
    fn unended(&self, missing: &[u32]) -> StepError {
        let names: Vec<String> =
            missing.iter().take(3).map(|item| self.items[*item as usize].name()).collect();
        let more = missing.len().saturating_sub(names.len());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let message = format!(
            "{} of {} items were handed out {ROUNDS} times without a result: {}{more}",
            missing.len(),
            self.items.len(),
            names.join(", ")
        );
        StepError::new(message).help(
            "see what the executors say, and whether they use the same store; what is done is kept, \
             and another run goes on from there",
        )
    }

    /// The items without an outcome.
    fn missing(&self) -> Vec<u32> {
        (0..self.items.len() as u32).filter(|item| !self.ended.contains_key(item)).collect()
    }

    /// Waits until all items have outcomes, or the engine stops; returns the engine's error.
    async fn watch(
        &mut self,
        handed_out: impl Future<Output = Result<(), EngineError>>,
    ) -> Result<Option<EngineError>, RunError> {
        let mut handed_out = std::pin::pin!(handed_out);
        let (mut since, mut took) = (Instant::now(), Duration::ZERO);
        loop {
            let pause = (since.elapsed() / POLL_SHARE).clamp(POLL.0, POLL.1);
            let pause = pause.max(took * POLL_REST);
            let over = tokio::select! {
                over = &mut handed_out => Some(over),
                () = sleep(pause) => None,
            };
            let (before, asked) = (self.ended.len(), Instant::now());
            self.look().await?;
            took = asked.elapsed();
            if self.ended.len() > before {
                since = Instant::now();
            }
            if let Some(over) = over {
                return Ok(over.err());
            }
            let final_failure = |failure: &Failure| !failure.again;
            let failed = |outcome: &Outcome| outcome.failure.as_ref().is_some_and(final_failure);
            if self.ended.len() == self.items.len() || self.ended.values().any(failed) {
                return Ok(None);
            }
        }
    }

    async fn look(&mut self) -> Result<(), RunError> {
        for name in self.cx.store.work_names(&self.name, DONE).await? {
            let Ok(item) = name.parse::<u32>() else { continue };
            if item as usize >= self.items.len() || self.ended.contains_key(&item) {
                continue;
            }
            let path = format!("{DONE}/{item}");
            let Some(outcome) = self.cx.store.work::<Outcome>(&self.name, &path).await? else {
                continue;
            };
            self.tell(item, &outcome);
            self.last = Instant::now();
            self.ended.insert(item, outcome);
        }
        Ok(())
    }

    fn tell(&self, item: u32, outcome: &Outcome) {
        let name = self.items[item as usize].name();
        let (executor, seconds) = (&outcome.executor, outcome.seconds);
        tracing::debug!(item, name, executor, seconds, computed = outcome.computed, "item ended");
        for warning in &outcome.warnings {
            self.cx.warn(warning.clone());
        }
        let ended = self.ended.len() + 1;
        let text = format!("item {ended} of {} by {executor}: {name}", self.items.len());
        let step = self.cx.name.clone();
        self.cx.lower.env.events.send(RunEvent::Activity { step, text, waiting: false });
        if self.counts {
            let before: u64 = self.ended.values().map(|outcome| outcome.computed).sum();
            self.cx.progress(before + outcome.computed);
        }
    }

    /// Removes the failed items, which count as missing again.
    fn take_failures(&mut self) -> Vec<(u32, Outcome, Failure)> {
        let is_failure = |_: &u32, outcome: &mut Outcome| outcome.failure.is_some();
        let failed = self.ended.extract_if(.., is_failure).filter_map(|(item, mut outcome)| {
            let failure = outcome.failure.take()?;
            Some((item, outcome, failure))
        });
        failed.collect()
    }
}
