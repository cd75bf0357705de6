//! Pairs, the means of each unit under both arms, and the estimators that compare them.

use super::{Controls, EffectEstimate, EstimandName, EstimationSample, EstimatorSpec, Measure};
use crate::regress::comparison::{FEWEST_UNITS, arm_values, group_count};
use crate::regress::evalue::counted_risks;
use crate::regress::robustness;
use galeras_base::prose::{four_digits, p_equals, significant};
use galeras_causal::{
    Dominance, InvertedEstimate, LinearFit, Refusal, dense, dominance, dominance_within, mcnemar,
    paired, rank_sum, signed_rank_shift,
};

pub(super) const PAIRED: EstimatorSpec = EstimatorSpec {
    controls: Controls::Units,
    // Every pair has a treated and a control unit: the three are one.
    estimands: &[EstimandName::Ate, EstimandName::Att, EstimandName::Atc],
    fixed_estimand: Some("ate"),
    robustness: robustness::of_pairs,
    ..EstimatorSpec::new(
        "paired",
        "Mean paired difference",
        "The mean of the differences within units, with a t interval.",
        paired_difference,
    )
};

pub(super) const WILCOXON: EstimatorSpec = EstimatorSpec {
    controls: Controls::UnitsIfAny,
    risks: counted_risks,
    ..EstimatorSpec::new(
        "wilcoxon",
        "Wilcoxon's test",
        "Wilcoxon's signed ranks with a unit, else the rank sum: the shift of Hodges and Lehmann,\nwith many ties the probability of superiority.",
        by_ranks,
    )
};

pub(super) const MCNEMAR: EstimatorSpec = EstimatorSpec {
    controls: Controls::Units,
    measure: Measure::OddsRatio,
    risks: counted_risks,
    ..EstimatorSpec::new(
        "mcnemar",
        "McNemar's exact test",
        "McNemar's exact test of pairs: the odds ratio within them.",
        |sample| by_discordant_pairs(sample, false),
    )
};

pub(super) const MCNEMAR_MID_P: EstimatorSpec = EstimatorSpec {
    controls: Controls::Units,
    measure: Measure::OddsRatio,
    risks: counted_risks,
    ..EstimatorSpec::new(
        "mcnemar_mid_p",
        "McNemar's mid-p test",
        "McNemar's test by mid-p values, which are less conservative.",
        |sample| by_discordant_pairs(sample, true),
    )
};

/// The units that have rows in both arms.
pub(in crate::regress) struct UnitPairs {
    pub(in crate::regress) treatment: Vec<f64>,
    pub(in crate::regress) control: Vec<f64>,
    /// The unit of each pair.
    pub(in crate::regress) units: Vec<u32>,
    /// Some unit has several rows in an arm.
    averaged: bool,
}

impl UnitPairs {
    pub(in crate::regress) fn of(treated: &[bool], outcome: &[f64], units: &[u32]) -> Self {
        let mut sums = vec![[(0.0, 0u32); 2]; group_count(units)];
        for ((unit, treated), value) in units.iter().zip(treated).zip(outcome) {
            let (sum, n) = &mut sums[*unit as usize][usize::from(*treated)];
            *sum += value;
            *n += 1;
        }
        let mut pairs =
            Self { treatment: Vec::new(), control: Vec::new(), units: Vec::new(), averaged: false };
        for (unit, [(control, n0), (treatment, n1)]) in (0u32..).zip(sums) {
            if n0 == 0 || n1 == 0 {
                continue;
            }
            pairs.averaged |= n0 > 1 || n1 > 1;
            pairs.treatment.push(treatment / f64::from(n1));
            pairs.control.push(control / f64::from(n0));
            pairs.units.push(unit);
        }
        pairs
    }

    pub(in crate::regress) fn len(&self) -> usize {
        self.units.len()
    }

