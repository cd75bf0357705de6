//! `union`: concatenates tables, with a column for the table of each row.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::dataframe::DataFrame;
use datafusion::logical_expr::{Expr, LogicalPlan, Union, cast, lit};
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use galeras_operator::table_digest::type_name;
use galeras_operator::{
    ArgError, BindContext, BoundStep, Descriptor, Effect, Grain, INPUT, InputPorts, Inputs,
    LowerContext, Lowering, MAIN, Operator, Port, Ports, Reads, StepError, TableSchema, TableStep,
    TypedOperator, args_schema, describe,
};
use galeras_sql::session::column;
use galeras_workflow::code::Code;

const LISTED: usize = 8;

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The column with the table of a row: the names given in `from`.
    #[schemars(length(min = 1))]
    label: String,
    /// The columns of the result, in addition to the label and the key; all of them if absent.
    #[serde(default)]
    columns: Option<Vec<String>>,
}

struct UnionOperator;

/// The operator.
pub const UNION: &dyn Operator = &UnionOperator;

impl TypedOperator for UnionOperator {
    type Args = Args;

    const DESCRIPTOR: Descriptor = Descriptor {
        name: "union",
        version: 1,
        grain: Grain::of::<BoundUnion, _>(),
        effect: Effect::Pure,
        inputs: InputPorts::Any,
        doc: include_str!("union.md"),
        args_schema: args_schema::<Args>,
    };

    fn bind(args: Args, cx: &BindContext) -> Result<Box<dyn BoundStep>, Vec<ArgError>> {
        let names: Vec<&str> = cx.inputs.keys().map(String::as_str).collect();
        if matches!(names.as_slice(), [] | [INPUT]) {
            let message = "the tables of a union need names, which become the label";
            let error = match names.as_slice() {
                [] => ArgError::new("", Code::WrongInputs, message),
                _ => ArgError::at_port(INPUT, Code::WrongInputs, message),
            };
            return Err(vec![error.help("write `from: { A: step, B: other_step }`")]);
        }
        let mut errors = Vec::new();
        let tables: Vec<(&str, &TableSchema)> =
            cx.inputs.iter().map(|(name, table)| (name.as_str(), table)).collect();
        check_label(&args.label, &tables, &mut errors);
        match &args.columns {
            Some(columns) => check_columns(&args.label, columns, &tables, &mut errors),
            None => check_same_columns(&tables, &mut errors),
        }
        check_keys(&tables, &mut errors);
        check_types(args.columns.as_deref(), &tables, &mut errors);
        ArgError::none(errors)?;
        let table = united(&args, &tables);
        Ok(Box::new(BoundUnion { args, ports: vec![Port::new(MAIN, table)] }))
    }
}

/// The label must not be the name of an existing column.
fn check_label(label: &str, tables: &[(&str, &TableSchema)], errors: &mut Vec<ArgError>) {
    if let Some((name, _)) = tables.iter().find(|(_, table)| table.field(label).is_some()) {
        let message = format!("`{name}` has a column `{label}` already");
        let error = ArgError::new("label", Code::DuplicateColumn, message);
        errors.push(error.help("give the label another name"));
    }
}

/// Named columns must be in every table, and named once.
fn check_columns(
    label: &str,
    columns: &[String],
    tables: &[(&str, &TableSchema)],
    errors: &mut Vec<ArgError>,
) {
    for (at, column) in columns.iter().enumerate() {
        let path = format!("columns[{at}]");
        if columns[..at].contains(column) {
            let message = format!("column `{column}` is named twice");
            errors.push(ArgError::new(path, Code::DuplicateColumn, message));
            continue;
        }
        if column == label {
            let message = format!("`{column}` is the label, which is there anyway");
            errors.push(ArgError::new(path, Code::DuplicateColumn, message));
            continue;
        }
        let without = tables.iter().filter(|(_, table)| table.field(column).is_none());
        let without: Vec<&(&str, &TableSchema)> = without.collect();
        if without.len() == tables.len() {
            let known = tables.iter().flat_map(|(_, table)| table.names());
            let mut names: Vec<&str> = Vec::new();
            known.for_each(|name| {
                if !names.contains(&name) {
                    names.push(name)
                }
            });
            errors.push(ArgError::unknown_column(path, column, names));
        } else {
            // A table with unknown columns may have it.
            let (open, closed): (Vec<_>, Vec<_>) = without.into_iter().partition(|(_, t)| t.open);
            let may_have = |_| ArgError::unknown_column(path.clone(), column, Vec::new());
            errors.extend(open.into_iter().map(may_have));
            errors.extend(closed.into_iter().map(|(name, _)| {
                let message = format!("`{name}` has no column `{column}`");
                ArgError::at_port(name, Code::UnknownColumn, message)
                    .help("`columns` names columns that all tables have")
            }));
        }
    }
}

