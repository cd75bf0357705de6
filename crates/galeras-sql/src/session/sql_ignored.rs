//! Clauses of SQL that are parsed and then passed over: their query gives other rows than they ask
//! for, without a word. They are refused.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, DataType, Expr, GroupByExpr, OrderByKind, Query, Select, SelectFlavor,
    SelectItem, SelectItemQualifiedWildcardKind, TableFactor, Visit, Visitor,
    WildcardAdditionalOptions,
};

use galeras_operator::ArgError;
use galeras_workflow::code::Code;

/// Refuses statements, or an expression, with such a clause.
///
/// # Errors
/// An error (at `path`) with the code `sql`.
pub(super) fn check_clauses(sql: &impl Visit, path: &str) -> Result<(), ArgError> {
    let ControlFlow::Break(clause) = sql.visit(&mut IgnoredClauses) else { return Ok(()) };
    let message = format!("{clause} would have no effect: queries do not know it");
    Err(ArgError::new(path, Code::Sql, message).help("leave it out"))
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

/// Whether a type says how long its texts are, or those in its lists.
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
