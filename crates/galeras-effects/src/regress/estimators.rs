//! The estimators and estimands that a user may ask for, and what each of them knows of itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use galeras_causal::Estimand;

/// How an effect is estimated.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub(super) enum Estimator {
    /// The mean of the differences within units, with a t interval.
    Paired,
    /// The difference of the means of the arms, with Welch's interval.
    Difference,
    /// Linear regression on the treatment and the confounders.
    Ols,
    /// Linear regression with every confounder centred and interacted with the treatment
    /// (Lin 2013).
    Lin,
    /// Each row against its nearest neighbours by propensity score in the other arm.
    Matching,
    /// Differences of means within strata of the propensity score.
    Stratification,
    /// Means weighted by the inverse of the propensity (Hájek).
    Weighting,
    /// Augmented inverse propensity weighting: doubly robust.
    Aipw,
    /// Two-stage least squares with the instruments.
    Iv,
    /// The difference of two proportions, of an outcome that is yes or no.
    RiskDifference,
    /// Their ratio.
    RiskRatio,
    /// The ratio of their odds.
    OddsRatio,
    /// Logistic regression: the odds ratio at equal covariates.
    Logistic,
    /// Logistic regression: the average marginal effect, a difference of probabilities.
    LogisticDifference,
    /// Logistic regression: the ratio of the average probabilities.
    LogisticRatio,
    /// Poisson regression of counts: the rate ratio; of yes and no the risk ratio.
    Poisson,
    /// Negative binomial regression of counts (NB2): the rate ratio.
    NegativeBinomial,
    /// Proportional odds of an ordered outcome.
    ProportionalOdds,
    /// Wilcoxon's signed ranks with a unit, else the rank sum: the shift of Hodges and Lehmann.
    Wilcoxon,
    /// McNemar's exact test of pairs: the odds ratio within them.
    Mcnemar,
    /// McNemar's test by mid-p values, which are less conservative.
    McnemarMidP,
    /// The effect through the mediators that the graph names, by the front door.
    Frontdoor,
}

impl Estimator {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Paired => "paired",
            Self::Difference => "difference",
            Self::Ols => "ols",
            Self::Lin => "lin",
            Self::Matching => "matching",
            Self::Stratification => "stratification",
            Self::Weighting => "weighting",
            Self::Aipw => "aipw",
            Self::Iv => "iv",
            Self::RiskDifference => "risk_difference",
            Self::RiskRatio => "risk_ratio",
            Self::OddsRatio => "odds_ratio",
            Self::Logistic => "logistic",
            Self::LogisticDifference => "logistic_difference",
            Self::LogisticRatio => "logistic_ratio",
            Self::Poisson => "poisson",
            Self::NegativeBinomial => "negative_binomial",
            Self::ProportionalOdds => "proportional_odds",
            Self::Wilcoxon => "wilcoxon",
            Self::Mcnemar => "mcnemar",
            Self::McnemarMidP => "mcnemar_mid_p",
            Self::Frontdoor => "frontdoor",
        }
    }

    /// Whether it uses the confounders.
    pub(super) fn adjusts(self) -> bool {
        !matches!(
            self,
            Self::Paired
                | Self::Difference
                | Self::Frontdoor
                | Self::RiskDifference
                | Self::RiskRatio
                | Self::OddsRatio
                | Self::Wilcoxon
                | Self::Mcnemar
                | Self::McnemarMidP
        )
    }

    /// Whether it is built on a propensity score alone or together with regressions.
    pub(super) fn needs_propensity(self) -> bool {
        matches!(self, Self::Matching | Self::Stratification | Self::Weighting | Self::Aipw)
    }

    /// Whether it knows this estimand.
    pub(super) fn estimates(self, estimand: EstimandName) -> bool {
        match self {
            Self::Matching | Self::Stratification => estimand != EstimandName::Ato,
            Self::Weighting => true,
            // Every pair has a treated and a control unit: the three are one.
            Self::Paired => estimand != EstimandName::Ato,
            _ => estimand == EstimandName::Ate,
        }
    }
}

/// For whom an effect is averaged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
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

impl EstimandName {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ate => "ate",
            Self::Att => "att",
            Self::Atc => "atc",
            Self::Ato => "ato",
        }
    }
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
