//! How far a run is: its events are watched on their way to whoever shows them, and what is left is
//! estimated from what the steps took before, and from how fast they are now.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::AbortHandle;

use super::history::RunHistory;
use super::past_work::{Expectation, base, expectations};
use super::time_left::{Rest, time_left};
use crate::plan::Plan;
use galeras_operator::event::{EventSink, RunEvent, StepStatus, StepSummary};
use galeras_store::Store;

/// While a step is computed, the run tells how far it is this often.
const TICK: Duration = Duration::from_secs(1);

/// One part in so many of the time goes to estimates of what is left, unless they get too old.
const ESTIMATE_SHARE: u32 = 100;
const OLDEST_ESTIMATE: Duration = Duration::from_millis(500);

/// Before a step has computed for so long, and so much, its speed says little.
const LEAST_TIME: Duration = Duration::from_secs(3);
const LEAST_SHARE: u64 = 50;

/// A step that takes this much longer than expected, and some seconds, is one of which nothing is
/// known.
const OVERDUE: f64 = 1.25;
const GRACE: f64 = 2.0;

/// The machine, or what runs beside, may be faster or slower than it was, within reason. So many
/// seconds must have been compared before that counts.
const MOST_DRIFT: f64 = 4.0;
const LEAST_COMPARED: f64 = 1.0;

/// The events of a run on their way, and how far they say it is.
pub(super) struct RunProgress {
    events: Arc<dyn EventSink>,
    state: Mutex<RunState>,
    ticks: OnceLock<AbortHandle>,
}

struct RunState {
    plan: Arc<Plan>,
    upstream: Vec<Vec<usize>>,
    places: HashMap<String, usize>,
    steps: Vec<Phase>,
    /// The steps that are wanted, and those of them that ended or are being computed.
    wanted: usize,
    begun: usize,
    /// Steps that are computed side by side.
    slots: usize,
    /// What earlier runs say of each step, when they have been read.
    expected: Option<Vec<Option<Expectation>>>,
    /// Seconds that steps of this run took, and that they were expected to take.
    took: f64,
    foreseen: f64,
    /// What was last told of the time that is left.
    estimate: Option<Estimate>,
}

/// An estimate of the time that is left.
struct Estimate {
    made: Instant,
    good_until: Instant,
    seconds: Option<f64>,
}

/// Where a step is.
#[derive(Clone, Debug)]
enum Phase {
    /// Nobody wants it.
    Unwanted,
    /// It was not looked at yet.
    Ahead,
    /// It has no stored result, and waits for its turn.
    Queued,
    /// It is being computed.
    Running { since: Instant, work: Option<Work> },
    /// It ended: how, and with how many rows on which port.
    Ended { status: StepStatus, ports: Vec<(String, u64)> },
}

/// How far a running step is, in its unit.
#[derive(Clone, Copy, Debug)]
struct Work {
    since: Instant,
    total: u64,
    done: u64,
}

impl RunProgress {
    /// The progress of a run of the `wanted` steps of the plan, `slots` of which are computed at a
    /// time.
    pub(super) fn new(
        events: Arc<dyn EventSink>,
        plan: Arc<Plan>,
        wanted: &[bool],
        slots: usize,
    ) -> Self {
        let phase = |wanted: &bool| if *wanted { Phase::Ahead } else { Phase::Unwanted };
        let places = plan.steps.iter().enumerate().map(|(at, step)| (step.name.clone(), at));
        let state = RunState {
            upstream: plan.steps.iter().map(|step| step.upstream().collect()).collect(),
            places: places.collect(),
            steps: wanted.iter().map(phase).collect(),
            wanted: wanted.iter().filter(|wanted| **wanted).count(),
            begun: 0,
            slots,
            expected: None,
            took: 0.0,
            foreseen: 0.0,
            estimate: None,
            plan,
        };
        Self { events, state: Mutex::new(state), ticks: OnceLock::new() }
    }

    fn state(&self) -> MutexGuard<'_, RunState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A step has no stored result and waits for its turn to compute.
    pub(super) fn queued(&self, at: usize) {
        self.state().steps[at] = Phase::Queued;
    }

