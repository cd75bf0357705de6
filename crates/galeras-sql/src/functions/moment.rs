//! Points in time as people write them.

use arrow::compute::kernels::cast_utils::string_to_datetime;

/// A date, or a date with time, in UTC unless it has another zone: seconds since 1970, and the
/// canonical text `YYYY-MM-DDThh:mm:ssZ`.
pub fn moment(text: &str) -> Option<(i64, String)> {
    let utc: arrow::array::timezone::Tz = "+00:00".parse().ok()?;
    let moment = string_to_datetime(&utc, text.trim()).ok()?;
    let utc = moment.with_timezone(&utc);
    Some((utc.timestamp(), utc.format("%Y-%m-%dT%H:%M:%SZ").to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_midnight_in_utc_and_zones_count() {
        let seconds = |text| moment(text).map(|(seconds, _)| seconds);
        assert_eq!(seconds("1970-01-02"), Some(86_400));
        assert_eq!(seconds("1970-01-01T00:00:01Z"), Some(1));
        assert_eq!(seconds("1970-01-01T02:00:00+02:00"), Some(0));
        assert_eq!(seconds("1969-12-31T23:59:59"), Some(-1));
        assert_eq!(moment("1970-01-01T02:00:00+02:00").unwrap().1, "1970-01-01T00:00:00Z");
        for text in ["", "yesterday", "2022-13-01", "2022"] {
            assert_eq!(moment(text), None, "{text}");
        }
    }
}
