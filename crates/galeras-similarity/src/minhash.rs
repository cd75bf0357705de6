//! Joins most similar documents to components by MinHash signatures.
//!
//! A signature has for each of up to 256 hash functions the smallest value among the tokens of a
//! document. Two documents agree in one of them with a probability equal to their set similarity s.
//! Signatures are cut into b bands of r values, and documents that agree in a whole band are
//! compared: a share of 1 - (1 - s^r)^b of the pairs. The decision about a pair is that of the
//! exact join (`bounds`). Source: Leskovec, Rajaraman, Ullman, Mining of Massive Datasets, section
//! 3.4.
//!
//! If m documents agree in a band without being similar, m² / 2 pairs are compared. Runs of
//! connected documents are skipped: m similar documents take about m steps.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::bounds::Bounds;
use super::components::Components;
use super::corpus::Documents;
use super::keys::mix;
use super::stoppable::{Ticker, in_threads, sort};
use super::{PairProgress, SimilarityError, SimilarityLimits, StopFlag};

const VALUES: usize = 256;

/// The share of pairs exactly at the threshold that must be compared.
const RECALL: f64 = 0.95;

/// The hash functions x -> a x + b modulo 2^32, on mixed x.
struct HashFamily {
    factors: [u32; VALUES],
    terms: [u32; VALUES],
}

impl HashFamily {
    fn new() -> Self {
        let number = |i: usize| (mix(0x6A09_E667_F3BC_C908 ^ i as u64) >> 32) as u32;
        Self {
            factors: std::array::from_fn(|i| number(2 * i) | 1),
            terms: std::array::from_fn(|i| number(2 * i + 1)),
        }
    }
}

/// The number of bands and of values per band for a set threshold: the longest bands with which
/// pairs at the threshold are compared with a probability of 0.95, if there are any.
fn bands(threshold: f64) -> (usize, usize) {
    let reaches = |values: &usize| share(threshold, VALUES / values, *values) >= RECALL;
    let values = (1..=VALUES).rev().find(reaches).unwrap_or(1);
    (VALUES / values, values)
}

/// 1 - (1 - s^r)^b, by multiplication: `powi` may differ between platforms.
fn share(similarity: f64, bands: usize, values: usize) -> f64 {
    let power = |base: f64, exponent| (0..exponent).fold(1.0, |product, _| product * base);
    1.0 - power(1.0 - power(similarity, values), bands)
}

/// The probability in [0, 1] that [`super::PairSearch::MinHash`] compares two documents whose set
/// similarity equals the threshold. It is higher for more similar ones.
pub fn expected_recall(threshold: f64) -> f64 {
    let (bands, values) = bands(threshold);
    share(threshold, bands, values)
}

/// Joins the components of similar documents that share a band.
pub(super) fn search(
    documents: &Documents,
    (threshold, bounds): (f64, &Bounds),
    components: &Components,
    limits: &SimilarityLimits,
    (stop, progress): (StopFlag<'_>, PairProgress<'_>),
) -> Result<(), SimilarityError> {
    let (bands, values) = bands(threshold);
    let free = limits.memory.saturating_sub(documents.store.held()) / 2;
    let at_once = (free / 4 / documents.len().max(1)).clamp(1, bands);
    let family = HashFamily::new();
    let done = AtomicU64::new(0);
    for start in (0..bands).step_by(at_once) {
        let width = at_once.min(bands - start);
        let keys = keys(documents, &family, (start, width, values), limits, stop)?;
        let next = AtomicUsize::new(0);
        in_threads((0..limits.threads()).collect(), |_| {
            loop {
                let band = next.fetch_add(1, Ordering::Relaxed);
                if band >= width {
                    return Ok(());
                }
                let documents_keys = keys.iter().skip(band).step_by(width).zip(0..);
                let mut band: Vec<u64> = documents_keys
                    .map(|(&key, d): (_, u32)| u64::from(key) << 32 | u64::from(d))
                    .collect();
                sort(&mut band, |&entry| entry, stop)?;
                compare(documents, bounds, components, &band, stop)?;
                progress(done.fetch_add(1, Ordering::Relaxed) + 1, bands as u64);
            }
        })?;
    }
    Ok(())
}

