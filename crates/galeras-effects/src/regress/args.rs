//! The arguments of `regress`: names and defaults. `check` checks them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::Display;

use super::equivalence::EquivalenceArgs;
use super::estimators::{AIPW, DIFFERENCE, EstimandName, Estimator, OLS, PAIRED, WEIGHTING};
use super::refuters::{ChosenRefuter, all_refuters};
use crate::checks::five_percent;
use galeras_causal::{Adjustment, Covariance};
use galeras_operator::missing_values::MissingValues;

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The column with the arm of a row.
    pub(super) treatment: String,
    /// The arm that others are compared with: its value in the column, as text.
    pub(super) control: String,
    /// The arms that are compared with it, in this order; all others if absent.
    #[serde(default)]
    pub(super) treatments: Option<Vec<String>>,
    /// The comparisons of each arm: with `control` only, or with every other one.
    #[serde(default)]
    pub(super) contrasts: Contrasts,
    /// The columns on which an effect is estimated; numbers or true and false.
    #[schemars(length(min = 1))]
    pub(super) outcomes: Vec<String>,
    /// The column that groups rows: a data point that is answered under every treatment. With it
    /// the analysis is paired.
    #[serde(default)]
    pub(super) unit: Option<String>,
    /// The column of the clusters within which errors may be correlated; the unit if absent.
    #[serde(default)]
    pub(super) cluster: Option<String>,
    /// A second column of clusters, crossed with the first: the model and the problem of an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) second_cluster: Option<String>,
    /// The column with the weights of rows, above zero: the inverse of the probability that a row was
    /// drawn, in any unit. For `ols`, `difference` and `did`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) weights: Option<String>,
    /// The column that is 1 (true) after an event and 0 before, such as the cut-off date of a model's
    /// training data, for `did`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) after: Option<String>,
    /// Covariates that are adjusted for; text as an indicator for each level but the base.
    #[serde(default)]
    pub(super) confounders: Vec<String>,
    /// The base level of a column of text. If absent, the most frequent level of the used rows, and
    /// of several the first by alphabet.
    #[serde(default)]
    pub(super) base: BTreeMap<String, String>,
    /// Columns whose levels (a repository, a file, an author) each have a separate constant in
    /// `ols`: fixed effects, of any number of levels.
    #[serde(default)]
    pub(super) absorb: Vec<String>,
    /// The treatment is a number: the outcome along it by a spline, and trend tests, in the ports
    /// `dose` and `trend`. Arms are then compared only if `treatments` names them.
    #[serde(default)]
    pub(super) dose: Option<DoseArgs>,
    /// Columns with which the effect may change; text by its levels.
    #[serde(default)]
    pub(super) modifiers: Vec<String>,
    /// Columns that change the treatment and touch the outcome in no other way, for `iv`.
    #[serde(default)]
    pub(super) instruments: Vec<String>,
    /// A causal graph in DOT or dagitty syntax over column names; it decides what is adjusted
    /// for.
    #[serde(default)]
    pub(super) graph: Option<String>,
    /// The estimators; the first is the primary one. With a unit that is `paired`, whether it is
    /// named or not. If absent and without a unit: `difference` without confounders (with clusters
    /// `ols`), else `ols` and `aipw`, or `weighting` for an estimand other than `ate`.
    #[serde(default)]
    pub(super) estimators: Vec<Estimator>,
    /// The units over which the effect is averaged, if an estimator can distinguish them: all units
    /// (ate), the treated (att), the controls (atc), or those in the overlap (ato).
    #[serde(default)]
    pub(super) estimand: EstimandName,
    /// The standard errors of regressions; if absent CR2 with clusters or units (CR3 with
    /// `second_cluster` or `weights`), else HC3. With HC0 or CR0, `weighting` and `aipw` have the
    /// plain sandwich of their estimating equations instead of the jackknife.
    #[serde(default)]
    pub(super) standard_errors: Option<StandardErrors>,
    /// Ridge penalty of the propensity model as scikit-learn's `C`; without it maximum
    /// likelihood.
    #[serde(default)]
    pub(super) penalty: Option<f64>,
    /// The range to which propensity scores are clipped for the weights of `weighting`, of
    /// `balance` and `overlap`: at both ends for ate, at the upper for att, at the lower for atc, at
    /// none for ato, whose weights have a bound. (`aipw`, whose regressions make up for extreme
    /// weights, clips to 0.01 and 0.99 at the same ends.)
    #[serde(default = "clip")]
    #[schemars(length(min = 2, max = 2))]
    pub(super) clip: Vec<f64>,
    /// The treatment of arms that overlap too little for an estimate by propensity scores: `refuse`
    /// it, or `trim` the rows to those with a score between 0.1 and 0.9 (Crump and others 2009),
    /// for every estimator; the estimand then has another name. Without propensity scores nothing
    /// can be trimmed, and every estimator that adjusts is refused.
    #[serde(default)]
    pub(super) overlap: OverlapRule,
    /// The largest share of clipped scores with which there is an estimate by propensity scores:
    /// those outside of `clip`, for `aipw` those outside of 0.01 and 0.99, at the ends that are clipped.
    /// With more of them, and more than one, the estimate is biased and its interval covers too little.
    #[serde(default = "max_clipped")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub(super) max_clipped: f64,
    /// The number of parts into which the ranks of the scores are cut, rounded to the nearest: as
    /// in DoWhy, that makes one stratum more, and the two at the ends are half as large. If absent
    /// n / 20, halved until at least half of the strata hold more than ten rows of each arm. The
    /// other strata are left out, and the note has the number of used rows.
    #[serde(default)]
    #[schemars(range(min = 2))]
    pub(super) strata: Option<usize>,
    /// The number of folds for `aipw`, whose models are then fitted on other folds than those they
    /// are used on.
    #[serde(default)]
    #[schemars(range(min = 2))]
    pub(super) folds: Option<u32>,
    /// Checks that estimate again on changed data.
    #[serde(default = "all_refuters")]
    pub(super) refuters: Vec<ChosenRefuter>,
    /// The number of changed data sets of each refuter.
    #[serde(default = "simulations")]
    #[schemars(range(min = 1, max = 100000))]
    pub(super) simulations: usize,
    /// The share of units that the refuter `subset` keeps.
    #[serde(default = "subset_fraction")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub(super) subset_fraction: f64,
    /// The seed of every random choice.
    pub(super) seed: i64,
    /// Intervals cover with probability `1 - alpha`.
    #[serde(default = "five_percent")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub(super) alpha: f64,
    /// How p-values are adjusted for the number of tests in a family.
    #[serde(default)]
    pub(super) adjust: AdjustmentName,
    /// The dimensions in which the tests of a family may differ; there is a family for every
    /// combination of the others (and for every estimator).
    #[serde(default = "FamilyMember::all")]
    pub(super) adjust_over: Vec<FamilyMember>,
    /// Columns whose combinations are analysed separately, each with all estimators, refuters and
    /// checks.
    #[serde(default)]
    pub(super) by: Vec<String>,
    /// The size of an effect that still counts as none: the primary estimates are tested against
    /// this margin.
    #[serde(default)]
    pub(super) equivalence: Option<EquivalenceArgs>,
    /// The treatment of rows without a value, and of units without a row under an arm: `refuse` the
    /// estimate, or `drop` and count the rows and units for every estimator.
    #[serde(default)]
    pub(super) missing: MissingValues,
    /// The lowest and the highest value that an outcome can have, by its name: for the worst-case
    /// bounds where outcomes are absent. One of zeros and ones has this range without being named.
    #[serde(default)]
    pub(super) ranges: BTreeMap<String, Vec<f64>>,
}

