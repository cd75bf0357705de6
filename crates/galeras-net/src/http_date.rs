//! The dates of HTTP headers.

use jiff::civil::DateTime;

/// The seconds since 1970 of a date in the format that RFC 9110 (section 5.6.7) prefers:
/// `Sat, 21 Nov 2026 11:53:31 GMT`. The day of the week and the zone, which is always GMT, are
/// not looked at.
///
/// Returns `None` if `text` is not such a date, or lies before 1970.
pub fn http_date(text: &str) -> Option<u64> {
    let words: Vec<&str> = text.split_whitespace().skip(1).take(4).collect();
    let time = DateTime::strptime("%d %b %Y %H:%M:%S", words.join(" ")).ok()?;
    u64::try_from(time.duration_since(DateTime::constant(1970, 1, 1, 0, 0, 0, 0)).as_secs()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_counted_right() {
        for (text, seconds) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Tue, 29 Feb 2000 12:34:56 GMT", Some(951_827_696)),
            ("Sat, 21 Nov 2026 11:53:31 GMT", Some(1_795_262_011)),
            ("Fri, 1 Jan 2100 00:00:00 GMT", Some(4_102_444_800)),
            ("Wed, 31 Dec 1969 23:59:59 GMT", None),
            ("Sat, 21 Foo 2026 11:53:31 GMT", None),
            ("Sun, 30 Feb 2025 11:53:31 GMT", None),
            ("Sat, 21 Nov 2026 24:00:00 GMT", None),
            ("Sat, 21 Nov 2026", None),
            ("x 99999999999999999999 Nov 2026 11:53:31 GMT", None),
            ("tomorrow", None),
            ("", None),
        ] {
            assert_eq!(http_date(text), seconds, "{text}");
        }
    }
}
