//! How large the expressions of a query become when the columns of the queries within it are put in
//! their place. The optimizer does that: it moves a condition inwards, and each step may double it, so
//! that a query of a kilobyte would be planned for hours.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan};

use crate::code::Code;
use crate::operator::ArgError;

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
            LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_) => made,
            LogicalPlan::Window(_) => below.concat().into_iter().chain(made).collect(),
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
        // An aggregate ends an expression: nothing is put in the place of a sum, but it is counted
        // as if it were.
        let sums = "SELECT sum(x) AS x FROM (SELECT sum(x) AS x FROM (SELECT 1 AS x))";
        assert!(checked(sums).await.is_ok());
    }
}
