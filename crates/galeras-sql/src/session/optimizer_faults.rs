//! What keeps plans from three faults of DataFusion 55 that give wrong rows.
//!
//! - Grouping sets are believed to keep the order and the constants of their input, also where a set
//!   leaves a column out and its values are null: groups are closed too early (apache/datafusion
//!   24421, mended in 56).
//! - A sort above a window over rows in a known order is taken away, and its limit with it: the rows come
//!   in another order, all of them, or the window sees only the first ones.
//! - A condition without columns moves below an aggregate, where it takes the rows away but not the
//!   total, which has a row even if there are none.
//!
//! `benches/sql_vs_duckdb.py` looks for more.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::{
    Transformed, TransformedResult as _, TreeNode as _, TreeNodeRecursion,
};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties as _, PlanProperties,
};

/// The rule of DataFusion that moves conditions down.
const PUSH_DOWN: &str = "push_down_filter";

/// The rules, with a guard around the one that moves conditions below totals.
pub(super) fn guarded_rule(
    rule: &Arc<dyn OptimizerRule + Send + Sync>,
) -> Arc<dyn OptimizerRule + Send + Sync> {
    match rule.name() == PUSH_DOWN {
        true => Arc::new(KeepAboveTotals(Arc::clone(rule))),
        false => Arc::clone(rule),
    }
}

/// Moves no condition below an aggregate that has a row without groups.
#[derive(Debug)]
struct KeepAboveTotals(Arc<dyn OptimizerRule + Send + Sync>);

impl OptimizerRule for KeepAboveTotals {
    fn name(&self) -> &'static str {
        PUSH_DOWN
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        if let LogicalPlan::Filter(filter) = &plan
            && let LogicalPlan::Aggregate(aggregate) = filter.input.as_ref()
        {
            let groups = &aggregate.group_expr;
            if groups.is_empty() || groups.iter().any(|group| matches!(group, Expr::GroupingSet(_)))
            {
                return Ok(Transformed::no(plan));
            }
        }
        self.0.rewrite(plan, config)
    }
}

/// Puts an [`UnorderedExec`] below grouping sets and windows.
#[derive(Debug)]
pub(super) struct UnorderedInputs;

impl PhysicalOptimizerRule for UnorderedInputs {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let unordered = plan.transform_up(|plan| {
            let aggregate = plan.downcast_ref::<AggregateExec>();
            let sets = aggregate.is_some_and(|exec| exec.group_expr().has_grouping_set());
            let input = plan.children().into_iter().next().cloned();
            let Some(input) = input.filter(|_| sets || is_window(&plan)) else {
                return Ok(Transformed::no(plan));
            };
            // The order that the first window asked for serves the next one.
            if input.is::<UnorderedExec>() || is_window(&input) {
                return Ok(Transformed::no(plan));
            }
            let input: Arc<dyn ExecutionPlan> = Arc::new(UnorderedExec::new(input));
            let again = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
            plan.replace_children(vec![input], again).map(Transformed::yes)
        });
        unordered.data()
    }

    fn name(&self) -> &'static str {
        "unordered_inputs"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn is_window(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<BoundedWindowAggExec>() || plan.is::<WindowAggExec>()
}

/// Returns the rows of its input, and promises nothing about their order and values.
#[derive(Debug)]
struct UnorderedExec {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl UnorderedExec {
    fn new(input: Arc<dyn ExecutionPlan>) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(input.schema()),
            input.output_partitioning().clone(),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        Self { input, properties: Arc::new(properties) }
    }
}

impl DisplayAs for UnorderedExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UnorderedExec")
    }
}

