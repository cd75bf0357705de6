//! Points in time as the store writes them: UTC, milliseconds, fixed width, so that texts
//! sort as the times do.

use std::time::{SystemTime, UNIX_EPOCH};

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

/// Year, month, day, hour, minute, second and millisecond. Days become dates as in Howard
/// Hinnant's “chrono-compatible low-level date algorithms”, where years start in March.
fn civil(time: SystemTime) -> [u64; 7] {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, rest) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let milli = u64::from(since.subsec_millis());
    [year, month, day, rest / 3_600, rest / 60 % 60, rest % 60, milli]
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
