//! The step that every operator of this crate binds: small tables from columns in memory.

use std::collections::BTreeMap;
use std::fmt::Debug;

use datafusion::dataframe::DataFrame;
use datafusion::prelude::SessionContext;
use futures::future::BoxFuture;
use serde::Serialize;
use serde_json::Value;

use galeras_operator::small_table::{TableRow, record_batch};
use galeras_operator::{
    ArgError, BoundStep, INPUT, LowerContext, Lowering, Port, Ports, Reads, StepError, TableStep,
};
use galeras_workflow::code::Code;

/// The computation of a step.
pub(crate) trait Analysis: Debug + Send + Sync + Sized + 'static {
    /// Why its results are not reused by row.
    const STAYS: Option<&'static str> = None;

    /// The columns that it reads in addition to the key.
    fn columns(&self) -> Vec<String>;

    /// As [`BoundStep::intervals`].
    fn intervals(&self, _port: &str) -> Option<String> {
        None
    }

    fn tables(
        bound: &BoundAnalysis<Self>,
        cx: &LowerContext,
        input: Option<DataFrame>,
    ) -> impl Future<Output = Result<Ports, StepError>> + Send;
}

#[derive(Debug)]
pub(crate) struct BoundAnalysis<A> {
    pub analysis: A,
    /// The arguments with their defaults, for the key of the result.
    pub resolved_args: Value,
    /// The key of the input: the order of rows.
    pub key: Vec<String>,
    pub ports: Vec<Port>,
}

/// The arguments with their defaults.
pub(crate) fn resolved(args: &impl Serialize) -> Result<Value, Vec<ArgError>> {
    serde_json::to_value(args)
        .map_err(|error| vec![ArgError::new("", Code::WrongType, error.to_string())])
}

/// The input of an operator that needs one.
pub(crate) fn required(input: Option<DataFrame>, operator: &str) -> Result<DataFrame, StepError> {
    input.ok_or_else(|| StepError::new(format!("`{operator}` needs an input table")))
}

/// A table in memory of these rows.
pub(crate) fn table<Row: TableRow>(
    session: &SessionContext,
    rows: &[Row],
) -> Result<DataFrame, StepError> {
    Ok(session.read_batch(record_batch(rows)?)?)
}

impl<A: Analysis> BoundStep for BoundAnalysis<A> {
    fn args(&self) -> Value {
        self.resolved_args.clone()
    }

    fn ports(&self) -> &[Port] {
        &self.ports
    }

    fn reads(&self, _: &str) -> Reads {
        let mut columns = self.key.clone();
        columns.extend(self.analysis.columns());
        columns.sort();
        columns.dedup();
        Reads::Columns(columns)
    }

    fn intervals(&self, port: &str) -> Option<String> {
        self.analysis.intervals(port)
    }

    fn stays(&self) -> Option<&'static str> {
        A::STAYS
    }

    fn lowering(&self) -> Lowering<'_> {
        Lowering::Table(self)
    }
}

impl<A: Analysis> TableStep for BoundAnalysis<A> {
    fn lower<'a>(
        &'a self,
        cx: &'a LowerContext,
        mut inputs: BTreeMap<String, DataFrame>,
    ) -> BoxFuture<'a, Result<Ports, StepError>> {
        Box::pin(async move { A::tables(self, cx, inputs.remove(INPUT)).await })
    }
}