/// Without a choice of columns, all tables must have the same ones.
fn check_same_columns(tables: &[(&str, &TableSchema)], errors: &mut Vec<ArgError>) {
    let Some(((first, base), others)) = tables.split_first() else { return };
    let everywhere = |name: &&str| tables.iter().all(|(_, table)| table.field(name).is_some());
    let shared: Vec<&str> = base.names().filter(everywhere).collect();
    for (name, table) in others {
        // A table with unknown columns may have more of them.
        let lacks = base.names().filter(|c| !table.open && table.field(c).is_none());
        let adds = table.names().filter(|c| !base.open && base.field(c).is_none());
        let (lacks, adds): (Vec<&str>, Vec<&str>) = (lacks.collect(), adds.collect());
        let message = match (lacks.as_slice(), adds.as_slice()) {
            ([], []) => continue,
            (lacks, []) => format!("`{name}` lacks {} of `{first}`", listed(lacks)),
            ([], adds) => format!("`{name}` has {}, which `{first}` lacks", listed(adds)),
            (lacks, adds) => format!(
                "`{name}` lacks {} of `{first}`, and has {}, which `{first}` lacks",
                listed(lacks),
                listed(adds)
            ),
        };
        let error = ArgError::at_port(*name, Code::WrongInputs, message);
        errors.push(match shared.as_slice() {
            [] => error.help("the tables have no column in common"),
            shared => error.help(format!(
                "name those to take in `columns`; all tables have {}",
                listed(shared)
            )),
        });
    }
}

fn listed(columns: &[&str]) -> String {
    let mut names: Vec<String> =
        columns.iter().take(LISTED).map(|name| format!("`{name}`")).collect();
    if columns.len() > LISTED {
        names.push(format!("{} more", columns.len() - LISTED));
    }
    names.join(", ")
}

/// All tables must have the same key columns.
fn check_keys(tables: &[(&str, &TableSchema)], errors: &mut Vec<ArgError>) {
    // The key of a table with unknown columns is also unknown.
    let known: Vec<_> = tables.iter().filter(|(_, table)| !table.open).collect();
    let Some(((first, base), others)) = known.split_first() else { return };
    let same = |table: &TableSchema| {
        table.key.len() == base.key.len() && table.key.iter().all(|name| base.key.contains(name))
    };
    for (name, table) in others.iter().filter(|(_, table)| !same(table)) {
        let keys =
            |table: &TableSchema| listed(&table.key.iter().map(String::as_str).collect::<Vec<_>>());
        let message = format!(
            "the key of `{name}` is {}, and that of `{first}` is {}",
            keys(table),
            keys(base)
        );
        let error = ArgError::at_port(*name, Code::WrongInputs, message);
        errors.push(error.help("the same columns must identify the rows of each table"));
    }
}

fn check_types(
    columns: Option<&[String]>,
    tables: &[(&str, &TableSchema)],
    errors: &mut Vec<ArgError>,
) {
    let Some(((first, base), others)) = tables.split_first() else { return };
    let taken = |name: &str| {
        columns.is_none_or(|columns| columns.iter().any(|c| c == name))
            || base.key.iter().any(|key| key == name)
    };
    for (name, table) in others {
        for field in base.schema.fields().iter().filter(|field| taken(field.name())) {
            let Some(other) = table.field(field.name()) else { continue };
            let types = (type_name(field.data_type()), type_name(other.data_type()));
            if types.0 != types.1 {
                let message = format!(
                    "column `{}` is {} in `{name}`, and {} in `{first}`",
                    field.name(),
                    types.1,
                    types.0
                );
                let error = ArgError::at_port(*name, Code::WrongType, message);
                errors.push(error.help("cast one of them in a step before: `CAST(… AS …)`"));
            }
        }
    }
}

fn united(args: &Args, tables: &[(&str, &TableSchema)]) -> TableSchema {
    let label =
        describe(&args.label, DataType::Utf8, false, "the table that the row is from", None);
    let Some((_, base)) = tables.first() else { return TableSchema::default() };
    let names: Vec<&str> = match &args.columns {
        None => base.names().collect(),
        Some(columns) => {
            let key = base.key.iter().filter(|name| !columns.contains(name));
            key.chain(columns).map(String::as_str).collect()
        }
    };
    let mut fields: Vec<FieldRef> = vec![label];
    for field in names.into_iter().filter_map(|name| base.field(name)) {
        let nullable = |(_, table): &(&str, &TableSchema)| {
            table.field(field.name()).is_some_and(|field| field.is_nullable())
        };
        let nullable = tables.iter().any(nullable);
        fields.push(Arc::new(field.as_ref().clone().with_nullable(nullable)));
    }
    let mut table = TableSchema::default().with(&fields);
    let keyed = tables.iter().map(|(_, table)| table).find(|table| !table.open).unwrap_or(base);
    table.key = std::iter::once(&args.label).chain(&keyed.key).cloned().collect();
    table
}

#[derive(Debug)]
struct BoundUnion {
    args: Args,
    ports: Vec<Port>,
}

impl BoundStep for BoundUnion {
    fn args(&self) -> Value {
        serde_json::json!(self.args)
    }

