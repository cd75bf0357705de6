//! Refuses clauses of SQL that DataFusion parses and then ignores, and comparisons with NULL: the
//! query would silently return other rows than it asks for.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, BinaryOperator, DataType, Expr, GroupByExpr, OrderByKind, Query, Select,
    SelectFlavor, SelectItem, SelectItemQualifiedWildcardKind, TableFactor, Value, ValueWithSpan,
    Visit, Visitor, WildcardAdditionalOptions,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;

use super::sql_depth::check_sql_depth;
use galeras_operator::ArgError;
use galeras_workflow::code::Code;

/// How deep queries and brackets may nest for the parser; the planner allows fewer.
const PARSER_DEPTH: usize = 100;

/// Refuses a query (at `path`) that is too deep to be planned, or that has an ignored clause.
///
/// # Errors
/// An error with the code `sql-limit` or `sql`.
pub fn check_query(sql: &str, path: &str) -> Result<(), ArgError> {
    check_sql_depth(sql, path)?;
    // Syntax errors are reported by the planner, which knows more about them.
    let parser = Parser::new(&GenericDialect {}).with_recursion_limit(PARSER_DEPTH);
    let parsed = parser.try_with_sql(sql).and_then(|mut parser| parser.parse_statements());
    parsed.map_or(Ok(()), |statements| check_clauses(&statements, path))
}

/// Returns true if an expression contains a query. Its names of `WITH` are copied while it is planned,
/// which may double its size with every name.
pub(super) fn has_query(sql: &impl Visit) -> bool {
    struct Queries;
    impl Visitor for Queries {
        type Break = ();
        fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            ControlFlow::Break(())
        }
    }
    sql.visit(&mut Queries).is_break()
}

/// Refuses statements, or an expression, with such a clause or comparison.
///
/// # Errors
/// An error (at `path`) with the code `sql`.
pub(super) fn check_clauses(sql: &impl Visit, path: &str) -> Result<(), ArgError> {
    if sql.visit(&mut NullComparisons).is_break() {
        let message = "a comparison with NULL is null in every row, and never true";
        return Err(ArgError::new(path, Code::Sql, message).help("write IS NULL or IS NOT NULL"));
    }
    let ControlFlow::Break(clause) = sql.visit(&mut IgnoredClauses) else { return Ok(()) };
    let message = format!("{clause} would have no effect: queries do not know it");
    Err(ArgError::new(path, Code::Sql, message).help("leave it out"))
}

/// Finds a comparison with NULL.
struct NullComparisons;

