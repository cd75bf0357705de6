//! Conditions with subqueries, in the three truth values of SQL.
//!
//! The joins that DataFusion 55 makes of `x IN (SELECT …)` are true or false, never unknown. Its join
//! for NOT IN knows nulls only if `x` is a column and the subquery is not correlated (apache/datafusion
//! 25336, 25347, 25473). EXISTS is never unknown, so [`ThreeValuedIn`] writes IN with it: `x IN (s)` is
//! true if a value of `s` equals `x`, else unknown if `s` has a null, or has rows and `x` is null, else
//! false.
//!
//! Once a subquery is a join, only their names distinguish the columns of both queries: for
//! `x = ANY (SELECT x FROM t)` over `t`, DataFusion compares `x` with itself. So the column of a
//! subquery gets a name that no table has.
//!
//! Of a correlated subquery, DataFusion moves the conditions on the outer row to a join above it. They
//! must not pass the parts that [`barrier`] finds, so such subqueries are refused.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ScalarValue, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{BinaryExpr, Exists, InSubquery, SetComparison};
use datafusion::logical_expr::utils::{conjunction, disjunction};
use datafusion::logical_expr::{
    Expr, ExprSchemable, Filter, JoinType, LogicalPlan, LogicalPlanBuilder, Operator, Subquery,
    lit, not, when,
};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// Rewrites IN over a subquery; see the module.
#[derive(Debug)]
pub(super) struct ThreeValuedIn;

impl OptimizerRule for ThreeValuedIn {
    fn name(&self) -> &'static str {
        "three_valued_in"
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        plan.transform_up_with_subqueries(|plan| {
            check_barriers(&plan)?;
            let LogicalPlan::Filter(filter) = plan else { return Ok(Transformed::no(plan)) };
            let Filter { predicate, input, .. } = filter;
            let predicate = three_valued(predicate, input.schema(), true)?;
            predicate.map_data(|predicate| {
                Ok(LogicalPlan::Filter(Filter::try_new(predicate, Arc::clone(&input))?))
            })
        })
    }
}

/// Rewrites the expression. With `unknown_is_false` its value is only asked for being true, as that of
/// WHERE is.
fn three_valued(
    expr: Expr,
    schema: &DFSchema,
    unknown_is_false: bool,
) -> Result<Transformed<Expr>> {
    match expr {
        Expr::InSubquery(of) => membership(of, schema, unknown_is_false),
        Expr::SetComparison(of) => {
            check_names(&of.expr, &of.subquery.subquery)?;
            let subquery = with_member(&of.subquery)?;
            Ok(Transformed::yes(Expr::SetComparison(SetComparison { subquery, ..of })))
        }
        Expr::Not(of) => match *of {
            Expr::InSubquery(of) => {
                let negated = !of.negated;
                let of = membership(InSubquery { negated, ..of }, schema, unknown_is_false)?;
                Ok(Transformed::yes(of.data))
            }
            of => Ok(three_valued(of, schema, false)?.update_data(not)),
        },
        expr => {
            let connects = matches!(
                &expr,
                Expr::BinaryExpr(BinaryExpr { op: Operator::And | Operator::Or, .. })
            );
            let unknown_is_false = unknown_is_false && connects;
            expr.map_children(|child| three_valued(child, schema, unknown_is_false))
        }
    }
}

/// Rewrites `x IN (s)` or `x NOT IN (s)`.
fn membership(
    of: InSubquery,
    schema: &DFSchema,
    unknown_is_false: bool,
) -> Result<Transformed<Expr>> {
    let InSubquery { expr: value, subquery, negated } = of;
    let subquery = with_member(&subquery)?;
    if unknown_is_false && !negated {
        return Ok(Transformed::yes(Expr::InSubquery(InSubquery {
            expr: value,
            subquery,
            negated,
        })));
    }
    if value.exists(|part| Ok(is_of_another_query(part)))? {
        return plan_err!(
            "the value before NOT IN (SELECT …) must not depend on another query; compute it as a \
             column first, or write NOT EXISTS"
        );
    }
    check_names(&value, &subquery.subquery)?;
    let members = subquery.subquery.schema();
    let member = Expr::Column(Column::new_unqualified(MEMBER));
    let equal = outer_reference((*value).clone(), schema)?.eq(member.clone());
    let equal = exists(&subquery, Some(equal))?;
    let mut unknown = Vec::new();
    if members.field(0).is_nullable() {
        unknown.push(exists(&subquery, Some(member.is_null()))?);
    }
    if value.nullable(schema)? {
        unknown.push(value.is_null().and(exists(&subquery, None)?));
    }
    if unknown_is_false {
        let none = conjunction(std::iter::once(equal).chain(unknown).map(not));
        return Ok(Transformed::yes(none.unwrap_or(lit(true))));
    }
    Ok(Transformed::yes(match disjunction(unknown) {
        None if negated => not(equal),
        None => equal,
        Some(unknown) => when(equal, lit(!negated))
            .when(unknown, lit(ScalarValue::Boolean(None)))
            .otherwise(lit(negated))?,
    }))
}

