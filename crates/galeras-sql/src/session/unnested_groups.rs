//! Refuses queries in which the engine would group rows wrongly: DataFusion 55 still assumes that
//! grouping columns determine all others after UNNEST has made several rows of each. GROUP BY and
//! DISTINCT over such rows then drop columns that they need.

use std::collections::BTreeSet;

use datafusion::common::DFSchema;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan};

/// The columns that GROUP BY or DISTINCT would drop somewhere in the plan; none if it would not.
///
/// # Errors
/// If the plan cannot be walked.
pub fn dropped_group_columns(plan: &LogicalPlan) -> Result<Vec<String>> {
    let mut dropped = BTreeSet::new();
    plan.apply_with_subqueries(|node| {
        let (input, groups) = match node {
            LogicalPlan::Aggregate(aggregate) => {
                let groups = aggregate.group_expr.iter().filter_map(|expr| match expr {
                    Expr::Column(column) => aggregate.input.schema().maybe_index_of_column(column),
                    _ => None,
                });
                (&aggregate.input, groups.collect())
            }
            LogicalPlan::Distinct(Distinct::All(input)) => {
                (input, (0..input.schema().fields().len()).collect())
            }
            _ => return Ok(TreeNodeRecursion::Continue),
        };
        if unnests(input)? {
            dropped.extend(determined(input.schema(), &groups));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(dropped.into_iter().collect())
}

/// The columns that the plan believes others determine.
fn determined(schema: &DFSchema, columns: &BTreeSet<usize>) -> Vec<String> {
    let mut names = Vec::new();
    for dependency in schema.functional_dependencies().iter() {
        let sources = &dependency.source_indices;
        if !sources.iter().all(|at| columns.contains(at)) {
            continue;
        }
        let targets = dependency.target_indices.iter().filter(|at| columns.contains(at));
        let targets = targets.filter(|at| !sources.contains(at));
        names.extend(targets.map(|at| schema.field(*at).name().clone()));
    }
    names
}

/// Returns true if rows that were grouped are unnested somewhere in the plan.
fn unnests(plan: &LogicalPlan) -> Result<bool> {
    plan.exists(|node| match node {
        LogicalPlan::Unnest(unnest) => {
            Ok(!unnest.input.schema().functional_dependencies().is_empty())
        }
        _ => Ok(false),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::session;

    const UNNESTED: &str = "SELECT g, unnest(make_array(s, n)) AS v FROM \
                            (SELECT g, sum(x) AS s, count(*) AS n FROM t GROUP BY g)";

    async fn dropped(query: &str) -> Vec<String> {
        let session = session(1);
        let table =
            "CREATE TABLE t AS SELECT * FROM (VALUES ('b', 3), ('a', 5), ('b', 4)) AS t (g, x)";
        session.sql(table).await.unwrap().collect().await.unwrap();
        let df = session.sql(&query.replace("UNNESTED", UNNESTED)).await.unwrap();
        dropped_group_columns(df.logical_plan()).unwrap()
    }

    #[tokio::test]
    async fn groups_that_would_be_merged_are_found() {
        for query in [
            "SELECT count(*) AS n FROM (SELECT g, v FROM (UNNESTED) GROUP BY g, v)",
            "SELECT DISTINCT g, v FROM (UNNESTED)",
            "SELECT max(s) AS m FROM (SELECT sum(v) AS s FROM (UNNESTED) GROUP BY g, v)",
            "SELECT * FROM t WHERE x IN (SELECT sum(v) FROM (UNNESTED) GROUP BY v, g)",
        ] {
            assert_eq!(dropped(query).await, ["v"], "{query}");
        }
    }

    #[tokio::test]
    async fn other_groups_are_left_alone() {
        for query in [
            "SELECT v, count(*) AS n FROM (UNNESTED) GROUP BY v",
            "SELECT sum(v) AS s FROM (UNNESTED)",
            "SELECT g, x, count(*) AS n FROM t GROUP BY g, x",
            "SELECT g, v, count(*) AS n FROM (SELECT g, unnest(make_array(x, 1)) AS v FROM t) \
             GROUP BY g, v",
            "SELECT g, v, count(*) AS n FROM (UNNESTED UNION ALL SELECT g, x FROM t) GROUP BY g, v",
        ] {
            assert_eq!(dropped(query).await, [] as [String; 0], "{query}");
        }
    }
}
