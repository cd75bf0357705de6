//! The graph of a study with a panel for each step: its arguments, tables, columns, first rows.

use std::collections::HashMap;

use futures::StreamExt as _;
use galeras_pages::PageLimits;
use galeras_pages::model::{
    AssertionOutcome, ColumnStatistics, PortPanel, StepArrow, StepBox, StepCondition, StepDiagram,
    TableBlock, TableColumn,
};
use serde_json::Value;

use super::columns::ColumnsOfTable;
use super::values::{described, rows, table_block};
use crate::{Surveyed, step_graph, table_name};
use galeras_base::digest::Digest;
use galeras_engine::runner::{Forecast, RunError, test_outcomes};
use galeras_operator::{MAIN, Port};
use galeras_sql::session::session;

const FIRST_ROWS: usize = 5;
/// The largest table, in cells, that is read completely for column statistics.
const CELLS: u64 = 4_000_000;

/// Statistics by the digest of the column: most columns pass through many steps unchanged.
type KnownColumns = HashMap<Digest, ColumnStatistics>;

/// The steps of the plan, the cells of a matrix as one. As many have a panel as a page has panels.
pub(super) async fn diagram(surveyed: &Surveyed) -> Result<StepDiagram, RunError> {
    let limits = PageLimits::default();
    let cells = cells_by_name(surveyed);
    let graph = step_graph(surveyed, false);
    let mut known = KnownColumns::new();
    let mut steps = Vec::with_capacity(graph.nodes.len());
    for (at, node) in graph.nodes.iter().enumerate() {
        let cells = cells.get(node.name.as_str()).map_or(&[][..], Vec::as_slice);
        steps.push(match at < limits.panels {
            true => panel(surveyed, &node.name, cells, &mut known).await?,
            false => summary(surveyed, &node.name, cells),
        });
    }
    let name = |at: usize| graph.nodes[at].name.clone();
    let arrows = graph.edges.into_iter().map(|edge| StepArrow {
        from: name(edge.from),
        to: name(edge.to),
        port: edge.label.unwrap_or_default(),
    });
    Ok(StepDiagram { arrows: arrows.collect(), steps })
}

/// The positions of the steps in each box.
type Cells<'a> = HashMap<&'a str, Vec<usize>>;

fn cells_by_name(surveyed: &Surveyed) -> Cells<'_> {
    let mut cells = Cells::new();
    for (at, step) in surveyed.plan.steps.iter().enumerate() {
        cells.entry(&step.family).or_default().push(at);
        if step.name != step.family {
            cells.entry(&step.name).or_default().push(at);
        }
    }
    cells
}

/// The panel of a step, or of the first cell of several.
async fn panel(
    surveyed: &Surveyed,
    name: &str,
    cells: &[usize],
    known: &mut KnownColumns,
) -> Result<StepBox, RunError> {
    let Some(&at) = cells.first() else { return Ok(StepBox::default()) };
    let step = &surveyed.plan.steps[at];
    let state = &surveyed.states[at];
    let stored = stored(surveyed, cells);
    let mut ports = Vec::new();
    for port in step.step.ports() {
        ports.push(port_panel(surveyed, at, port, known).await?);
    }
    let outcomes = test_outcomes(&surveyed.plan, at, &surveyed.store, &surveyed.done()).await;
    let digest = surveyed.stored(at, MAIN);
    let mut reason = match &state.forecast {
        Forecast::Hit | Forecast::RemoteHit => "nothing it depends on has changed".to_string(),
        Forecast::Runs { reason, detail } => match detail {
            Some(detail) => format!("{}: {detail}", reason.code()),
            None => reason.code().to_string(),
        },
        Forecast::Waits { .. } => "waits for a step before it".to_string(),
        Forecast::Broken(why) => why.clone(),
    };
    if cells.len() > 1 {
        reason = format!(
            "{} of {} cells are stored; this is the first: {}; {reason}",
            stored,
            cells.len(),
            step.name
        );
    }
    Ok(StepBox {
        arguments: yaml(&step.step.args()),
        reason,
        digest: digest.map(|table| table.digest.to_string()).unwrap_or_default(),
        ports,
        assertions: outcomes
            .into_iter()
            .map(|outcome| AssertionOutcome {
                test: outcome.test,
                passed: outcome.held,
                warns: outcome.warns,
                detail: outcome.problem,
            })
            .collect(),
        ..summary(surveyed, name, cells)
    })
}

