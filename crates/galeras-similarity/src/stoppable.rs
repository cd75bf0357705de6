//! Work that can be stopped: polling, sorting in pieces, running threads.

use super::{SimilarityError, StopFlag};

/// Units of work between two polls; a unit takes some nanoseconds, or tens of them if it waits for
/// memory.
const INTERVAL: u64 = 1 << 18;

/// Elements that one uninterrupted sort may have.
const SORTED_AT_ONCE: usize = 1 << 17;

/// Polls the stop flag after enough work.
pub(super) struct Ticker<'a> {
    stop: StopFlag<'a>,
    work: u64,
}

impl<'a> Ticker<'a> {
    pub(super) fn new(stop: StopFlag<'a>) -> Self {
        Self { stop, work: 0 }
    }

    /// Adds `units` of work: tokens or postings touched, plus something per document.
    #[inline]
    pub(super) fn work(&mut self, units: usize) -> Result<(), SimilarityError> {
        self.work += units as u64;
        if self.work < INTERVAL { Ok(()) } else { self.poll() }
    }

    #[cold]
    fn poll(&mut self) -> Result<(), SimilarityError> {
        self.work = 0;
        check(self.stop)
    }
}

/// Returns [`SimilarityError::Stopped`] if the stop flag is set.
pub(super) fn check(stop: StopFlag<'_>) -> Result<(), SimilarityError> {
    if stop() { Err(SimilarityError::Stopped) } else { Ok(()) }
}

/// Sorts by a key that is different for every element.
///
/// Pieces are sorted and merged pairwise, with a poll in between. The standard sort merges them
/// well, because it recognises sorted runs.
pub(super) fn sort<T, K: Ord>(
    items: &mut [T],
    key: impl Fn(&T) -> K,
    stop: StopFlag<'_>,
) -> Result<(), SimilarityError> {
    let mut width = SORTED_AT_ONCE;
    for piece in items.chunks_mut(width) {
        check(stop)?;
        piece.sort_unstable_by_key(&key);
    }
    while width < items.len() {
        width *= 2;
        for piece in items.chunks_mut(width) {
            check(stop)?;
            piece.sort_by_key(&key);
        }
    }
    Ok(())
}

/// Runs `work` for every item, each in its own thread (the last one in this). Results are in the
/// order of the items; the first error in that order wins.
pub(super) fn in_threads<I: Send, R: Send>(
    items: Vec<I>,
    work: impl Fn(I) -> Result<R, SimilarityError> + Sync,
) -> Result<Vec<R>, SimilarityError> {
    let work = &work;
    std::thread::scope(|scope| {
        let mut items = items;
        let last = items.pop();
        let spawn = |item| scope.spawn(move || work(item));
        let threads: Vec<_> = items.into_iter().map(spawn).collect();
        let last = last.map(work);
        let joined =
            threads.into_iter().map(|thread| thread.join().unwrap_or(Err(SimilarityError::Worker)));
        joined.chain(last).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorting_in_pieces_sorts() {
        let mut numbers: Vec<u32> =
            (0..700_001).map(|i: u32| i.wrapping_mul(0x9E37_79B1)).collect();
        let mut expected = numbers.clone();
        expected.sort_unstable();
        sort(&mut numbers, |&n| n, &|| false).unwrap();
        assert_eq!(numbers, expected);
    }

    #[test]
    fn sorting_stops_when_asked() {
        assert!(matches!(sort(&mut [2, 1], |&n: &i32| n, &|| true), Err(SimilarityError::Stopped)));
    }

    #[test]
    fn results_come_in_the_order_of_the_items() {
        assert_eq!(in_threads(vec![3, 1, 2], |n| Ok(n * 10)).unwrap(), [30, 10, 20]);
        assert!(in_threads(Vec::<u8>::new(), Ok).unwrap().is_empty());
    }
}
