//! When the next request may be sent.
//!
//! The queue of requests, the user's limits per minute, and the gate that an answer “too many
//! requests” closes for all.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;

use super::client::{ChatNotice, ChatNotify};
use super::error::ChatError;
use super::waits::{Backoff, in_words};
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
        // The semaphore is never closed. The permit makes a queue; it does not guard data.
        let _turn = self.turn.acquire().await;
        loop {
            let changed = self.changed.notified();
            if stop.is_cancelled() {
                return None;
            }
            let (wait, notice) = match self.turn(tokens) {
                Ok(slot) => return Some(slot),
                Err(wait) => wait,
            };
            if let Some(text) = notice {
                notify(ChatNotice::Waiting(text));
            }
            tokio::select! {
                () = stop.cancelled() => return None,
                () = changed => (),
                () = self.clock.sleep(wait) => (),
            }
        }
    }

    /// Takes the turn of a request, or returns the wait for it and a notice of a long wait.
    fn turn(&self, tokens: u64) -> Result<Slot, (Duration, Option<String>)> {
        let mut state = self.state();
        let now = self.clock.now();
        let State { requests, tokens: window, gate } = &mut *state;
        let gated = if gate.ramp > 0 { gate.until.max(gate.next) } else { gate.until };
        let by_requests = requests.as_mut().map_or(now, |window| window.earliest(now, 1));
        let by_tokens = window.as_mut().map_or(now, |window| window.earliest(now, tokens));
        let paced = by_requests.max(by_tokens);
        let at = gated.max(paced);
        if at > now {
            let wait = at - now;
            if gate.until > now && wait >= WORTH_A_NOTICE && !gate.noticed {
                gate.noticed = true;
                return Err((wait, Some(format!("{} ({})", gate.reason, in_words(wait)))));
            }
            let limit = if by_tokens >= by_requests { "tokens" } else { "requests" };
            // The user may have asked for a pace of one request in ten seconds.
            let long = paced == at && wait >= WORTH_A_NOTICE * 5;
            let notice = format!("the limit of {limit} per minute ({})", in_words(wait));
            return Err((wait, long.then_some(notice)));
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
        Ok(Slot { generation, tokens })
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
            let wait = in_words(wait);
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

/// The time of a limit.
const MINUTE: Duration = Duration::from_secs(60);
/// How far uses may run ahead of an even pace, so that a timer that wakes up late costs nothing.
const SLACK: Duration = Duration::from_millis(250);

/// The uses of a limit: evenly spread, and never more than the limit in any 60 seconds.
///
/// A use counts with the limit at most, which fills the window as well: amounts come from a server
/// that may send any number, and one absurd amount delays what follows by one window and no more.
#[derive(Debug)]
struct Window {
    limit: u64,
    /// The uses of the last minute, oldest first.
    uses: VecDeque<Use>,
    /// The sum of them.
    used: u64,
    /// The number of the oldest of them.
    first: u64,
    /// When all uses so far would be over at an even pace.
    paced: Duration,
}

#[derive(Debug)]
struct Use {
    at: Duration,
    amount: u64,
}

impl Window {
    fn new(limit: u64) -> Self {
        let limit = limit.max(1);
        Self { limit, uses: VecDeque::new(), used: 0, first: 0, paced: Duration::ZERO }
    }

    /// The earliest time from `now` on at which `amount` may be used. More than the limit itself
    /// may be used when nothing else was used for a minute: it could never be otherwise.
    fn earliest(&mut self, now: Duration, amount: u64) -> Duration {
        while self.uses.front().is_some_and(|used| used.at + MINUTE <= now) {
            let over = self.uses.pop_front().map_or(0, |used| used.amount);
            self.used = self.used.saturating_sub(over);
            self.first += 1;
        }
        let mut earliest = now.max(self.paced.saturating_sub(SLACK));
        let mut used = self.used;
        for earlier in &self.uses {
            if used.saturating_add(amount) <= self.limit {
                break;
            }
            used = used.saturating_sub(earlier.amount);
            earliest = earliest.max(earlier.at + MINUTE);
        }
        earliest
    }

    /// Uses `amount` now. The number by which the use may be corrected is returned.
    fn take(&mut self, now: Duration, amount: u64) -> u64 {
        let amount = amount.min(self.limit);
        self.uses.push_back(Use { at: now, amount });
        self.used = self.used.saturating_add(amount);
        self.paced = self.paced.max(now) + self.time(amount);
        self.first + self.uses.len() as u64 - 1
    }

    /// The use of this number was another amount.
    fn correct(&mut self, number: u64, amount: u64) {
        let index = number.checked_sub(self.first).and_then(|i| usize::try_from(i).ok());
        let Some(index) = index.filter(|index| *index < self.uses.len()) else { return };
        let amount = amount.min(self.limit);
        let before = self.uses[index].amount;
        self.uses[index].amount = amount;
        self.used = self.used.saturating_sub(before).saturating_add(amount);
        self.paced = (self.paced + self.time(amount)).saturating_sub(self.time(before));
    }

    /// The time that `amount`, at most the limit, takes at an even pace.
    fn time(&self, amount: u64) -> Duration {
        let nanos = MINUTE.as_nanos() * u128::from(amount) / u128::from(self.limit);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)).min(MINUTE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses `amounts` as early as allowed, and returns the times; `late` is the delay of a timer.
    fn run(limit: u64, amounts: impl Iterator<Item = u64>, late: Duration) -> Vec<(Duration, u64)> {
        let (mut window, mut now) = (Window::new(limit), Duration::from_secs(1_000));
        let used = amounts.map(|amount| {
            let earliest = window.earliest(now, amount);
            now = if earliest > now { earliest + late } else { now };
            window.take(now, amount);
            (now, amount)
        });
        used.collect()
    }

    /// The most that was used in any stretch of this length.
    fn busiest(uses: &[(Duration, u64)], stretch: Duration) -> u64 {
        let (mut most, mut sum, mut first) = (0, 0, 0);
        for (at, amount) in uses {
            sum += amount;
            while uses[first].0 + stretch <= *at {
                sum -= uses[first].1;
                first += 1;
            }
            most = most.max(sum);
        }
        most
    }

    #[test]
    fn no_minute_has_more_than_the_limit() {
        let late = Duration::from_millis(1);
        for limit in [1, 2, 7, 60, 600, 3_000] {
            let count = limit * 3 + 1;
            let uses = run(limit, (0..count).map(|_| 1), late);
            assert!(busiest(&uses, MINUTE) <= limit, "{limit}: {}", busiest(&uses, MINUTE));
            let took = uses[uses.len() - 1].0 - uses[0].0;
            assert!(took >= MINUTE * 3 - SLACK && took < MINUTE * 3 + MINUTE / 20, "{took:?}");
            // Evenly: no second has much more than its part.
            let most = busiest(&uses, Duration::from_secs(1));
            assert!(most <= limit / 60 + limit / 240 + 2, "{limit}: {most} in a second");
        }
        let uses = run(10_000, (0..400).map(|n| n * 7_919 % 1_500), late);
        let most = busiest(&uses, MINUTE);
        assert!(most <= 10_000 && most > 8_500, "{most}");
    }

    #[test]
    fn more_than_the_limit_goes_alone() {
        let uses = run(100, [50, 5_000, 10].into_iter(), Duration::ZERO);
        let took = |n: usize| uses[n].0 - uses[n - 1].0;
        assert_eq!((took(1), took(2)), (MINUTE, MINUTE));
    }

    #[test]
    fn corrections_count_at_once() {
        let now = Duration::from_secs(1_000);
        let mut window = Window::new(1_000);
        let number = window.take(now, 900);
        assert_eq!(window.earliest(now, 200), now + MINUTE);
        window.correct(number, 100);
        assert_eq!(window.earliest(now, 200), now + MINUTE / 10 - SLACK);
        window.correct(number, 1_000);
        assert_eq!(window.earliest(now, 1), now + MINUTE);
        assert_eq!(window.earliest(now + MINUTE, 1_000), now + MINUTE);
        window.correct(number, 5);
        assert_eq!(window.used, 0, "too late to matter");
    }

    #[test]
    fn an_absurd_amount_delays_one_window() {
        for absurd in [1_001, u64::MAX - 10, u64::MAX] {
            let mut now = Duration::from_secs(1_000);
            let mut window = Window::new(1_000);
            window.take(now, 20);
            let number = window.take(now, 20);
            window.correct(number, absurd);
            let next = window.earliest(now, 20);
            let most = now + MINUTE + MINUTE / 30;
            assert!(next >= now + MINUTE && next < most, "{absurd}: {next:?}");
            // After it all is as before: 20 of 1,000 take 1.2 seconds.
            now += MINUTE * 2;
            let end = now + Duration::from_secs(60);
            for _ in 0..50 {
                now = window.earliest(now, 20);
                window.take(now, 20);
            }
            assert!(now < end, "{absurd}: {now:?}");
            // Expected amounts are as absurd when they are learned.
            now = window.earliest(now + MINUTE * 2, absurd);
            window.take(now, absurd);
            assert_eq!(window.earliest(now, 20), now + MINUTE, "{absurd}");
            now += MINUTE;
            assert_eq!((window.earliest(now, 20), window.used), (now, 0), "{absurd}");
        }
    }
}