fn clip() -> Vec<f64> {
    vec![0.05, 0.95]
}

fn max_clipped() -> f64 {
    0.01
}

fn simulations() -> usize {
    100
}

fn subset_fraction() -> f64 {
    0.9
}

/// Which arms are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Contrasts {
    /// Each with control.
    #[default]
    Control,
    /// Each with each.
    All,
}

/// What is done where the arms overlap too little.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum OverlapRule {
    /// No estimate by propensity scores.
    #[default]
    Refuse,
    /// All estimates, of the rows in the overlap.
    Trim,
}

/// Standard errors of a linear regression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(super) enum StandardErrors {
    /// Equal variances.
    #[serde(rename = "classic")]
    Classic,
    /// White's, robust against unequal variances.
    HC0,
    /// HC0 with a correction for the degrees of freedom.
    HC1,
    /// Unbiased under equal variances.
    HC2,
    /// Nearly the jackknife.
    HC3,
    /// Robust within clusters.
    CR0,
    /// CR0 with Stata's correction.
    CR1,
    /// Bias-reduced (Bell and McCaffrey), with Satterthwaite's degrees of freedom.
    CR2,
    /// Nearly the jackknife over clusters.
    CR3,
}

impl From<StandardErrors> for Covariance {
    fn from(name: StandardErrors) -> Self {
        match name {
            StandardErrors::Classic => Self::Classic,
            StandardErrors::HC0 => Self::Hc0,
            StandardErrors::HC1 => Self::Hc1,
            StandardErrors::HC2 => Self::Hc2,
            StandardErrors::HC3 => Self::Hc3,
            StandardErrors::CR0 => Self::Cr0,
            StandardErrors::CR1 => Self::Cr1,
            StandardErrors::CR2 => Self::Cr2,
            StandardErrors::CR3 => Self::Cr3,
        }
    }
}

/// The spline of a treatment that is a number.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DoseArgs {
    /// The number of knots of the natural cubic spline, at Harrell's quantiles of the doses. With no
    /// more different doses than knots there is one at each.
    #[serde(default = "knots")]
    #[schemars(range(min = 3, max = 7))]
    pub(super) knots: usize,
    /// The doses at which the effect is given; if absent the doses there are, up to 20, else 20 from
    /// the 2.5 % to the 97.5 % quantile.
    #[serde(default)]
    pub(super) at: Vec<f64>,
}

