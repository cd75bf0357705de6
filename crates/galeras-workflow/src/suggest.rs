//! "Did you mean": finds the known name that a mistyped one probably means.

/// The longest name worth comparing; longer input is not a typing mistake.
const MAX_CHARS: usize = 64;

/// Returns the known name closest to `given`, or `None` if none is close: at most a third of the
/// longer name may differ. A name that differs only in case or in `-` against `_` wins over all
/// others; among equally close names the first wins.
pub fn did_you_mean<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = given.chars().count();
    if length == 0 || length > MAX_CHARS {
        return None;
    }
    let wanted = fold(given);
    let mut best: Option<(usize, &str)> = None;
    for name in known {
        let folded = fold(name);
        if folded == wanted {
            return Some(name);
        }
        let chars = folded.chars().count();
        let longer = chars.max(length);
        if longer > MAX_CHARS {
            continue;
        }
        // Two letters may differ by an extra letter, but not by another one.
        let allowed = match longer {
            0..3 => usize::from(chars != length),
            _ => longer / 3,
        };
        // A workflow may have ten thousand names; a cheap lower bound excludes most.
        let least = least_distance(&wanted, &folded);
        if least > allowed || best.is_some_and(|(d, _)| least >= d) {
            continue;
        }
        let distance = strsim::damerau_levenshtein(&wanted, &folded);
        if distance <= allowed && best.is_none_or(|(d, _)| distance < d) {
            best = Some((distance, name));
        }
    }
    best.map(|(_, name)| name)
}

/// A lower bound of the edit distance: every letter that the other text has less often costs an
/// edit, and an edit can fix one on each side. Non-ASCII letters count as one letter.
fn least_distance(a: &str, b: &str) -> usize {
    let mut counts = [0i32; 128];
    let at = |c: char| usize::try_from(u32::from(c)).unwrap_or(0).min(127);
    a.chars().for_each(|c| counts[at(c)] += 1);
    b.chars().for_each(|c| counts[at(c)] -= 1);
    let more: i32 = counts.iter().filter(|n| **n > 0).sum();
    let fewer: i32 = counts.iter().filter(|n| **n < 0).sum();
    more.max(-fewer).unsigned_abs() as usize
}

fn fold(name: &str) -> String {
    name.to_lowercase().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::did_you_mean;

    const KNOWN: [&str; 5] = ["threshold", "column", "seed", "min", "max"];

    #[test]
    fn a_slip_finds_its_name_and_something_else_finds_nothing() {
        for (given, known, meant) in [
            ("treshold", &KNOWN[..], Some("threshold")),
            ("colunm", &KNOWN, Some("column")),
            ("sed", &KNOWN, Some("seed")),
            ("yy", &["x", "y"], Some("y")),
            // Case and dashes win.
            ("SEED", &["seeds", "seed"], Some("seed")),
            ("not-null", &["not_nul", "not_null"], Some("not_null")),
            ("provider", &KNOWN, None),
            ("", &KNOWN, None),
            ("x", &KNOWN, None),
            (&"s".repeat(1_000_000), &KNOWN, None),
        ] {
            assert_eq!(did_you_mean(given, known.iter().copied()), meant);
        }
    }

    #[test]
    fn names_are_passed_over_only_if_they_are_too_far_off() {
        let texts = ["", "a", "ab", "ba", "abc", "cab", "größe", "grösse", "s0123", "s1032", "x_y"];
        for (a, b) in texts.iter().flat_map(|a| texts.iter().map(move |b| (a, b))) {
            let distance = strsim::damerau_levenshtein(a, b);
            assert!(super::least_distance(a, b) <= distance, "{a} {b}");
        }
    }
}