impl Visitor for NullComparisons {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
        let is_null =
            |side: &Expr| matches!(side, Expr::Value(ValueWithSpan { value: Value::Null, .. }));
        match expr {
            Expr::BinaryOp { left, op: Eq | NotEq | Lt | LtEq | Gt | GtEq, right }
                if is_null(left) || is_null(right) =>
            {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Finds the first such clause.
struct IgnoredClauses;

impl Visitor for IgnoredClauses {
    type Break = &'static str;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<&'static str> {
        first(&[
            (query.settings.is_some(), "SETTINGS"),
            (query.format_clause.is_some(), "FORMAT"),
            (query.for_clause.is_some(), "FOR"),
            (!query.locks.is_empty(), "FOR UPDATE"),
            (
                query.order_by.iter().any(|order| match &order.kind {
                    OrderByKind::Expressions(keys) => {
                        keys.iter().any(|key| key.with_fill.is_some())
                    }
                    OrderByKind::All(_) => false,
                }),
                "WITH FILL",
            ),
        ])
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<&'static str> {
        let modifiers = match &select.group_by {
            GroupByExpr::All(modifiers) | GroupByExpr::Expressions(_, modifiers) => modifiers,
        };
        let wildcards = select.projection.iter().filter_map(|item| match item {
            SelectItem::Wildcard(options) => Some(options),
            SelectItem::QualifiedWildcard(
                SelectItemQualifiedWildcardKind::ObjectName(_),
                options,
            ) => Some(options),
            _ => None,
        });
        let likes = |options: &WildcardAdditionalOptions| options.opt_ilike.is_some();
        first(&[
            (select.prewhere.is_some(), "PREWHERE"),
            (!select.connect_by.is_empty(), "CONNECT BY"),
            (!modifiers.is_empty(), "WITH ROLLUP, CUBE or TOTALS"),
            (select.select_modifiers.is_some(), "a modifier of SELECT"),
            (select.value_table_mode.is_some(), "SELECT AS"),
            (select.into.is_some(), "INTO"),
            (
                !matches!(select.flavor, SelectFlavor::Standard | SelectFlavor::FromFirst),
                "FROM alone",
            ),
            (wildcards.into_iter().any(likes), "* ILIKE"),
        ])
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<&'static str> {
        match table {
            TableFactor::Table {
                with_hints,
                with_ordinality,
                version,
                partitions,
                json_path,
                sample,
                index_hints,
                ..
            } => first(&[
                (sample.is_some(), "TABLESAMPLE"),
                (!partitions.is_empty(), "PARTITION"),
                (version.is_some(), "a version of a table"),
                (!with_hints.is_empty() || !index_hints.is_empty(), "a hint"),
                (json_path.is_some(), "a path into a table"),
                (*with_ordinality, "WITH ORDINALITY"),
            ]),
            TableFactor::Derived { sample, .. } => first(&[(sample.is_some(), "TABLESAMPLE")]),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<&'static str> {
        let limited = match expr {
            Expr::Cast { data_type, .. } => is_limited(data_type),
            Expr::TypedString(text) => is_limited(&text.data_type),
            _ => false,
        };
        first(&[(limited, "the length of a type of text")])
    }
}

/// Returns true if a type limits the length of its texts, or of the texts in its lists.
fn is_limited(data_type: &DataType) -> bool {
    match data_type {
        DataType::Array(
            ArrayElemTypeDef::AngleBracket(item)
            | ArrayElemTypeDef::SquareBracket(item, _)
            | ArrayElemTypeDef::Parenthesis(item),
        ) => is_limited(item),
        DataType::Varchar(length)
        | DataType::Char(length)
        | DataType::Character(length)
        | DataType::CharacterVarying(length)
        | DataType::CharVarying(length)
        | DataType::Nvarchar(length) => length.is_some(),
        _ => false,
    }
}

fn first(clauses: &[(bool, &'static str)]) -> ControlFlow<&'static str> {
    match clauses.iter().find(|(is_there, _)| *is_there) {
        Some((_, name)) => ControlFlow::Break(*name),
        None => ControlFlow::Continue(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clause_that_would_be_ignored_is_refused() {
        for (sql, clause) in [
            ("SELECT * FROM t TABLESAMPLE (1 ROWS)", "TABLESAMPLE"),
            ("SELECT * FROM t TABLESAMPLE BERNOULLI (10)", "TABLESAMPLE"),
            ("SELECT * FROM (SELECT * FROM t TABLESAMPLE SYSTEM (10)) AS d", "TABLESAMPLE"),
            ("SELECT * FROM t PREWHERE x = 1", "PREWHERE"),
            ("SELECT x FROM t START WITH x = 1 CONNECT BY PRIOR x = y", "CONNECT BY"),
            ("SELECT x, count(*) FROM t GROUP BY x WITH ROLLUP", "WITH ROLLUP"),
            ("SELECT x, count(*) FROM t GROUP BY x WITH TOTALS", "WITH ROLLUP"),
            ("SELECT * ILIKE '%i%' FROM t", "* ILIKE"),
            ("SELECT * FROM t PARTITION (p0)", "PARTITION"),
            ("SELECT * FROM t SETTINGS max_threads = 1", "SETTINGS"),
            ("SELECT * FROM t FOR UPDATE", "FOR UPDATE"),
            ("SELECT CAST('abcdef' AS VARCHAR(2)) AS v", "the length"),
            ("SELECT x::char(2) AS v FROM (SELECT 'abc' AS x) AS t", "the length"),
        ] {
            let error = check_query(sql, "query").unwrap_err();
            assert_eq!(error.code, Code::Sql, "{sql}");
            assert!(error.message.starts_with(clause), "{sql}: {}", error.message);
        }
        for sql in [
            "SELECT * FROM t WHERE x = NULL",
            "SELECT x <> NULL AS y FROM t",
            "SELECT * FROM t JOIN u ON NULL >= t.x",
        ] {
            let error = check_query(sql, "query").unwrap_err();
            assert!(error.message.starts_with("a comparison with NULL"), "{}", error.message);
        }
        for sql in [
            "SELECT coalesce(x, NULL) = 1 AS y FROM t WHERE x IS NOT NULL",
            "SELECT DISTINCT ON (x) x, y FROM t ORDER BY x, y",
            "SELECT * EXCLUDE (x) FROM t",
            "SELECT CAST(x AS VARCHAR) AS v, x::decimal(10, 2) AS d FROM t",
            "SELECT x, count(*) FROM t GROUP BY ROLLUP (x)",
            "FROM t SELECT x",
            "SELECT x FROM t ORDER BY x LIMIT 5 OFFSET 2",
        ] {
            assert_eq!(check_query(sql, "query").err().map(|error| error.message), None, "{sql}");
        }
    }
}
