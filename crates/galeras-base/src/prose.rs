//! How results are put into sentences: numbers, counts, intervals, p-values and lists of names.

use galeras_figures::{decimals_by_interval, fixed};

/// `1 row`, `3,141 rows`.
pub fn count(n: usize, one: &str, many: &str) -> String {
    format!("{} {}", thousands(n), if n == 1 { one } else { many })
}

/// An integer with commas.
pub fn thousands(n: usize) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Names in a sentence: `a`, `b` and `c`.
pub fn name_list<T: AsRef<str>>(names: &[T]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{}`", name.as_ref())).collect();
    match quoted.as_slice() {
        [] => "nothing".into(),
        [only] => only.clone(),
        [init @ .., last] => format!("{} and {last}", init.join(", ")),
    }
}

/// An estimate, or an end of its interval, with the decimals that the interval makes known; to four
/// significant digits if the interval has no end or no width.
pub fn by_interval(x: f64, interval: (f64, f64)) -> String {
    match decimals_by_interval(interval) {
        Some(decimals) if x.abs() < 1e9 => fixed(x, decimals),
        _ => four_digits(x),
    }
}

/// A number to four significant digits.
pub fn four_digits(x: f64) -> String {
    significant(x, 4)
}

/// A p-value to two significant digits.
pub fn p(x: f64) -> String {
    if x == 0.0 { "< 1e-300".into() } else { significant(x, 2) }
}

/// `= 0.031` or `< 1e-300`.
pub fn p_equals(x: f64) -> String {
    let text = p(x);
    if text.starts_with('<') { text } else { format!("= {text}") }
}

/// A number to `digits` significant digits, without an exponent where that is easy to read.
pub fn significant(x: f64, digits: usize) -> String {
    if x == 0.0 || !x.is_finite() {
        return format!("{}", x + 0.0);
    }
    let rounded: f64 = format!("{x:.*e}", digits - 1).parse().unwrap_or(x);
    let exponent = rounded.abs().log10().floor() as i32;
    if !(-4..9).contains(&exponent) {
        let text = format!("{rounded:.*e}", digits - 1);
        return match text.split_once('e') {
            Some((mantissa, power)) if mantissa.contains('.') => {
                let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
                format!("{mantissa}e{power}")
            }
            _ => text,
        };
    }
    let decimals = usize::try_from(digits as i32 - 1 - exponent).unwrap_or(0);
    format!("{rounded:.decimals$}")
}

/// A range to four significant digits.
pub fn interval((low, high): (f64, f64)) -> String {
    format!("{} to {}", four_digits(low), four_digits(high))
}

/// The level of confidence of an interval, in percent: `95`.
pub fn confidence_level(alpha: f64) -> String {
    format!("{}", (1e8 * (1.0 - alpha)).round() / 1e6)
}

/// The level and the method of the intervals in a table: `95 % intervals: normal. Clusters: repo.`
pub fn intervals(alpha: f64, method: &str, cluster: Option<&str>) -> String {
    let clusters = cluster.map_or_else(String::new, |name| format!(" Clusters: {name}."));
    format!("{} % intervals: {method}.{clusters}", confidence_level(alpha))
}

/// Degrees of freedom: a whole number without decimals.
pub fn degrees_of_freedom(df: f64) -> String {
    let whole = df.round();
    if (df - whole).abs() < 1e-6 * whole { thousands(whole as usize) } else { format!("{df:.1}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_readable() {
        assert_eq!(four_digits(111.058_843), "111.1");
        assert_eq!(four_digits(-0.000_123_456), "-0.0001235");
        assert_eq!(four_digits(0.999_96), "1.000");
        assert_eq!(four_digits(1_234_567.0), "1235000");
        assert_eq!(four_digits(0.0), "0");
        assert_eq!(four_digits(-0.0), "0");
        assert_eq!(p(1.959e-129), "2e-129");
        assert_eq!(p(5.3178e-34), "5.3e-34");
        assert_eq!(p(0.034), "0.034");
        assert_eq!(p_equals(0.0), "< 1e-300");
        assert_eq!(interval((93.3728, 128.7449)), "93.37 to 128.7");
        let ends = (-0.001_226, 0.006_727);
        let shown = [0.002_751, ends.0, ends.1, -2.4e-5].map(|x| by_interval(x, ends));
        assert_eq!(shown, ["0.0028", "-0.0012", "0.0067", "0.0000"]);
        assert_eq!(by_interval(0.002_751, (0.0, f64::INFINITY)), "0.002751");
    }

    #[test]
    fn counts_and_names_are_in_words() {
        assert_eq!(count(1, "row", "rows"), "1 row");
        assert_eq!(count(1_234_567, "row", "rows"), "1,234,567 rows");
        assert_eq!(name_list(&["a", "b", "c"]), "`a`, `b` and `c`");
        assert_eq!(name_list(&["a"]), "`a`");
        assert_eq!((confidence_level(0.05), confidence_level(0.001)), ("95".into(), "99.9".into()));
        assert_eq!(degrees_of_freedom(2922.0), "2,922");
        assert_eq!(degrees_of_freedom(615.92), "615.9");
    }
}
