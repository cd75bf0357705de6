//! Reference values of the peers (tests/reference/text_metrics.json) and pseudorandom numbers for
//! tests.

use std::sync::LazyLock;

use serde_json::Value;

const PATH: &str = "../../tests/reference/text_metrics.json";

pub(super) static ALL: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(&std::fs::read_to_string(PATH).unwrap()).unwrap());

/// A pair of texts and its values by column.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) reference: String,
    pub(super) hypothesis: String,
    values: Vec<f64>,
}

impl Pair {
    pub(super) fn value(&self, column: &str) -> f64 {
        let columns = ALL["columns"].as_array().unwrap();
        self.values[columns.iter().position(|name| name == column).expect(column)]
    }
}

pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

pub(super) fn pairs() -> Vec<Pair> {
    let rows = ALL["pairs"].as_array().unwrap().iter();
    rows.map(|row| Pair {
        reference: text(&row[0]),
        hypothesis: text(&row[1]),
        values: row[2].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect(),
    })
    .collect()
}

/// Fails unless both are equal except for rounding.
#[track_caller]
pub(super) fn assert_close(ours: f64, theirs: f64, what: &dyn std::fmt::Debug) {
    let near = (ours - theirs).abs() <= 1e-12 * theirs.abs();
    assert!(near, "{ours} is not {theirs}: {what:?}");
}

/// A linear congruential generator (Knuth's MMIX).
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n
    }

    pub(crate) fn some<T: Copy>(&mut self, letters: &[T], length: usize) -> Vec<T> {
        (0..length).map(|_| letters[self.below(letters.len())]).collect()
    }

    pub(crate) fn edited<T: Copy>(&mut self, from: &[T], letters: &[T], edits: usize) -> Vec<T> {
        let mut to = from.to_vec();
        for _ in 0..edits {
            let (at, letter) = (self.below(to.len() + 1), letters[self.below(letters.len())]);
            match self.below(3) {
                0 => to.insert(at, letter),
                1 if at < to.len() => _ = to.remove(at),
                _ if at < to.len() => to[at] = letter,
                _ => {}
            }
        }
        to
    }
}
