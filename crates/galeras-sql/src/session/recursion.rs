//! The limit on the rounds of a query that calls itself (`WITH RECURSIVE`). Without it, a query whose
//! rounds do not grow would never end.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::common::exec_err;
use datafusion::common::tree_node::{
    Transformed, TransformedResult as _, TreeNode as _, TreeNodeRecursion,
};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

/// The most rounds of a query that calls itself.
const MAX_ROUNDS: usize = if cfg!(test) { 2_000 } else { 100_000 };

/// Puts a [`RoundsExec`] above what each round of a recursive query computes.
#[derive(Debug)]
pub(super) struct LimitRecursion;

impl PhysicalOptimizerRule for LimitRecursion {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let limited = plan.transform_up(|plan| {
            if !plan.is::<RecursiveQueryExec>() {
                return Ok(Transformed::no(plan));
            }
            let mut children: Vec<_> = plan.children().into_iter().cloned().collect();
            // The first one is where the recursion starts.
            if let Some(round) = children.last_mut().filter(|round| !round.is::<RoundsExec>()) {
                *round = Arc::new(RoundsExec::new(Arc::clone(round), Arc::default()));
            }
            let again = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
            plan.replace_children(children, again).map(Transformed::yes)
        });
        limited.data()
    }

    fn name(&self) -> &'static str {
        "limit_recursion"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Returns the rows of its input, or an error when it was executed too often.
#[derive(Debug)]
struct RoundsExec {
    round: Arc<dyn ExecutionPlan>,
    /// How often it was executed; the copies that are made for a round share the number.
    rounds: Arc<AtomicUsize>,
    properties: Arc<PlanProperties>,
}

impl RoundsExec {
    fn new(round: Arc<dyn ExecutionPlan>, rounds: Arc<AtomicUsize>) -> Self {
        let properties = Arc::clone(round.properties());
        Self { round, rounds, properties }
    }
}

impl DisplayAs for RoundsExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RoundsExec")
    }
}

impl ExecutionPlan for RoundsExec {
    fn name(&self) -> &'static str {
        "RoundsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.round]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let round = children.pop().unwrap_or_else(|| Arc::clone(&self.round));
        Ok(Arc::new(Self::new(round, Arc::clone(&self.rounds))))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        if self.rounds.fetch_add(1, Ordering::Relaxed) >= MAX_ROUNDS {
            return exec_err!(
                "a query that calls itself (WITH RECURSIVE) goes on for more than {MAX_ROUNDS} \
                 rounds; does it end? give it a condition (`WHERE n < 1000`), or count with \
                 `range(0, 1000)`"
            );
        }
        self.round.execute(partition, context)
    }
}

#[cfg(test)]
mod tests {
    use crate::session::session;

    use super::*;

    async fn rows(query: &str) -> Result<usize> {
        let batches = session(2).sql(query).await?.collect().await?;
        Ok(batches.iter().map(|batch| batch.num_rows()).sum())
    }

    #[tokio::test]
    async fn a_query_that_calls_itself_ends_or_fails() {
        let to = |end: &str| {
            format!(
                "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t {end}) \
                 SELECT n FROM t"
            )
        };
        assert_eq!(rows(&to("WHERE n < 1500")).await.unwrap(), 1500);
        for union in ["UNION ALL", "UNION"] {
            let endless = to("").replace("UNION ALL", union).replace("n + 1", "(n + 1) % 7");
            match union {
                // Rows that are there already end it.
                "UNION" => assert_eq!(rows(&endless).await.unwrap(), 7),
                _ => {
                    let error = rows(&endless).await.unwrap_err().to_string();
                    assert!(error.contains("for more than 2000 rounds"), "{error}");
                }
            }
        }
    }
}
