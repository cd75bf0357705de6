//! How long to wait before the next try: as long as the server asks in `retry-after` and similar
//! headers, or longer from failure to failure.
//!
//! Sources: RFC 9110 (`Retry-After`: seconds or a date), Azure OpenAI (`retry-after-ms`), OpenAI's
//! guide on rate limits (`x-ratelimit-remaining-*`, and `x-ratelimit-reset-*` as `1s`, `6m0s`,
//! `120ms`).

use std::time::Duration;

use galeras_net::http_date;

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

/// The wait that the headers ask for. `header` takes names in lower case; `now` is the time since
/// 1970, used if the server does not send its own.
pub(super) fn wait_of<'a>(
    header: impl Fn(&str) -> Option<&'a str>,
    now: Duration,
) -> Option<Duration> {
    let header = |name| header(name).map(str::trim);
    if let Some(millis) = header("retry-after-ms").and_then(number) {
        return seconds(millis / 1_000.0);
    }
    if let Some(text) = header("retry-after") {
        if let Some(wait) = number(text).map_or_else(|| span(text), seconds) {
            return Some(wait);
        }
        // The server's own clock counts, if it sends its time.
        let today = header("date").and_then(http_date).map_or(now, Duration::from_secs);
        if let Some(until) = http_date(text) {
            return Some(Duration::from_secs(until).saturating_sub(today));
        }
    }
    let resets = [
        ("x-ratelimit-reset-requests", "x-ratelimit-remaining-requests"),
        ("x-ratelimit-reset-tokens", "x-ratelimit-remaining-tokens"),
    ]
    .map(|(reset, remaining)| {
        let used_up = header(remaining).and_then(number).is_some_and(|left| left <= 0.0);
        Some((header(reset).and_then(|text| reset_in(text, now))?, used_up))
    });
    let resets = resets.into_iter().flatten();
    // A limit that is used up has to reset. If neither is known to be, the sooner one is tried, and a
    // further refusal waits longer.
    let used_up = resets.clone().filter(|(_, used_up)| *used_up).map(|(reset, _)| reset).max();
    used_up.or_else(|| resets.map(|(reset, _)| reset).min())
}

fn number(text: &str) -> Option<f64> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    plain.then(|| text.parse().ok())?
}

/// At most 30 years, so that sums stay in range.
fn seconds(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds.min(1e9)).ok()
}

/// The time until a reset: a span, seconds, or (some gateways) a time since 1970 in seconds or
/// milliseconds.
fn reset_in(text: &str, now: Duration) -> Option<Duration> {
    match number(text) {
        None => span(text),
        Some(at) if at >= 1e9 => {
            let at = if at >= 1e12 { at / 1_000.0 } else { at };
            Some(Duration::try_from_secs_f64(at).ok()?.saturating_sub(now))
        }
        Some(wait) => seconds(wait),
    }
}

/// A span as Go writes it: `1s`, `6m0s`, `120ms`, `1h2m3.5s`.
fn span(text: &str) -> Option<Duration> {
    let span: jiff::Span = text.parse().ok()?;
    span.to_duration(jiff::SpanRelativeTo::days_are_24_hours()).ok()?.try_into().ok()
}

/// `350 ms`, `12 s`, `6 min 5 s`, `2 h 3 min`.
pub(super) fn in_words(duration: Duration) -> String {
    let millis = duration.as_millis();
    if millis < 1_000 {
        return format!("{millis} ms");
    }
    // Rounded up, so that a try after this time is not too early.
    let seconds = millis.div_ceil(1_000);
    match (seconds / 3_600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, 0) => format!("{minutes} min"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(1_795_262_011);

    fn waits(headers: &[(&str, &'static str)]) -> Option<Duration> {
        wait_of(|name| headers.iter().find(|(n, _)| *n == name).map(|(_, v)| *v), NOW)
    }

    fn millis(millis: u64) -> Option<Duration> {
        Some(Duration::from_millis(millis))
    }

    #[test]
    fn every_notation_is_read() {
        for (name, text, wait) in [
            ("retry-after", "20", millis(20_000)),
            ("retry-after", " 0.5 ", millis(500)),
            ("retry-after", "0", millis(0)),
            ("retry-after", "30s", millis(30_000)),
            ("retry-after", "Sat, 21 Nov 2026 11:54:31 GMT", millis(60_000)),
            ("retry-after", "Sat, 21 Nov 2020 11:54:31 GMT", millis(0)),
            ("retry-after", "soon", None),
            ("retry-after", "-5", None),
            ("retry-after", "", None),
            ("retry-after-ms", "1500", millis(1_500)),
            ("x-ratelimit-reset-requests", "1s", millis(1_000)),
            ("x-ratelimit-reset-requests", "6m0s", millis(360_000)),
            ("x-ratelimit-reset-tokens", "120ms", millis(120)),
            ("x-ratelimit-reset-tokens", "2m59.56s", millis(179_560)),
            ("x-ratelimit-reset-tokens", "1h0m1s", millis(3_601_000)),
            ("x-ratelimit-reset-tokens", "7", millis(7_000)),
            ("x-ratelimit-reset-tokens", "1795262021", millis(10_000)),
            ("x-ratelimit-reset-tokens", "1795262021000", millis(10_000)),
            ("x-ratelimit-reset-tokens", "5 parsecs", None),
            ("x-ratelimit-reset-tokens", "m", None),
            ("x-ratelimit-reset-tokens", "1d2h", millis(93_600_000)),
            ("x-ratelimit-reset-tokens", "-5s", None),
        ] {
            assert_eq!(waits(&[(name, text)]), wait, "{name}: {text}");
        }
        let huge = waits(&[("retry-after", "99999999999999999999999999")]).unwrap();
        assert!(huge > Duration::from_secs(100_000_000));
    }

    #[test]
    fn the_most_exact_header_counts() {
        let all =
            [("retry-after-ms", "700"), ("retry-after", "1"), ("x-ratelimit-reset-requests", "9s")];
        assert_eq!(waits(&all), millis(700));
        assert_eq!(waits(&all[1..]), millis(1_000));
        assert_eq!(waits(&all[2..]), millis(9_000));
        let date = [
            ("retry-after", "Sat, 21 Nov 2026 12:00:10 GMT"),
            ("date", "Sat, 21 Nov 2026 12:00:00 GMT"),
        ];
        assert_eq!(waits(&date), millis(10_000), "the server's clock counts");
    }

    #[test]
    fn the_limit_that_is_used_up_counts() {
        let both = [
            ("x-ratelimit-reset-requests", "8s"),
            ("x-ratelimit-reset-tokens", "30s"),
            ("x-ratelimit-remaining-requests", "0"),
            ("x-ratelimit-remaining-tokens", "0"),
        ];
        assert_eq!(waits(&both), millis(30_000));
        assert_eq!(waits(&both[..3]), millis(8_000));
        assert_eq!(waits(&[both[0], both[1], both[3]]), millis(30_000));
        assert_eq!(waits(&both[..2]), millis(8_000));
    }

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

    #[test]
    fn durations_are_written_in_words() {
        for (millis, text) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_001, "2 s"),
            (60_000, "1 min"),
            (365_000, "6 min 5 s"),
            (7_380_000, "2 h 3 min"),
        ] {
            assert_eq!(in_words(Duration::from_millis(millis)), text);
        }
    }
}
