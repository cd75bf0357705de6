//! Clauses of SQL that are parsed and then passed over: their query gives other rows than they ask
//! for, without a word. They are refused.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    DataType, Expr, GroupByExpr, OrderByKind, Query, Select, SelectFlavor, SelectItem,
    SelectItemQualifiedWildcardKind, TableFactor, Visitor, WildcardAdditionalOptions,
};

/// Finds the first such clause of statements.
pub(super) struct IgnoredClauses;

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
            ]),
            TableFactor::Derived { sample, .. } => first(&[(sample.is_some(), "TABLESAMPLE")]),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<&'static str> {
        let Expr::Cast { data_type, .. } = expr else { return ControlFlow::Continue(()) };
        let limited = matches!(
            data_type,
            DataType::Varchar(Some(_))
                | DataType::Char(Some(_))
                | DataType::Character(Some(_))
                | DataType::CharacterVarying(Some(_))
                | DataType::CharVarying(Some(_))
                | DataType::Nvarchar(Some(_))
        );
        first(&[(limited, "the length of a type of text")])
    }
}

fn first(clauses: &[(bool, &'static str)]) -> ControlFlow<&'static str> {
    match clauses.iter().find(|(is_there, _)| *is_there) {
        Some((_, name)) => ControlFlow::Break(*name),
        None => ControlFlow::Continue(()),
    }
}
