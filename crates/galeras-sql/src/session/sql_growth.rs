//! How large the expressions of a query become when the columns of the queries within it are put in
//! their place. The optimizer does that: it moves a condition inwards, and each step may double it, so
//! that a query of a kilobyte would be planned for hours.

use datafusion::common::JoinType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan};

use galeras_operator::ArgError;
use galeras_workflow::code::Code;

/// The largest expression that is planned, in operators, functions, columns and constants.
pub const MAX_SQL_EXPRESSION: u64 = 20_000;

/// Refuses a plan of which a column is made of too much.
///
/// # Errors
/// An error (at `path`) with the code `sql-limit`.
pub fn check_growth(plan: &LogicalPlan, path: &str) -> Result<Result<(), ArgError>> {
    let largest = Sizes::default().largest(plan)?;
    if largest <= MAX_SQL_EXPRESSION {
        return Ok(Ok(()));
    }
    let message = format!(
        "a column is an expression of more than {MAX_SQL_EXPRESSION} parts when the queries within \
         the query are put in the place of their names"
    );
    let help = "compute a part of it in a step before";
    Ok(Err(ArgError::new(path, Code::SqlLimit, message).help(help)))
}

#[derive(Default)]
struct Sizes {
    largest: u64,
}

impl Sizes {
    fn largest(mut self, plan: &LogicalPlan) -> Result<u64> {
        self.columns(plan)?;
        Ok(self.largest)
    }

    /// The size of each column of a plan.
    fn columns(&mut self, plan: &LogicalPlan) -> Result<Vec<u64>> {
        let inputs = plan.inputs();
        let mut below = Vec::with_capacity(inputs.len());
        for input in &inputs {
            below.push(self.columns(input)?);
        }
        let sizes = Below { inputs: &inputs, columns: &below };
        // Conditions and keys become as large as the columns are that they read.
        let mut made = Vec::new();
        plan.apply_expressions(|expr| {
            let size = sizes.of(expr)?;
            self.largest = self.largest.max(size);
            made.push(size);
            Ok(TreeNodeRecursion::Continue)
        })?;
        plan.apply_subqueries(|query| {
            self.columns(query)?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        let width = plan.schema().fields().len();
        let mut columns = match plan {
            LogicalPlan::Projection(_) => made,
            // What is computed from many rows is put in no other place: from there on it is a column.
            LogicalPlan::Aggregate(aggregate) => match aggregate.group_expr.as_slice() {
                [Expr::GroupingSet(_)] => {
                    let keys = width.saturating_sub(aggregate.aggr_expr.len());
                    vec![made.first().copied().unwrap_or(1); keys]
                }
                keys => made.into_iter().take(keys.len()).collect(),
            },
            LogicalPlan::Distinct(Distinct::On(on)) => {
                made.into_iter().skip(on.on_expr.len()).take(on.select_expr.len()).collect()
            }
            LogicalPlan::Join(join) if is_of_the_right(join.join_type) => {
                below.pop().unwrap_or_default()
            }
            LogicalPlan::Union(_) => (0..width)
                .map(|at| {
                    below.iter().filter_map(|input| input.get(at)).max().copied().unwrap_or(1)
                })
                .collect(),
            _ => below.concat(),
        };
        columns.resize(width, 1);
        Ok(columns)
    }
}

/// Whether a join has the columns of its right input alone.
fn is_of_the_right(join: JoinType) -> bool {
    matches!(join, JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark)
}

/// The inputs of a plan with the sizes of their columns.
struct Below<'a> {
    inputs: &'a [&'a LogicalPlan],
    columns: &'a [Vec<u64>],
}

impl Below<'_> {
    fn of(&self, expr: &Expr) -> Result<u64> {
        let mut size: u64 = 0;
        expr.apply(|part| {
            let of = match part {
                Expr::Column(column) => self
                    .inputs
                    .iter()
                    .zip(self.columns)
                    .find_map(|(input, sizes)| {
                        let at = input.schema().maybe_index_of_column(column)?;
                        sizes.get(at).copied()
                    })
                    .unwrap_or(1),
                _ => 1,
            };
            size = size.saturating_add(of);
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::session;

    async fn checked(sql: &str) -> Result<(), ArgError> {
        let session = session(1);
        let plan = session.state().create_logical_plan(sql).await.unwrap();
        check_growth(&plan, "query").unwrap()
    }

    fn doubled(times: usize, tail: &str) -> String {
        let with: Vec<String> = (1..=times)
            .map(|i| format!("a{i} AS (SELECT id, x + x AS x FROM a{})", i - 1))
            .collect();
        format!(
            "WITH a0 AS (SELECT 1 AS id, 2 AS x), {} SELECT id, x FROM a{times}{tail}",
            with.join(", ")
        )
    }

    #[tokio::test]
    async fn an_expression_that_doubles_with_every_query_is_refused() {
        assert!(checked(&doubled(10, " WHERE x > 1")).await.is_ok());
        for tail in ["", " WHERE x > 1", " ORDER BY x", " GROUP BY id, x HAVING x > 2", " LIMIT 5"]
        {
            let error = checked(&doubled(60, tail)).await.unwrap_err();
            assert_eq!(error.code, Code::SqlLimit, "{tail}");
            assert!(error.message.contains("more than 20000 parts"), "{}", error.message);
        }
        let within =
            format!("SELECT 1 AS id WHERE 1 IN (SELECT x FROM ({}) AS d)", doubled(40, ""));
        assert!(checked(&within).await.is_err());
    }

    #[tokio::test]
    async fn many_columns_and_long_queries_are_fine() {
        let columns: Vec<String> = (0..2_000).map(|i| format!("x + {i} AS c{i}")).collect();
        let sql = format!("SELECT {} FROM (SELECT 1 AS x)", columns.join(", "));
        assert!(checked(&sql).await.is_ok());
    }

    #[tokio::test]
    async fn what_is_computed_from_many_rows_ends_an_expression() {
        for stage in [
            "SELECT id, (x - avg(x) OVER ()) / (stddev(x) OVER () + avg(x) OVER ()) AS x FROM",
            "SELECT id, max(x) + min(x) + max(x) + min(x) AS x FROM",
        ] {
            let stages = |times: usize| -> String {
                let all =
                    (0..times).fold("(SELECT 1 AS id, 2.0 AS x) AS a".to_string(), |from, _| {
                        let by = if stage.contains("OVER") { "" } else { " GROUP BY id" };
                        format!("({stage} {from}{by}) AS a")
                    });
                format!("SELECT id, x FROM {all} WHERE x > 1")
            };
            assert!(checked(&stages(1)).await.is_ok(), "{stage}");
            let many = checked(&stages(9)).await;
            assert!(many.is_ok() || !stage.contains("max"), "{stage}");
        }
    }

    #[tokio::test]
    async fn columns_are_counted_where_they_come_from() {
        let deep = doubled(40, "");
        for from in [
            format!("(SELECT 1 AS id, 2 AS y) AS l RIGHT SEMI JOIN ({deep}) AS r ON l.id = r.id"),
            format!("(SELECT DISTINCT ON (id) id, x FROM ({deep}) AS d ORDER BY id) AS r"),
            format!(
                "(SELECT id, x FROM ({deep}) AS d GROUP BY GROUPING SETS ((id, x), (id))) AS r"
            ),
        ] {
            assert!(checked(&format!("SELECT x FROM {from}")).await.is_err(), "{from}");
        }
    }
}
