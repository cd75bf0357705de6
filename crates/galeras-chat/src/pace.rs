//! When the next request may be sent.
//!
//! The queue of requests, the user's limits per minute, and the gate that an answer “too many
//! requests” closes for all.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;

use super::backoff::Backoff;
use super::client::{ChatNotice, ChatNotify};
use super::error::ChatError;
use super::readable;
use super::window::Window;
use galeras_net::Clock;

/// Between two requests after the gate opened, until `concurrency` of them were sent: not all
/// that waited go at once.
const RAMP: Duration = Duration::from_millis(100);
/// How often the gate may close without one good answer in between.
const CLOSINGS: u32 = 10;
/// The longest time that a server may ask us to wait.
const LONGEST: Duration = Duration::from_secs(3_600);
/// Shorter waits make no notice.
pub(super) const WORTH_A_NOTICE: Duration = Duration::from_secs(3);

pub(super) struct Pace {
    clock: Arc<dyn Clock>,
    backoff: Backoff,
    concurrency: usize,
    state: Mutex<State>,
    /// Lets one request at a time wait for its turn, in the order of arrival.
    turn: Semaphore,
    /// Notified when the request whose turn it is may go earlier or not at all.
    changed: Notify,
}

struct State {
    requests: Option<Window>,
    tokens: Option<Window>,
    gate: Gate,
}

#[derive(Default)]
struct Gate {
    until: Duration,
    /// How often it was closed. Of the requests sent side by side many get the same answer; only
    /// the first of them closes it.
    generation: u64,
    /// How often it was closed since the last good answer.
    closings: u32,
    reason: String,
    noticed: bool,
    /// How many requests are still sent one by one, and when the next of them is.
    ramp: usize,
    next: Duration,
}

/// The permission to send one request.
#[derive(Debug)]
pub(super) struct Slot {
    generation: u64,
    /// The number of its use of the tokens.
    tokens: Option<u64>,
}

enum Turn {
    Go(Slot),
    Wait { for_: Duration, tell: Option<String> },
}

impl Pace {
    pub(super) fn new(
        clock: Arc<dyn Clock>,
        seed: u64,
        concurrency: usize,
        requests_per_minute: Option<u64>,
        tokens_per_minute: Option<u64>,
    ) -> Self {
        let (first, longest) = (Duration::from_secs(1), Duration::from_secs(60));
        let state = State {
            requests: requests_per_minute.map(Window::new),
            tokens: tokens_per_minute.map(Window::new),
            gate: Gate::default(),
        };
        Self {
            clock,
            backoff: Backoff { seed, first, longest },
            concurrency,
            state: Mutex::new(state),
            turn: Semaphore::new(1),
            changed: Notify::new(),
        }
    }

    /// Waits until a request of so many tokens may be sent; nothing if `stop` is cancelled
    /// before.
    pub(super) async fn enter(
        &self,
        tokens: u64,
        notify: ChatNotify<'_>,
        stop: &CancellationToken,
    ) -> Option<Slot> {
        // The first request need not queue. It may overtake one that came at the same time, which does
        // no harm.
        if self.turn.available_permits() > 0
            && !stop.is_cancelled()
            && let Turn::Go(slot) = self.turn(tokens, false)
        {
            return Some(slot);
        }
        // The semaphore is never closed. The permit makes a queue; it does not guard data.
        let _turn = self.turn.acquire().await;
        loop {
            let changed = self.changed.notified();
            let turn = self.turn(tokens, true);
            if stop.is_cancelled() {
                return None;
            }
            match turn {
                Turn::Go(slot) => return Some(slot),
                Turn::Wait { for_, tell } => {
                    if let Some(text) = tell {
                        notify(ChatNotice::Waiting(text));
                    }
                    tokio::select! {
                        () = stop.cancelled() => return None,
                        () = changed => (),
                        () = self.clock.sleep(for_) => (),
                    }
                }
            }
        }
    }

