//! Points in time as the store writes them: UTC, milliseconds, fixed width, so that texts
//! sort as the times do.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::civil::DateTime;

/// Now, as RFC 3339 in UTC: `2026-11-21T09:30:00.123Z`.
pub fn timestamp() -> String {
    rfc3339(SystemTime::now())
}

pub(super) fn rfc3339(time: SystemTime) -> String {
    let [year, month, day, hour, minute, second, milli] = civil(time);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// The time without punctuation, for file names: `20261121T093000.123Z`.
pub(super) fn compact(time: SystemTime) -> String {
    let [year, month, day, hour, minute, second, milli] = civil(time);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}.{milli:03}Z")
}

/// Year, month, day, hour, minute, second and millisecond in UTC; times before 1970 are 1970.
fn civil(time: SystemTime) -> [i32; 7] {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let time = DateTime::constant(1970, 1, 1, 0, 0, 0, 0).saturating_add(since);
    let milli = time.subsec_nanosecond() / 1_000_000;
    let [month, day] = [time.month(), time.day()].map(i32::from);
    let [hour, minute, second] = [time.hour(), time.minute(), time.second()].map(i32::from);
    [i32::from(time.year()), month, day, hour, minute, second, milli]
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(seconds: u64, millis: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(seconds * 1000 + millis)
    }

    #[test]
    fn times_are_civil_utc() {
        assert_eq!(rfc3339(at(0, 0)), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(at(951_782_400, 7)), "2000-02-29T00:00:00.007Z");
        assert_eq!(rfc3339(at(1_709_251_199, 999)), "2024-02-29T23:59:59.999Z");
        assert_eq!(rfc3339(at(4_107_542_400, 0)), "2100-03-01T00:00:00.000Z");
        assert_eq!(compact(at(1_795_253_400, 123)), "20261121T093000.123Z");
    }
}
