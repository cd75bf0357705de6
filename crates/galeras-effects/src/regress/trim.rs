//! `overlap: trim`: the rows in which the arms overlap.

use super::args::{Args, OverlapRule};
use super::comparison::{RowSet, TrimmedRows};
use super::estimators::FittedPropensity;
use super::frame::AnalysisFrame;
use galeras_base::prose::{count, thousands};
use galeras_causal::{CRUMP, in_overlap};

/// The rows in the overlap, if the rule is to trim.
pub(super) fn trimmed(
    args: &Args,
    frame: &AnalysisFrame,
    set: RowSet,
    score: impl Fn(&RowSet) -> Option<FittedPropensity>,
) -> RowSet {
    if args.overlap != OverlapRule::Trim {
        return set;
    }
    let Some(Ok(score)) = score(&set) else { return set };
    let kept = in_overlap(&score.scores, CRUMP);
    if kept.len() == set.rows.len() {
        return set;
    }
    let (of, treated) = (set.rows.len(), set.n_treated());
    let mut inner = set.restricted(args, frame, &kept);
    let left = inner.n_treated();
    inner.trimmed = Some(TrimmedRows {
        of,
        treated: treated - left,
        control: (of - treated) - (inner.rows.len() - left),
    });
    inner
}

pub(super) fn remark(set: &RowSet, trimmed: &TrimmedRows) -> String {
    format!(
        "This is the effect on the {} of {} whose propensity score is between {} and {} (Crump and \
         others 2009), not on all: {} of `{}` and {} of `{}` are left out.",
        thousands(set.rows.len()),
        count(trimmed.of, "row", "rows"),
        CRUMP.0,
        CRUMP.1,
        thousands(trimmed.treated),
        set.contrast.treatment,
        thousands(trimmed.control),
        set.contrast.control,
    )
}

pub(super) fn estimand(name: &'static str) -> &'static str {
    match name {
        "ate" => "ate_trimmed",
        "att" => "att_trimmed",
        "atc" => "atc_trimmed",
        "ato" => "ato_trimmed",
        "late" => "late_trimmed",
        other => other,
    }
}
