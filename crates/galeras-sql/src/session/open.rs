//! Sessions: one configuration for planning and for running.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use datafusion::catalog::{
    CatalogProvider, CatalogProviderList, MemoryCatalogProvider, MemoryCatalogProviderList,
    MemorySchemaProvider,
};
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::context::SessionContext;
use datafusion::execution::memory_pool::{
    FairSpillPool, MemoryConsumer, MemoryPool, MemoryReservation,
};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::session_state::SessionState;
use datafusion::optimizer::OptimizerRule;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::prelude::SessionConfig;

use super::optimizer_faults::{UnorderedInputs, guarded_rule};
use super::recursion::LimitRecursion;
use super::subqueries::ThreeValuedIn;
use crate::functions;

/// Rows per batch. Rows carry whole methods, and parsing one takes about 60 µs: a batch is
/// about 1 MB and 60 ms, small enough to spread a small table over all cores.
const BATCH_ROWS: usize = 1024;

/// Rows per batch where rows may have megabytes: a sort has to hold the largest batch twice.
const ROWS_AT_ONCE: usize = 128;

/// Limits the operators that can continue in temporary files, and no others: a merge has to hold a
/// batch of each of its inputs, and a sort its first batch, however large the rows are. The memory
/// guard limits the others.
#[derive(Debug)]
struct SpillPool(FairSpillPool);

impl std::fmt::Display for SpillPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "spills from {}", self.0)
    }
}

impl MemoryPool for SpillPool {
    fn name(&self) -> &str {
        "spills"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        if consumer.can_spill() {
            self.0.register(consumer);
        }
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        if consumer.can_spill() {
            self.0.unregister(consumer);
        }
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        if reservation.consumer().can_spill() {
            self.0.grow(reservation, additional);
        }
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        if reservation.consumer().can_spill() {
            self.0.shrink(reservation, shrink);
        }
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        if !reservation.consumer().can_spill() {
            return Ok(());
        }
        if reservation.size() == 0 {
            self.0.grow(reservation, additional);
            return Ok(());
        }
        self.0.try_grow(reservation, additional)
    }

    fn reserved(&self) -> usize {
        self.0.reserved()
    }
}

/// Below this a sort cannot merge what it has written.
const MIN_SORT_BYTES: usize = 128 << 20;

/// Rules of the optimizer that give other results. The first rounds sums of parts before it adds them
/// up, which the exact sums avoid. The second takes columns out of ORDER BY that it believes to depend
/// on the others, also those that UNNEST has made several of (DataFusion 55).
const LEFT_OUT: [&str; 2] =
    ["single_distinct_aggregation_to_group_by", "eliminate_duplicated_expr"];

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
    let scalars = builder.scalar_functions().get_or_insert_default();
    // It would put the version of a library, and the machine's kind, into data.
    scalars.retain(|function| function.name() != "version");
    scalars.extend(functions::scalars());
    builder.aggregate_functions().get_or_insert_default().extend(functions::aggregates());
    let state = builder.build();
    let mut rules: Vec<Arc<dyn OptimizerRule + Send + Sync>> = vec![Arc::new(ThreeValuedIn)];
    let known = state.optimizers().iter();
    rules.extend(known.filter(|rule| !LEFT_OUT.contains(&rule.name())).map(guarded_rule));
    // First: the others leave out sorts where rows are believed to be in order.
    let mut physical_rules: Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> =
        vec![Arc::new(UnorderedInputs)];
    physical_rules.extend(state.physical_optimizers().iter().cloned());
    physical_rules.push(Arc::new(LimitRecursion));
    SessionStateBuilder::new_from_existing(state)
        .with_optimizer_rules(rules)
        .with_physical_optimizer_rules(physical_rules)
        .build()
});

/// A fresh session with all functions and no tables, computing on `jobs` threads at a time.
pub fn session(jobs: usize) -> SessionContext {
    build(jobs, true)
}

/// A session like [`session`] for queries that are planned and never run.
pub fn planning_session() -> SessionContext {
    session(1)
}

/// A session like [`session`], whose plans keep the order of a stored table: parts of a file
/// are read side by side, but batches are not dealt out to threads.
pub fn ordered_session(jobs: usize) -> SessionContext {
    build(jobs, false)
}

