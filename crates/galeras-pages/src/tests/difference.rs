//! Differences of two texts.

use std::ops::Range;

use crate::difference::words;

fn texts<'a>(text: &'a str, ranges: &[Range<usize>]) -> Vec<&'a str> {
    ranges.iter().map(|range| &text[range.clone()]).collect()
}

#[test]
fn words_that_differ_are_found_within_lines_that_are_alike() {
    let old = "def f(x):\n    return x + one\n";
    let new = "def f(x):\n    return y + one\n";
    let (gone, come) = words(old, new);
    assert_eq!(texts(old, &gone), ["x"]);
    assert_eq!(texts(new, &come), ["y"]);
}

#[test]
fn what_is_the_same_has_no_changes_and_what_is_added_is_on_one_side_only() {
    assert_eq!(words("a b\n", "a b\n"), (vec![], vec![]));
    assert_eq!(words("", ""), (vec![], vec![]));
    assert!(words("", "a\n").0.is_empty());
    let new = "a\nb c\n";
    let (gone, come) = words("a\n", new);
    assert!(gone.is_empty());
    assert_eq!(texts(new, &come), ["b c\n"]);
}

#[test]
fn taking_the_changes_out_leaves_the_same_text_on_both_sides() {
    // Made from a small alphabet by a linear congruential generator, so that much is alike.
    let mut state = 7_u64;
    let mut text = || {
        (0..60)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                ["a", "bé", " ", "\n", "(", "\t", "x1"][(state >> 33) as usize % 7]
            })
            .collect::<String>()
    };
    for _ in 0..300 {
        let (old, new) = (text(), text());
        let (gone, come) = words(&old, &new);
        let without = |text: &str, ranges: &[Range<usize>]| {
            let mut rest = String::new();
            let mut at = 0;
            for range in ranges {
                assert!(at <= range.start && range.start < range.end, "in order and apart");
                rest.push_str(&text[at..range.start]);
                at = range.end;
            }
            rest.push_str(&text[at..]);
            rest
        };
        // Spaces between changes count as changed with them.
        let bare = |text: String| text.replace(' ', "");
        assert_eq!(bare(without(&old, &gone)), bare(without(&new, &come)));
    }
}

#[test]
fn texts_of_thousands_of_lines_count_as_different_altogether() {
    let old = "a\n".repeat(5_000);
    let (gone, come) = words(&old, "b\n");
    assert_eq!((gone.len(), come.len()), (1, 1));
    assert_eq!(gone[0], 0..old.len());
}