impl ExecutionPlan for UnorderedExec {
    fn name(&self) -> &'static str {
        "UnorderedExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
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
        let input = children.pop().unwrap_or_else(|| Arc::clone(&self.input));
        Ok(Arc::new(Self::new(input)))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray};
    use arrow::datatypes::Int64Type;
    use datafusion::datasource::MemTable;

    use super::*;
    use crate::session::{column, session};

    /// 1,000 units with three treatments each, in the order that the table declares.
    fn units() -> MemTable {
        let text = |texts: Vec<String>| Arc::new(StringArray::from(texts)) as ArrayRef;
        let rows = 0..3_000;
        let units = rows.clone().map(|row| format!("{:05}", row / 3)).collect();
        let treatments = rows.map(|row| format!("T{}", row % 3)).collect();
        let columns = [("u", text(units)), ("t", text(treatments))];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let batches = (0..6).map(|part| batch.slice(part * 500, 500)).collect();
        let order = ["u", "t"].map(|name| column(name).sort(true, true)).to_vec();
        MemTable::try_new(batch.schema(), vec![batches]).unwrap().with_sort_order(vec![order])
    }

    /// The numbers of the first row; none without a row.
    async fn numbers(query: &str, jobs: usize) -> Vec<i64> {
        let session = session(jobs);
        session.register_table("units", Arc::new(units())).unwrap();
        let rows = session.sql(query).await.unwrap().collect().await.unwrap();
        let Some(batch) = rows.iter().find(|batch| batch.num_rows() > 0) else { return vec![] };
        let number = |column: &ArrayRef| column.as_primitive::<Int64Type>().value(0);
        batch.columns().iter().map(number).collect()
    }

    #[tokio::test]
    async fn grouping_sets_over_sorted_rows_count_all_rows() {
        let groups = |grouping: &str| {
            format!(
                "SELECT count(*) AS units, min(n) AS fewest, max(n) AS most FROM (SELECT u, count(*) \
                 AS n FROM (SELECT u, t FROM units GROUP BY {grouping}) WHERE u IS NOT NULL GROUP BY u)"
            )
        };
        // Three treatments and a subtotal; then without a subtotal of the unit.
        for (grouping, rows) in [
            ("GROUPING SETS ((u, t), (u))", 4),
            ("ROLLUP (u, t)", 4),
            ("u, ROLLUP (t)", 4),
            ("CUBE (t, u)", 4),
            ("GROUPING SETS ((u, t), (t))", 3),
        ] {
            for jobs in [1, 3] {
                let found = numbers(&groups(grouping), jobs).await;
                assert_eq!(found, [1_000, rows, rows], "{grouping} on {jobs} threads");
            }
        }
        let constant = "SELECT count(*) AS n, count(u) AS known FROM (SELECT u, t FROM units \
                        WHERE u = '00007' GROUP BY CUBE (u, t))";
        assert_eq!(numbers(constant, 2).await, [8, 4]);
        let windows = "SELECT count(*) AS n, CAST(sum(n) AS BIGINT) AS total FROM (SELECT u, r, count(*) AS n FROM \
                       (SELECT u, row_number() OVER (PARTITION BY u ORDER BY t) AS r FROM units) \
                       GROUP BY ROLLUP (u, r))";
        assert_eq!(numbers(windows, 1).await, [4_001, 9_000]);
    }

    #[tokio::test]
    async fn a_window_over_sorted_rows_sees_all_of_them_and_its_limit_holds() {
        for (over, least) in [("", 3_000), ("ORDER BY u", 3), ("PARTITION BY u", 3)] {
            for jobs in [1, 2, 3] {
                let window = format!(
                    "SELECT u, t, count(*) OVER ({over}) AS m FROM units WHERE t <> 'x' ORDER BY u, t"
                );
                let limited = format!("SELECT count(*) AS n, min(m) AS m FROM ({window} LIMIT 5)");
                assert_eq!(
                    numbers(&limited, jobs).await,
                    [5, least],
                    "{limited} on {jobs} threads"
                );
                let session = session(jobs);
                session.register_table("units", Arc::new(units())).unwrap();
                let rows = session.sql(&window).await.unwrap().collect().await.unwrap();
                let places = rows.iter().flat_map(|batch| {
                    let [u, t] = [0, 1].map(|at| batch.column(at).as_string::<i32>());
                    u.iter().zip(t).map(|(u, t)| (u.unwrap(), t.unwrap())).collect::<Vec<_>>()
                });
                assert!(places.is_sorted(), "{window} on {jobs} threads");
            }
        }
    }

    #[tokio::test]
    async fn a_condition_without_columns_applies_to_the_total() {
        for (inner, rows) in [
            ("SELECT count(*) AS n, 1 AS d FROM units", 1),
            ("SELECT count(*) AS n, 1 AS d FROM units GROUP BY ROLLUP (t)", 4),
            ("SELECT count(*) AS n, 1 AS d FROM units GROUP BY t", 3),
        ] {
            for (value, right) in [(1, rows), (2, 0)] {
                let query = format!("SELECT count(*) AS n FROM ({inner}) WHERE d = {value}");
                assert_eq!(numbers(&query, 2).await, [right], "{query}");
            }
        }
    }
}
