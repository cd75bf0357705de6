//! Families of tests: which p-values are adjusted together.

use std::collections::BTreeMap;

use super::args::Args;
use super::comparison::Contrast;
use super::margins::FamilyMember;
use galeras_causal::adjust;

/// What a test is about.
pub(super) struct Tested<'a> {
    /// Tests of different kinds (estimators) are never in one family.
    pub(super) kind: &'static str,
    pub(super) group: usize,
    pub(super) outcome: &'a str,
    pub(super) contrast: &'a Contrast,
    /// None where there is no test: it does not count.
    pub(super) p: Option<f64>,
}

/// The adjusted p-values, in the order of the tests. The tests of a family have the same kind, and
/// differ only in what `adjust_over` lists.
pub(super) fn adjusted(args: &Args, tests: &[Tested<'_>]) -> Vec<Option<f64>> {
    type Family<'a> = (&'static str, Option<usize>, Option<&'a str>, Option<(&'a str, &'a str)>);
    let mut families: BTreeMap<Family<'_>, Vec<(usize, f64)>> = BTreeMap::new();
    let apart = |member| !args.adjust_over.contains(&member);
    for (place, test) in tests.iter().enumerate() {
        let Some(p) = test.p else { continue };
        let Contrast { treatment, control } = test.contrast;
        let family = (
            test.kind,
            apart(FamilyMember::Groups).then_some(test.group),
            apart(FamilyMember::Outcomes).then_some(test.outcome),
            apart(FamilyMember::Contrasts).then_some((treatment.as_str(), control.as_str())),
        );
        families.entry(family).or_default().push((place, p));
    }
    let mut answer = vec![None; tests.len()];
    for members in families.into_values() {
        let p: Vec<f64> = members.iter().map(|(_, p)| *p).collect();
        for ((place, _), value) in members.iter().zip(adjust(&p, args.adjust.into())) {
            answer[*place] = Some(value);
        }
    }
    answer
}
