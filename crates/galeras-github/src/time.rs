//! Dates and times as GitHub writes them, as seconds since 1970 and back.
//!
//! Lives here: the arithmetic of the calendar and the three notations in use. Does not live
//! here: what a date in a search stands for (`query`).

const DAY: i64 = 86_400;

/// Days since 1970-01-01 of a day of the Gregorian calendar. March counts as the first month,
/// so that the leap day is the last one of its year.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// `2026-11-21T11:53:31Z`.
pub(super) fn format(seconds: i64) -> String {
    let (days, of_day) = (seconds.div_euclid(DAY) + 719_468, seconds.rem_euclid(DAY));
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year + i64::from(month <= 2);
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

fn number(text: &str, digits: usize) -> Option<i64> {
    let right = text.len() == digits && text.bytes().all(|b| b.is_ascii_digit());
    right.then(|| text.parse().ok())?
}

/// The first second of a day `YYYY-MM-DD` in UTC; none if there is no such day.
pub(super) fn parse_date(text: &str) -> Option<i64> {
    let mut parts = text.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let (year, month, day) = (number(year, 4)?, number(month, 2)?, number(day, 2)?);
    if parts.next().is_some() || !(1..=12).contains(&month) || day < 1 {
        return None;
    }
    let start = days(year, month, day);
    let next = if month == 12 { days(year + 1, 1, 1) } else { days(year, month + 1, 1) };
    (start < next).then_some(start * DAY)
}

fn parse_clock(text: &str) -> Option<i64> {
    let mut parts = text.split(':');
    let (hour, minute, second) = (parts.next()?, parts.next()?, parts.next()?);
    let (hour, minute, second) = (number(hour, 2)?, number(minute, 2)?, number(second, 2)?);
    let valid = parts.next().is_none() && hour < 24 && minute < 60 && second < 60;
    valid.then_some(hour * 3_600 + minute * 60 + second)
}

/// The seconds that a zone is ahead of UTC: `Z`, `+07:00`, `-0130`, `+07`, or nothing for UTC.
fn parse_zone(text: &str) -> Option<i64> {
    let (sign, rest) = match text.as_bytes().first() {
        None => return Some(0),
        Some(b'Z' | b'z') if text.len() == 1 => return Some(0),
        Some(b'+') => (1, &text[1..]),
        Some(b'-') => (-1, &text[1..]),
        _ => return None,
    };
    let digits = match rest.split_once(':') {
        Some((hours, minutes)) if hours.len() == 2 => format!("{hours}{minutes}"),
        Some(_) => return None,
        None if rest.len() == 2 => format!("{rest}00"),
        None => rest.to_string(),
    };
    let value = number(&digits, 4)?;
    let (hours, minutes) = (value / 100, value % 100);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3_600 + minutes * 60))
}

/// A time `YYYY-MM-DDTHH:MM:SS` with a zone, in UTC without one.
pub(super) fn parse_time(text: &str) -> Option<i64> {
    let (date, rest) = text.split_once(['T', 't'])?;
    let at = rest.find(['Z', 'z', '+', '-']).unwrap_or(rest.len());
    Some(parse_date(date)? + parse_clock(&rest[..at])? - parse_zone(&rest[at..])?)
}

/// The last second of the day that begins at `start`.
pub(super) fn end_of_day(start: i64) -> i64 {
    start + DAY - 1
}

/// The time of an HTTP header, `Sat, 21 Nov 2026 11:53:31 GMT`.
pub(super) fn parse_http(text: &str) -> Option<u64> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let mut words = text.split_whitespace().skip(1);
    let (day, month, year, clock) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let month = MONTHS.find(month).filter(|at| month.len() == 3 && at % 3 == 0)? / 3 + 1;
    let date = parse_date(&format!("{year}-{month:02}-{day}"))?;
    u64::try_from(date + parse_clock(clock)?).ok()
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
        assert_eq!(parse_http("Sat, 21 Nov 2026 11:53:31 GMT"), Some(1_795_262_011));
        assert_eq!(parse_http("tomorrow"), None);
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
    fn what_is_no_time_is_none() {
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
