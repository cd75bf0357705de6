//! Tests of the search for near rows: it equals all pairs by definition and depends only on rows
//! and thresholds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;

use super::tests::{GO, jaccard, limits};
use super::*;

type Tokens = Option<Vec<u32>>;

type Near = BTreeMap<(usize, usize), Nearness>;

fn token_rows(rows: &[Tokens]) -> TokenRows {
    let mut tokens = TokenRows::new(false);
    rows.iter().for_each(|row| tokens.push_ids(row.as_deref()));
    tokens
}

fn index(rows: &[Tokens], thresholds: &NearThresholds, threads: usize) -> Arc<NearIndex> {
    let mut targets = Targets::new(*thresholds, &limits(1 << 30, threads));
    // In two pieces, as tables come in batches.
    let (some, others) = rows.split_at(rows.len() / 2);
    targets.push(&token_rows(some), GO).unwrap();
    targets.push(&token_rows(others), GO).unwrap();
    Arc::new(NearIndex::new(targets, GO).unwrap())
}

fn found(rows: &[Tokens], others: &[Tokens], thresholds: &NearThresholds, threads: usize) -> Near {
    let index = index(rows, thresholds, threads);
    let mut probe = NearProbe::new(&index);
    let tokens = token_rows(others);
    let mut near = Near::new();
    for other in 0..tokens.len() {
        let mut documents = BTreeMap::new();
        let note = |document, nearness| {
            assert!(documents.insert(document, nearness).is_none(), "found twice");
        };
        probe.row(&tokens, other, |_| true, note, GO).unwrap();
        for row in 0..rows.len() {
            let Some(document) = index.document(row) else { continue };
            let pair = probe.pair(&tokens, other, document, GO).unwrap();
            assert_eq!(pair.as_ref(), documents.get(&document), "row {row} and {other}");
            if let Some(nearness) = pair {
                near.insert((row, other), nearness);
            }
        }
    }
    near
}

fn by_definition(rows: &[Tokens], others: &[Tokens], t: &NearThresholds) -> Near {
    let least = t.similar.min_tokens.max(1) as usize;
    let long = |row: &'_ Tokens| row.clone().filter(|tokens| tokens.len() >= least);
    let mut near = Near::new();
    for (x, row) in rows.iter().enumerate() {
        for (y, other) in others.iter().enumerate() {
            let (Some(row), Some(other)) = (long(row), long(other)) else { continue };
            let (jaccard, multiset) = jaccard(&row, &other);
            let similar = jaccard >= t.similar.set && multiset >= t.similar.multiset;
            let containment = NGRAMS.map(|n| {
                let grams = |tokens: &[u32]| {
                    tokens.windows(n).map(<[u32]>::to_vec).collect::<BTreeSet<_>>()
                };
                let (own, theirs) = (grams(&row), grams(&other));
                let common = own.intersection(&theirs).count();
                (!own.is_empty()).then(|| common as f64 / own.len() as f64)
            });
            let contained = containment
                .iter()
                .zip(t.containment)
                .any(|(share, least)| least > 0.0 && share.is_some_and(|share| share >= least));
            if similar || contained {
                near.insert((x, y), Nearness { similar, jaccard, multiset, containment });
            }
        }
    }
    near
}

/// Rows of a small vocabulary in two tables; many are pieces of other rows.
fn tables() -> impl Strategy<Value = (Vec<Tokens>, Vec<Tokens>)> {
    let row = || prop::collection::vec(0_u32..12, 0..50);
    let piece = (any::<prop::sample::Index>(), 0_usize..30, 0_usize..60, any::<bool>());
    let edit = (any::<prop::sample::Index>(), 0_usize..50, 0_u32..20);
    let made = (
        prop::collection::vec(row(), 1..8),
        prop::collection::vec(piece, 0..25),
        prop::collection::vec(edit, 0..12),
        any::<u32>(),
    );
    made.prop_map(|(mut rows, pieces, edits, sides)| {
        for (from, start, length, doubled) in pieces {
            let row = rows[from.index(rows.len())].clone();
            let piece: Vec<u32> = row.iter().skip(start).take(length).copied().collect();
            rows.push(if doubled { [piece.clone(), piece].concat() } else { piece });
        }
        for (which, at, token) in edits {
            let which = which.index(rows.len());
            if let Some(place) = rows[which].get_mut(at) {
                *place = token;
            }
        }
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for (at, row) in rows.into_iter().enumerate() {
            let side = if sides >> (at % 32) & 1 == 0 { &mut left } else { &mut right };
            side.push((at % 13 != 12).then_some(row));
        }
        (left, right)
    })
}

