//! How long to wait before the next try.
//!
//! Growing waits with a jitter that depends on a seed only, so that tests know it.

use std::time::Duration;

/// Waits of `first` for the first failure, twice as long for each further one up to `longest`,
/// of which up to the half is taken off again, differently for every `key`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backoff {
    pub(super) seed: u64,
    pub(super) first: Duration,
    pub(super) longest: Duration,
}

impl Backoff {
    /// The wait of `key` (a request) after its `failures`th failure, counted from 1.
    pub(super) fn wait(&self, key: u64, failures: u32) -> Duration {
        let doubled = 2_u32.checked_pow(failures.saturating_sub(1));
        let whole = doubled.map_or(self.longest, |by| self.first.saturating_mul(by));
        let whole = whole.min(self.longest);
        let random = mixed(mixed(mixed(self.seed) ^ key) ^ u64::from(failures));
        // 32 bits are more than a wait has microseconds.
        let part = u32::try_from(random >> 32).unwrap_or(u32::MAX);
        whole.mul_f64(1.0 - f64::from(part) / f64::from(u32::MAX) / 2.0)
    }
}

/// Sebastiano Vigna's SplitMix64: spreads the bits of small numbers.
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_and_differ() {
        let (first, longest) = (Duration::from_secs(1), Duration::from_secs(30));
        let backoff = Backoff { seed: 7, first, longest };
        for key in 0..1_000 {
            for (failures, whole) in [(1, 1), (2, 2), (3, 4), (5, 16), (6, 30), (40, 30)] {
                let wait = backoff.wait(key, failures);
                assert!(wait <= Duration::from_secs(whole), "{wait:?}");
                assert!(wait * 2 >= Duration::from_secs(whole), "{wait:?}");
                assert_eq!(wait, backoff.wait(key, failures));
            }
        }
        let mut waits: Vec<_> = (0..1_000).map(|key| backoff.wait(key, 1)).collect();
        waits.sort();
        assert!(waits[100] < Duration::from_millis(600) && waits[900] > Duration::from_millis(900));
        assert_ne!(Backoff { seed: 8, ..backoff }.wait(1, 1), backoff.wait(1, 1));
    }
}