    /// Reads what earlier runs took, and tells every second how far this one is. Called when the
    /// first step is computed: a run that computes nothing has nothing to tell.
    pub(super) fn begin(
        self: &Arc<Self>,
        history: &Arc<RunHistory>,
        store: &Store,
        force: &HashSet<usize>,
    ) {
        let (progress, history) = (Arc::downgrade(self), Arc::clone(history));
        let (plan, store, force) = (Arc::clone(&self.state().plan), store.clone(), force.clone());
        let task = tokio::spawn(async move {
            let expected = expectations(&plan, &history, &store, &force).await;
            if let Some(progress) = progress.upgrade() {
                let mut state = progress.state();
                (state.expected, state.estimate) = (Some(expected), None);
            }
            let mut ticks = tokio::time::interval(TICK);
            loop {
                ticks.tick().await;
                match progress.upgrade() {
                    Some(progress) => progress.tell(),
                    None => break,
                }
            }
        });
        if self.ticks.set(task.abort_handle()).is_err() {
            task.abort();
        }
    }

    /// The run is over: nothing more is told of its progress.
    pub(super) fn end(&self) {
        if let Some(ticks) = self.ticks.get() {
            ticks.abort();
        }
    }

    /// Tells how far the run is, while a step is computed.
    fn tell(&self) {
        let told = {
            let mut state = self.state();
            let running = |phase: &Phase| matches!(phase, Phase::Running { .. });
            state.steps.iter().any(running).then(|| RunEvent::RunProgress {
                begun: state.begun,
                steps: state.wanted,
                seconds_left: state.estimated(Instant::now()),
            })
        };
        if let Some(event) = told {
            self.events.send(event);
        }
    }
}

impl Drop for RunProgress {
    fn drop(&mut self) {
        self.end();
    }
}

impl EventSink for RunProgress {
    fn send(&self, event: RunEvent) {
        let starts = matches!(event, RunEvent::StepStarted { .. });
        // The state is free again before anything is sent.
        let change = self.state().note(&event, Instant::now());
        match change {
            // Before the step is shown, so that it can be with its number.
            Change::Computing if starts => {
                self.tell();
                self.events.send(event);
            }
            Change::Computing => {
                self.events.send(event);
                self.tell();
            }
            Change::Other => self.events.send(event),
            Change::Backwards => {}
        }
    }
}

/// What an event says of the run's progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// A step has begun to compute, or has been computed.
    Computing,
    /// Something else.
    Other,
    /// It is behind what was told already: a step that counts its own work also stores rows.
    Backwards,
}

impl RunState {
    fn note(&mut self, event: &RunEvent, now: Instant) -> Change {
        match event {
            RunEvent::StepStarted { step, .. } => {
                match self.phase(step) {
                    // An input that is computed again because its file is damaged.
                    None | Some(Phase::Ended { .. } | Phase::Running { .. }) => Change::Other,
                    Some(phase) => {
                        *phase = Phase::Running { since: now, work: None };
                        self.begun += 1;
                        Change::Computing
                    }
                }
            }
            RunEvent::StepTotal { step, total, .. } => {
                if let Some(Phase::Running { work, .. }) = self.phase(step) {
                    *work = Some(Work { since: now, total: *total, done: 0 });
                }
                Change::Other
            }
            RunEvent::Progress { step, done, .. } => match self.phase(step) {
                Some(Phase::Running { work: Some(work), .. }) if *done < work.done => {
                    Change::Backwards
                }
                Some(Phase::Running { work: Some(work), .. }) => {
                    work.done = *done;
                    Change::Other
                }
                _ => Change::Other,
            },
            RunEvent::StepFinished(summary) => {
                self.ended(summary);
                match summary.status {
                    StepStatus::Ran | StepStatus::Failed => Change::Computing,
                    StepStatus::Hit | StepStatus::Skipped => Change::Other,
                }
            }
            _ => Change::Other,
        }
    }

    fn phase(&mut self, step: &str) -> Option<&mut Phase> {
        self.places.get(step).map(|at| &mut self.steps[*at])
    }

    fn ended(&mut self, summary: &StepSummary) {
        let Some(at) = self.places.get(&summary.step).copied() else { return };
        if let Phase::Running { work, .. } = &self.steps[at] {
            let foreseen = self.foreseen(at, work.as_ref().map(|work| work.total));
            if let (Some(foreseen), StepStatus::Ran) = (foreseen, summary.status) {
                self.took += summary.seconds;
                self.foreseen += foreseen;
            }
        } else {
            self.begun += 1;
        }
        let ports = summary.ports.iter().map(|port| (port.port.clone(), port.rows));
        self.steps[at] = Phase::Ended { status: summary.status, ports: ports.collect() };
    }