    /// The cluster of each pair, from the unit and the cluster of each row.
    ///
    /// # Errors
    /// A unit has rows in two clusters.
    pub(in crate::regress) fn clusters(
        &self,
        units: &[u32],
        clusters: &[u32],
    ) -> Result<Vec<u32>, Refusal> {
        let mut of_unit = vec![u32::MAX; units.len()];
        for (unit, cluster) in units.iter().zip(clusters) {
            let known = &mut of_unit[*unit as usize];
            if *known != u32::MAX && known != cluster {
                let message = "a unit has rows in two clusters: units must lie within one";
                return Err(Refusal::Other(message.into()));
            }
            *known = *cluster;
        }
        Ok(self.units.iter().map(|unit| of_unit[*unit as usize]).collect())
    }

    /// Treatment minus control, of each pair.
    pub(in crate::regress) fn differences(&self) -> Vec<f64> {
        self.treatment.iter().zip(&self.control).map(|(t, c)| t - c).collect()
    }

    /// The contribution of each row to the error of the mean difference: that of a pair is on its first
    /// row.
    fn influence(&self, units: &[u32], mean: f64) -> Vec<f64> {
        let mut of_unit = vec![0.0; group_count(units)];
        for (unit, difference) in self.units.iter().zip(self.differences()) {
            of_unit[*unit as usize] = (difference - mean) / self.len() as f64;
        }
        units.iter().map(|unit| std::mem::take(&mut of_unit[*unit as usize])).collect()
    }

    /// The pairs of a sample. A refuter may leave out some of the units, so it needs only two.
    fn of_sample(sample: &EstimationSample<'_>, units: &[u32]) -> Result<Self, Refusal> {
        let pairs = Self::of(sample.treated, sample.outcome, units);
        let (what, found) = ("pairs", pairs.len());
        let needed = if sample.only_value { 2 } else { FEWEST_UNITS };
        if found < needed { Err(Refusal::TooFew { what, found, needed }) } else { Ok(pairs) }
    }

    fn noted_in(&self, mut result: EffectEstimate) -> EffectEstimate {
        if self.averaged {
            let remark = "Several rows of a unit under one arm are averaged first.";
            result.remarks.push(remark.into());
        }
        EffectEstimate { pairs: Some(self.len()), ..result }
    }
}

fn paired_difference(sample: &EstimationSample<'_>) -> Result<EffectEstimate, Refusal> {
    let no_units = || Refusal::Other("a defect: no units".into());
    let units = sample.units.ok_or_else(no_units)?;
    let pairs = UnitPairs::of_sample(sample, units)?;
    let result = match sample.clusters {
        None => {
            let estimate = paired(&pairs.treatment, &pairs.control)?;
            EffectEstimate::new(estimate, "ate", "paired t")
        }
        Some(clusters) => {
            let of_pairs = dense(pairs.clusters(units, clusters)?.into_iter());
            let (kind, clusters) = sample.covariance();
            let fit =
                LinearFit::fit(&[], &pairs.differences()).map_err(|refusal| match refusal {
                    Refusal::Constant(_) => {
                        Refusal::Other("all paired differences are equal".into())
                    }
                    other => other,
                })?;
            let estimate = fit.estimate(0, kind, clusters.map(|_| of_pairs.as_slice()))?;
            EffectEstimate::new(estimate, "ate", format!("{kind} of pair differences"))
        }
    };
    let influence = pairs.influence(units, result.estimate.value);
    Ok(EffectEstimate { influence: Some(influence), ..pairs.noted_in(result) })
}

