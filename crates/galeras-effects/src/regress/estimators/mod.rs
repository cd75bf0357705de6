//! The estimators: [`ESTIMATORS`] lists them. An entry has everything that the analysis asks of an
//! estimator, so a new one is an entry with its functions and a line in the list.

mod did;
mod front_door;
mod generalised;
mod instruments;
mod linear;
pub(super) mod pairs;
mod propensity;
mod wild;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::args::Args;
use super::design::DesignColumns;
use super::evalue::scaled_risks;
use super::robustness::of_no_regression;
use super::sensitivity::SensitivityMeasures;
use galeras_base::prose::name_list;
use galeras_causal::{
    Covariance, Estimand, Estimate, InvertedEstimate, Propensity, Refusal, Refuter, RiskRatio,
};
use galeras_operator::far_numbers::near_zero;
use galeras_operator::{Choice, Entry};

pub(super) type Estimator = Choice<EstimatorSpec>;

const ESTIMATORS: &[&EstimatorSpec] = &[
    &pairs::PAIRED,
    &linear::DIFFERENCE,
    &linear::OLS,
    &linear::LIN,
    &wild::WILD_CLUSTER,
    &did::DID,
    &propensity::MATCHING,
    &propensity::STRATIFICATION,
    &propensity::WEIGHTING,
    &propensity::AIPW,
    &instruments::IV,
    &generalised::RISK_DIFFERENCE,
    &generalised::RISK_RATIO,
    &generalised::ODDS_RATIO,
    &generalised::LOGISTIC,
    &generalised::LOGISTIC_DIFFERENCE,
    &generalised::LOGISTIC_RATIO,
    &generalised::POISSON,
    &generalised::NEGATIVE_BINOMIAL,
    &generalised::PROPORTIONAL_ODDS,
    &pairs::WILCOXON,
    &pairs::MCNEMAR,
    &pairs::MCNEMAR_MID_P,
    &front_door::FRONTDOOR,
];

/// Those that an analysis uses unasked.
pub(super) const PAIRED: Estimator = Choice(&pairs::PAIRED);
pub(super) const DIFFERENCE: Estimator = Choice(&linear::DIFFERENCE);
pub(super) const OLS: Estimator = Choice(&linear::OLS);
pub(super) const DID: Estimator = Choice(&did::DID);
pub(super) const WILD_CLUSTER: Estimator = Choice(&wild::WILD_CLUSTER);
pub(super) const WEIGHTING: Estimator = Choice(&propensity::WEIGHTING);
pub(super) const AIPW: Estimator = Choice(&propensity::AIPW);

/// The estimator that an argument is for, if it is for only one.
pub(super) fn estimator_with(argument: &str) -> Option<Estimator> {
    ESTIMATORS.iter().find(|one| one.argument == Some(argument)).map(|one| Choice(*one))
}

