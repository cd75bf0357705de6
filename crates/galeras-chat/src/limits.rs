//! The wait that a server asks for, in `retry-after` and similar headers.
//!
//! Sources: RFC 9110 (`Retry-After`: seconds or a date), Azure OpenAI (`retry-after-ms`), OpenAI's
//! guide on rate limits (`x-ratelimit-remaining-*`, and `x-ratelimit-reset-*` as `1s`, `6m0s`,
//! `120ms`).

use std::time::Duration;

use galeras_net::http_date;

/// The wait that the headers ask for. `header` takes names in lower case; `now` is the time since
/// 1970, used if the server does not send its own.
pub(super) fn wait<'a>(
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
    let mut known = Vec::new();
    for (reset, remaining) in [
        ("x-ratelimit-reset-requests", "x-ratelimit-remaining-requests"),
        ("x-ratelimit-reset-tokens", "x-ratelimit-remaining-tokens"),
    ] {
        let reset = header(reset);
        let Some(reset) = reset.and_then(|text| reset_in(text, now)) else { continue };
        known.push((reset, header(remaining).and_then(number).is_some_and(|left| left <= 0.0)));
    }
    // A limit that is used up has to reset. If neither is known to be, the sooner one is tried, and a
    // further refusal waits longer.
    let used_up = known.iter().filter(|(_, used_up)| *used_up).map(|(reset, _)| *reset).max();
    used_up.or_else(|| known.iter().map(|(reset, _)| *reset).min())
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
    let (mut rest, mut sum) = (text, 0.0);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let value = number(&rest[..digits])?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let unit = match &rest[..letters] {
            "d" => 86_400.0,
            "h" => 3_600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        };
        rest = &rest[letters..];
        sum += value * unit;
    }
    (!text.is_empty()).then(|| seconds(sum))?
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(1_795_262_011);

    fn waits(headers: &[(&str, &'static str)]) -> Option<Duration> {
        wait(|name| headers.iter().find(|(n, _)| *n == name).map(|(_, v)| *v), NOW)
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
}
