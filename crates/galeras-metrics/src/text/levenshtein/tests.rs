//! Tests of the distance against a plain table, the peer and its limits.

use super::super::tests::{self, Numbers};
use super::*;

/// Wagner and Fischer 1974.
fn by_table(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[track_caller]
fn check(levenshtein: &mut Levenshtein, a: &[char], b: &[char]) {
    let (x, y): (String, String) = (a.iter().collect(), b.iter().collect());
    let expected = by_table(a, b);
    assert_eq!(levenshtein.distance(&x, &y), expected, "{x:?} {y:?}");
    assert_eq!(levenshtein.distance(&y, &x), expected, "{y:?} {x:?}");
}

#[test]
fn known_distances() {
    let mut levenshtein = Levenshtein::default();
    let known = [
        ("", "", 0, 1.0),
        ("", "abc", 3, 0.0),
        ("é", "e\u{301}", 2, 0.0),
        ("👩\u{200d}💻", "👩", 2, 1.0 - 2.0 / 3.0),
        ("a\r\n", "a\n", 1, 1.0 - 1.0 / 3.0),
        ("kitten", "sitting", 3, 1.0 - 3.0 / 7.0),
    ];
    for (a, b, distance, similarity) in known {
        assert_eq!(levenshtein.distance(a, b), distance, "{a:?} {b:?}");
        assert_eq!(levenshtein.similarity(a, b), similarity, "{a:?} {b:?}");
    }
}

#[test]
fn every_peer_value_is_met_exactly() {
    let mut levenshtein = Levenshtein::default();
    for pair in tests::pairs() {
        let (reference, hypothesis) = (&pair.reference, &pair.hypothesis);
        let distance = levenshtein.distance(reference, hypothesis);
        assert_eq!(distance as f64, pair.value("levenshtein"), "{pair:?}");
        let similarity = levenshtein.similarity(reference, hypothesis);
        assert_eq!(similarity, pair.value("levenshtein_similarity"), "{pair:?}");
    }
}

#[test]
fn random_texts_around_the_word_size_are_as_by_the_table() {
    let (mut levenshtein, mut numbers) = (Levenshtein::default(), Numbers::new(1));
    let lengths = [0, 1, 2, 31, 32, 62, 63, 64, 65, 66, 127, 128, 129, 130, 191, 193, 257];
    for letters in ["ab", "abcd", "añ世🎉"] {
        let letters: Vec<char> = letters.chars().collect();
        for m in lengths {
            for n in lengths {
                let a = numbers.some(&letters, m);
                let b = numbers.some(&letters, n);
                check(&mut levenshtein, &a, &b);
            }
        }
    }
}

#[test]
fn edited_texts_are_as_by_the_table_for_every_band() {
    let (mut levenshtein, mut numbers) = (Levenshtein::default(), Numbers::new(2));
    let letters: Vec<char> = "abcdefgh".chars().collect();
    let wide: Vec<char> = "abcdefgñ世🎉".chars().collect();
    for round in 0..200 {
        let letters = if round % 4 == 0 { &wide } else { &letters };
        let length = 60 + numbers.below(if round % 10 == 0 { 1500 } else { 500 });
        let a = numbers.some(letters, length);
        let edits = [1, 10, 25, 40, 70, 130, 300][round % 7];
        let b = numbers.edited(&a, letters, edits);
        check(&mut levenshtein, &a, &b);
    }
}

#[test]
fn paths_that_just_leave_or_touch_a_band_are_as_by_the_table() {
    let (mut levenshtein, mut numbers) = (Levenshtein::default(), Numbers::new(7));
    let letters: Vec<char> = ('!'..='~').collect();
    for shift in (1..40).map(|n| 7 * n) {
        let [middle, more, less] =
            [500, shift, shift + 3 * (shift % 5)].map(|length| numbers.some(&letters, length));
        let edited = numbers.edited(&middle, &letters, shift % 60);
        check(&mut levenshtein, &[&more[..], &middle].concat(), &[&edited[..], &less].concat());
        let (left, right) = middle.split_at(100 + shift % 300);
        let a = [left, &more, right, &less, left].concat();
        let b = [left, right, &more, &more, left].concat();
        check(&mut levenshtein, &a, &b);
    }
}

#[test]
fn a_band_never_gives_less_than_the_distance_and_finds_it_within_the_limit() {
    let (mut buffers, mut numbers) =
        (Buffers { left: u64::MAX, ..Buffers::default() }, Numbers::new(8));
    let letters: Vec<char> = ('0'..='z').collect();
    for round in 0..150 {
        let (length, edits) = (200 + numbers.below(600), numbers.below(200) * (round % 2));
        let mut a = numbers.some(&letters, length);
        let mut b = numbers.edited(&a, &letters, edits);
        let (shift, more) = (numbers.below(200), [1, 11, 64, 65, 101, 171][round % 6]);
        b.splice(20..20, numbers.some(&letters, shift));
        a.extend(numbers.some(&letters, more));
        let distance = by_table(&a, &b);
        let [mut a, mut b] = [a, b].map(|x| x.iter().map(|&c| c as u8).collect::<Vec<_>>());
        if a.len() > b.len() {
            std::mem::swap(&mut a, &mut b);
        }
        for slack in [0, 10, 63, 64, 100, 170, 300] {
            let certain = b.len() - a.len() + 2 * slack + 1;
            for limit in [certain, certain.min(distance), certain.min(distance + 20)] {
                let found = buffers.band::<u8, 2>(&a, &b, 128, slack, limit);
                assert!(found.is_none_or(|value| value >= distance));
                assert!(distance > limit || found == Some(distance));
            }
        }
    }
}

#[test]
fn a_long_text_with_few_edits_is_quick() {
    let (mut levenshtein, mut numbers) = (Levenshtein::default(), Numbers::new(4));
    let letters: Vec<char> = "abcdefgh \n".chars().collect();
    let a = numbers.some(&letters, 1_000_000);
    let mut b = a.clone();
    for at in [10usize, 500_000, 999_000] {
        b[at] = 'X';
        b.insert(at + 5, 'Y');
    }
    let (a, b): (String, String) = (a.iter().collect(), b.iter().collect());
    assert_eq!(levenshtein.distance(&a, &b), 6);
    assert_eq!(levenshtein.distance(&format!("{a}ñ"), &b), 7);
}

#[test]
fn a_distance_that_takes_too_many_steps_is_none() {
    let mut levenshtein = Levenshtein::default();
    let (a, b) = ("a".repeat(1_000), "b".repeat(1_000));
    // 8 stripes of two words, all columns of each, in the first band that is wide enough.
    assert_eq!(levenshtein.distance_within(&a, &b, 1_000), None);
    assert_eq!(levenshtein.similarity_within(&a, &b, 1_000), None);
    assert_eq!(levenshtein.distance(&a, &b), 1_000, "the next one is without a limit again");
    assert_eq!(levenshtein.distance_within(&a, &b, 100_000), Some(1_000));
    assert_eq!(levenshtein.similarity_within(&a, &b, 100_000), Some(0.0));
    // The common parts of texts take no steps, and a few edits take few.
    let edited = format!("{a}x{a}y{a}");
    assert_eq!(levenshtein.distance_within(&edited, &a.repeat(3), 10_000), Some(2));
    assert_eq!(levenshtein.distance_within(&a, &a, 0), Some(0));
}
