//! Numbers for people: counts with separators, sizes, durations.

use indicatif::HumanCount;

/// A count with thousands separators: `17,102`.
pub fn count(n: u64) -> String {
    HumanCount(n).to_string()
}

/// A size in binary units: `512 B`, `1.2 MiB`.
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if n < 1024 {
        return format!("{n} B");
    }
    let mut value = n as f64 / 1024.0;
    let mut unit = UNITS[0];
    for next in &UNITS[1..] {
        // 1023.96 KiB would be written as 1024.0 KiB.
        if value < 1023.95 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    format!("{value:.1} {unit}")
}

/// A duration: `0.61 s`, `12.3 s`, `3 min 12 s`, `2 h 5 min`. NaN and negative numbers are shown as zero.
pub fn seconds(s: f64) -> String {
    let s = s.max(0.0);
    if s < 9.995 {
        return format!("{s:.2} s");
    }
    if s < 59.95 {
        return format!("{s:.1} s");
    }
    let whole = s.round() as u64;
    if whole < 3600 {
        return format!("{} min {} s", whole / 60, whole % 60);
    }
    let minutes = (s / 60.0).round() as u64;
    format!("{} h {} min", count(minutes / 60), minutes % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped_by_thousands() {
        let shown = [0, 999, 1000, 17_102, 100_000, 1_234_567, u64::MAX].map(count);
        let expected =
            ["0", "999", "1,000", "17,102", "100,000", "1,234,567", "18,446,744,073,709,551,615"];
        assert_eq!(shown, expected);
    }

    #[test]
    fn sizes_use_the_unit_that_keeps_them_short() {
        let shown = [0, 1023, 1024, 1_258_291, 1_048_575, u64::MAX].map(bytes);
        assert_eq!(shown, ["0 B", "1023 B", "1.0 KiB", "1.2 MiB", "1.0 MiB", "16.0 EiB"]);
    }

    #[test]
    fn durations_never_show_sixty_of_a_unit() {
        let shown = [0.0, 0.614, 9.999, 12.34, 59.97, 192.0, 3599.7, 7500.0].map(seconds);
        let expected = [
            "0.00 s",
            "0.61 s",
            "10.0 s",
            "12.3 s",
            "1 min 0 s",
            "3 min 12 s",
            "1 h 0 min",
            "2 h 5 min",
        ];
        assert_eq!(shown, expected);
        assert_eq!(seconds(f64::NAN), "0.00 s");
        assert_eq!(seconds(-1.0), "0.00 s");
    }
}
