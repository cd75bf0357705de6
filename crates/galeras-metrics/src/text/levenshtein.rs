//! Levenshtein distance and similarity of two texts over code points.
//!
//! Rows of the dynamic-programming matrix belong to the shorter text (the pattern), columns to the
//! longer one. Neighbouring cells differ by at most one, so a machine word holds the differences of
//! 64 rows (Myers 1999, as formulated by Hyyrö 2003). Only a band around the diagonal is computed,
//! which widens until it must contain a best path (Ukkonen 1985).

use hashbrown::HashMap;

use super::without_common_ends;
use crate::interner::char_number;

/// Computes Levenshtein distances; keeps its buffers between calls.
#[derive(Debug, Default)]
pub struct Levenshtein {
    numbers: HashMap<char, u32>,
    a: Vec<u32>,
    b: Vec<u32>,
    buffers: Buffers,
}

impl Levenshtein {
    /// The least number of code points to insert, delete or replace that turns `a` into `b`. Equals
    /// `rapidfuzz.distance.Levenshtein.distance` (3.14.6).
    ///
    /// For lengths m <= n without the common prefix and suffix, and a distance d, time is O(m (d +
    /// 64) / 64 + n) and at most O(m n / 64): milliseconds for 10 MB with a few edits, an hour or
    /// two for 10 MB with nothing in common. Memory is O(m + n): about 1/4 byte per code point if
    /// both texts are ASCII, otherwise 8 bytes more.
    pub fn distance(&mut self, a: &str, b: &str) -> usize {
        self.distance_and_longest(a, b, u64::MAX).0
    }

    /// As [`Levenshtein::distance`], or `None` if that takes more than `steps` steps, each of a
    /// column of 64 rows: about m n / 64 if the texts have little in common.
    /// [`MAX_STEPS`](super::MAX_STEPS) takes minutes.
    pub fn distance_within(&mut self, a: &str, b: &str, steps: u64) -> Option<usize> {
        let (distance, _) = self.distance_and_longest(a, b, steps);
        (!self.buffers.stopped).then_some(distance)
    }

    /// 1 - d / max(code points of `a`, of `b`): 1 for equal texts (also empty ones), 0 if no code
    /// point can stay. Equals rapidfuzz's `normalized_similarity`.
    pub fn similarity(&mut self, a: &str, b: &str) -> f64 {
        share(self.distance_and_longest(a, b, u64::MAX))
    }

    /// As [`Levenshtein::similarity`], within the steps of [`Levenshtein::distance_within`].
    pub fn similarity_within(&mut self, a: &str, b: &str, steps: u64) -> Option<f64> {
        let found = self.distance_and_longest(a, b, steps);
        (!self.buffers.stopped).then(|| share(found))
    }

    fn distance_and_longest(&mut self, a: &str, b: &str, steps: u64) -> (usize, usize) {
        (self.buffers.left, self.buffers.stopped) = (steps, false);
        if a.is_ascii() && b.is_ascii() {
            let distance = self.buffers.distance(a.as_bytes(), b.as_bytes(), 128);
            return (distance, a.len().max(b.len()));
        }
        self.numbers.clear();
        for (text, to) in [(a, &mut self.a), (b, &mut self.b)] {
            to.clear();
            to.extend(text.chars().map(|c| char_number(&mut self.numbers, c)));
        }
        let symbols = self.numbers.len();
        (self.buffers.distance(&self.a, &self.b, symbols), self.a.len().max(self.b.len()))
    }
}

/// The similarity at a distance, given the length of the longer text.
fn share((distance, longest): (usize, usize)) -> f64 {
    if longest == 0 { 1.0 } else { 1.0 - distance as f64 / longest as f64 }
}

/// The items of a text: small numbers that index tables.
trait Symbol: Copy + Eq + Into<u32> {
    fn index(self) -> usize {
        self.into() as usize
    }
}

impl Symbol for u8 {}
impl Symbol for u32 {}

/// Rows in a machine word.
const WORD: usize = 64;

