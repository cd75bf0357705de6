//! The progress of a run: watches its events, and estimates the remaining time from earlier runs
//! and the present speed.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use tokio_util::task::AbortOnDropHandle;

use super::history::{Expectation, RunHistory, base, expectations};
use crate::locked;
use crate::plan::Plan;
use galeras_operator::event::{EventSink, RunEvent, StepStatus, StepSummary};
use galeras_store::Store;

/// The interval of progress events while a step is computed.
const TICK: Duration = Duration::from_secs(1);

/// Estimates may use one of this many parts of the time, unless the last one gets too old.
const ESTIMATE_SHARE: u32 = 100;
const OLDEST_ESTIMATE: Duration = Duration::from_millis(500);

/// Before a step has computed for this time and this share of its work, its speed is not reliable.
const LEAST_TIME: Duration = Duration::from_secs(3);
const LEAST_SHARE: u64 = 50;

/// If a step takes this much longer than expected, plus the grace, its expected time is ignored.
const OVERDUE: f64 = 1.25;
const GRACE: f64 = 2.0;

/// The machine may be faster or slower than before, up to this factor. It counts after this many
/// compared seconds.
const MOST_DRIFT: f64 = 4.0;
const LEAST_COMPARED: f64 = 1.0;

/// Forwards the events of a run and tracks its progress.
pub(super) struct RunProgress {
    events: Arc<dyn EventSink>,
    state: Mutex<RunState>,
    ticks: OnceLock<AbortOnDropHandle<()>>,
}

struct RunState {
    plan: Arc<Plan>,
    upstream: Vec<Vec<usize>>,
    places: HashMap<String, usize>,
    steps: Vec<Phase>,
    /// The number of wanted steps, and of those that have ended or are being computed.
    wanted: usize,
    begun: usize,
    slots: usize,
    /// The expectations from earlier runs, once they are read.
    expected: Option<Vec<Option<Expectation>>>,
    /// The actual and the expected seconds of this run's steps.
    took: f64,
    foreseen: f64,
    estimate: Option<Estimate>,
}

struct Estimate {
    made: Instant,
    good_until: Instant,
    seconds: Option<f64>,
}

#[derive(Clone, Debug)]
enum Phase {
    /// Not part of the run.
    Unwanted,
    /// Not looked at yet.
    Ahead,
    /// It has no stored result, and waits for its turn.
    Queued,
    /// It is being computed.
    Running { since: Instant, work: Option<Work> },
    /// Its outcome, and the rows of its ports.
    Ended { status: StepStatus, ports: Vec<(String, u64)> },
}

/// The progress of a running step, in its unit.
#[derive(Clone, Copy, Debug)]
struct Work {
    since: Instant,
    total: u64,
    done: u64,
}

impl RunProgress {
    /// The progress of a run of the `wanted` steps, of which `slots` are computed at once.
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

    /// A step has no stored result and waits for its turn to compute.
    pub(super) fn queued(&self, at: usize) {
        locked(&self.state).steps[at] = Phase::Queued;
    }

