//! The arguments of equivalence and of families of tests: names and defaults. What is wrong with them
//! is found in `check_margins`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What counts as no effect.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EquivalenceArgs {
    /// How large an effect may be, to either side, and still count as none.
    #[serde(default)]
    pub(super) margin: Option<f64>,
    /// The margins of outcomes that have one of their own: outcome -> margin.
    #[serde(default)]
    pub(super) margins: BTreeMap<String, f64>,
    /// What margins are measured in: the outcome's unit (raw), standard deviations of the outcome
    /// (sd, Cohen's d), or of the differences within units (sd_difference, d_z).
    #[serde(default)]
    pub(super) units: MarginUnits,
    /// Whether the effect must lie within the margin to both sides (equivalence), or only not be
    /// worse by it (noninferiority).
    #[serde(default)]
    pub(super) test: EquivalenceTest,
    /// The outcomes of which less is better; of all others more is. For `noninferiority`.
    #[serde(default)]
    pub(super) lower_is_better: Vec<String>,
}

/// What a margin is measured in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum MarginUnits {
    /// The unit of the outcome.
    #[default]
    Raw,
    /// Standard deviations of the outcome, pooled over the arms.
    Sd,
    /// Standard deviations of the differences within units.
    SdDifference,
}

impl MarginUnits {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Sd => "sd",
            Self::SdDifference => "sd_difference",
        }
    }
}

/// Which bounds an effect is tested against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum EquivalenceTest {
    /// Both: two one-sided tests.
    #[default]
    Equivalence,
    /// The one on the worse side.
    Noninferiority,
}

impl EquivalenceTest {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Equivalence => "equivalence",
            Self::Noninferiority => "noninferiority",
        }
    }
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

impl EquivalenceArgs {
    /// The margin of an outcome.
    pub(super) fn margin_of(&self, outcome: &str) -> Option<f64> {
        self.margins.get(outcome).copied().or(self.margin)
    }
}
