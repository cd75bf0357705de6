//! Stored results as DataFrames: single ports, and the united cells of a matrix step.

use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::dataframe::DataFrame;
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::{Expr, LogicalPlan, Union, cast, lit};
use serde_json::Value;

use super::key::{StepManifests, artifact};
use crate::digest::Digest;
use crate::operator::StepError;
use crate::plan::{Input, Plan};
use crate::session::{column, scan};
use crate::store::Store;

/// The stored files of an input.
pub(super) fn blobs(input: &Input, done: &StepManifests) -> Vec<Digest> {
    let tables = input.tables.iter().filter_map(|table| artifact(done, table.step, table.port));
    tables.map(|stored| stored.blob).collect()
}

/// The table of an input, with united cells and virtual columns.
pub fn open(
    session: &SessionContext,
    store: &Store,
    plan: &Plan,
    input: &Input,
    done: &StepManifests,
) -> Result<DataFrame, StepError> {
    let mut tables: Vec<DataFrame> = Vec::with_capacity(input.tables.len());
    for table in &input.tables {
        let step = &plan.steps[table.step];
        let missing = || StepError::new(format!("step {} has no result", step.name));
        let port = step.port(table.port).ok_or_else(missing)?;
        let stored = artifact(done, table.step, table.port).ok_or_else(missing)?;
        let mut df = scan(session, store, &stored.blob, &port.table, &step.name)?;
        if input.united {
            let columns = input.schema.schema.fields().iter().map(|field| {
                match table.cell.iter().find(|(key, _)| key == field.name()) {
                    Some((_, value)) => {
                        cast(literal(value), field.data_type().clone()).alias(field.name())
                    }
                    None => column(field.name()),
                }
            });
            df = df.select(columns.collect::<Vec<_>>())?;
        }
        tables.push(df);
    }
    if tables.len() < 2 {
        let missing = || StepError::new("a matrix without cells has no rows to read");
        return tables.pop().ok_or_else(missing);
    }
    // One union of all: one of two at a time is as deep as there are cells.
    let plans = tables.into_iter().map(|df| Arc::new(df.into_unoptimized_plan()));
    let union = Union::try_new_with_loose_types(plans.collect())?;
    Ok(DataFrame::new(session.state(), LogicalPlan::Union(union)))
}

/// The stored table of one port of a step.
pub fn open_port(
    session: &SessionContext,
    store: &Store,
    plan: &Plan,
    step: usize,
    port: &str,
    done: &StepManifests,
) -> Result<DataFrame, StepError> {
    let planned = &plan.steps[step];
    let missing = || StepError::new(format!("step {} has no result {port}", planned.name));
    let table = &planned.port(port).ok_or_else(missing)?.table;
    let stored = artifact(done, step, port).ok_or_else(missing)?;
    Ok(scan(session, store, &stored.blob, table, &planned.name)?)
}

/// A scalar of a matrix cell as a literal.
fn literal(value: &Value) -> Expr {
    match value {
        Value::Bool(b) => lit(*b),
        Value::Number(n) => match n.as_i64() {
            Some(i) => lit(i),
            None => lit(n.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(s) => lit(s.as_str()),
        _ => lit(ScalarValue::Null),
    }
}