fn by_ranks(sample: &EstimationSample<'_>) -> Result<EffectEstimate, Refusal> {
    if sample.clusters.is_some() {
        return Err(Refusal::Other(
            "Wilcoxon's tests take rows or pairs as independent: they know no clusters".into(),
        ));
    }
    let alpha = sample.args.alpha;
    let Some(units) = sample.units else {
        let of = |arm: bool| arm_values(sample.treated, sample.outcome, arm);
        let found = rank_sum(&of(true), &of(false), alpha)?;
        let mut result = if many_ties(found.tied, found.shift) {
            let rows = dominance(sample.treated, sample.outcome, None)?;
            superiority(rows, found.shift, alpha, "a row of", found.tied)
        } else {
            let mut result = EffectEstimate::by_test(found.shift, Measure::Difference, "");
            result.remarks.push("The median of all differences of two rows.".into());
            result
        };
        result.se_kind = kind_of_test("rank sum", found.exact);
        result.remarks.push(format!("U = {}.", four_digits(found.u)));
        return Ok(result);
    };
    let pairs = UnitPairs::of_sample(sample, units)?;
    let differences = pairs.differences();
    let found = signed_rank_shift(&differences, alpha)?;
    let mut result = if many_ties(found.tied, found.shift) {
        let within = dominance_within(&differences, None)?;
        superiority(within, found.shift, alpha, "of a pair the row of", found.tied)
    } else {
        let mut result = EffectEstimate::by_test(found.shift, Measure::Difference, "");
        result.remarks.push("The median of the averages of two differences.".into());
        result
    };
    result.se_kind = kind_of_test("signed ranks", found.exact);
    let (w, nonzero) = (four_digits(found.w), found.nonzero);
    result.remarks.push(format!("W = {w} over {nonzero} differences that are not zero."));
    Ok(pairs.noted_in(result))
}

/// With a larger share of ties values do not shift: their median difference stays at a tie, and so do
/// both ends of its interval, whatever the test finds.
const MANY_TIES: f64 = 0.05;

fn many_ties(tied: f64, shift: InvertedEstimate) -> bool {
    tied > MANY_TIES || (tied > 0.0 && shift.value == 0.0)
}

fn kind_of_test(name: &str, exact: bool) -> String {
    match exact {
        true => format!("{name}, exact"),
        false => format!("{name}, normal without continuity correction"),
    }
}

/// The probability of superiority with its interval, and the p-value of the test.
fn superiority(
    found: Dominance,
    test: InvertedEstimate,
    alpha: f64,
    which: &str,
    tied: f64,
) -> EffectEstimate {
    let inverted =
        InvertedEstimate { value: found.a12(), interval: found.a12_interval(alpha), ..test };
    let mut result = EffectEstimate::by_test(inverted, Measure::ProbabilityOfSuperiority, "");
    result.remarks.push(format!(
        "The probability that {which} the treatment has the larger value, ties counted half, with Feng \
         and Cliff's interval: {} % of the values are tied, so that a shift would not describe the \
         effect.",
        significant(100.0 * tied, 2)
    ));
    result
}

fn by_discordant_pairs(
    sample: &EstimationSample<'_>,
    mid: bool,
) -> Result<EffectEstimate, Refusal> {
    let refused = |reason: &str| Refusal::Other(reason.into());
    if sample.clusters.is_some() {
        return Err(refused("McNemar's test takes pairs as independent: it knows no clusters"));
    }
    let units = sample.units.ok_or_else(|| refused("McNemar's test needs a unit"))?;
    let pairs = UnitPairs::of_sample(sample, units)?;
    if pairs.averaged {
        let reason = "a unit has several rows under one arm: McNemar's test needs one row for each";
        return Err(refused(reason));
    }
    let table = mcnemar(&pairs.treatment, &pairs.control)?;
    let found = table.odds_ratio(mid, sample.args.alpha)?;
    let (kind, other) = if mid { ("McNemar mid-p", "exact") } else { ("McNemar exact", "mid-p") };
    let mut result = EffectEstimate::by_test(found, Measure::OddsRatio, kind);
    result.remarks.push(format!(
        "{} gained the outcome, {} lost it, {} did not change ({other} p {}).",
        table.gained,
        table.lost,
        table.unchanged,
        p_equals(table.p_value(!mid))
    ));
    Ok(pairs.noted_in(result))
}