fn thresholds() -> impl Strategy<Value = NearThresholds> {
    let share = || {
        prop_oneof![
            0.0..=1.0_f64,
            prop::sample::select(vec![0.0, 1e-9, 0.25, 0.5, 2.0 / 3.0, 0.7, 0.8, 1.0])
        ]
    };
    let min = prop::sample::select(vec![0, 1, 5, 9, 20]);
    (share(), share(), share(), share(), min).prop_map(|(set, multiset, eight, thirteen, min)| {
        NearThresholds {
            similar: Thresholds { set: set.max(0.05), multiset, min_tokens: min },
            containment: [eight, thirteen],
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 300 } else { 5000 }))]

    #[test]
    fn near_rows_are_those_of_the_definition(
        (rows, others) in tables(),
        t in thresholds(),
        threads in 1_usize..=4,
    ) {
        prop_assert_eq!(found(&rows, &others, &t, threads), by_definition(&rows, &others, &t));
    }

    #[test]
    fn the_nearest_does_not_depend_on_the_order(
        notes in prop::collection::vec((0_u32..2, 0_u8..3, 0_u8..4, 0_u8..2), 0..12),
        split in 0_usize..12,
    ) {
        let note = |nearest: &mut Nearest, &(thing, near, id, source): &(u32, u8, u8, u8)| {
            let jaccard = 1.0 - f64::from(near) / 10.0;
            let containment = [Some(1.0), None];
            let nearness = Nearness { similar: true, jaccard, multiset: 1.0, containment };
            let id = id.to_string();
            // Rejected pairs make no difference.
            if nearest.wants(thing, &id) {
                nearest.note(thing, nearness, &id, Some(&source.to_string()));
            }
        };
        let (mut forwards, mut backwards) = (Nearest::default(), Nearest::default());
        notes.iter().for_each(|n| note(&mut forwards, n));
        notes.iter().rev().for_each(|n| note(&mut backwards, n));
        let (some, rest) = notes.split_at(split.min(notes.len()));
        let (mut merged, mut other) = (Nearest::default(), Nearest::default());
        some.iter().for_each(|n| note(&mut merged, n));
        rest.iter().for_each(|n| note(&mut other, n));
        merged.merge(other);
        for thing in 0..2 {
            let mut of: Vec<_> = notes.iter().filter(|n| n.0 == thing).collect();
            of.sort_by_key(|(_, near, id, source)| (*near, *id, *source));
            let same = |row: Option<&NearRow>, note: Option<&&(u32, u8, u8, u8)>| {
                row.map(|row| (row.id.clone(), row.source.clone(), row.nearness.jaccard))
                    == note.map(|(_, near, id, source)| {
                        (id.to_string(), Some(source.to_string()), 1.0 - f64::from(*near) / 10.0)
                    })
            };
            for nearest in [&forwards, &backwards, &merged] {
                prop_assert!(same(nearest.of(thing), of.first()));
                for id in 0..4_u8 {
                    let wanted = of.iter().find(|note| note.2 != id);
                    prop_assert!(same(nearest.other_than(thing, &id.to_string()), wanted));
                }
            }
        }
    }
}

fn all(similar: f64) -> NearThresholds {
    let similar = Thresholds { set: similar, ..Thresholds::default() };
    NearThresholds { similar, containment: [0.7, 0.0] }
}