/// The keys of `width` bands from `start` on, document by document.
fn keys(
    documents: &Documents,
    family: &HashFamily,
    (start, width, values): (usize, usize, usize),
    limits: &SimilarityLimits,
    stop: StopFlag<'_>,
) -> Result<Vec<u32>, SimilarityError> {
    let share = documents.len().div_ceil(limits.threads()).max(1);
    let mut keys = vec![0; documents.len() * width];
    let parts = keys.chunks_mut(share * width).zip((0..).step_by(share)).collect();
    let used = start * values..(start + width) * values;
    in_threads(parts, |(part, first): (&mut [u32], usize)| {
        let mut ticker = Ticker::new(stop);
        let mut buffer = Vec::new();
        let (factors, terms) = (&family.factors[used.clone()], &family.terms[used.clone()]);
        let mut signature = vec![0_u32; used.len()];
        for (document, keys) in (first..).zip(part.chunks_exact_mut(width)) {
            let data = documents.load(document..document + 1, &mut buffer)?;
            let view = documents.view(document, data, document);
            signature.fill(u32::MAX);
            // Tokens only in this document: any numbers that no other document has.
            let own = mix(u64::from(documents.rows[document]) | 1 << 63);
            let unranked = (0..u64::from(view.size) - view.tokens.len() as u64).map(|n| own ^ n);
            for token in unranked.chain(view.tokens.iter().map(|&rank| u64::from(rank))) {
                let token = (mix(token.wrapping_add(0x9E37_79B9_7F4A_7C15)) >> 32) as u32;
                let functions = factors.iter().zip(terms);
                for (least, (&factor, &term)) in signature.iter_mut().zip(functions) {
                    *least = (*least).min(token.wrapping_mul(factor).wrapping_add(term));
                }
                ticker.work(used.len() / 2)?;
            }
            for (key, band) in keys.iter_mut().zip(signature.chunks_exact(values)) {
                let whole = band.iter().fold(0, |sum, &value| mix(sum ^ u64::from(value)));
                *key = (whole >> 32) as u32;
            }
        }
        Ok(())
    })?;
    Ok(keys)
}

/// Compares the documents that agree in a band: `entries` are sorted keys of the band, each with
/// its document in the lower half.
fn compare(
    documents: &Documents,
    bounds: &Bounds,
    components: &Components,
    entries: &[u64],
    stop: StopFlag<'_>,
) -> Result<(), SimilarityError> {
    let mut ticker = Ticker::new(stop);
    let (mut left, mut right) = (Vec::new(), Vec::new());
    let mut skips: Vec<usize> = Vec::new();
    for bucket in entries.chunk_by(|a, b| a >> 32 == b >> 32) {
        // For each place an earlier one: all between them are in the same component.
        skips.clear();
        skips.extend(0..bucket.len());
        for (i, &x) in bucket.iter().enumerate() {
            let x = x as u32 as usize;
            ticker.work(16)?;
            if i == 0 || documents.totals[x] < bounds.min_tokens {
                continue;
            }
            let view = documents.view(x, documents.load(x..x + 1, &mut left)?, x);
            let least = bounds.least_size(view.size);
            let root = |entry: u64| components.root(entry as u32);
            let mut place = i;
            while place > 0 {
                let own = root(bucket[i]);
                let run = place;
                while place > 0 && root(bucket[place - 1]) == own {
                    place = skips[place - 1].min(place - 1);
                    ticker.work(1)?;
                }
                if run > place {
                    skips[run - 1] = place;
                    continue;
                }
                place -= 1;
                let y = bucket[place] as u32 as usize;
                if documents.sizes[y] < least {
                    break;
                }
                ticker.work(1)?;
                let total = documents.totals[y];
                if total < bounds.min_tokens
                    || !bounds.totals_allow(total, view.total)
                    || components.are_joined(y as u32, x as u32)
                {
                    continue;
                }
                let other = documents.view(y, documents.load(y..y + 1, &mut right)?, y);
                ticker.work(other.tokens.len())?;
                if bounds.compare(&view, &other).is_some() {
                    components.join(y as u32, x as u32);
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_are_as_long_as_the_recall_allows() {
        assert_eq!(bands(0.8), (28, 9));
        assert_eq!(bands(1.0), (1, 256));
        for threshold in [0.05, 0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0] {
            let (bands, values) = bands(threshold);
            assert!(bands * values <= VALUES);
            assert!(expected_recall(threshold) >= RECALL);
            assert!(
                values == VALUES || share(threshold, VALUES / (values + 1), values + 1) < RECALL
            );
        }
    }
}
