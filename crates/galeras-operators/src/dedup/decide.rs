//! Decides about each row: clusters, the row of each that is kept, similarities with it. Only rows
//! of clusters are read.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::{
    ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray,
    UInt32Array,
};
use arrow::compute::{SortOptions, take_record_batch};
use arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::dataframe::DataFrame;
use futures::StreamExt;

use super::{BoundDedup, Keep, similarity_error};
use galeras_base::id::ID;
use galeras_operator::worker_threads::{StopOnDrop, on_thread};
use galeras_operator::{LowerContext, StepError, Tell};
use galeras_similarity::{Corpus, CorpusCounts};
use galeras_sql::session::column;

/// The columns of [`Decided::duplicates`]: the id of a rejected row, the reason, the kept row of
/// its cluster, and the similarities with it. The names are hidden, since the input may use others.
pub(super) const DUPLICATE: &str = "__duplicate";
pub(super) const REASON: &str = "__reason";
pub(super) const DUPLICATE_OF: &str = "__duplicate_of";
pub(super) const JACCARD: &str = "__jaccard";
pub(super) const MULTISET_JACCARD: &str = "__multiset_jaccard";

/// The outcome.
pub(super) struct Decided {
    /// A row for each rejected row.
    pub(super) duplicates: RecordBatch,
    pub(super) clusters: RecordBatch,
    pub(super) summary: RecordBatch,
}

/// The values about `against` in the summary.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AgainstCounts {
    /// Rows that are near to it.
    pub(super) near: u64,
    /// Those that are similar, not only contained.
    pub(super) similar: u64,
    /// Its rows: all of them, those with enough tokens, those without, nulls.
    pub(super) rows: u64,
    pub(super) compared: u64,
    pub(super) too_short: u64,
    pub(super) nulls: u64,
}

/// A row of a cluster.
struct Member {
    row: u32,
    /// The smallest position in its cluster.
    cluster: u32,
    id: String,
    order: Option<OwnedRow>,
}

pub(super) async fn decide(
    step: &BoundDedup,
    cx: &LowerContext,
    input: DataFrame,
    corpus: Corpus,
    against: Option<AgainstCounts>,
) -> Result<Decided, StepError> {
    let corpus = Arc::new(corpus);
    let stop = StopOnDrop::default();
    let clustered = {
        let (corpus, flag, tell) = (Arc::clone(&corpus), stop.flag(), Arc::clone(&cx.tell));
        let (thresholds, method) = (step.thresholds(), step.method());
        on_thread(move || {
            let progress = |done: u64, of: u64| {
                let percent = (100 * done).checked_div(of).unwrap_or(100);
                tell(Tell::Activity(format!("comparing: {percent} %")));
            };
            let stop = || flag.load(Ordering::Relaxed);
            corpus.components(&thresholds, method, &stop, &progress).map_err(similarity_error)
        })
        .await?
    };
    let members = members(step, input, clustered).await?;
    let kept = kept(&members, step.args.keep);
    let pairs: Vec<(u32, u32)> =
        members.iter().map(|m| (m.row, members[kept[&m.cluster].0].row)).collect();
    let counts = corpus.counts();
    let similarities =
        on_thread(move || corpus.similarities(&pairs).map_err(similarity_error)).await?;
    tables(step, &members, &kept, &similarities, (&counts, against))
}

/// The members of clusters with their ids and sort keys, in the order of rows.
async fn members(
    step: &BoundDedup,
    input: DataFrame,
    clustered: Vec<(u32, u32)>,
) -> Result<Vec<Member>, StepError> {
    let mut columns = vec![column(ID)];
    let by = step.args.order_by.iter().enumerate();
    let first = by.filter(|(at, name)| *name != ID && !step.args.order_by[..*at].contains(name));
    columns.extend(first.map(|(_, name)| column(name)));
    let ordered = input.select(columns)?.sort(vec![column(ID).sort(true, true)])?;
    // Nulls come last for both `first` and `last`.
    let nulls_first = step.args.keep == Keep::Last;
    let options = SortOptions { descending: false, nulls_first };
    let schema = Arc::new(ordered.schema().as_arrow().clone());
    let by: Vec<usize> =
        step.args.order_by.iter().map(|name| schema.index_of(name)).collect::<Result<_, _>>()?;
    let fields = by
        .iter()
        .map(|at| SortField::new_with_options(schema.field(*at).data_type().clone(), options));
    let converter = RowConverter::new(fields.collect())?;
    let mut members = Vec::with_capacity(clustered.len());
    let mut wanted = clustered.into_iter().peekable();
    let mut first = 0u32;
    let mut stream = ordered.execute_stream().await?;
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        let end = first + batch.num_rows() as u32;
        let mut here = Vec::new();
        while let Some(member) = wanted.next_if(|(row, _)| *row < end) {
            here.push(member);
        }
        if !here.is_empty() {
            let rows: UInt32Array = here.iter().map(|(row, _)| row - first).collect();
            let chosen = take_record_batch(&batch, &rows)?;
            let keys: Vec<ArrayRef> = by.iter().map(|at| Arc::clone(chosen.column(*at))).collect();
            let orders =
                if keys.is_empty() { None } else { Some(converter.convert_columns(&keys)?) };
            let ids = chosen.column(0).as_string::<i32>();
            members.extend(here.iter().enumerate().map(|(at, (row, cluster))| Member {
                row: *row,
                cluster: *cluster,
                id: ids.value(at).to_string(),
                order: orders.as_ref().map(|orders| orders.row(at).owned()),
            }));
        }
        first = end;
    }
    Ok(members)
}

