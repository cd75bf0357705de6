//! Sizes on the command line: `10MB`, `1.5GiB`.

/// A size in bytes: a number with `kB`, `MB`, `GB`, `TB` (powers of 1000), `KiB`, `MiB`, `GiB`,
/// `TiB` (powers of 1024), `B` or nothing, in any case.
///
/// # Errors
/// A text that explains the format.
pub(super) fn parse_size(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 10] = [
        ("", 1),
        ("b", 1),
        ("kb", 1_000),
        ("mb", 1_000_000),
        ("gb", 1_000_000_000),
        ("tb", 1_000_000_000_000),
        ("kib", 1 << 10),
        ("mib", 1 << 20),
        ("gib", 1 << 30),
        ("tib", 1 << 40),
    ];
    let lower = text.trim().to_ascii_lowercase();
    let split = lower.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(lower.len());
    let (number, unit) = lower.split_at(split);
    let unit = UNITS.iter().find(|(name, _)| *name == unit.trim()).map(|(_, unit)| *unit);
    let bytes = unit.and_then(|unit| match number.parse::<u64>() {
        // Sizes saturate at the largest number.
        Ok(whole) => Some(whole.saturating_mul(unit)),
        Err(_) => Some((number.parse::<f64>().ok()? * unit as f64).round() as u64),
    });
    bytes.ok_or_else(|| "write a size such as 512MB or 4GiB".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in [
            ("0", 0),
            ("1048577", 1_048_577),
            ("10MB", 10_000_000),
            (" 10 mib ", 10 << 20),
            ("1.5kB", 1500),
            ("2TiB", 2 << 40),
            ("7 B", 7),
            ("18446744073709551615", u64::MAX),
            ("99999999TiB", u64::MAX),
            ("99999999999999999999GB", u64::MAX),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "MB", "-1", "1.2.3GB", "1 XB", "1e3", "nan", "1k"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }
}