    /// How long the step takes as a whole, by earlier runs.
    fn foreseen(&self, at: usize, total: Option<u64>) -> Option<f64> {
        let expected = self.expected.as_ref()?[at].as_ref()?;
        match total {
            Some(total) => expected.of_work(total),
            None => expected.seconds(self.input_rows(at)),
        }
    }

    /// The rows of all inputs of a step, once they are computed.
    fn input_rows(&self, at: usize) -> Option<u64> {
        let tables = self.plan.steps[at].inputs.iter().flat_map(|input| &input.tables);
        let rows = tables.map(|table| match &self.steps[table.step] {
            Phase::Ended { ports, .. } => {
                ports.iter().find(|(port, _)| port == table.port).map(|(_, rows)| *rows)
            }
            _ => None,
        });
        rows.sum()
    }

    /// How much slower this run is than earlier ones, as far as they were compared.
    fn drift(&self) -> f64 {
        match self.foreseen >= LEAST_COMPARED {
            true => (self.took / self.foreseen).clamp(1.0 / MOST_DRIFT, MOST_DRIFT),
            false => 1.0,
        }
    }

    /// The seconds that the rest of the run takes, by an estimate that may be some time old: each
    /// looks at all steps, and with thousands of them it would take longer than many a step.
    fn estimated(&mut self, now: Instant) -> Option<f64> {
        if let Some(last) = &self.estimate
            && now < last.good_until
        {
            let since = now.saturating_duration_since(last.made).as_secs_f64();
            return last.seconds.map(|seconds| (seconds - since).max(0.0));
        }
        let seconds = self.seconds_left(now);
        let good_for = (ESTIMATE_SHARE * now.elapsed()).min(OLDEST_ESTIMATE);
        self.estimate = Some(Estimate { made: now, good_until: now + good_for, seconds });
        seconds
    }

    /// The seconds that the rest of the run takes; nothing if that of one step is not known.
    fn seconds_left(&self, now: Instant) -> Option<f64> {
        let drift = self.drift();
        // What is computed now, or will be as far as anybody can tell.
        let computing = |phase: &Phase| match phase {
            Phase::Queued | Phase::Running { .. } => true,
            Phase::Ended { status, .. } => *status == StepStatus::Ran,
            Phase::Unwanted | Phase::Ahead => false,
        };
        let cells: HashSet<&str> = (0..self.steps.len())
            .filter(|at| computing(&self.steps[*at]))
            .map(|at| base(&self.plan.steps[at].name))
            .collect();
        let mut failed = vec![false; self.steps.len()];
        let mut rest = Vec::with_capacity(self.steps.len());
        for (at, phase) in self.steps.iter().enumerate() {
            let upstream = &self.upstream[at];
            failed[at] = upstream.iter().any(|u| failed[*u])
                || matches!(phase, Phase::Ended { status: StepStatus::Failed, .. });
            let own = match phase {
                _ if failed[at] => Rest::Nothing,
                Phase::Unwanted | Phase::Ended { .. } => Rest::Nothing,
                Phase::Running { since, work } => {
                    Rest::Running(self.running(at, *since, work.as_ref(), drift, now)?)
                }
                Phase::Ahead
                    if !upstream.iter().any(|u| rest[*u] != Rest::Nothing)
                        && !upstream.iter().any(|u| computing(&self.steps[*u]))
                        && !cells.contains(base(&self.plan.steps[at].name)) =>
                {
                    // All that it reads was stored, and so is most probably its result.
                    Rest::Nothing
                }
                Phase::Ahead | Phase::Queued => Rest::Waiting(self.foreseen(at, None)? * drift),
            };
            rest.push(own);
        }
        Some(time_left(&rest, &self.upstream, self.slots))
    }

    /// The seconds that a running step still takes: by its speed, if that can be told yet.
    fn running(
        &self,
        at: usize,
        since: Instant,
        work: Option<&Work>,
        drift: f64,
        now: Instant,
    ) -> Option<f64> {
        if let Some(work) = work {
            let busy = now.saturating_duration_since(work.since);
            let share = (work.total / LEAST_SHARE).max(1);
            if work.total == 0 || work.done >= work.total {
                return Some(0.0);
            }
            if busy >= LEAST_TIME && work.done >= share {
                let each = busy.as_secs_f64() / work.done as f64;
                return Some(each * (work.total - work.done) as f64);
            }
        }
        let whole = self.foreseen(at, work.map(|work| work.total))? * drift;
        let busy = now.saturating_duration_since(since).as_secs_f64();
        (busy <= whole * OVERDUE + GRACE).then(|| (whole - busy).max(0.0))
    }
}