/// An estimator.
pub(super) struct EstimatorSpec {
    name: &'static str,
    /// Its description in the schema of the arguments.
    doc: &'static str,
    /// The beginning of the sentence about an estimate.
    pub(super) method: &'static str,
    pub(super) estimate: fn(&EstimationSample<'_>) -> Result<EffectEstimate, Refusal>,
    /// Counts of zeros and ones, for example, decide it only with the data.
    pub(super) measure: Measure,
    estimands: &'static [EstimandName],
    /// The estimand, if the argument `estimand` does not decide it.
    pub(super) fixed_estimand: Option<&'static str>,
    pub(super) controls: Controls,
    /// It extrapolates where the arms do not overlap.
    pub(super) is_regression: bool,
    pub(super) needs_propensity: bool,
    /// The range outside of which it distrusts propensity scores.
    pub(super) clip: fn(&Args) -> (f64, f64),
    /// The argument that is for this estimator only.
    argument: Option<&'static str>,
    /// Those of the arguments about rows, `second_cluster` and `weights`, that it takes.
    row_arguments: &'static [&'static str],
    /// The refuters that do not apply to it, with the reason.
    pub(super) unfit_refuters: &'static [(Refuter, &'static str)],
    /// The risk ratio behind an estimate on an outcome of zeros and ones.
    pub(super) risks: fn(&EstimatorSpec, &EstimationSample<'_>, f64) -> Result<RiskRatio, Refusal>,
    /// Adds the robustness values of a primary estimate.
    pub(super) robustness: fn(&mut SensitivityMeasures<'_>, Result<&EffectEstimate, &str>),
    /// Adds other rows to the port `sensitivity`, for any estimate.
    pub(super) diagnostics: fn(&mut SensitivityMeasures<'_>),
}

/// How an estimator deals with confounding.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Controls {
    /// It compares the arms as they are.
    Nothing,
    /// It compares within units.
    Units,
    /// It compares within units if there are any.
    UnitsIfAny,
    Covariates,
    Instruments,
    /// It follows the mediators of the graph.
    Mediators,
}

impl EstimatorSpec {
    const fn new(
        name: &'static str,
        method: &'static str,
        doc: &'static str,
        estimate: fn(&EstimationSample<'_>) -> Result<EffectEstimate, Refusal>,
    ) -> Self {
        Self {
            name,
            doc,
            method,
            estimate,
            measure: Measure::Difference,
            estimands: &[EstimandName::Ate],
            fixed_estimand: None,
            controls: Controls::Covariates,
            is_regression: false,
            needs_propensity: false,
            clip: Args::clip_range,
            argument: None,
            row_arguments: &[],
            unfit_refuters: &[],
            risks: scaled_risks,
            robustness: of_no_regression,
            diagnostics: |_| {},
        }
    }

    pub(super) fn adjusts(&self) -> bool {
        matches!(self.controls, Controls::Covariates | Controls::Instruments)
    }

    pub(super) fn needs_unit(&self) -> bool {
        self.controls == Controls::Units
    }

    /// Why it does not apply with the arguments about rows that are given.
    pub(super) fn without_row_argument(&self, args: &Args) -> Option<String> {
        let given = [("second_cluster", &args.second_cluster), ("weights", &args.weights)];
        let refused = given
            .into_iter()
            .find(|(argument, name)| name.is_some() && !self.row_arguments.contains(argument));
        refused.map(|(argument, _)| {
            let takers: Vec<&str> = ESTIMATORS
                .iter()
                .filter(|one| one.row_arguments.contains(&argument))
                .map(|one| one.name)
                .collect();
            format!("`{}` does not take `{argument}`: only {} do", self.name, name_list(&takers))
        })
    }

    pub(super) fn estimates(&self, estimand: EstimandName) -> bool {
        self.estimands.contains(&estimand)
    }

    /// Estimates the effect in a sample.
    pub(super) fn run(&self, sample: &EstimationSample<'_>) -> Result<EffectEstimate, Refusal> {
        if self.measure == Measure::Difference
            && let Some(outcome) = near_zero(sample.outcome)
        {
            return (self.estimate)(&EstimationSample { outcome: &outcome, ..sample.clone() });
        }
        (self.estimate)(sample)
    }
}

impl Entry for EstimatorSpec {
    const ALL: &'static [&'static Self] = ESTIMATORS;
    const ABOUT: &'static str = "How an effect is estimated.";

    fn name(&self) -> &'static str {
        self.name
    }

    fn doc(&self) -> &'static str {
        self.doc
    }
}

/// For whom an effect is averaged.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", const_into_str)]
pub(super) enum EstimandName {
    /// All units.
    #[default]
    Ate,
    /// Treated units.
    Att,
    /// Control units.
    Atc,
    /// Units in the overlap of both arms, by overlap weights.
    Ato,
}

impl From<EstimandName> for Estimand {
    fn from(name: EstimandName) -> Self {
        match name {
            EstimandName::Ate => Self::Ate,
            EstimandName::Att => Self::Att,
            EstimandName::Atc => Self::Atc,
            EstimandName::Ato => Self::Ato,
        }
    }
}

/// The measure of an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub(super) enum Measure {
    Difference,
    RiskDifference,
    RiskRatio,
    OddsRatio,
    RateRatio,
    /// That a value under the treatment is larger than one under control, ties counted half.
    ProbabilityOfSuperiority,
}