/// The name of the column of a subquery.
const MEMBER: &str = "__member";

/// The subquery, whose column is called [`MEMBER`].
fn with_member(subquery: &Subquery) -> Result<Subquery> {
    let rows = &subquery.subquery;
    if rows.schema().fields().len() != 1 {
        return plan_err!("a query after IN, ANY or ALL needs one column");
    }
    let (relation, field) = rows.schema().qualified_field(0);
    if relation.is_none() && field.name() == MEMBER {
        return Ok(subquery.clone());
    }
    let member = Expr::Column(Column::from((relation, field))).alias(MEMBER);
    let renamed = LogicalPlanBuilder::from(rows.as_ref().clone()).project(vec![member])?.build()?;
    Ok(Subquery { subquery: Arc::new(renamed), ..subquery.clone() })
}

/// Refuses a value with a column that has the full name of one in a condition of the subquery on the
/// outer row: both become columns of the join's condition.
fn check_names(value: &Expr, members: &LogicalPlan) -> Result<()> {
    let columns = value.column_refs();
    let mut same = None;
    members.apply(|node| {
        if let LogicalPlan::Filter(filter) = node
            && filter.predicate.contains_outer()
        {
            let mut inner = filter.predicate.column_refs().into_iter();
            same = inner.find(|column| columns.contains(column)).cloned();
        }
        Ok(match same {
            Some(_) => TreeNodeRecursion::Stop,
            None => TreeNodeRecursion::Continue,
        })
    })?;
    match same {
        None => Ok(()),
        Some(column) => plan_err!(
            "the query and its subquery both have a column {column}; give the table of the \
             subquery another name with AS"
        ),
    }
}

/// EXISTS over the rows of a subquery that meet a condition.
fn exists(members: &Subquery, condition: Option<Expr>) -> Result<Expr> {
    let rows = LogicalPlanBuilder::from(members.subquery.as_ref().clone());
    let rows = match condition {
        Some(condition) => rows.filter(condition)?,
        None => rows,
    };
    let mut rows = rows.build()?;
    let outer_ref_columns = rows.all_out_ref_exprs();
    if outer_ref_columns.is_empty() {
        // Each outer row is compared with every row that is left.
        rows = LogicalPlanBuilder::from(rows).limit(0, Some(1))?.build()?;
    }
    let subquery =
        Subquery { subquery: Arc::new(rows), outer_ref_columns, spans: members.spans.clone() };
    Ok(Expr::Exists(Exists { subquery, negated: false }))
}

/// An expression over the outer row, as a subquery refers to it.
fn outer_reference(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let outer = expr.transform_up(|part| match part {
        Expr::Column(column) => {
            let at = schema.index_of_column(&column)?;
            let field = Arc::clone(schema.field(at));
            Ok(Transformed::yes(Expr::OuterReferenceColumn(field, column)))
        }
        part => Ok(Transformed::no(part)),
    })?;
    Ok(outer.data)
}

fn is_of_another_query(expr: &Expr) -> bool {
    matches!(expr, Expr::OuterReferenceColumn(..) | Expr::ScalarSubquery(_))
        || predicate_subquery(expr).is_some()
}

/// The subquery of a condition.
fn predicate_subquery(expr: &Expr) -> Option<&Subquery> {
    match expr {
        Expr::Exists(Exists { subquery, .. })
        | Expr::InSubquery(InSubquery { subquery, .. })
        | Expr::SetComparison(SetComparison { subquery, .. }) => Some(subquery),
        _ => None,
    }
}

/// Refuses a node whose subqueries have a barrier.
fn check_barriers(plan: &LogicalPlan) -> Result<()> {
    plan.apply_expressions(|expr| {
        expr.apply(|part| {
            let found = match part {
                Expr::ScalarSubquery(subquery) => barrier(&subquery.subquery, true)?,
                Expr::Exists(Exists { subquery, .. }) => {
                    // A first row is there if there is a row.
                    let rows = match subquery.subquery.as_ref() {
                        LogicalPlan::Limit(limit) if limit.skip.is_none() => &limit.input,
                        _ => &subquery.subquery,
                    };
                    barrier(rows, false)?
                }
                part => match predicate_subquery(part) {
                    Some(subquery) => barrier(&subquery.subquery, false)?,
                    None => None,
                },
            };
            match found {
                None => Ok(TreeNodeRecursion::Continue),
                Some(barrier) => plan_err!(
                    "a subquery that depends on the outer row must not have {barrier} above its \
                     condition on that row; compute it for all rows in another step, or in WITH, \
                     and join that"
                ),
            }
        })
    })?;
    Ok(())
}