#[derive(Debug, Default)]
struct Buffers {
    /// Symbol -> the rows of the current stripe in which the pattern has it; zeros between calls.
    rows: Vec<u64>,
    /// By column: the change of the lowest computed row against the column before.
    borders: Vec<Border>,
    /// Columns of a word that may still be computed.
    left: u64,
    /// They were too few, so the distance is not valid.
    stopped: bool,
}

#[derive(Debug, Clone, Copy)]
struct Border {
    rises: u64,
    falls: u64,
}

impl Buffers {
    fn distance<S: Symbol>(&mut self, a: &[S], b: &[S], symbols: usize) -> usize {
        let (a, b) = if a.len() <= b.len() { (a, b) } else { (b, a) };
        let (a, b, _) = without_common_ends(a, b);
        let difference = b.len() - a.len();
        if a.is_empty() {
            return difference;
        }
        if a.len() <= WORD {
            return self.band::<S, 1>(a, b, symbols, b.len(), b.len()).unwrap_or(b.len());
        }
        // Computed values are never too low, so this is an upper bound of the distance. A path that
        // leaves a band of `slack` on both sides of the two diagonals through the corners costs 2
        // (slack + 1) more than the difference in length.
        let mut bound = b.len();
        // The work is proportional to the width of the band, so the width doubles.
        let mut slack = WORD + difference / 4;
        loop {
            let enough = (bound - difference) / 2;
            if enough <= 2 * slack {
                slack = enough;
            }
            let certain = difference + 2 * slack + 1;
            let value = self.band::<S, 2>(a, b, symbols, slack, certain.min(bound));
            bound = bound.min(value.unwrap_or(bound));
            if bound <= certain || self.stopped {
                return bound;
            }
            slack = 2 * slack + difference / 2;
        }
    }

    /// The value of the last cell if only cells at most `slack` away from the diagonals through the
    /// two corners, and between them, are computed (and some more): stripes of `W` words of rows,
    /// one after the other. `None` if every path must cost more than `limit`; stripes end where
    /// this is so.
    fn band<S: Symbol, const W: usize>(
        &mut self,
        a: &[S],
        b: &[S],
        symbols: usize,
        slack: usize,
        limit: usize,
    ) -> Option<usize> {
        let (difference, height) = (b.len() - a.len(), W * WORD);
        if self.rows.len() < symbols * W {
            self.rows.resize(symbols * W, 0);
        }
        let (rows, _) = self.rows.as_chunks_mut::<W>();
        self.borders.clear();
        self.borders.resize(b.len().div_ceil(WORD), Border::UNKNOWN);
        // The cell left of the stripe's columns and above its rows: its chunk and value.
        let (mut first, mut corner) = (0, 0);
        let (mut end, mut farthest) = (0, usize::MAX);
        let mut value = None;
        for (stripe, pattern) in a.chunks(height).enumerate() {
            let below = (stripe + 1) * height;
            let after = below.saturating_add(difference).saturating_add(slack);
            // Whole words of columns: omitted cells must count as rising.
            let after = after.min(farthest).min(b.len()).next_multiple_of(WORD).min(b.len());
            let columns = b.get(first * WORD..after)?;
            let Some(left) = self.left.checked_sub((columns.len() * W) as u64) else {
                self.stopped = true;
                return None;
            };
            self.left = left;
            // Borders of an earlier stripe after this one's end belong to that stripe's last row.
            let now = after.div_ceil(WORD);
            self.borders.get_mut(now..end).unwrap_or(&mut []).fill(Border::UNKNOWN);
            end = now;
            let borders = self.borders.get_mut(first..).unwrap_or(&mut []);
            for (row, symbol) in pattern.iter().enumerate() {
                if let Some(word) = rows.get_mut(symbol.index()).and_then(|w| w.get_mut(row / WORD))
                {
                    *word |= 1 << (row % WORD);
                }
            }
            // Left of the first column, values rise by at most one per row.
            let mut state = State { rises: [!0; W], falls: [0; W] };
            let (mut upper, mut lower) = (corner, corner + height);
            let leftmost = below.saturating_sub(slack) / WORD;
            let (mut next, mut last, mut least) = (None, 0, usize::MAX);
            for (at, (columns, border)) in (first..).zip(columns.chunks(WORD).zip(borders)) {
                upper = border.applied(upper, columns.len());
                *border = state.advance(rows, columns, *border);
                let before = lower;
                lower = border.applied(lower, columns.len());
                // A path through this chunk's part of the lowest row costs at least the value
                // there, plus its distance from the diagonal of the last cell.
                let value = (before + lower).saturating_sub(WORD) / 2;
                let diagonal = below + difference;
                let columns = at * WORD + 1..=at * WORD + WORD;
                let away = columns.start().saturating_sub(diagonal)
                    + diagonal.saturating_sub(*columns.end());
                if value + away <= limit && at >= leftmost {
                    if next.is_none() {
                        next = Some((at, before));
                    }
                    least = least.min(value);
                    last = *columns.end();
                }
            }
            for symbol in pattern {
                if let Some(words) = rows.get_mut(symbol.index()) {
                    *words = [0; W];
                }
            }
            if below >= a.len() {
                value = (after == b.len()).then(|| state.value_below(upper, pattern.len()));
            } else {
                (first, corner) = next?;
                // From there, columns that no row matches cost one each, and again after the
                // diagonal of the last cell.
                let costly = (last + height).saturating_add(limit.saturating_sub(least));
                let diagonal = below + height + difference;
                farthest = costly.min(diagonal.max(diagonal.midpoint(costly) + 1));
            }
        }
        value
    }
}

