//! Dates and times as GitHub writes them, as seconds since 1970 and back.

use jiff::SignedDuration;
use jiff::civil::{Date, DateTime, Time};

const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

fn seconds(time: DateTime) -> i64 {
    time.duration_since(EPOCH).as_secs()
}

/// `2026-11-21T11:53:31Z`; the last second of the year 9999 for all later ones.
pub(super) fn format(seconds: i64) -> String {
    let time = EPOCH.saturating_add(SignedDuration::from_secs(seconds));
    let (year, month, day) = (time.year(), time.month(), time.day());
    let (hour, minute, second) = (time.hour(), time.minute(), time.second());
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Returns true if `text` has the form `shape`, in which `0` is any digit. Jiff reads more forms than
/// GitHub does.
fn is_like(text: &str, shape: &str) -> bool {
    let fits = |(byte, shape): (u8, u8)| match shape {
        b'0' => byte.is_ascii_digit(),
        _ => byte == shape,
    };
    text.len() == shape.len() && text.bytes().zip(shape.bytes()).all(fits)
}

fn date(text: &str) -> Option<Date> {
    is_like(text, "0000-00-00").then(|| text.parse().ok())?
}

/// The first second of a day `YYYY-MM-DD` in UTC; `None` if the calendar has no such day.
pub(super) fn parse_date(text: &str) -> Option<i64> {
    date(text).map(|date| seconds(date.to_datetime(Time::midnight())))
}

/// A time of the day. Jiff accepts a leap second, GitHub does not.
fn clock(text: &str) -> Option<Time> {
    let fits = is_like(text, "00:00:00") && !text.ends_with("60");
    fits.then(|| text.parse().ok())?
}

/// The seconds that a zone is ahead of UTC: `Z`, `+07:00`, `-0130`, `+07`, or nothing for UTC.
fn zone(text: &str) -> Option<i64> {
    let (sign, ahead) = match text.as_bytes().first() {
        None => return Some(0),
        Some(b'Z' | b'z') if text.len() == 1 => return Some(0),
        Some(b'+') => (1, &text[1..]),
        Some(b'-') => (-1, &text[1..]),
        _ => return None,
    };
    if !["00:00", "0000", "00"].iter().any(|shape| is_like(ahead, shape)) {
        return None;
    }
    let hours: i64 = ahead[..2].parse().ok()?;
    let minutes = ahead[2..].trim_start_matches(':');
    let minutes: i64 = if minutes.is_empty() { 0 } else { minutes.parse().ok()? };
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3_600 + minutes * 60))
}

/// A time `YYYY-MM-DDTHH:MM:SS` with a zone, in UTC without one.
pub(super) fn parse_time(text: &str) -> Option<i64> {
    let (day, rest) = text.split_once(['T', 't'])?;
    let at = rest.find(['Z', 'z', '+', '-']).unwrap_or(rest.len());
    Some(seconds(date(day)?.to_datetime(clock(&rest[..at])?)) - zone(&rest[at..])?)
}

/// The last second of the day that begins at `start`.
pub(super) fn end_of_day(start: i64) -> i64 {
    start + 86_400 - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_times_are_read_and_written() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T12:34:56Z", 951_827_696),
            ("2026-11-21T11:53:31Z", 1_795_262_011),
            ("1969-12-31T23:59:59Z", -1),
        ] {
            assert_eq!(parse_time(text), Some(seconds), "{text}");
            assert_eq!(format(seconds), text);
        }
        for seconds in (-4_000_000_000..8_000_000_000).step_by(12_345_678) {
            assert_eq!(parse_time(&format(seconds)), Some(seconds));
        }
        assert_eq!(format(-62_167_219_201), "-001-12-31T23:59:59Z");
    }

    #[test]
    fn zones_are_taken_off() {
        let utc = parse_time("2017-01-01T01:00:00Z").unwrap();
        assert_eq!(parse_time("2017-01-01T01:00:00"), Some(utc));
        assert_eq!(parse_time("2017-01-01T01:00:00+07:00"), Some(utc - 7 * 3_600));
        assert_eq!(parse_time("2017-01-01T01:00:00-0130"), Some(utc + 5_400));
        assert_eq!(parse_time("2017-01-01T01:00:00+07"), Some(utc - 7 * 3_600));
    }

    #[test]
    fn what_is_not_a_time_is_none() {
        for text in [
            "2021-02-29",
            "2021-13-01",
            "2021-00-01",
            "2021-01-00",
            "2021-1-1",
            "21-01-01",
            "2021-01-01-01",
            "",
            "2021-04-31",
            "+021-01-01",
            "２０２１-01-01",
        ] {
            assert_eq!(parse_date(text), None, "{text}");
        }
        for text in [
            "2021-01-01",
            "2021-01-01T24:00:00Z",
            "2021-01-01T00:60:00Z",
            "2021-01-01T00:00Z",
            "2016-12-31T23:59:60Z",
            "2021-01-01T00:00:00+24:00",
            "2021-01-01T00:00:00+00:60",
            "2021-01-01T00:00:00+00:00:00",
            "2021-01-01T00:00:00+00:00[UTC]",
            "2021-01-01T00:00:00.5Z",
            "2021-01-01T00:00:00+7",
            "2021-01-01T00:00:00ZZ",
            "2021-01-01T00:00:00+é0",
            "2021-01-01T00:00:00+1:000",
            "2021-01-01Té",
        ] {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }
}
