//! Refuses plans whose result could differ from run to run.
//!
//! Results are reused and shared by digest, so a query may not read the clock, draw random
//! numbers, or depend on the order in which rows arrive.

use std::collections::{BTreeMap, BTreeSet};

use datafusion::common::DFSchema;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{AggregateFunction, Sort, WindowFunction};
use datafusion::logical_expr::{
    Distinct, Expr, JoinType, LogicalPlan, UNNAMED_TABLE, Volatility, WindowFrameUnits,
    WindowFunctionDefinition,
};

use crate::functions::aggregate::{APPROXIMATE, ORDER_DEPENDENT};
use galeras_base::prose::name_list;

/// The key columns of tables, by name.
pub type KeyColumns = BTreeMap<String, Vec<String>>;

/// Finds parts of `plan` whose result depends on more than its input rows: one sentence for each.
/// `keys` are the key columns of the tables that it reads, by their names.
pub fn check_deterministic(plan: &LogicalPlan, keys: &KeyColumns) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    plan.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::Limit(limit) if !takes_fixed_rows(&limit.input, keys) => {
                problems.push(format!(
                    "LIMIT keeps an arbitrary set of rows: add ORDER BY with {}, or draw rows with \
                     the operator `sample`",
                    key_names(keys)
                ));
            }
            LogicalPlan::Distinct(Distinct::On(on)) => {
                let order = on.sort_expr.iter().flatten().map(|s| &s.expr);
                let order = columns(order, on.input.schema());
                if !is_total(&order, &on.input, keys) {
                    problems.push(format!(
                        "DISTINCT ON keeps an arbitrary row: add ORDER BY with {}",
                        key_names(keys)
                    ));
                }
            }
            LogicalPlan::Explain(_) | LogicalPlan::Analyze(_) | LogicalPlan::DescribeTable(_) => {
                problems.push("the query must be a SELECT".to_string());
            }
            _ => {}
        }
        node.apply_expressions(|expr| {
            expr.apply(|e| {
                problems.extend(problem_of(e, node, keys));
                Ok(TreeNodeRecursion::Continue)
            })
        })?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    // Rows in a random order are one mistake, not two.
    if problems.iter().any(|p| p.contains(VOLATILE)) {
        problems.retain(|p| p.contains(VOLATILE));
    }
    problems.sort();
    problems.dedup();
    Ok(problems)
}

/// The key columns of all tables, in words.
fn key_names(keys: &KeyColumns) -> String {
    let several = keys.len() > 1;
    let named = keys.iter().flat_map(|(table, columns)| {
        columns.iter().map(move |column| match several {
            true => format!("{table}.{column}"),
            false => column.clone(),
        })
    });
    let named: Vec<String> = named.collect();
    match named.is_empty() {
        true => "the key columns".to_string(),
        false => format!("the key columns {}", name_list(&named)),
    }
}

const VOLATILE: &str = "gives another value in every run";

/// Columns of a schema, by their places.
type Columns = BTreeSet<usize>;

/// The columns that are among the expressions.
fn columns<'a>(exprs: impl Iterator<Item = &'a Expr>, schema: &DFSchema) -> Columns {
    exprs.filter_map(|expr| column_of(expr, schema)).collect()
}

/// The column that an expression is, under its own or another name.
fn column_of(expr: &Expr, schema: &DFSchema) -> Option<usize> {
    match expr {
        Expr::Column(column) => schema.maybe_index_of_column(column),
        Expr::Alias(alias) => column_of(&alias.expr, schema),
        _ => None,
    }
}

/// Returns true if rows in the order of these columns have no ties, or only ties between equal
/// rows.
fn is_total(order: &Columns, input: &LogicalPlan, keys: &KeyColumns) -> bool {
    order.len() == input.schema().fields().len()
        || unique_columns(input, keys).is_some_and(|unique| unique.is_subset(order))
}