    /// Reads the history and sends the progress every second. Called when the first step is
    /// computed: a run that computes nothing has no progress.
    pub(super) fn begin(
        self: &Arc<Self>,
        history: &Arc<RunHistory>,
        store: &Store,
        force: &HashSet<usize>,
    ) {
        let (progress, history) = (Arc::downgrade(self), Arc::clone(history));
        let (plan, store, force) =
            (Arc::clone(&locked(&self.state).plan), store.clone(), force.clone());
        let task = tokio::spawn(async move {
            let expected = expectations(&plan, &history, &store, &force).await;
            if let Some(progress) = progress.upgrade() {
                let mut state = locked(&progress.state);
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
        // A second task is aborted.
        let _ = self.ticks.set(AbortOnDropHandle::new(task));
    }

    /// Ends the progress events.
    pub(super) fn end(&self) {
        if let Some(ticks) = self.ticks.get() {
            ticks.abort();
        }
    }

    fn tell(&self) {
        let told = {
            let mut state = locked(&self.state);
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

impl EventSink for RunProgress {
    fn send(&self, event: RunEvent) {
        let starts = matches!(event, RunEvent::StepStarted { .. });
        // Releases the state before anything is sent.
        let change = locked(&self.state).note(&event, Instant::now());
        match change {
            // Sent before the step's event, so that its line can have a number.
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

/// The effect of an event on the run's progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// A step has started or finished computing.
    Computing,
    Other,
    /// Less than an earlier event: a step that counts its own work also stores rows.
    Backwards,
}

impl RunState {
    fn note(&mut self, event: &RunEvent, now: Instant) -> Change {
        match event {
            RunEvent::StepStarted { step, .. } => {
                match self.phase(step) {
                    // An input that is recomputed because its file is damaged.
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

    /// The total time of the step, from earlier runs.
    fn foreseen(&self, at: usize, total: Option<u64>) -> Option<f64> {
        let expected = self.expected.as_ref()?[at].as_ref()?;
        match total {
            Some(total) => expected.of_work(total),
            None => expected.seconds(self.input_rows(at)),
        }
    }

    /// The rows of a step's inputs, once they are computed.
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

    /// The slowdown of this run compared with earlier ones.
    fn drift(&self) -> f64 {
        match self.foreseen >= LEAST_COMPARED {
            true => (self.took / self.foreseen).clamp(1.0 / MOST_DRIFT, MOST_DRIFT),
            false => 1.0,
        }
    }

    /// The remaining seconds, from an estimate that may be old: with thousands of steps, a new one
    /// takes longer than many a step.
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

    /// The remaining seconds; `None` if the time of one step is unknown.
    fn seconds_left(&self, now: Instant) -> Option<f64> {
        let drift = self.drift();
        // Steps that are computed now or, as far as known, later.
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
                    // Everything it reads was stored, so its result probably is.
                    Rest::Nothing
                }
                Phase::Ahead | Phase::Queued => Rest::Waiting(self.foreseen(at, None)? * drift),
            };
            rest.push(own);
        }
        Some(time_left(&rest, &self.upstream, self.slots))
    }

    /// The remaining seconds of a running step: from its speed, if that is known.
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

/// The remaining work of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Rest {
    /// It has ended, is stored, or will not run.
    Nothing,
    /// It is being computed, for this many more seconds.
    Running(f64),
    /// It will be computed, for this many seconds, after its inputs.
    Waiting(f64),
}

/// Seconds until every step is done if `slots` are computed at once, in plan order as far as their
/// inputs allow. `upstream` are the steps that each one reads, which come before it.
pub(super) fn time_left(rest: &[Rest], upstream: &[Vec<usize>], slots: usize) -> f64 {
    let mut open = vec![0; rest.len()];
    let mut downstream: Vec<Vec<usize>> = vec![Vec::new(); rest.len()];
    let mut ready: BinaryHeap<Reverse<usize>> = BinaryHeap::new();
    let mut running: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    for (i, own) in rest.iter().enumerate() {
        match own {
            Rest::Nothing => {}
            Rest::Running(seconds) => running.push(Reverse((microseconds(*seconds), i))),
            Rest::Waiting(_) => {
                for u in upstream[i].iter().filter(|u| rest[**u] != Rest::Nothing) {
                    open[i] += 1;
                    downstream[*u].push(i);
                }
                if open[i] == 0 {
                    ready.push(Reverse(i));
                }
            }
        }
    }
    let mut now = 0;
    loop {
        while running.len() < slots.max(1)
            && let Some(Reverse(next)) = ready.pop()
        {
            if let Rest::Waiting(seconds) = rest[next] {
                running.push(Reverse((now + microseconds(seconds), next)));
            }
        }
        let Some(Reverse((end, ended))) = running.pop() else { break };
        now = end;
        for next in &downstream[ended] {
            open[*next] -= 1;
            if open[*next] == 0 {
                ready.push(Reverse(*next));
            }
        }
    }
    now as f64 / 1e6
}

fn microseconds(seconds: f64) -> u64 {
    (seconds.clamp(0.0, 1e9) * 1e6) as u64
}

#[cfg(test)]
mod tests {
    use super::Rest::{Nothing, Running, Waiting};
    use super::*;

    #[test]
    fn a_chain_takes_the_sum_of_its_steps() {
        let upstream = [vec![], vec![0], vec![1], vec![2]];
        let rest = [Nothing, Running(1.5), Waiting(2.0), Waiting(4.0)];
        assert_eq!(time_left(&rest, &upstream, 8), 7.5);
        assert_eq!(time_left(&rest, &upstream, 1), 7.5);
        assert_eq!(time_left(&[], &[], 1), 0.0);
        assert_eq!(time_left(&[Nothing, Nothing], &[vec![], vec![0]], 0), 0.0);
    }

    #[test]
    fn independent_steps_share_the_slots() {
        let upstream = vec![Vec::new(); 4];
        let rest = [Running(3.0), Waiting(1.0), Waiting(1.0), Waiting(1.0)];
        assert_eq!(time_left(&rest, &upstream, 1), 6.0);
        assert_eq!(time_left(&rest, &upstream, 2), 3.0);
        assert_eq!(time_left(&rest, &upstream, 4), 3.0);
        assert_eq!(time_left(&[Waiting(2.0); 4], &upstream, 3), 4.0);
    }

    #[test]
    fn a_step_waits_for_the_last_of_what_it_reads() {
        let upstream = [vec![], vec![], vec![0, 1, 1], vec![0]];
        let rest = [Running(1.0), Running(5.0), Waiting(2.0), Waiting(1.0)];
        assert_eq!(time_left(&rest, &upstream, 2), 7.0);
    }

    #[test]
    fn no_time_is_too_long_or_too_odd() {
        let upstream = [vec![], vec![0]];
        for seconds in [f64::NAN, -1.0] {
            assert_eq!(time_left(&[Running(seconds), Waiting(1.0)], &upstream, 1), 1.0);
        }
        assert!(time_left(&[Waiting(f64::INFINITY); 2], &upstream, 1) >= 1e9);
    }
}
