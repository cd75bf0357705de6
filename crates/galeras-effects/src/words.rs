//! Phrases that the notes and reasons of several operators share.

use galeras_base::prose::{by_interval, confidence_level, count};

/// A confidence interval: `95 % CI 0.10 to 0.30`.
pub(crate) fn ci(alpha: f64, ends: (f64, f64)) -> String {
    format!("{} % CI {}", confidence_level(alpha), ends_in_words(ends))
}

/// The ends of a confidence interval: `0.10 to 0.30`.
pub(crate) fn ends_in_words(ends: (f64, f64)) -> String {
    format!("{} to {}", by_interval(ends.0, ends), by_interval(ends.1, ends))
}

/// The end of a note on things that were left out, if there are any.
pub(crate) fn left_out(n: usize, one: &str, many: &str) -> String {
    if n == 0 { String::new() } else { format!(" {} left out.", count(n, one, many)) }
}

/// Why a column cannot be used, if some of its values are infinite.
pub(crate) fn infinite(name: &str, values: impl Iterator<Item = f64>) -> Option<String> {
    let n = values.filter(|value| value.is_infinite()).count();
    (n > 0).then(|| format!("`{name}` is infinite in {}", count(n, "row", "rows")))
}
