//! Columns that decide how rows count: survey weights, a second column of clusters, and the time before
//! or after an event.

use super::args::Args;
use super::frame::{AnalysisFrame, gather, level_codes};
use galeras_causal::{Covariance, RowDesign};

/// The values of these columns in some rows.
#[derive(Default)]
pub(super) struct DesignColumns {
    pub(super) second_clusters: Option<Vec<u32>>,
    pub(super) weights: Option<Vec<f64>>,
    /// 1 after the event, 0 before.
    pub(super) after: Option<Vec<f64>>,
}

impl DesignColumns {
    pub(super) fn of(args: &Args, frame: &AnalysisFrame, rows: &[u32]) -> Self {
        let numbers = |name: &String| gather(&frame.numbers[name], rows);
        Self {
            second_clusters: args
                .second_cluster
                .as_ref()
                .map(|name| level_codes(frame, name, rows)),
            weights: args.weights.as_ref().map(numbers),
            after: args.after.as_ref().map(numbers),
        }
    }

    /// The same of these rows, by their positions.
    pub(super) fn of_rows(&self, rows: &[u32]) -> Self {
        Self {
            second_clusters: self.second_clusters.as_ref().map(|codes| gather(codes, rows)),
            weights: self.weights.as_ref().map(|weights| gather(weights, rows)),
            after: self.after.as_ref().map(|after| gather(after, rows)),
        }
    }

    /// The design of a regression with errors of this kind.
    pub(super) fn row_design<'a>(
        &'a self,
        kind: Covariance,
        clusters: Option<&'a [u32]>,
    ) -> RowDesign<'a> {
        RowDesign {
            kind,
            clusters,
            second_clusters: self.second_clusters.as_deref(),
            weights: self.weights.as_deref(),
        }
    }

    /// The number of rows of equal weight that are as precise (Kish 1965), if rows have weights.
    pub(super) fn effective_rows(&self) -> Option<f64> {
        let weights = self.weights.as_ref()?;
        let sum: f64 = weights.iter().sum();
        let squares: f64 = weights.iter().map(|weight| weight * weight).sum();
        Some(sum * sum / squares)
    }
}