/// The part of a subquery that its conditions on the outer row must not pass, if it has one: these would
/// then choose among rows that were numbered, cut off, completed or counted without them.
fn barrier(subquery: &LogicalPlan, scalar: bool) -> Result<Option<&'static str>> {
    let depends = |input: &LogicalPlan| !input.all_out_ref_exprs().is_empty();
    let mut found = None;
    if !depends(subquery) {
        return Ok(None);
    }
    subquery.apply(|node| {
        found = match node {
            LogicalPlan::Window(window) if depends(&window.input) => Some("a window function"),
            LogicalPlan::Limit(limit) if depends(&limit.input) => Some("LIMIT"),
            LogicalPlan::Join(join) => {
                let left = matches!(join.join_type, JoinType::Right | JoinType::Full);
                let right = matches!(join.join_type, JoinType::Left | JoinType::Full);
                ((left && depends(&join.left)) || (right && depends(&join.right)))
                    .then_some("an outer join")
            }
            LogicalPlan::Aggregate(aggregate) if depends(&aggregate.input) => {
                let mut groups = aggregate.group_expr.iter();
                if groups.any(|group| matches!(group, Expr::GroupingSet(_))) {
                    Some("grouping sets")
                } else {
                    (aggregate.group_expr.is_empty() && !scalar)
                        .then_some("an aggregate without GROUP BY")
                }
            }
            _ => None,
        };
        Ok(match found {
            Some(_) => TreeNodeRecursion::Stop,
            None => TreeNodeRecursion::Continue,
        })
    })?;
    Ok(found)
}

