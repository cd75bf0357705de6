//! SQL expressions over the columns of one table: the `check:` of a rule, the `expr:` of an
//! assertion, `--where`.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::DFSchema;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::MemTable;
use datafusion::error::DataFusionError;
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::Expr;

use super::determinism::{KeyColumns, check_deterministic};
use super::sql_depth::check_sql_depth;
use super::sql_ignored::{check_clauses, has_query};
use super::sql_mistake::{SqlText, explain};
use galeras_operator::ArgError;
use galeras_workflow::code::Code;

/// A checked expression.
#[derive(Clone, Debug)]
pub struct RowExpr {
    /// The expression, over unqualified columns.
    pub expr: Expr,
    /// The columns it reads, sorted.
    pub columns: Vec<String>,
    /// The type of its value.
    pub data_type: DataType,
}

/// Parses and types `sql` as an expression over one row of `schema`.
///
/// # Errors
/// (At `path`.) SQL that is too deep, clauses that DataFusion ignores, syntax, unknown columns and
/// functions, types that do not go together, aggregates, windows and queries, and anything whose
/// value changes from run to run.
pub fn parse_row_expr(
    session: &SessionContext,
    schema: &SchemaRef,
    sql: &str,
    path: &str,
) -> Result<RowExpr, ArgError> {
    check_sql_depth(sql, path)?;
    let columns: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
    let text = SqlText { sql, path, session, columns: &columns, tables: &[] };
    let explain = |error: DataFusionError| explain(&error, &text);
    let df_schema = DFSchema::try_from(Arc::clone(schema)).map_err(explain)?;
    let dialect = session.state().config_options().sql_parser.dialect;
    // Syntax errors are reported below, with the columns.
    if let Ok(parsed) = session.state().sql_to_expr(sql, &dialect) {
        if has_query(&parsed) {
            return Err(not_a_row_expression(path));
        }
        check_clauses(&parsed, path)?;
    }
    let expr = session.parse_sql_expr(sql, &df_schema).map_err(explain)?;
    let mut columns = BTreeSet::new();
    let mut whole_table = false;
    expr.apply(|e| {
        match e {
            Expr::Column(c) => {
                columns.insert(c.name.clone());
            }
            Expr::AggregateFunction(_) | Expr::WindowFunction(_) => whole_table = true,
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    })
    .map_err(explain)?;
    if whole_table {
        return Err(not_a_row_expression(path));
    }
    let table = MemTable::try_new(Arc::clone(schema), vec![vec![]]).map_err(explain)?;
    let df = session.read_table(Arc::new(table)).map_err(explain)?;
    let plan = df
        .select(vec![expr.clone().alias("value")])
        .and_then(|df| df.into_optimized_plan())
        .map_err(explain)?;
    if let Some(problem) =
        check_deterministic(&plan, &KeyColumns::new()).map_err(explain)?.into_iter().next()
    {
        return Err(ArgError::new(path, Code::NotDeterministic, problem));
    }
    let data_type = plan.schema().field(0).data_type().clone();
    Ok(RowExpr { expr, columns: columns.into_iter().collect(), data_type })
}

fn not_a_row_expression(path: &str) -> ArgError {
    let message = "the expression sees one row at a time, so it cannot aggregate or query";
    ArgError::new(path, Code::NotARowExpression, message)
        .help("use a step with `op: sql` for aggregates")
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{Field, Schema};

    use super::*;
    use crate::session::session;

    fn parse(sql: &str) -> Result<RowExpr, ArgError> {
        let schema = Arc::new(Schema::new(vec![
            Field::new("nloc", DataType::Int64, true),
            Field::new("code", DataType::Utf8, true),
        ]));
        parse_row_expr(&session(1), &schema, sql, "rules[0].check")
    }

    #[test]
    fn an_expression_knows_its_type_and_columns() {
        let expr = parse("nloc > 1 OR char_length(code) > 100").unwrap();
        assert_eq!(expr.data_type, DataType::Boolean);
        assert_eq!(expr.columns, ["code", "nloc"]);
    }

    #[test]
    fn mistakes_have_codes_and_suggestions() {
        let code = |sql: &str| parse(sql).unwrap_err().code;
        assert_eq!(code("nlok > 1"), Code::UnknownColumn);
        assert_eq!(parse("nlok > 1").unwrap_err().help.unwrap(), "did you mean `nloc`?");
        assert_eq!(code("nloc >"), Code::SqlSyntax);
        assert_eq!(code("sum(nloc) > 1"), Code::NotARowExpression);
        assert_eq!(code("random() > 0.5"), Code::NotDeterministic);
        assert_eq!(code("no_such_function(nloc)"), Code::UnknownFunction);
        for limited in
            ["code::varchar(2) = 'ab'", "varchar(2) 'abc' = code", "[code]::varchar(2)[] = [code]"]
        {
            let error = parse(limited).unwrap_err();
            assert!(error.message.contains("the length of a type of text"), "{limited}: {error:?}");
        }
        assert!(parse("code::varchar = 'ab'").is_ok());
    }
}