#[test]
fn a_method_within_a_file_is_contained_and_not_similar() {
    let method: Vec<u32> = (0..30).collect();
    let file: Vec<u32> = (1000..3000).chain(0..30).chain(5000..6000).collect();
    let other: Vec<u32> = (0..15).chain([99]).chain(15..30).collect();
    let near = found(&[Some(method)], &[Some(file), Some(other)], &all(0.8), 2);
    let one = near[&(0, 0)];
    assert_eq!((one.similar, one.containment), (false, [Some(1.0), Some(1.0)]));
    assert!(one.jaccard < 0.01 && one.multiset < 0.01);
    // One token in the middle breaks eight of 23 8-grams, and twelve of 18 13-grams.
    let other = near[&(0, 1)];
    let parts = [Some((23.0 - 7.0) / 23.0), Some((18.0 - 12.0) / 18.0)];
    assert_eq!((other.similar, other.containment), (true, parts));
    assert!(other.compare(&one).is_gt() && one.compare(&other).is_lt());
}

#[test]
fn rows_that_are_a_thousand_times_the_same_are_one_document() {
    let row: Vec<u32> = (0..40).collect();
    let rows = vec![Some(row); 1000];
    let index = index(&rows, &all(0.8), 2);
    assert_eq!((index.documents(), index.rows()), (1, 1000));
    assert!((0..1000).all(|row| index.document(row) == Some(0)));
    assert_eq!(index.document(1000), None);
}

#[test]
fn empty_tables_are_near_to_nothing() {
    let row = || Some((0..40).collect::<Vec<u32>>());
    for (rows, others) in [(vec![], vec![row()]), (vec![row()], vec![]), (vec![None], vec![row()])]
    {
        assert!(found(&rows, &others, &all(0.8), 3).is_empty());
    }
}

#[test]
fn thresholds_out_of_range_are_refused() {
    for containment in [[-0.1, 0.0], [0.0, 1.1], [f64::NAN, 0.0]] {
        let thresholds = NearThresholds { containment, ..all(0.8) };
        let index = NearIndex::new(Targets::new(thresholds, &limits(1 << 30, 1)), GO);
        assert!(matches!(index, Err(SimilarityError::Threshold { name: "containment", .. })));
    }
    assert!(NearIndex::new(Targets::new(all(0.0), &limits(1 << 30, 1)), GO).is_err());
}

#[test]
fn every_phase_stops_when_asked() {
    let rows: Vec<Tokens> = (0..50).map(|n| Some((n..n + 10_000).collect())).collect();
    let stop: StopFlag<'_> = &|| true;
    let mut targets = Targets::new(all(0.8), &limits(1 << 30, 2));
    assert!(matches!(targets.push(&token_rows(&rows), stop), Err(SimilarityError::Stopped)));
    assert!(matches!(NearIndex::new(targets, stop), Err(SimilarityError::Stopped)));
    let index = index(&rows, &all(0.8), 2);
    let mut probe = NearProbe::new(&index);
    let tokens = token_rows(&[Some((0..1_000_000).collect())]);
    let stopped = probe.row(&tokens, 0, |_| true, |_, _| (), stop);
    assert!(matches!(stopped, Err(SimilarityError::Stopped)));
}

#[test]
fn rows_of_one_boilerplate_take_bounded_time() {
    // Each row is its own name in a text that all share: every n-gram of the text is everywhere.
    const ROWS: u32 = if cfg!(debug_assertions) { 300 } else { 3_000 };
    let row = |name: u32| Some([name].into_iter().chain(0..40).collect::<Vec<u32>>());
    let rows: Vec<Tokens> = (0..ROWS).map(|name| row(1000 + name)).collect();
    let index = index(&rows, &all(0.8), 2);
    let mut probe = NearProbe::new(&index);
    let tokens = token_rows(&[row(7)]);
    let mut count = 0;
    probe.row(&tokens, 0, |_| true, |_, _| count += 1, GO).unwrap();
    assert_eq!(count, ROWS);
}

#[test]
fn targets_say_when_the_memory_is_full() {
    let mut targets = Targets::new(all(0.8), &limits(1 << 20, 1));
    assert!(!targets.is_full());
    let mut rows = 0;
    while !targets.is_full() {
        let first = rows * 100;
        targets.push(&token_rows(&[Some((first..first + 100).collect())]), GO).unwrap();
        rows += 1;
    }
    assert!((50..1000).contains(&rows), "{rows}");
    NearIndex::new(targets, GO).unwrap();
}