fn knots() -> usize {
    4
}

/// What tests of a family may differ in.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub(super) enum FamilyMember {
    /// Pairs of arms.
    Contrasts,
    /// Outcomes.
    Outcomes,
    /// Combinations of the columns of `by`.
    Groups,
}

impl FamilyMember {
    const ALL: [Self; 3] = [Self::Contrasts, Self::Outcomes, Self::Groups];

    /// The default: a family has all of them.
    pub(super) fn all() -> Vec<Self> {
        Self::ALL.to_vec()
    }
}

/// How p-values of several tests are adjusted.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Display,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "Train-Case")]
pub(super) enum AdjustmentName {
    /// Holm's step-down method: family-wise error.
    #[default]
    Holm,
    /// Bonferroni's: family-wise error.
    Bonferroni,
    /// Simes and Hochberg's step-up method: family-wise error, independent tests.
    #[strum(to_string = "Hochberg")]
    SimesHochberg,
    /// Hommel's: family-wise error, independent tests.
    Hommel,
    /// Benjamini and Hochberg's: false discovery rate.
    BenjaminiHochberg,
    /// Benjamini and Yekutieli's: false discovery rate, any dependence.
    BenjaminiYekutieli,
}

impl AdjustmentName {
    /// It controls the probability of any false rejection in the family.
    pub(super) fn is_family_wise(self) -> bool {
        !matches!(self, Self::BenjaminiHochberg | Self::BenjaminiYekutieli)
    }
}

impl From<AdjustmentName> for Adjustment {
    fn from(name: AdjustmentName) -> Self {
        match name {
            AdjustmentName::Holm => Self::Holm,
            AdjustmentName::Bonferroni => Self::Bonferroni,
            AdjustmentName::SimesHochberg => Self::SimesHochberg,
            AdjustmentName::Hommel => Self::Hommel,
            AdjustmentName::BenjaminiHochberg => Self::BenjaminiHochberg,
            AdjustmentName::BenjaminiYekutieli => Self::BenjaminiYekutieli,
        }
    }
}

impl Args {
    /// The estimators, with the default filled in; the primary one is the first.
    pub(super) fn estimators(&self) -> Vec<Estimator> {
        let mut chosen = match (self.estimators.as_slice(), &self.unit) {
            ([], Some(_)) => vec![PAIRED],
            ([], None) if self.estimand != EstimandName::Ate => vec![WEIGHTING],
            ([], None) if !self.absorb.is_empty() => vec![OLS],
            ([], None) if self.confounders.is_empty() && self.graph.is_none() => {
                // Welch's interval knows no clusters, that of a regression on the arm does.
                vec![if self.cluster.is_some() { OLS } else { DIFFERENCE }]
            }
            ([], None) => vec![OLS, AIPW],
            (given, _) => given.to_vec(),
        };
        // With a unit the design is paired, and so is its primary analysis.
        if self.unit.is_some() {
            chosen.retain(|one| *one != PAIRED);
            chosen.insert(0, PAIRED);
        }
        chosen
    }

    /// The standard errors of regressions, with the default filled in.
    pub(super) fn covariance(&self) -> Covariance {
        match self.standard_errors {
            Some(given) => given.into(),
            None if self.unit.is_none() && self.cluster.is_none() => Covariance::Hc3,
            // CR2 is not defined for two-way clusters, and needs the variances of weighted rows.
            None if self.second_cluster.is_some() || self.weights.is_some() => Covariance::Cr3,
            None => Covariance::Cr2,
        }
    }

    /// The columns that decide how rows count; no estimate can do without their values.
    pub(super) fn design_columns(&self) -> impl Iterator<Item = &String> {
        self.second_cluster.iter().chain(&self.weights).chain(&self.after)
    }

    /// The range to which propensity scores are clipped for the weights of the estimand.
    pub(super) fn clip_range(&self) -> (f64, f64) {
        self.at_unbounded_ends((self.clip[0], self.clip[1]))
    }

    /// A range of propensity scores, only at the ends where a weight of the estimand has no bound.
    /// Elsewhere clipping would give rows far from the other arm more weight than they have.
    pub(super) fn at_unbounded_ends(&self, (low, high): (f64, f64)) -> (f64, f64) {
        match self.estimand {
            EstimandName::Ate => (low, high),
            EstimandName::Att => (0.0, high),
            EstimandName::Atc => (low, 1.0),
            EstimandName::Ato => (0.0, 1.0),
        }
    }

    /// Every column that is read as numbers or as codes of its levels, each once.
    pub(super) fn numbers(&self, adjusted: &[String]) -> Vec<String> {
        let given =
            [&self.outcomes, &self.confounders, &self.modifiers, &self.instruments, &self.absorb];
        let mut names: Vec<String> = Vec::new();
        let dose = self.dose.as_ref().map(|_| &self.treatment);
        let all = given.into_iter().flatten().chain(adjusted).chain(dose);
        for name in all.chain(self.design_columns()) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        names
    }
}
