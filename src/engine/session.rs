//! Sessions: one configuration for planning and for running.

use std::sync::{Arc, LazyLock};

use datafusion::execution::SessionStateBuilder;
use datafusion::execution::context::SessionContext;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::session_state::SessionState;
use datafusion::prelude::SessionConfig;

use crate::functions;

/// Rows per batch. Rows carry whole methods, and parsing one takes about 60 µs: a batch is
/// about 1 MB and 60 ms, small enough to spread a small table over all cores.
const BATCH_ROWS: usize = 1024;

/// Memory for the sorts of [`bounded_session`], in bytes.
const SORT_BYTES: usize = 256 << 20;

static TEMPLATE: LazyLock<SessionState> = LazyLock::new(|| {
    let mut config = SessionConfig::new()
        .with_batch_size(BATCH_ROWS)
        .with_information_schema(false)
        .with_create_default_catalog_and_schema(true);
    let options = config.options_mut();
    // One text type everywhere: stored tables and contracts know `utf8` only.
    options.execution.parquet.schema_force_view_types = false;
    options.sql_parser.map_string_types_to_utf8view = false;
    options.execution.collect_statistics = false;
    let mut builder = SessionStateBuilder::new()
        .with_config(config)
        .with_default_features()
        .with_runtime_env(Arc::new(RuntimeEnv::default()));
    builder.scalar_functions().get_or_insert_default().extend(functions::scalars());
    builder.aggregate_functions().get_or_insert_default().extend(functions::aggregates());
    let state = builder.build();
    // This rule rounds sums of parts before it adds them up, which the exact sums avoid.
    let rules = state
        .optimizers()
        .iter()
        .filter(|rule| rule.name() != "single_distinct_aggregation_to_group_by")
        .cloned()
        .collect();
    SessionStateBuilder::new_from_existing(state).with_optimizer_rules(rules).build()
});

/// A fresh session with all functions and no tables, computing on `jobs` threads at a time.
pub fn session(jobs: usize) -> SessionContext {
    build(jobs, true)
}

/// A session like [`session`], whose plans keep the order of a stored table: parts of a file
/// are read side by side, but batches are not dealt out to threads.
pub fn ordered_session(jobs: usize) -> SessionContext {
    build(jobs, false)
}

/// A session whose sorts use no more than [`SORT_BYTES`] of memory together and write the rest
/// to temporary files: for tables that may be larger than memory, and for plans that only
/// scan, filter, project, join small tables, and sort.
pub fn bounded_session(jobs: usize) -> SessionContext {
    static RUNTIME: LazyLock<Arc<RuntimeEnv>> = LazyLock::new(|| {
        let pool = Arc::new(FairSpillPool::new(SORT_BYTES));
        RuntimeEnvBuilder::new().with_memory_pool(pool).build_arc().unwrap_or_default()
    });
    let state = SessionStateBuilder::new_from_existing(build(jobs, true).state())
        .with_runtime_env(Arc::clone(&RUNTIME))
        .build();
    SessionContext::new_with_state(state)
}

fn build(jobs: usize, deal_out: bool) -> SessionContext {
    // A state made from another one leaves the default catalog out, unless told otherwise.
    let mut config = TEMPLATE.config().clone().with_create_default_catalog_and_schema(true);
    config.options_mut().execution.target_partitions = jobs.max(1);
    config.options_mut().optimizer.enable_round_robin_repartition = deal_out;
    // A catalog of its own: tables of one step are not visible to another.
    let state = SessionStateBuilder::new_from_existing(TEMPLATE.clone())
        .with_config(config)
        .with_catalog_list(Arc::new(datafusion::catalog::MemoryCatalogProviderList::new()))
        .build();
    SessionContext::new_with_state(state)
}