/// By cluster: the position of the kept member, and the cluster's size.
fn kept(members: &[Member], keep: Keep) -> HashMap<u32, (usize, i64)> {
    let mut kept: HashMap<u32, (usize, i64)> = HashMap::new();
    for (at, member) in members.iter().enumerate() {
        let (best, size) = kept.entry(member.cluster).or_insert((at, 0));
        *size += 1;
        let order = member.order.cmp(&members[*best].order);
        // Rows are in the order of ids, which decides ties.
        let better = match keep {
            Keep::First => order.is_lt(),
            Keep::Last => order.is_ge(),
        };
        if better {
            *best = at;
        }
    }
    kept
}

fn tables(
    step: &BoundDedup,
    members: &[Member],
    kept: &HashMap<u32, (usize, i64)>,
    similarities: &[(f64, f64)],
    (counts, against): (&CorpusCounts, Option<AgainstCounts>),
) -> Result<Decided, StepError> {
    let of = |member: &Member| &members[kept[&member.cluster].0];
    let ids: StringArray = members.iter().map(|m| Some(m.id.as_str())).collect();
    let cluster: StringArray = members.iter().map(|m| Some(of(m).id.as_str())).collect();
    let size: Int64Array = members.iter().map(|m| Some(kept[&m.cluster].1)).collect();
    let is_kept: Vec<bool> = members.iter().map(|m| of(m).row == m.row).collect();
    let jaccard: Float64Array = similarities.iter().map(|(set, _)| Some(*set)).collect();
    let multiset: Float64Array = similarities.iter().map(|(_, multi)| Some(*multi)).collect();
    let clusters: [(&str, ArrayRef, bool); 6] = [
        (ID, Arc::new(ids.clone()), false),
        ("cluster", Arc::new(cluster.clone()), false),
        ("size", Arc::new(size), false),
        ("kept", Arc::new(BooleanArray::from(is_kept.clone())), false),
        ("jaccard", Arc::new(jaccard.clone()), false),
        ("multiset_jaccard", Arc::new(multiset.clone()), false),
    ];
    let reasons: StringArray = similarities
        .iter()
        .zip(cluster.iter().flatten())
        .map(|((set, multi), kept)| {
            let linked = if *set < step.args.threshold || *multi < step.args.multiset_threshold {
                "similar through other rows to"
            } else {
                "similar to"
            };
            let values = format!("(set Jaccard {set:.3}, multiset Jaccard {multi:.3})");
            Some(format!("{linked} {kept} {values}"))
        })
        .collect();
    let all: [(&str, ArrayRef, bool); 5] = [
        (DUPLICATE, Arc::new(ids), false),
        (REASON, Arc::new(reasons), false),
        (DUPLICATE_OF, Arc::new(cluster), false),
        (JACCARD, Arc::new(jaccard), false),
        (MULTISET_JACCARD, Arc::new(multiset), false),
    ];
    let all = RecordBatch::try_from_iter_with_nullable(all)?;
    let set_aside: BooleanArray = is_kept.iter().map(|kept| Some(!kept)).collect();
    let duplicates = arrow::compute::filter_record_batch(&all, &set_aside)?;
    let summary = summary(step, kept, duplicates.num_rows() as i64, (counts, against))?;
    Ok(Decided {
        duplicates,
        clusters: RecordBatch::try_from_iter_with_nullable(clusters)?,
        summary,
    })
}

/// The one row of the port `summary`. Rows near to another table are not among the `counts`.
fn summary(
    step: &BoundDedup,
    kept: &HashMap<u32, (usize, i64)>,
    duplicates: i64,
    (counts, against): (&CorpusCounts, Option<AgainstCounts>),
) -> Result<RecordBatch, StepError> {
    let near = against.map_or(0, |against| against.near as i64);
    let rows = counts.rows as i64 + near;
    let percent = |part: i64| if rows == 0 { 0.0 } else { 100.0 * part as f64 / rows as f64 };
    let largest = kept.values().map(|(_, size)| *size).max().unwrap_or(0);
    let count = |n: i64| -> ArrayRef { Arc::new(Int64Array::from(vec![n])) };
    let share = |x: f64| -> ArrayRef { Arc::new(Float64Array::from(vec![x])) };
    let mut columns = vec![
        ("rows", count(rows)),
        ("duplicates", count(duplicates)),
        ("percent", share(percent(duplicates))),
        ("kept", count(rows - duplicates - near)),
        ("clusters", count(kept.len() as i64)),
        ("largest_cluster", count(largest)),
        ("compared", count(counts.documents as i64 + near)),
        ("too_short", count(counts.too_short as i64)),
        ("nulls", count(counts.nulls as i64)),
        ("expected_recall", share(step.recall())),
    ];
    if let Some(against) = against {
        columns.extend([
            ("near", count(near)),
            ("near_percent", share(percent(near))),
            ("near_similar", count(against.similar as i64)),
            ("against_rows", count(against.rows as i64)),
            ("against_compared", count(against.compared as i64)),
            ("against_too_short", count(against.too_short as i64)),
            ("against_nulls", count(against.nulls as i64)),
        ]);
    }
    let columns = columns.into_iter().map(|(name, values)| (name, values, false));
    Ok(RecordBatch::try_from_iter_with_nullable(columns)?)
}
