//! What an estimate measures: a difference or a ratio, and the value that stands for no effect.
//! And what an estimator measures and needs.

use super::estimators::Estimator;

/// The measure of an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    /// A difference in units of the outcome.
    Difference,
    /// A difference of probabilities.
    RiskDifference,
    /// A ratio of probabilities.
    RiskRatio,
    /// A ratio of odds.
    OddsRatio,
    /// A ratio of mean counts.
    RateRatio,
}

impl Measure {
    /// Its name in tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Difference => "difference",
            Self::RiskDifference => "risk_difference",
            Self::RiskRatio => "risk_ratio",
            Self::OddsRatio => "odds_ratio",
            Self::RateRatio => "rate_ratio",
        }
    }

    /// Its name in a sentence.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Difference => "difference",
            Self::RiskDifference => "risk difference",
            Self::RiskRatio => "risk ratio",
            Self::OddsRatio => "odds ratio",
            Self::RateRatio => "rate ratio",
        }
    }

    /// Whether it is a ratio, whose uncertainty is that of its logarithm.
    pub(super) fn is_ratio(self) -> bool {
        matches!(self, Self::RiskRatio | Self::OddsRatio | Self::RateRatio)
    }

    /// The value of no effect, which the p-value is about.
    pub(super) fn null(self) -> f64 {
        if self.is_ratio() { 1.0 } else { 0.0 }
    }

    /// A number on the scale of inference, which is logarithmic for ratios, on that of the measure.
    pub(super) fn shown(self, value: f64) -> f64 {
        if self.is_ratio() { value.exp() } else { value }
    }
}

impl Estimator {
    /// Whether it is a regression, which extrapolates where the arms do not overlap.
    pub(super) fn is_regression(self) -> bool {
        matches!(
            self,
            Self::Ols
                | Self::Lin
                | Self::Logistic
                | Self::LogisticDifference
                | Self::LogisticRatio
                | Self::Poisson
                | Self::NegativeBinomial
                | Self::ProportionalOdds
        )
    }

    /// Whether it compares the members of pairs, and so needs a unit.
    pub(super) fn needs_unit(self) -> bool {
        matches!(self, Self::Paired | Self::Mcnemar | Self::McnemarMidP)
    }

    /// What it measures, as far as the outcome does not decide that.
    pub(super) fn measure(self) -> Measure {
        match self {
            Self::RiskDifference | Self::LogisticDifference => Measure::RiskDifference,
            Self::RiskRatio | Self::LogisticRatio => Measure::RiskRatio,
            Self::OddsRatio
            | Self::Logistic
            | Self::ProportionalOdds
            | Self::Mcnemar
            | Self::McnemarMidP => Measure::OddsRatio,
            Self::Poisson | Self::NegativeBinomial => Measure::RateRatio,
            _ => Measure::Difference,
        }
    }
}