impl Measure {
    /// Its name in a sentence.
    pub(super) fn words(self) -> String {
        self.into_str().replace('_', " ")
    }

    /// It is in units of the outcome, or of its risk.
    pub(super) fn is_difference(self) -> bool {
        matches!(self, Self::Difference | Self::RiskDifference)
    }

    /// The uncertainty of a ratio is that of its logarithm.
    pub(super) fn is_ratio(self) -> bool {
        matches!(self, Self::RiskRatio | Self::OddsRatio | Self::RateRatio)
    }

    /// The value of no effect, which the p-value tests.
    pub(super) fn null(self) -> f64 {
        self.shown(0.0)
    }

    /// Converts a number from the scale of inference, on which no effect is 0. It is logarithmic for
    /// ratios.
    fn shown(self, value: f64) -> f64 {
        match self {
            Self::RiskRatio | Self::OddsRatio | Self::RateRatio => value.exp(),
            Self::ProbabilityOfSuperiority => value + 0.5,
            Self::Difference | Self::RiskDifference => value,
        }
    }

    /// The reverse of [`Self::shown`].
    fn inferred(self, value: f64) -> f64 {
        match self {
            Self::RiskRatio | Self::OddsRatio | Self::RateRatio => value.ln(),
            Self::ProbabilityOfSuperiority => value - 0.5,
            Self::Difference | Self::RiskDifference => value,
        }
    }
}

/// The propensity model that a sample's estimators share.
pub(super) type FittedPropensity = Result<Propensity, Refusal>;

/// The input of an estimator: columns of the same number of rows.
#[derive(Clone)]
pub(super) struct EstimationSample<'a> {
    pub(super) args: &'a Args,
    pub(super) treated: &'a [bool],
    pub(super) outcome: &'a [f64],
    pub(super) covariates: Vec<&'a [f64]>,
    pub(super) instruments: Vec<&'a [f64]>,
    pub(super) mediators: Vec<&'a [f64]>,
    pub(super) mediator_names: &'a [String],
    pub(super) units: Option<&'a [u32]>,
    /// Clusters as given: units do not replace them.
    pub(super) clusters: Option<&'a [u32]>,
    /// The levels of each absorbed column.
    pub(super) absorbed: Vec<&'a [u32]>,
    pub(super) design: &'a DesignColumns,
    /// The fold of each row, for cross-fitting.
    pub(super) folds: Option<&'a [u32]>,
    /// Present if an estimator needs it.
    pub(super) score: Option<&'a FittedPropensity>,
    /// Skips what only a standard error needs, for refuters.
    pub(super) only_value: bool,
}

impl EstimationSample<'_> {
    /// The groups within which errors may be correlated.
    pub(super) fn correlated(&self) -> Option<&[u32]> {
        self.clusters.or(self.units)
    }

    pub(super) fn fit_propensity(&self) -> FittedPropensity {
        Propensity::fit(&self.covariates, self.treated, self.args.penalty)
    }

    /// The covariance of a regression, and the clusters for it.
    fn covariance(&self) -> (Covariance, Option<&[u32]>) {
        if self.only_value {
            return (Covariance::Classic, None);
        }
        (self.args.covariance(), self.correlated())
    }

    /// The same for estimators without leverages: HC1 and CR1 unless others are asked for.
    fn covariance_without_leverage(&self) -> (Covariance, Option<&[u32]>) {
        match (self.only_value, self.args.standard_errors, self.correlated()) {
            (false, None, None) => (Covariance::Hc1, None),
            (false, None, clusters) => (Covariance::Cr1, clusters),
            _ => self.covariance(),
        }
    }

    /// A remark on a standard error that takes the rows of a unit as independent.
    fn unpaired_remark(&self, kind: Covariance) -> Option<String> {
        let ignored = self.units.is_some() && !kind.is_clustered();
        ignored.then(|| "The standard error ignores that rows are paired.".into())
    }

    /// Refuses a sample that is too small for an interval to hold.
    fn require(&self, what: &'static str, found: usize, needed: usize) -> Result<(), Refusal> {
        if found < needed && !self.only_value {
            return Err(Refusal::TooFew { what, found, needed });
        }
        Ok(())
    }

    /// Whole clusters are treated: each lies in one arm.
    fn treats_clusters(&self, clusters: &[u32]) -> bool {
        let mut arms = vec![[false; 2]; clusters.len()];
        let rows = clusters.iter().zip(self.treated);
        rows.for_each(|(cluster, treated)| arms[*cluster as usize][usize::from(*treated)] = true);
        !arms.contains(&[true; 2])
    }
}