    fn ports(&self) -> &[Port] {
        &self.ports
    }

    fn reads(&self, _: &str) -> Reads {
        match self.args.columns {
            None => Reads::All,
            Some(_) => {
                let names = self.ports[0].table.names().skip(1);
                Reads::Columns(names.map(str::to_string).collect())
            }
        }
    }

    fn lowering(&self) -> Lowering<'_> {
        Lowering::Table(self)
    }
}

impl TableStep for BoundUnion {
    fn bounded(&self) -> bool {
        true
    }

    fn lower<'a>(
        &'a self,
        cx: &'a LowerContext,
        inputs: Inputs,
    ) -> BoxFuture<'a, Result<Ports, StepError>> {
        Box::pin(async move {
            let fields = self.ports[0].table.schema.fields();
            let mut tables = Vec::with_capacity(inputs.len());
            for (name, table) in inputs {
                let columns = fields.iter().enumerate().map(|(at, field)| -> Expr {
                    match at {
                        0 => lit(name.as_str()).alias(field.name()),
                        _ => cast(column(field.name()), field.data_type().clone())
                            .alias(field.name()),
                    }
                });
                tables.push(table.select(columns.collect::<Vec<_>>())?);
            }
            if tables.len() < 2 {
                let missing = || StepError::new("a union without tables has no rows");
                return Ok(vec![(MAIN, tables.pop().ok_or_else(missing)?)]);
            }
            // One union of all tables: nested unions of two would be as deep as the number of
            // tables.
            let plans = tables.into_iter().map(|df| Arc::new(df.into_unoptimized_plan()));
            let union = Union::try_new_with_loose_types(plans.collect())?;
            Ok(vec![(MAIN, DataFrame::new(cx.session.state(), LogicalPlan::Union(union)))])
        })
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{Field, Schema};

    use super::*;

    fn table(columns: &[(&str, DataType)], key: &[&str]) -> TableSchema {
        let fields = columns.iter().map(|(name, kind)| Field::new(*name, kind.clone(), false));
        let schema = Schema::new(fields.collect::<Vec<_>>());
        let key = key.iter().map(ToString::to_string).collect();
        TableSchema::new(Arc::new(schema), Some(key))
    }

    fn messages(errors: &[ArgError]) -> Vec<String> {
        errors.iter().map(|e| format!("{:?}: {}", e.port, e.message)).collect()
    }

    #[test]
    fn the_label_comes_first_in_the_columns_and_in_the_key() {
        let a = table(&[("id", DataType::Utf8), ("n", DataType::Int64)], &["id"]);
        let mut b = table(&[("n", DataType::Int64), ("id", DataType::Utf8)], &["id"]);
        b.schema = Arc::new(Schema::new(vec![
            Field::new("n", DataType::Int64, true),
            Field::new("id", DataType::Utf8, false),
        ]));
        let tables = [("A", &a), ("B", &b)];
        let args = Args { label: "which".into(), columns: None };
        let united = united(&args, &tables);
        assert_eq!(united.names().collect::<Vec<_>>(), ["which", "id", "n"]);
        assert_eq!(united.key, ["which", "id"]);
        assert!(united.field("n").unwrap().is_nullable());
        let some = Args { label: "which".into(), columns: Some(vec!["n".into()]) };
        assert_eq!(super::united(&some, &tables).names().collect::<Vec<_>>(), ["which", "id", "n"]);
    }

    #[test]
    fn every_difference_is_told_at_its_table() {
        let a = table(
            &[("id", DataType::Utf8), ("n", DataType::Int64), ("x", DataType::Utf8)],
            &["id"],
        );
        let b = table(
            &[("id", DataType::Utf8), ("n", DataType::Utf8), ("y", DataType::Utf8)],
            &["id", "n"],
        );
        let tables = [("A", &a), ("B", &b)];
        let mut errors = Vec::new();
        check_same_columns(&tables, &mut errors);
        check_keys(&tables, &mut errors);
        check_types(None, &tables, &mut errors);
        assert_eq!(
            messages(&errors),
            [
                "Some(\"B\"): `B` lacks `x` of `A`, and has `y`, which `A` lacks",
                "Some(\"B\"): the key of `B` is `id`, `n`, and that of `A` is `id`",
                "Some(\"B\"): column `n` is utf8 in `B`, and int64 in `A`",
            ]
        );
        assert_eq!(
            errors[0].help.as_deref(),
            Some("name those to take in `columns`; all tables have `id`, `n`")
        );
        let mut errors = Vec::new();
        check_label("x", &tables, &mut errors);
        let columns = ["id", "id", "lab", "x", "zz"].map(str::to_owned);
        check_columns("lab", &columns, &tables, &mut errors);
        assert_eq!(
            messages(&errors),
            [
                "None: `A` has a column `x` already",
                "None: column `id` is named twice",
                "None: `lab` is the label, which is there anyway",
                "Some(\"B\"): `B` has no column `x`",
                "None: there is no column `zz`",
            ]
        );
    }
}