    /// Takes the turn of a request, or returns the wait for it and, if `telling`, a notice of a long
    /// wait.
    fn turn(&self, tokens: u64, telling: bool) -> Turn {
        let mut state = self.state();
        let now = self.clock.now();
        let State { requests, tokens: window, gate } = &mut *state;
        let gated = if gate.ramp > 0 { gate.until.max(gate.next) } else { gate.until };
        let by_requests = requests.as_mut().map_or(now, |window| window.earliest(now, 1));
        let by_tokens = window.as_mut().map_or(now, |window| window.earliest(now, tokens));
        let paced = by_requests.max(by_tokens);
        let at = gated.max(paced);
        if at > now {
            let for_ = at - now;
            if !telling {
                return Turn::Wait { for_, tell: None };
            }
            if gate.until > now && for_ >= WORTH_A_NOTICE && !gate.noticed {
                gate.noticed = true;
                let tell = Some(format!("{} ({})", gate.reason, readable::duration(for_)));
                return Turn::Wait { for_, tell };
            }
            let limit = if by_tokens >= by_requests { "tokens" } else { "requests" };
            // The user may have asked for a pace of one request in ten seconds.
            let long = paced == at && for_ >= WORTH_A_NOTICE * 5;
            let tell = long
                .then(|| format!("the limit of {limit} per minute ({})", readable::duration(for_)));
            return Turn::Wait { for_, tell };
        }
        if gate.ramp > 0 {
            gate.ramp -= 1;
            gate.next = now + RAMP;
        }
        let generation = gate.generation;
        if let Some(window) = requests {
            window.take(now, 1);
        }
        let tokens = window.as_mut().map(|window| window.take(now, tokens));
        Turn::Go(Slot { generation, tokens })
    }

    /// Corrects the estimate of a request to `tokens`.
    pub(super) fn correct(&self, slot: &Slot, tokens: u64) {
        let Some(number) = slot.tokens else { return };
        let mut state = self.state();
        if let Some(window) = &mut state.tokens {
            window.correct(number, tokens);
        }
        drop(state);
        self.changed.notify_one();
    }

    /// The request got a good answer: the server answers some at least. One that was sent just
    /// before the gate closed counts, as most answers take longer than a refusal.
    pub(super) fn good(&self, slot: &Slot) {
        let mut state = self.state();
        if state.gate.generation <= slot.generation + 1 {
            state.gate.closings = 0;
        }
    }

    /// The server asked to wait, perhaps for a certain time, for a `reason`: nothing is sent
    /// for so long.
    ///
    /// # Errors
    /// [`ChatError::Fatal`] if that takes too long, or did not help again and again.
    pub(super) fn limited(
        &self,
        slot: &Slot,
        wait: Option<Duration>,
        reason: String,
    ) -> Result<(), ChatError> {
        if let Some(wait) = wait.filter(|wait| *wait > LONGEST) {
            let wait = readable::duration(wait);
            let text = format!("{reason}: it wants us to wait for {wait}; start again then");
            return Err(ChatError::Fatal(text));
        }
        let mut state = self.state();
        let now = self.clock.now();
        let gate = &mut state.gate;
        if slot.generation != gate.generation {
            gate.until = gate.until.max(now + wait.unwrap_or_default());
            return Ok(());
        }
        gate.closings += 1;
        if gate.closings > CLOSINGS {
            let text = format!(
                "{reason}: still so after {CLOSINGS} waits without one good answer; start again \
                 later, or let fewer requests go side by side"
            );
            return Err(ChatError::Fatal(text));
        }
        gate.generation += 1;
        let own = self.backoff.wait(gate.generation, gate.closings);
        let wait = match wait {
            // The first time, the server's own wait is enough.
            Some(wait) if gate.closings == 1 => wait,
            Some(wait) => wait.max(own),
            None => own,
        };
        gate.until = gate.until.max(now + wait);
        let wait_seconds = wait.as_secs_f64();
        tracing::debug!(attempt = gate.closings, wait_seconds, "chat server limits requests");
        (gate.reason, gate.noticed, gate.ramp) = (reason, false, self.concurrency);
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in a critical section can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
