//! Parts of a search that are small enough to be listed, and the cut of a part in two. The cut is chosen
//! so that few requests are lost on parts that turn out too large.

use serde::{Deserialize, Serialize};

use super::query::{Bounds, Query};
use super::repository::GithubRepository;
use super::time;

/// October 2007, before GitHub's first repository.
const FIRST: i64 = 1_191_196_800;
/// More stars than any repository has.
const MOST_STARS: i64 = 1_000_000;

/// The median of a power law's middle part, between its ends on a logarithmic scale.
const BELOW_MEDIAN: f64 = 0.4;

/// The repositories of a search within ranges of stars and of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Slice {
    pub(super) stars: Bounds,
    pub(super) created: Bounds,
}

impl Slice {
    /// The slice of the whole query.
    pub(super) fn whole(query: &Query) -> Self {
        Self { stars: query.stars, created: query.created }
    }

    /// The slice in two parts, the one with fewer stars (or the older one) first; none if it
    /// is one number of stars and one second.
    ///
    /// `total` is the number of its repositories, `sample` the first of them by stars, `now`
    /// is in seconds since 1970. The ends of the slice stay open if they were: stars may be
    /// given while we search.
    pub(super) fn split(
        &self,
        total: u64,
        sample: &[GithubRepository],
        now: i64,
    ) -> Option<[Self; 2]> {
        if let Some(at) = self.star_cut(total, sample) {
            let low = Self { stars: Bounds::new(self.stars.low, Some(at - 1)), ..*self };
            let high = Self { stars: Bounds::new(Some(at), self.stars.high), ..*self };
            return Some([low, high]);
        }
        let at = self.created_cut(sample, now)?;
        let low = Self { created: Bounds::new(self.created.low, Some(at - 1)), ..*self };
        let high = Self { created: Bounds::new(Some(at), self.created.high), ..*self };
        Some([low, high])
    }

    /// The lowest number of stars in the upper part, which has about half of the repositories.
    ///
    /// Numbers of stars follow a power law: on logarithmic scales, the number of repositories
    /// with at least so many stars falls on a line. Two points of it are known: all of them
    /// have the slice's lowest number, and a page of them the lowest number in the sample.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
    fn star_cut(&self, total: u64, sample: &[GithubRepository]) -> Option<i64> {
        let low = self.stars.low.unwrap_or(0).max(0);
        if self.stars.high.is_some_and(|high| high <= low) {
            return None;
        }
        let stars = || sample.iter().map(|r| i64::try_from(r.stars).unwrap_or(i64::MAX));
        let top = stars().max().map_or(MOST_STARS, |top| top.saturating_add(1));
        let top = self.stars.high.unwrap_or(top.max(low + 1));
        // One is added because zero has no logarithm.
        let log = |stars: i64| (stars as f64 + 1.0).ln();
        let last = stars().min().unwrap_or(low).max(low);
        // The hundred repositories with the most stars span many orders of magnitude. If a sample is
        // narrow, the slice's end cuts the line off, and its slope is unreliable.
        let cut_off = self.stars.high.is_some() && log(top) - log(last) < 1.0;
        let half = if sample.is_empty() || cut_off {
            log(low) + BELOW_MEDIAN * (log(top) - log(low))
        } else if last == low || total <= sample.len() as u64 {
            log(low)
        } else {
            let steepness = (total as f64 / sample.len() as f64).ln() / (log(last) - log(low));
            log(low) + 2.0_f64.ln() / steepness
        };
        Some(((half.exp() - 1.0).round() as i64).clamp(low + 1, top))
    }

    /// The start of the newer part: the middle of the sample, but not too near the ends, as the sample
    /// may be the oldest repositories.
    fn created_cut(&self, sample: &[GithubRepository], now: i64) -> Option<i64> {
        let tomorrow = now.saturating_add(86_400);
        let low = self.created.low.unwrap_or_else(|| {
            let high = self.created.high.unwrap_or(tomorrow);
            if high > FIRST { FIRST } else { 0 }
        });
        let high = self.created.high.unwrap_or(tomorrow.max(low + 86_400));
        if low >= high {
            return None;
        }
        let mut times: Vec<i64> =
            sample.iter().filter_map(|r| time::parse_time(&r.created_at)).collect();
        times.sort_unstable();
        let middle = times.get(times.len() / 2).copied().unwrap_or(i64::midpoint(low, high));
        let margin = (high - low) / 8;
        Some(middle.clamp(low + margin.max(1), (high - margin).max(low + margin.max(1))))
    }
}
