//! `sql`: any query over the input tables.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::context::SQLOptions;
use datafusion::logical_expr::LogicalPlan;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use galeras_operator::{
    ArgError, BindContext, BoundStep, Descriptor, Effect, Grain, InputPorts, Inputs, LowerContext,
    Lowering, MAIN, Operator, Port, Ports, Reads, StepError, TableSchema, TableStep, args_schema,
    parse_args, stored_type,
};
use galeras_sql::session::{
    SqlText, check_deterministic, check_query, dropped_group_columns, empty_view, explain,
    has_unplanned_subquery,
};
use galeras_workflow::code::Code;
use galeras_workflow::quote;

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// One SELECT over the input tables: `input`, or the names given in `from`.
    #[schemars(extend("x-language" = "sql"))]
    query: String,
    /// The columns that identify a row; `id` if there is one, else all columns.
    #[serde(default)]
    key: Option<Vec<String>>,
}

struct SqlOperator;

/// The operator.
pub const SQL: &dyn Operator = &SqlOperator;

const DESCRIPTOR: Descriptor = Descriptor {
    name: "sql",
    version: 3,
    grain: Grain::of::<BoundSql, _>(),
    effect: Effect::Pure,
    inputs: InputPorts::Any,
    doc: include_str!("sql.md"),
    args_schema: args_schema::<Args>,
};

impl Operator for SqlOperator {
    fn descriptor(&self) -> &'static Descriptor {
        &DESCRIPTOR
    }

    fn bind<'a>(
        &'a self,
        args: &'a Value,
        cx: &'a BindContext,
    ) -> BoxFuture<'a, Result<Box<dyn BoundStep>, Vec<ArgError>>> {
        Box::pin(async move {
            let args: Args = parse_args(args)?;
            let session = &cx.session;
            let one = |error| vec![error];
            check_query(&args.query, "query").map_err(one)?;
            let tables: Vec<&str> = cx.inputs.keys().map(String::as_str).collect();
            let text =
                SqlText { sql: &args.query, path: "query", session, columns: &[], tables: &tables };
            let failed =
                |e: datafusion::error::DataFusionError| one(one_select(explain(&e, &text)));
            for (name, table) in &cx.inputs {
                let view = Arc::new(empty_view(table).map_err(failed)?);
                let _ = session.deregister_table(name.as_str()).map_err(failed)?;
                session.register_table(name.as_str(), view).map_err(failed)?;
            }
            // Copied once: there may be thousands of steps.
            let state = session.state();
            let written = state.create_logical_plan(&args.query).await.map_err(failed)?;
            read_only().verify_plan(&written).map_err(failed)?;
            let plan = state.optimize(&written).map_err(failed)?;
            if has_unplanned_subquery(&plan).map_err(failed)? {
                return Err(one(unplanned_subquery()));
            }
            let keys =
                cx.inputs.iter().map(|(name, table)| (name.clone(), table.key.clone())).collect();
            let problems = check_deterministic(&written, &keys).map_err(failed)?;
            let problem = |text: String| ArgError::new("query", Code::NotDeterministic, text);
            ArgError::none(problems.into_iter().map(problem).collect())?;
            let dropped = dropped_group_columns(&written).map_err(failed)?;
            if !dropped.is_empty() {
                return Err(one(unnested_groups(&dropped)));
            }
            // The types are those of the plan: the written query only knows the first type of
            // united columns and of the branches of a CASE.
            let types = plan.schema().fields().iter().map(|f| f.data_type());
            let fields = written.schema().fields().iter().zip(types).map(|(f, computed)| {
                let computed = held(f.data_type(), computed);
                let nullable = f.is_nullable() || f.data_type() != computed;
                Field::new(f.name(), stored_type(computed), nullable)
                    .with_metadata(f.metadata().clone())
            });
            let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
            let twice = {
                let mut seen = HashSet::new();
                schema.fields().iter().find(|field| !seen.insert(field.name()))
            };
            if let Some(twice) = twice {
                let message = format!("the query gives two columns `{}`", twice.name());
                let error = ArgError::new("query", Code::DuplicateColumn, message);
                return Err(one(error.help("name one of them with AS")));
            }
            for (at, name) in args.key.iter().flatten().enumerate() {
                if schema.field_with_name(name).is_err() {
                    let known = schema.fields().iter().map(|f| f.name().as_str());
                    return Err(one(ArgError::unknown_column(format!("key[{at}]"), name, known)));
                }
            }
            let table = TableSchema::new(schema, args.key.clone());
            let reads = columns_read(&plan, &cx.inputs);
            Ok(Box::new(BoundSql { args, ports: vec![Port::new(MAIN, table)], reads })
                as Box<dyn BoundStep>)
        })
    }
}