/// The summary of a step without reading its tables.
fn summary(surveyed: &Surveyed, name: &str, cells: &[usize]) -> StepBox {
    let Some(&at) = cells.first() else { return StepBox::default() };
    let manifests = cells.iter().filter_map(|at| surveyed.states[*at].manifest.as_ref());
    let stored = stored(surveyed, cells);
    StepBox {
        name: name.to_string(),
        operator: surveyed.plan.steps[at].operator.descriptor().name.to_string(),
        state: if stored == cells.len() { StepCondition::Stored } else { StepCondition::Missing },
        seconds: (stored > 0).then(|| manifests.map(|manifest| manifest.seconds).sum()),
        rows: cells.iter().map(|at| surveyed.stored(*at, MAIN).map(|table| table.rows)).sum(),
        ..StepBox::default()
    }
}

fn stored(surveyed: &Surveyed, cells: &[usize]) -> usize {
    cells.iter().filter(|at| surveyed.states[**at].manifest.is_some()).count()
}

async fn port_panel(
    surveyed: &Surveyed,
    at: usize,
    port: &Port,
    known: &mut KnownColumns,
) -> Result<PortPanel, RunError> {
    let fields = port.table.schema.fields();
    let mut columns: Vec<TableColumn> = fields.iter().map(|field| described(field)).collect();
    let Some(artifact) = surveyed.stored(at, port.name) else {
        return Ok(PortPanel { name: port.name.to_string(), columns, ..PortPanel::default() });
    };
    let digest_of = |name: &str| {
        artifact.columns.iter().find(|column| column.name == name).map(|column| column.digest)
    };
    let unknown: Vec<&str> = columns
        .iter()
        .filter(|column| digest_of(&column.name).is_some_and(|d| !known.contains_key(&d)))
        .map(|column| column.name.as_str())
        .collect();
    let open = || surveyed.open_port(&session(1), at, port.name);
    if !unknown.is_empty() && artifact.rows.saturating_mul(unknown.len() as u64) <= CELLS {
        let names: Vec<_> = unknown.iter().map(|name| galeras_sql::session::column(name)).collect();
        let df = open()?.select(names)?;
        let schema = std::sync::Arc::new(df.schema().as_arrow().clone());
        let mut table = ColumnsOfTable::new(&schema);
        let mut stream = df.execute_stream().await?;
        while let Some(batch) = stream.next().await {
            table.add(&batch?)?;
        }
        for (name, statistics) in unknown.iter().zip(table.finish()) {
            if let Some(digest) = digest_of(name) {
                known.insert(digest, statistics);
            }
        }
    }
    let head = columns.clone();
    for column in &mut columns {
        column.statistics = digest_of(&column.name).and_then(|digest| known.get(&digest)).cloned();
    }
    let first = rows(open()?.limit(0, Some(FIRST_ROWS))?).await?;
    let name = table_name(&surveyed.plan.steps[at].name, port.name);
    let first_rows = (!first.is_empty()).then(|| TableBlock {
        choice: "the first as stored".to_string(),
        ..table_block(&name, head, &first, Some(artifact.rows))
    });
    Ok(PortPanel {
        name: port.name.to_string(),
        rows: Some(artifact.rows),
        digest: artifact.digest.to_string(),
        columns,
        first_rows,
    })
}

/// Arguments as readable YAML: a mapping with JSON values, multi-line texts as blocks.
fn yaml(args: &Value) -> String {
    let Some(map) = args.as_object() else { return args.to_string() };
    let mut out = String::new();
    for (name, value) in map.iter().filter(|(_, value)| !value.is_null()) {
        match value.as_str() {
            Some(text) if text.trim_end().contains('\n') => {
                out.push_str(&format!("{name}: |\n"));
                text.lines().for_each(|line| out.push_str(&format!("  {line}\n")));
            }
            Some(text) => out.push_str(&format!("{name}: {text}\n")),
            None => out.push_str(&format!("{name}: {value}\n")),
        }
    }
    out
}
