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
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
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

/// The first second of a day `YYYY-MM-DD` in UTC; `None` if the calendar has no such day.
pub(super) fn parse_date(text: &str) -> Option<i64> {
    let date: Date = is_like(text, "0000-00-00").then(|| text.parse().ok())??;
    Some(seconds(date.to_datetime(Time::midnight())))
}

/// A time `YYYY-MM-DDTHH:MM:SS` with a zone (`Z`, `+07:00`, `-0130`, `+07`), in UTC without one.
pub(super) fn parse_time(text: &str) -> Option<i64> {
    let (time, zone) = text.split_at_checked(19)?;
    let time = time.replace('t', "T");
    // Jiff accepts a leap second and zones of a day, GitHub does not.
    if !is_like(&time, "0000-00-00T00:00:00") || time.ends_with("60") {
        return None;
    }
    let time: DateTime = time.parse().ok()?;
    let zone = match zone {
        "" | "Z" | "z" => 0,
        _ => {
            let (sign, ahead) = zone.split_at_checked(1)?;
            let forms = ["00:00", "0000", "00"];
            if !["+", "-"].contains(&sign) || !forms.iter().any(|form| is_like(ahead, form)) {
                return None;
            }
            let digits: i64 = format!("{:0<4}", ahead.replace(':', "")).parse().ok()?;
            let (hours, minutes) = (digits / 100, digits % 100);
            let seconds = (hours < 24 && minutes < 60).then_some(hours * 3_600 + minutes * 60)?;
            if sign == "-" { -seconds } else { seconds }
        }
    };
    Some(seconds(time) - zone)
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
        assert_eq!(format(i64::MAX), "9999-12-31T23:59:59Z");
    }

    #[test]
    fn zones_are_taken_off() {
        let utc = parse_time("2017-01-01T01:00:00Z").unwrap();
        for (zone, ahead) in
            [("", 0), ("z", 0), ("+07:00", 25_200), ("-0130", -5_400), ("+07", 25_200)]
        {
            let found = parse_time(&format!("2017-01-01t01:00:00{zone}"));
            assert_eq!(found, Some(utc - ahead), "{zone}");
        }
    }

    #[test]
    fn what_is_not_a_time_is_none() {
        let dates = "2021-02-29 2021-13-01 2021-00-01 2021-01-00 2021-1-1 21-01-01 2021-01-01-01 \
                     2021-04-31 +021-01-01 ２０２１-01-01";
        for text in dates.split(' ').chain([""]) {
            assert_eq!(parse_date(text), None, "{text}");
        }
        let times = "2021-01-01 2021-01-01T24:00:00Z 2021-01-01T00:60:00Z 2021-01-01T00:00Z \
                     2016-12-31T23:59:60Z 2021-01-01T00:00:00+24:00 2021-01-01T00:00:00+00:60 \
                     2021-01-01T00:00:00+00:00:00 2021-01-01T00:00:00+00:00[UTC] \
                     2021-01-01T00:00:00.5Z 2021-01-01T00:00:00+7 2021-01-01T00:00:00ZZ \
                     2021-01-01T00:00:00+é0 2021-01-01T00:00:00+1:000 2021-01-01Té";
        for text in times.split(' ') {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }
}