/// The stored type of a column written as one type and computed as another. Signed and unsigned
/// whole numbers are combined as decimals without a fraction and stored as the written type; a
/// value that does not fit is an error.
fn held<'a>(written: &'a DataType, computed: &'a DataType) -> &'a DataType {
    match computed {
        DataType::Decimal128(_, 0) if written.is_integer() => written,
        _ => computed,
    }
}

fn unnested_groups(dropped: &[String]) -> ArgError {
    let names: Vec<String> = dropped.iter().map(|name| quote(name)).collect();
    let message = format!(
        "rows that `unnest` made of groups would be grouped without {}",
        names.join(" and ")
    );
    let help = "unnest in a separate step, or group by fewer columns";
    ArgError::new("query", Code::UnnestedGroups, message).help(help)
}

fn unplanned_subquery() -> ArgError {
    let message = "this use of a subquery cannot be computed";
    let help = "IN, ANY, ALL and EXISTS take a subquery in WHERE or HAVING; one that depends on the \
                outer row must not have UNION or ORDER BY, and with an aggregate it compares with that \
                row by `=` only; compute its rows in another step, and join them";
    ArgError::new("query", Code::Sql, message).help(help)
}

fn one_select(error: ArgError) -> ArgError {
    if error.message.contains("not supported: ") {
        return ArgError::new("query", Code::NotASelect, "the query must be one SELECT");
    }
    error
}

fn read_only() -> SQLOptions {
    SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false)
}

/// The columns of each input that the optimised plan still reads.
fn columns_read(
    plan: &LogicalPlan,
    inputs: &BTreeMap<String, TableSchema>,
) -> BTreeMap<String, Vec<String>> {
    // Views are inlined as scans of unnamed tables, so a column counts as read from every input
    // that has it: this may cause an unnecessary run, but never a stale hit.
    let mut names = BTreeSet::new();
    let visited = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            names.extend(scan.projected_schema.fields().iter().map(|f| f.name().clone()));
            for filter in &scan.filters {
                names.extend(filter.column_refs().into_iter().map(|c| c.name.clone()));
            }
        }
        Ok(TreeNodeRecursion::Continue)
    });
    let everything = visited.is_err();
    inputs
        .iter()
        .map(|(port, table)| {
            let read = table.names().filter(|n| everything || names.contains(*n));
            (port.clone(), read.map(str::to_string).collect())
        })
        .collect()
}

#[derive(Debug)]
struct BoundSql {
    args: Args,
    ports: Vec<Port>,
    reads: BTreeMap<String, Vec<String>>,
}

impl BoundStep for BoundSql {
    fn args(&self) -> Value {
        serde_json::json!(self.args)
    }

    fn ports(&self) -> &[Port] {
        &self.ports
    }

    fn reads(&self, input: &str) -> Reads {
        self.reads.get(input).map_or(Reads::All, |names| Reads::Columns(names.clone()))
    }

    fn lowering(&self) -> Lowering<'_> {
        Lowering::Table(self)
    }
}

impl TableStep for BoundSql {
    fn lower<'a>(
        &'a self,
        cx: &'a LowerContext,
        inputs: Inputs,
    ) -> BoxFuture<'a, Result<Ports, StepError>> {
        Box::pin(async move {
            for (name, df) in inputs {
                cx.session.register_table(name.as_str(), df.into_view())?;
            }
            let rows = cx.session.sql_with_options(&self.args.query, read_only()).await?;
            Ok(vec![(MAIN, rows)])
        })
    }
}
