//! The ports of `regress`: the rows of each, and the keys of its table.

use arrow::array::RecordBatch;
use datafusion::prelude::SessionContext;

use super::balance::BalanceRow;
use super::contours::ContourRow;
use super::dose::{DoseRow, TrendRow};
use super::effect_sizes::EffectSizeRow;
use super::equivalence::EquivalenceRow;
use super::estimate_table::{EstimateRow, SummaryRow};
use super::findings::FindingRow;
use super::identify::GraphRow;
use super::modifiers::ModifierRow;
use super::overlap::{OverlapRow, PropensityBinRow};
use super::refuters::RefutationRow;
use super::registration::{RegisteredEstimates, is_column, with_registration};
use super::sensitivity::SensitivityRow;
use galeras_operator::small_table::{TableRow, record_batch, table_schema};
use galeras_operator::{MAIN, Port, Ports, SUMMARY, StepError, TableSchema};
use galeras_sql::group_columns::{GroupColumns, Groups};

#[derive(Default)]
pub(super) struct ResultTables {
    pub(super) estimates: Vec<EstimateRow>,
    pub(super) summary: Vec<SummaryRow>,
    pub(super) findings: Vec<FindingRow>,
    pub(super) effect_sizes: Vec<EffectSizeRow>,
    pub(super) equivalence: Vec<EquivalenceRow>,
    pub(super) refutations: Vec<RefutationRow>,
    pub(super) balance: Vec<BalanceRow>,
    pub(super) overlap: Vec<OverlapRow>,
    pub(super) propensity: Vec<PropensityBinRow>,
    pub(super) sensitivity: Vec<SensitivityRow>,
    pub(super) contours: Vec<ContourRow>,
    pub(super) modifiers: Vec<ModifierRow>,
    pub(super) dose: Vec<DoseRow>,
    pub(super) trend: Vec<TrendRow>,
    pub(super) graph: Vec<GraphRow>,
    pub(super) warnings: Vec<String>,
}

/// A port: its name, its key (what its rows are about, and what else tells them apart), and its rows
/// in the tables of a group.
struct PortRows {
    name: &'static str,
    about: &'static [&'static str],
    key: &'static [&'static str],
    schema: fn() -> TableSchema,
    rows: fn(&ResultTables) -> Result<RecordBatch, StepError>,
}

const fn port<Row: TableRow>(
    name: &'static str,
    about: &'static [&'static str],
    key: &'static [&'static str],
    rows: fn(&ResultTables) -> Result<RecordBatch, StepError>,
) -> PortRows {
    PortRows { name, about, key, schema: table_schema::<Row>, rows }
}

const CONTRAST: &[&str] = &["outcome", "treatment", "control"];
/// Rows that several outcomes share.
const ROWS: &[&str] = &["outcomes", "treatment", "control"];

const PORTS: &[PortRows] = &[
    port::<EstimateRow>(MAIN, CONTRAST, &["estimator", "estimand"], |all| {
        record_batch(&all.estimates)
    }),
    port::<SummaryRow>(SUMMARY, CONTRAST, &[], |all| record_batch(&all.summary)),
    port::<FindingRow>("findings", CONTRAST, &[], |all| record_batch(&all.findings)),
    port::<EffectSizeRow>("effect_sizes", CONTRAST, &["measure"], |all| {
        record_batch(&all.effect_sizes)
    }),
    port::<EquivalenceRow>("equivalence", CONTRAST, &[], |all| record_batch(&all.equivalence)),
    port::<RefutationRow>("refutations", CONTRAST, &["estimator", "refuter"], |all| {
        record_batch(&all.refutations)
    }),
    port::<BalanceRow>("balance", ROWS, &["covariate"], |all| record_batch(&all.balance)),
    port::<OverlapRow>("overlap", ROWS, &[], |all| record_batch(&all.overlap)),
    port::<PropensityBinRow>("propensity", ROWS, &["arm", "bin"], |all| {
        record_batch(&all.propensity)
    }),
    port::<SensitivityRow>("sensitivity", CONTRAST, &["analysis", "measure"], |all| {
        record_batch(&all.sensitivity)
    }),
    port::<ContourRow>("contours", CONTRAST, &["kind", "point"], |all| record_batch(&all.contours)),
    port::<ModifierRow>("modifiers", CONTRAST, &["modifier", "bin"], |all| {
        record_batch(&all.modifiers)
    }),
    port::<DoseRow>("dose", &["outcome"], &["dose"], |all| record_batch(&all.dose)),
    port::<TrendRow>("trend", &["outcome"], &["test"], |all| record_batch(&all.trend)),
    port::<GraphRow>("graph", &["outcome"], &["kind", "variables", "given"], |all| {
        record_batch(&all.graph)
    }),
];

/// The ports with the columns of a registration.
const REGISTERED_PORTS: &[&str] = &[MAIN, "findings"];

/// The columns that hold sentences.
const WORDED: &[&str] = &["note", "sentence"];

pub(super) fn into_ports(
    tables: &[ResultTables],
    groups: Option<&Groups>,
    registered: Option<&RegisteredEstimates>,
    session: &SessionContext,
) -> Result<Ports, StepError> {
    let mut ports = Ports::new();
    for port in PORTS {
        let registered = registered.filter(|_| REGISTERED_PORTS.contains(&port.name));
        let rows = |tables| match registered {
            None => (port.rows)(tables),
            Some(registered) => registered.added_to(&(port.rows)(tables)?),
        };
        let batches: Vec<RecordBatch> = tables.iter().map(rows).collect::<Result<_, _>>()?;
        let own = own_table(port, registered.is_some());
        let batch = match groups {
            None => batches.into_iter().next(),
            Some(groups) => Some(groups.united(&batches, &own.schema, WORDED)?),
        };
        let missing = || StepError::new("a defect: no table");
        ports.push((port.name, session.read_batch(batch.ok_or_else(missing)?)?));
    }
    Ok(ports)
}

fn own_table(port: &PortRows, registered: bool) -> TableSchema {
    let table = (port.schema)().keyed(&[port.about, port.key].concat());
    match registered && REGISTERED_PORTS.contains(&port.name) {
        true => with_registration(&table),
        false => table,
    }
}

/// The schema of every port, with the columns of groups in front; `registered` if the workflow
/// registers the analysis.
pub(super) fn ports(groups: &GroupColumns, registered: bool) -> Vec<Port> {
    let table = |port: &PortRows| groups.in_front_of(&own_table(port, registered));
    PORTS.iter().map(|port| Port::new(port.name, table(port))).collect()
}

pub(super) fn is_result(name: &str) -> bool {
    is_column(name) || PORTS.iter().any(|port| (port.schema)().field(name).is_some())
}
