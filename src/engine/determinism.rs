//! Refuses plans whose result could differ from run to run.
//!
//! Results are reused and shared by digest, so a query may not read the clock, draw random
//! numbers, or depend on the order in which rows arrive.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, Volatility, WindowFunctionDefinition};

use crate::functions::aggregate::{APPROXIMATE, ORDER_DEPENDENT};

/// What in `plan` makes its result depend on anything but its input rows: one sentence for
/// each finding.
pub fn check_deterministic(plan: &LogicalPlan) -> Result<Vec<String>> {
    let mut found = Vec::new();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Limit(limit) = node
            && !is_ordered(&limit.input)
        {
            found.push(
                "LIMIT without ORDER BY keeps an arbitrary set of rows; add ORDER BY a key"
                    .to_string(),
            );
        }
        if let LogicalPlan::Distinct(datafusion::logical_expr::Distinct::On(on)) = node
            && on.sort_expr.is_none()
        {
            found.push("DISTINCT ON without ORDER BY keeps an arbitrary row; add one".to_string());
        }
        node.apply_expressions(|expr| {
            expr.apply(|e| {
                if let Some(problem) = problem_of(e) {
                    found.push(problem);
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    found.sort();
    found.dedup();
    Ok(found)
}

fn is_ordered(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Sort(_) => true,
        LogicalPlan::Projection(p) => is_ordered(&p.input),
        LogicalPlan::SubqueryAlias(a) => is_ordered(&a.input),
        LogicalPlan::Filter(f) => is_ordered(&f.input),
        LogicalPlan::Aggregate(a) => a.group_expr.is_empty(),
        LogicalPlan::Limit(l) => is_ordered(&l.input),
        _ => false,
    }
}

fn problem_of(expr: &Expr) -> Option<String> {
    match expr {
        Expr::ScalarFunction(f) if f.func.signature().volatility != Volatility::Immutable => {
            let name = f.func.name();
            Some(format!(
                "{name}() gives another value in every run; pass the value as a param instead"
            ))
        }
        Expr::AggregateFunction(f) => {
            let name = f.func.name();
            if APPROXIMATE.contains(&name) {
                return Some(format!(
                    "{name}() depends on how rows are split over threads; use an exact function"
                ));
            }
            (ORDER_DEPENDENT.contains(&name) && f.params.order_by.is_empty())
                .then(|| format!("{name}() depends on row order; write {name}(… ORDER BY a key)"))
        }
        Expr::WindowFunction(w) => {
            let name = w.fun.name();
            let needs_order = match &w.fun {
                WindowFunctionDefinition::WindowUDF(_) => true,
                WindowFunctionDefinition::AggregateUDF(f) => {
                    if APPROXIMATE.contains(&f.name()) {
                        return Some(format!(
                            "{name}() depends on how rows are split over threads"
                        ));
                    }
                    ORDER_DEPENDENT.contains(&f.name())
                }
            };
            (needs_order && w.params.order_by.is_empty())
                .then(|| format!("{name}() OVER () depends on row order; add ORDER BY a key"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::session;

    async fn findings(sql: &str) -> Vec<String> {
        let session = session(2);
        session.sql("CREATE TABLE t (id TEXT, x DOUBLE) AS VALUES ('a', 1.0)").await.unwrap();
        let df = session.sql(sql).await.unwrap();
        super::check_deterministic(df.logical_plan()).unwrap()
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
        ] {
            assert_eq!(findings(sql).await, Vec::<String>::new(), "{sql}");
        }
    }
}