impl Border {
    /// Rises with every column, as row 0 does: an upper bound of every other row.
    const UNKNOWN: Self = Self { rises: !0, falls: 0 };

    /// The value after `columns` columns, starting from `value`.
    fn applied(self, value: usize, columns: usize) -> usize {
        let all = !0 >> (WORD - columns);
        let risen = value + (self.rises & all).count_ones() as usize;
        risen - (self.falls & all).count_ones() as usize
    }
}

/// The changes from each row to the next, in one column of a stripe.
struct State<const W: usize> {
    rises: [u64; W],
    falls: [u64; W],
}

impl<const W: usize> State<W> {
    /// Continues by up to 64 columns below `border`; returns the border below these rows.
    fn advance<S: Symbol>(&mut self, rows: &[[u64; W]], columns: &[S], border: Border) -> Border {
        let (mut rises, mut falls) = (self.rises, self.falls);
        let (mut above_up, mut above_down) = (border.rises, border.falls);
        let (mut below_up, mut below_down) = (0, 0);
        const TOP: u64 = 1 << (WORD - 1);
        for symbol in columns {
            let equal = rows.get(symbol.index()).unwrap_or(&[0; W]);
            let (mut up, mut down) = (above_up & 1, above_down & 1);
            above_up >>= 1;
            above_down >>= 1;
            let (mut last_up, mut last_down) = (0, 0);
            for word in 0..W {
                let (r, f) = (rises[word], falls[word]);
                let equal = equal[word] | down;
                // Cells that equal their upper left neighbour.
                let same = (((equal & r).wrapping_add(r)) ^ r) | equal | f;
                last_up = f | !(same | r);
                last_down = same & r;
                let (right_up, right_down) = (last_up << 1 | up, last_down << 1 | down);
                (up, down) = (last_up >> (WORD - 1), last_down >> (WORD - 1));
                rises[word] = right_down | !(same | right_up);
                falls[word] = same & right_up;
            }
            below_up = below_up >> 1 | last_up & TOP;
            below_down = below_down >> 1 | last_down & TOP;
        }
        (self.rises, self.falls) = (rises, falls);
        let missing = WORD - columns.len();
        Border { rises: below_up >> missing, falls: below_down >> missing }
    }

    /// The value `rows` below the cell of value `upper`, which is above the stripe.
    fn value_below(&self, upper: usize, rows: usize) -> usize {
        let mut value = upper;
        for (word, (rises, falls)) in self.rises.iter().zip(self.falls).enumerate() {
            let mask = match rows.saturating_sub(word * WORD) {
                0 => 0,
                rows => !0 >> (WORD - rows.min(WORD)),
            };
            value += (rises & mask).count_ones() as usize;
            value -= (falls & mask).count_ones() as usize;
        }
        value
    }
}

#[cfg(test)]
mod tests;