/// An estimate and how it came about.
#[derive(Clone, Debug)]
pub(super) struct EffectEstimate {
    /// On the scale of inference: the logarithm of a ratio, a probability less a half.
    pub(super) estimate: Estimate,
    pub(super) measure: Measure,
    /// The interval and p-value of a test, which replace those of the standard error.
    pub(super) inverted: Option<InvertedEstimate>,
    pub(super) estimand: String,
    pub(super) se_kind: String,
    /// The contribution of each row of the sample to the error, if it is known.
    pub(super) influence: Option<Vec<f64>>,
    /// The number of pairs, where pairs were compared.
    pub(super) pairs: Option<usize>,
    /// A test that holds with weak instruments rejects no large effect, whatever the interval is.
    pub(super) unbounded: bool,
    /// Whole sentences that a reader must know.
    pub(super) remarks: Vec<String>,
    /// For the sentence of a finding: the arms overlap too little.
    pub(super) overlap_warning: Option<String>,
}

impl EffectEstimate {
    fn new(estimate: Estimate, estimand: &str, se_kind: impl Into<String>) -> Self {
        Self {
            estimate,
            measure: Measure::Difference,
            inverted: None,
            estimand: estimand.to_owned(),
            se_kind: se_kind.into(),
            influence: None,
            pairs: None,
            unbounded: false,
            remarks: Vec::new(),
            overlap_warning: None,
        }
    }

    /// An estimate of a regression on the scale of inference of its measure.
    fn regression(
        estimate: Estimate,
        measure: Measure,
        sample: &EstimationSample<'_>,
        kind: Covariance,
    ) -> Self {
        let remarks = sample.unpaired_remark(kind).into_iter().collect();
        Self { measure, remarks, ..Self::new(estimate, "ate", kind.to_string()) }
    }

    /// An estimate with the interval and p-value of a test.
    fn by_test(found: InvertedEstimate, measure: Measure, se_kind: &str) -> Self {
        let value = measure.inferred(found.value);
        let standard_error = found.standard_error.unwrap_or(f64::NAN);
        let estimate = Estimate { value, standard_error, degrees: f64::INFINITY };
        Self { inverted: Some(found), measure, ..Self::new(estimate, "ate", se_kind) }
    }

    /// The estimate on the scale of its measure.
    pub(super) fn value(&self) -> f64 {
        self.inverted.map_or_else(|| self.measure.shown(self.estimate.value), |one| one.value)
    }

    /// The interval on the scale of its measure.
    pub(super) fn interval(&self, alpha: f64) -> (f64, f64) {
        match self.inverted {
            Some(inverted) => inverted.interval,
            None => {
                let (low, high) = self.estimate.interval(alpha);
                (self.measure.shown(low), self.measure.shown(high))
            }
        }
    }

    /// The interval of so many standard errors to either side, on the scale of its measure.
    pub(super) fn interval_of(&self, errors: f64) -> (f64, f64) {
        let Estimate { value, standard_error, .. } = self.estimate;
        let half = errors * standard_error;
        (self.measure.shown(value - half), self.measure.shown(value + half))
    }

    /// The two-sided p-value of no effect.
    pub(super) fn p_value(&self) -> f64 {
        self.inverted.map_or_else(|| self.estimate.p_value(), |one| one.p_value)
    }

    /// The statistic of the test, if it has one.
    pub(super) fn statistic(&self) -> Option<f64> {
        match self.inverted {
            Some(inverted) => inverted.statistic,
            None => Some(self.estimate.statistic()),
        }
    }

    /// The standard error, of the logarithm of a ratio.
    pub(super) fn standard_error(&self) -> Option<f64> {
        Some(self.estimate.standard_error).filter(|error| error.is_finite())
    }
}
