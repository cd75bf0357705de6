//! One limit per minute, of requests or of tokens: the uses of the last minute, and the time of the next.

use std::collections::VecDeque;
use std::time::Duration;

/// The time of a limit.
const MINUTE: Duration = Duration::from_secs(60);
/// How far uses may run ahead of an even pace, so that a timer that wakes up late costs nothing.
const SLACK: Duration = Duration::from_millis(250);

/// The uses of a limit: evenly spread, and never more than the limit in any 60 seconds.
///
/// A use counts with the limit at most, which fills the window as well: amounts come from a server
/// that may send any number, and one absurd amount delays what follows by one window and no more.
#[derive(Debug)]
pub(super) struct Window {
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
    pub(super) fn new(limit: u64) -> Self {
        let limit = limit.max(1);
        Self { limit, uses: VecDeque::new(), used: 0, first: 0, paced: Duration::ZERO }
    }

    /// The earliest time from `now` on at which `amount` may be used. More than the limit itself
    /// may be used when nothing else was used for a minute: it could never be otherwise.
    pub(super) fn earliest(&mut self, now: Duration, amount: u64) -> Duration {
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
    pub(super) fn take(&mut self, now: Duration, amount: u64) -> u64 {
        let amount = amount.min(self.limit);
        self.uses.push_back(Use { at: now, amount });
        self.used = self.used.saturating_add(amount);
        self.paced = self.paced.max(now) + self.time(amount);
        self.first + self.uses.len() as u64 - 1
    }

    /// The use of this number was another amount.
    pub(super) fn correct(&mut self, number: u64, amount: u64) {
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
            assert!(
                next >= now + MINUTE && next < now + MINUTE + MINUTE / 30,
                "{absurd}: {next:?}"
            );
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
