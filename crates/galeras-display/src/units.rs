//! Numbers for people: counts with separators, sizes, durations.

use indicatif::HumanCount;

/// A count with thousands separators: `17,102`.
pub fn count(n: u64) -> String {
    HumanCount(n).to_string()
}

/// A count with its noun, given as a plural: `1 row`, `17,102 rows`, `1 repository`.
pub(super) fn counted(n: u64, unit: &str) -> String {
    let noun = match (n, unit.strip_suffix("ies"), unit.strip_suffix('s')) {
        (1, Some(stem), _) => format!("{stem}y"),
        (1, None, Some(stem)) => stem.to_string(),
        _ => unit.to_string(),
    };
    format!("{} {noun}", count(n))
}

/// A speed, per second, minute or hour so that the number is not too small: `1,203 rows/s`, `2.5
/// repositories/min`.
pub(super) fn per_second(rate: f64, unit: &str) -> String {
    let (rate, time) = match rate {
        r if r >= 0.1 => (r, "s"),
        r if r * 60.0 >= 0.1 => (r * 60.0, "min"),
        r => (r * 3600.0, "h"),
    };
    match rate {
        r if r >= 10.0 => format!("{} {unit}/{time}", count(r.round() as u64)),
        r => format!("{r:.1} {unit}/{time}"),
    }
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

/// A duration for a line that is redrawn: `41 s`, `3 min 12 s`, `2 h 5 min`.
pub(super) fn whole_seconds(s: f64) -> String {
    match s.max(0.0) {
        s if s < 60.0 => format!("{} s", s as u64),
        s => seconds(s.floor()),
    }
}

/// An estimated duration, rounded: `5 s`, `40 s`, `3 min`, `2 h 10 min`.
pub(super) fn roughly(s: f64) -> String {
    let nearest = |value: f64, step: u64| ((value / step as f64).round() as u64).max(1) * step;
    match s.max(0.0) {
        s if s < 9.5 => format!("{} s", nearest(s, 1)),
        s if s < 57.5 => format!("{} s", nearest(s, 5)),
        s if s < 3570.0 => format!("{} min", nearest(s / 60.0, 1)),
        s => {
            let minutes = nearest(s / 60.0, 10);
            match (minutes / 60, minutes % 60) {
                (hours, 0) => format!("{} h", count(hours)),
                (hours, _) if hours >= 10 => format!("{} h", count(hours)),
                (hours, minutes) => format!("{hours} h {minutes} min"),
            }
        }
    }
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
    fn one_of_anything_is_singular() {
        let shown = ["rows", "files", "repositories", "answers"].map(|unit| counted(1, unit));
        assert_eq!(shown, ["1 row", "1 file", "1 repository", "1 answer"]);
        assert_eq!(counted(0, "files"), "0 files");
        assert_eq!(counted(1718, "repositories"), "1,718 repositories");
    }

    #[test]
    fn slow_work_is_counted_by_the_minute_or_hour() {
        let shown = [1203.4, 9.96, 0.1, 0.05, 0.0005, 0.0].map(|rate| per_second(rate, "files"));
        let expected = "1,203 files/s, 10.0 files/s, 0.1 files/s, 3.0 files/min, 1.8 files/h, \
                        0.0 files/h";
        assert_eq!(shown.join(", "), expected);
    }

    #[test]
    fn running_time_is_counted_in_whole_seconds() {
        let shown = [f64::NAN, 0.99, 59.9, 60.1, 192.9, 7500.0].map(whole_seconds);
        assert_eq!(shown, ["0 s", "0 s", "59 s", "1 min 0 s", "3 min 12 s", "2 h 5 min"]);
    }

    #[test]
    fn estimates_are_coarse() {
        let shown = [0.0, 1.4, 9.6, 12.6, 57.4, 57.6, 200.0, 3569.0, 3571.0, 7700.0, 40_000.0];
        let expected = "1 s, 1 s, 10 s, 15 s, 55 s, 1 min, 3 min, 59 min, 1 h, 2 h 10 min, 11 h";
        assert_eq!(shown.map(roughly).join(", "), expected);
    }

    #[test]
    fn sizes_use_the_unit_that_keeps_them_short() {
        let shown = [0, 1023, 1024, 1_258_291, 1_048_575, u64::MAX].map(bytes);
        assert_eq!(shown, ["0 B", "1023 B", "1.0 KiB", "1.2 MiB", "1.0 MiB", "16.0 EiB"]);
    }

    #[test]
    fn durations_never_show_sixty_of_a_unit() {
        let shown = [0.0, 0.614, 9.999, 12.34, 59.97, 192.0, 3599.7, 7500.0].map(seconds);
        let expected =
            "0.00 s, 0.61 s, 10.0 s, 12.3 s, 1 min 0 s, 3 min 12 s, 1 h 0 min, 2 h 5 min";
        assert_eq!(shown.join(", "), expected);
        assert_eq!(seconds(f64::NAN), "0.00 s");
        assert_eq!(roughly(f64::NAN), "1 s");
        assert_eq!(seconds(-1.0), "0.00 s");
    }
}
