//! The ports of `regress`: the rows of each, and the keys of its table.

use datafusion::dataframe::DataFrame;
use datafusion::prelude::SessionContext;

use super::super::small_table::{TableRow, record_batch, table_schema};
use super::balance::BalanceRow;
use super::contours::ContourRow;
use super::estimate_table::{EstimateRow, SummaryRow};
use super::identify::GraphRow;
use super::modifiers::ModifierRow;
use super::overlap::OverlapRow;
use super::refutation_table::RefutationRow;
use super::sensitivity::SensitivityRow;
use crate::operator::{MAIN, Port, Ports, SUMMARY, StepError};

/// The port of checks on changed data.
const REFUTATIONS: &str = "refutations";
/// The port of covariates in both arms.
const BALANCE: &str = "balance";
/// The port of propensity scores in both arms.
const OVERLAP: &str = "overlap";
/// The port of what an unobserved confounder would have to do.
const SENSITIVITY: &str = "sensitivity";
/// The port of estimates with confounders of growing strength.
const CONTOURS: &str = "contours";
/// The port of effects that change with a column.
const MODIFIERS: &str = "modifiers";
/// The port of what follows from the causal graph.
const GRAPH: &str = "graph";

/// The rows of every port.
#[derive(Default)]
pub(super) struct ResultTables {
    pub(super) estimates: Vec<EstimateRow>,
    pub(super) summary: Vec<SummaryRow>,
    pub(super) refutations: Vec<RefutationRow>,
    pub(super) balance: Vec<BalanceRow>,
    pub(super) overlap: Vec<OverlapRow>,
    pub(super) sensitivity: Vec<SensitivityRow>,
    pub(super) contours: Vec<ContourRow>,
    pub(super) modifiers: Vec<ModifierRow>,
    pub(super) graph: Vec<GraphRow>,
    /// What the user should hear of at once.
    pub(super) warnings: Vec<String>,
}

impl ResultTables {
    /// The rows as tables.
    pub(super) fn into_ports(self, session: &SessionContext) -> Result<Ports, StepError> {
        Ok(vec![
            (MAIN, table(session, &self.estimates)?),
            (SUMMARY, table(session, &self.summary)?),
            (REFUTATIONS, table(session, &self.refutations)?),
            (BALANCE, table(session, &self.balance)?),
            (OVERLAP, table(session, &self.overlap)?),
            (SENSITIVITY, table(session, &self.sensitivity)?),
            (CONTOURS, table(session, &self.contours)?),
            (MODIFIERS, table(session, &self.modifiers)?),
            (GRAPH, table(session, &self.graph)?),
        ])
    }
}

fn table<Row: TableRow>(session: &SessionContext, rows: &[Row]) -> Result<DataFrame, StepError> {
    Ok(session.read_batch(record_batch(rows)?)?)
}

fn port<Row: TableRow>(name: &'static str, key: &[&str]) -> Port {
    Port::new(name, table_schema::<Row>().keyed(key))
}

/// Every port.
pub(super) fn ports() -> Vec<Port> {
    let contrast = ["outcome", "treatment", "control"];
    let with = |more: &[&'static str]| [&contrast[..], more].concat();
    vec![
        port::<EstimateRow>(MAIN, &with(&["estimator", "estimand"])),
        port::<SummaryRow>(SUMMARY, &contrast),
        port::<RefutationRow>(REFUTATIONS, &with(&["estimator", "refuter"])),
        port::<BalanceRow>(BALANCE, &["outcomes", "treatment", "control", "covariate"]),
        port::<OverlapRow>(OVERLAP, &["outcomes", "treatment", "control"]),
        port::<SensitivityRow>(SENSITIVITY, &with(&["analysis", "measure"])),
        port::<ContourRow>(CONTOURS, &with(&["kind", "point"])),
        port::<ModifierRow>(MODIFIERS, &with(&["modifier", "bin"])),
        port::<GraphRow>(GRAPH, &["outcome", "kind", "variables", "given"]),
    ]
}
