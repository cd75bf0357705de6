//! Phrases that the notes and reasons of several operators share.

use galeras_base::prose::{confidence_level, count, interval};

/// A confidence interval: `95 % CI 0.1 to 0.3`.
pub(crate) fn ci(alpha: f64, ends: (f64, f64)) -> String {
    format!("{} % CI {}", confidence_level(alpha), interval(ends))
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