/// Columns that are unique together in the rows of a plan, where that is plain to see.
fn unique_columns(plan: &LogicalPlan, keys: &KeyColumns) -> Option<Columns> {
    match plan {
        LogicalPlan::TableScan(scan) => key_of(scan.table_name.table(), plan, keys),
        LogicalPlan::Aggregate(aggregate) => {
            let mut groups = aggregate.group_expr.iter();
            // Two sets may give equal groups.
            let sets = groups.any(|group| matches!(group, Expr::GroupingSet(_)));
            (!sets).then(|| (0..aggregate.group_expr.len()).collect())
        }
        LogicalPlan::Distinct(Distinct::All(input)) => {
            Some((0..input.schema().fields().len()).collect())
        }
        LogicalPlan::Projection(p) => {
            let kept: Vec<Option<usize>> =
                p.expr.iter().map(|expr| column_of(expr, p.input.schema())).collect();
            let place = |column: usize| kept.iter().position(|kept| *kept == Some(column));
            unique_columns(&p.input, keys)?.into_iter().map(place).collect()
        }
        // An input is a view: the alias of a scan without a name.
        LogicalPlan::SubqueryAlias(a) => match &*a.input {
            LogicalPlan::TableScan(scan) if scan.table_name.table() == UNNAMED_TABLE => {
                key_of(a.alias.table(), &a.input, keys)
            }
            input => unique_columns(input, keys),
        },
        LogicalPlan::Join(join) => {
            let left = || unique_columns(&join.left, keys);
            let right = || unique_columns(&join.right, keys);
            match join.join_type {
                JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => left(),
                JoinType::RightSemi | JoinType::RightAnti => right(),
                JoinType::Inner | JoinType::Left | JoinType::Right => {
                    let places = join.left.schema().fields().len();
                    let right = right()?.into_iter().map(|at| at + places);
                    Some(left()?.into_iter().chain(right).collect())
                }
                // A row of each side may have a key of nulls only.
                JoinType::Full | JoinType::RightMark => None,
            }
        }
        LogicalPlan::Filter(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::Window(_) => unique_columns(plan.inputs().first()?, keys),
        _ => None,
    }
}

/// The key columns of a table that is read under this name.
fn key_of(table: &str, scan: &LogicalPlan, keys: &KeyColumns) -> Option<Columns> {
    let place = |name: &String| scan.schema().index_of_column_by_name(None, name);
    keys.get(table)?.iter().map(place).collect()
}

/// Returns true if the first rows of a plan are always the same.
fn takes_fixed_rows(plan: &LogicalPlan, keys: &KeyColumns) -> bool {
    match plan {
        LogicalPlan::Sort(sort) => {
            let order = columns(sort.expr.iter().map(|s| &s.expr), sort.input.schema());
            is_total(&order, &sort.input, keys)
        }
        LogicalPlan::Projection(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::Limit(_) => {
            plan.inputs().first().is_some_and(|input| takes_fixed_rows(input, keys))
        }
        LogicalPlan::Aggregate(a) => a.group_expr.is_empty(),
        _ => false,
    }
}

fn problem_of(expr: &Expr, node: &LogicalPlan, keys: &KeyColumns) -> Option<String> {
    match expr {
        Expr::ScalarFunction(f) if f.func.signature().volatility != Volatility::Immutable => {
            let name = f.func.name();
            Some(format!("{name}() {VOLATILE}; pass the value as a param instead"))
        }
        Expr::AggregateFunction(f) => {
            approximate(f.func.name()).or_else(|| aggregate_problem(f, node, keys))
        }
        Expr::WindowFunction(w) => {
            approximate(w.fun.name()).or_else(|| window_problem(w, node, keys))
        }
        _ => None,
    }
}

fn approximate(name: &str) -> Option<String> {
    APPROXIMATE.contains(&name).then(|| {
        format!("{name}() depends on how rows are split over threads; use an exact function")
    })
}

fn aggregate_problem(
    f: &AggregateFunction,
    node: &LogicalPlan,
    keys: &KeyColumns,
) -> Option<String> {
    let name = f.func.name();
    if !ORDER_DEPENDENT.contains(&name) {
        return None;
    }
    if let LogicalPlan::Aggregate(aggregate) = node {
        let schema = aggregate.input.schema();
        let mut order = columns(f.params.order_by.iter().map(|s: &Sort| &s.expr), schema);
        // Ties between rows with equal values change nothing.
        let values = f.params.args.iter().filter(|a| !matches!(a, Expr::Literal(..)));
        let named = columns(values.clone(), schema);
        let ordered = !order.is_empty();
        if ordered && values.count() == named.len() && named.is_subset(&order) {
            return None;
        }
        order.extend(columns(aggregate.group_expr.iter(), schema));
        if ordered && is_total(&order, &aggregate.input, keys) {
            return None;
        }
    }
    Some(format!(
        "{name}() depends on the order of rows with ties; write {name}(… ORDER BY …) with the key \
         columns last"
    ))
}

/// Window functions that give rows with ties the same value.
const TIE_SAFE: &[&str] = &["rank", "dense_rank", "percent_rank", "cume_dist"];

fn window_problem(w: &WindowFunction, node: &LogicalPlan, keys: &KeyColumns) -> Option<String> {
    let name = w.fun.name();
    let by_rows =
        w.params.window_frame.units != WindowFrameUnits::Range && !w.params.order_by.is_empty();
    let needs_total_order = match &w.fun {
        WindowFunctionDefinition::WindowUDF(_) => !TIE_SAFE.contains(&name),
        WindowFunctionDefinition::AggregateUDF(f) => ORDER_DEPENDENT.contains(&f.name()) || by_rows,
    };
    if !needs_total_order {
        return None;
    }
    if let LogicalPlan::Window(window) = node
        && !w.params.order_by.is_empty()
    {
        let order = w.params.order_by.iter().map(|s| &s.expr).chain(&w.params.partition_by);
        if is_total(&columns(order, window.input.schema()), &window.input, keys) {
            return None;
        }
    }
    Some(format!(
        "{name}() OVER … depends on the order of rows with ties; end its ORDER BY with the key \
         columns"
    ))
}

#[cfg(test)]
mod tests {
    use crate::session::session;

    async fn findings(sql: &str) -> Vec<String> {
        let session = session(2);
        session.sql("CREATE TABLE t (id TEXT, x DOUBLE) AS VALUES ('a', 1.0)").await.unwrap();
        session.sql("CREATE TABLE u (id TEXT, x DOUBLE) AS VALUES ('a', 1.0)").await.unwrap();
        let df = session.sql(sql).await.unwrap();
        let keys = [("t", vec!["id"]), ("u", vec!["x", "id"])]
            .map(|(table, key)| (table.to_string(), key.into_iter().map(String::from).collect()));
        super::check_deterministic(df.logical_plan(), &keys.into()).unwrap()
    }

    #[tokio::test]
    async fn what_may_differ_from_run_to_run_is_found() {
        for sql in [
            "SELECT now() AS n FROM t",
            "SELECT id, random() AS r FROM t",
            "SELECT id FROM t WHERE random() < 0.5",
            "SELECT id FROM t LIMIT 1",
            "SELECT * FROM (SELECT id FROM t LIMIT 1) ORDER BY id",
            "SELECT array_agg(id) AS a FROM t",
            "SELECT approx_median(x) AS m FROM t",
            "SELECT first_value(id) AS f FROM t",
            "SELECT id, row_number() OVER () AS n FROM t",
            "SELECT id FROM t WHERE x = (SELECT first_value(x) FROM t)",
            "SELECT array_agg(id ORDER BY x) AS a FROM t",
            "SELECT id, row_number() OVER (PARTITION BY x ORDER BY x) AS n FROM t",
            "SELECT DISTINCT ON (x) id, x FROM t ORDER BY x",
            "SELECT a.id FROM t a JOIN t b ON a.id = b.id ORDER BY a.x LIMIT 10",
            "SELECT x, count(*) AS n FROM t GROUP BY x ORDER BY n LIMIT 1",
            "EXPLAIN SELECT id FROM t",
            "SELECT id, row_number() OVER (ORDER BY id) AS n FROM u",
            "SELECT id, y, row_number() OVER (ORDER BY id) AS n
             FROM (SELECT x AS id, id AS y FROM t)",
            "SELECT id, row_number() OVER (ORDER BY id) AS n FROM u AS t",
            "WITH t AS (SELECT id FROM u) SELECT id, row_number() OVER (ORDER BY x) AS n FROM u",
            "SELECT a.id, row_number() OVER (ORDER BY a.id) AS n FROM t a JOIN t b ON a.x = b.x",
            "SELECT a.id, row_number() OVER (ORDER BY a.id, a.x) AS n FROM t a CROSS JOIN t b",
            "SELECT a.id, row_number() OVER (ORDER BY a.id, b.id) AS n FROM t a FULL JOIN t b
             ON a.x = b.x",
            "SELECT x, row_number() OVER (ORDER BY x) AS n
             FROM (SELECT x, id, count(*) AS c FROM t GROUP BY ROLLUP (x, id))",
            "SELECT x, row_number() OVER (ORDER BY id) AS n
             FROM (SELECT id, x FROM t UNION ALL SELECT id, x FROM t)",
        ] {
            assert!(!findings(sql).await.is_empty(), "{sql}");
        }
    }

    #[tokio::test]
    async fn what_depends_on_the_rows_only_is_allowed() {
        for sql in [
            "SELECT id, sum(x) AS s, avg(x), stddev(x), count(*), min(id) FROM t GROUP BY id",
            "SELECT id FROM t ORDER BY id LIMIT 1",
            "SELECT array_agg(id ORDER BY id) AS a FROM t",
            "SELECT id, row_number() OVER (ORDER BY id) AS n FROM t",
            "SELECT id, sum(x) OVER (ORDER BY id) AS n FROM t",
            "SELECT count(*) AS n FROM t LIMIT 1",
            "SELECT x, array_agg(id ORDER BY x, id) AS a FROM t GROUP BY x",
            "SELECT x, count(*) AS n FROM t GROUP BY x ORDER BY n DESC, x LIMIT 1",
            "SELECT DISTINCT ON (x) id, x FROM t ORDER BY x, id",
            "SELECT id, rank() OVER (ORDER BY x) AS n FROM t",
            "SELECT id, row_number() OVER (ORDER BY id, x) AS n FROM u AS t",
            "SELECT id, row_number() OVER (PARTITION BY x ORDER BY id) AS n FROM t",
            "SELECT a.id, row_number() OVER (ORDER BY a.x, b.id, a.id) AS n FROM t a JOIN t b
             ON a.x = b.x",
            "SELECT a.id, row_number() OVER (PARTITION BY b.id ORDER BY a.id) AS n FROM t a
             LEFT JOIN t b ON a.x = b.x",
            "SELECT a.id, row_number() OVER (ORDER BY u.x, a.id, u.id) AS n FROM t a, u
             WHERE a.id = u.id",
            "SELECT k, row_number() OVER (ORDER BY k) AS n FROM (SELECT x, id AS k FROM t)",
            "SELECT a.id, b.id AS other FROM t a JOIN t b ON a.x = b.x ORDER BY other, a.id LIMIT 3",
            "SELECT x, id, row_number() OVER (ORDER BY x, id, c) AS n
             FROM (SELECT x, id, count(*) AS c FROM t GROUP BY ROLLUP (x, id))",
            "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.id = t.id) ORDER BY id LIMIT 3",
        ] {
            assert_eq!(findings(sql).await, Vec::<String>::new(), "{sql}");
        }
    }
}