/// A session like [`session`], whose sorts and groups use no more than `memory` bytes together and
/// write the rest to temporary files in `folder`.
///
/// # Errors
/// If there cannot be temporary files in the folder.
pub fn spilling_session(jobs: usize, memory: usize, folder: &Path) -> Result<SessionContext> {
    let pool = Arc::new(SpillPool(FairSpillPool::new(memory.max(MIN_SORT_BYTES))));
    let runtime =
        RuntimeEnvBuilder::new().with_memory_pool(pool).with_temp_file_path(folder).build_arc()?;
    let state = SessionStateBuilder::new_from_existing(build(jobs, true).state())
        .with_runtime_env(runtime)
        .build();
    Ok(SessionContext::new_with_state(state))
}

/// A session like [`spilling_session`], for tables that may be larger than memory and for plans that
/// only scan, filter, project, join small tables, and sort.
///
/// # Errors
/// If there cannot be temporary files in the folder.
pub fn bounded_session(jobs: usize, memory: usize, folder: &Path) -> Result<SessionContext> {
    let session = spilling_session(jobs, memory, folder)?;
    let mut config = session.copied_config().with_batch_size(ROWS_AT_ONCE);
    // The left side of a join is the small one, and the rows of the other stay in order.
    let optimizer = &mut config.options_mut().optimizer;
    optimizer.hash_join_single_partition_threshold = usize::MAX;
    optimizer.hash_join_single_partition_threshold_rows = usize::MAX;
    let state = SessionStateBuilder::new_from_existing(session.state()).with_config(config).build();
    Ok(SessionContext::new_with_state(state))
}

/// A copy of the template, which takes a fraction of the milliseconds that building one does.
fn build(jobs: usize, deal_out: bool) -> SessionContext {
    let mut state = TEMPLATE.clone();
    let options = state.config_mut().options_mut();
    options.execution.target_partitions = jobs.max(1);
    options.optimizer.enable_round_robin_repartition = deal_out;
    // Tables of one step are not visible to another.
    let catalogs = own_catalogs(&state);
    state.register_catalog_list(catalogs);
    SessionContext::new_with_state(state)
}

/// Removes the tables of the session. A new session for every step would copy the functions.
pub fn forget_tables(session: &SessionContext) {
    let state = session.state_ref();
    let catalogs = own_catalogs(&state.read());
    state.write().register_catalog_list(catalogs);
}

/// The default catalog with its default schema, without tables.
fn own_catalogs(state: &SessionState) -> Arc<dyn CatalogProviderList> {
    let names = &state.config_options().catalog;
    let (catalogs, catalog) = (MemoryCatalogProviderList::new(), MemoryCatalogProvider::new());
    // Fails for catalogs that take no schemas only.
    let _ = catalog.register_schema(&names.default_schema, Arc::new(MemorySchemaProvider::new()));
    catalogs.register_catalog(names.default_catalog.clone(), Arc::new(catalog));
    Arc::new(catalogs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn unnested_rows_are_sorted_by_all_columns() {
        let query = "SELECT g, unnest(make_array(s, n)) AS v FROM (SELECT g, sum(x) AS s, count(*) AS n \
                     FROM (VALUES ('b', 3), ('a', 5), ('b', 4)) AS t (g, x) GROUP BY g) ORDER BY g, v";
        let rows = session(1).sql(query).await.unwrap().collect().await.unwrap();
        let shown = arrow::util::pretty::pretty_format_batches(&rows).unwrap().to_string();
        let values: Vec<&str> = shown.lines().skip(3).filter_map(|l| l.get(2..3)).collect();
        assert_eq!(values[..4], ["a", "a", "b", "b"], "{shown}");
        let at = |text| shown.find(text).unwrap();
        assert!(at("| a | 1") < at("| a | 5") && at("| b | 2") < at("| b | 7"), "{shown}");
    }

    #[test]
    fn sorted_parts_go_to_the_given_folder() {
        let folder = tempfile::tempdir().unwrap();
        let session = bounded_session(1, 1 << 20, folder.path()).unwrap();
        let paths = session.runtime_env().disk_manager.temp_dir_paths();
        assert!(!paths.is_empty() && paths.iter().all(|path| path.starts_with(folder.path())));
        assert!(bounded_session(1, 1 << 20, Path::new("/nonexistent/folder")).is_err());
    }
}