/// Returns true if an optimised plan has a subquery that should be a join by now: it cannot be run.
///
/// # Errors
/// If the plan cannot be walked.
pub fn has_unplanned_subquery(plan: &LogicalPlan) -> Result<bool> {
    plan.exists(|node| {
        let mut found = false;
        node.apply_expressions(|expr| {
            found |= expr.exists(|part| {
                Ok(match part {
                    // An uncorrelated one is run before the query.
                    Expr::ScalarSubquery(subquery) => !subquery.outer_ref_columns.is_empty(),
                    part => predicate_subquery(part).is_some(),
                })
            })?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(found)
    })
}

#[cfg(test)]
mod tests {
    use arrow::array::AsArray;
    use arrow::datatypes::Int64Type;

    use crate::session::session;

    /// Tables of the bug reports; `i` and `n` have no nulls and say so.
    const TABLES: [&str; 4] = [
        "CREATE TABLE t1 (k BIGINT NOT NULL, x BIGINT, z BIGINT NOT NULL) AS
         VALUES (1, 1, 10), (2, 2, 20), (3, NULL, 30), (4, 4, 40)",
        "CREATE TABLE t2 (k BIGINT NOT NULL, x BIGINT, z BIGINT NOT NULL) AS
         VALUES (1, 1, 5), (2, NULL, 25)",
        "CREATE TABLE t3 (k BIGINT NOT NULL, x BIGINT NOT NULL) AS VALUES (1, 1), (2, 5)",
        "CREATE TABLE e (k BIGINT NOT NULL, x BIGINT) AS SELECT k, x FROM t2 WHERE k > 2",
    ];

    async fn keys(condition: &str) -> Result<Vec<i64>, String> {
        keys_of("t1", condition).await
    }

    async fn keys_of(from: &str, condition: &str) -> Result<Vec<i64>, String> {
        let session = session(2);
        for table in TABLES {
            session.sql(table).await.unwrap();
        }
        let query = format!("SELECT t1.k FROM {from} WHERE {condition} ORDER BY t1.k");
        let rows = async { session.sql(&query).await?.collect().await };
        let rows = rows.await.map_err(|error| error.to_string())?;
        let values = rows.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>());
        Ok(values.flatten().collect())
    }

    /// Derived by the truth tables of SQL's three values; DuckDB 2.0.1 gives the same.
    #[tokio::test]
    async fn not_in_is_unknown_where_a_null_may_be_equal() {
        const ALL: &[i64] = &[1, 2, 3, 4];
        const CASES: &[(&str, &[i64])] = &[
            ("3 NOT IN (SELECT x FROM t2)", &[]),
            ("NOT (3 IN (SELECT x FROM t2))", &[]),
            ("1 IN (SELECT x FROM t2)", ALL),
            ("3 NOT IN (SELECT x FROM t2) OR x = 1", &[1]),
            ("(3 NOT IN (SELECT x FROM t2)) IS NULL", ALL),
            ("(3 IN (SELECT x FROM t2)) IS NOT TRUE", ALL),
            ("(1 NOT IN (SELECT x FROM t2)) IS FALSE", ALL),
            ("NULLIF(1, 1) NOT IN (SELECT k FROM t3)", &[]),
            ("CAST(NULL AS BIGINT) NOT IN (SELECT x FROM t3)", &[]),
            ("CAST(NULL AS BIGINT) NOT IN (SELECT x FROM e)", ALL),
            ("x NOT IN (SELECT x FROM e)", ALL),
            ("x NOT IN (SELECT x FROM t2)", &[]),
            ("x NOT IN (SELECT x FROM t3)", &[2, 4]),
            ("k NOT IN (SELECT k FROM t3)", &[3, 4]),
            ("(x NOT IN (SELECT x FROM t3)) IS NULL", &[3]),
            ("x > 1 AND x NOT IN (SELECT x FROM t2)", &[]),
            ("x NOT IN (SELECT x FROM t2 WHERE x IS NOT NULL)", &[2, 4]),
            ("x NOT IN (SELECT x FROM t2 WHERE t2.z < t1.z)", &[2]),
            ("x NOT IN (SELECT x FROM t2 WHERE t2.z < t1.z) OR x = 1", &[1, 2]),
            ("x NOT IN (SELECT x FROM t2 WHERE t2.k = t1.k)", &[3, 4]),
            ("3 NOT IN (SELECT x FROM t2 WHERE t2.k = t1.k)", &[1, 3, 4]),
            ("CASE WHEN x NOT IN (SELECT x FROM t3) THEN k > 2 ELSE k < 4 END", &[1, 3, 4]),
            ("x NOT IN (SELECT max(x) FROM t2 GROUP BY z)", &[]),
            ("x + 1 NOT IN (SELECT x FROM t3)", &[1, 2]),
            // Both queries have the same names.
            ("x NOT IN (SELECT x FROM t1 WHERE z > 30)", &[1, 2]),
            ("x IN (SELECT x FROM t1 WHERE z > 30) OR z < 10", &[4]),
            ("x = ANY (SELECT x FROM t1 WHERE z < 20)", &[1]),
            ("x <> ALL (SELECT x FROM t1 WHERE z > 30)", &[1, 2]),
            ("x >= ALL (SELECT x FROM t1 WHERE x IS NOT NULL)", &[4]),
            ("x IN (SELECT z / 10 AS x FROM t1)", &[1, 2, 4]),
        ];
        for (condition, right) in CASES {
            assert_eq!(keys(condition).await.as_deref(), Ok(*right), "{condition}");
        }
    }

    #[tokio::test]
    async fn a_condition_on_the_outer_row_does_not_pass_what_it_must_precede() {
        for (condition, barrier) in [
            ("0 IN (SELECT count(*) FROM t2 WHERE t2.k = t1.k)", "an aggregate without GROUP BY"),
            ("EXISTS (SELECT max(x) FROM t2 WHERE t2.k = t1.k)", "an aggregate without GROUP BY"),
            (
                "1 = (SELECT max(n) FROM (SELECT row_number() OVER (ORDER BY k) AS n FROM t2
                 WHERE t2.z < t1.z) AS q)",
                "a window function",
            ),
            (
                "EXISTS (SELECT 1 FROM (SELECT x FROM t2 WHERE t2.z < t1.z ORDER BY k LIMIT 1) AS q
                 WHERE q.x = 1)",
                "LIMIT",
            ),
            (
                "EXISTS (SELECT 1 FROM t3 LEFT JOIN (SELECT k FROM t2 WHERE t2.z < t1.z) AS q
                 ON t3.k = q.k)",
                "an outer join",
            ),
            (
                "0 NOT IN (SELECT count(*) FROM t2 WHERE t2.k = t1.k GROUP BY ROLLUP (x))",
                "grouping sets",
            ),
        ] {
            let error = keys(condition).await.unwrap_err();
            assert!(error.contains(&format!("must not have {barrier} ")), "{condition}: {error}");
        }
        let names = "z NOT IN (SELECT x FROM t1 WHERE z > t4.k)";
        let error = keys_of("t1, (SELECT k AS k FROM t3) AS t4", names).await.unwrap_err();
        assert!(error.contains("both have a column t1.z"), "{error}");
        let first = "EXISTS (SELECT 1 FROM t2 WHERE t2.k = t1.k LIMIT 1)";
        assert_eq!(keys(first).await, Ok(vec![1, 2]));
        let most = "k = (SELECT max(k) FROM t2 WHERE t2.k = t1.k)";
        assert_eq!(keys(most).await, Ok(vec![1, 2]));
    }
}
