//! Decides about each row: clusters, the row of each that is kept, similarities with it. Only rows
//! of clusters are read.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::{ArrayRef, AsArray, UInt32Array};
use arrow::compute::{SortOptions, take_record_batch};
use arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::dataframe::DataFrame;
use datafusion::execution::context::SessionContext;
use futures::StreamExt;
use serde_json::{Value, json};

use super::tables::{ClusterRow, RejectedRow};
use super::{BoundDedup, Clustering, Keep, similarity_error};
use crate::typed_rows;
use galeras_base::id::ID;
use galeras_operator::worker_threads::{StopOnDrop, on_thread};
use galeras_operator::{LowerContext, StepError, Tell};
use galeras_similarity::{Corpus, CorpusCounts, Thresholds};
use galeras_sql::session::column;

pub(super) struct Decided {
    pub(super) rejected: Vec<RejectedRow>,
    pub(super) clusters: DataFrame,
    pub(super) summary: DataFrame,
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

struct Member {
    row: u32,
    /// A position in its cluster: the smallest one, or that of the kept row.
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
        let (thresholds, (method, _)) = (step.thresholds(), step.method());
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
    let mut members = members(step, input, clustered).await?;
    if step.args.cluster == Clustering::Direct {
        members = around_kept_rows(step, &corpus, members).await?;
    }
    let kept = kept(&members, 0..members.len(), step.args.keep);
    let pairs: Vec<(u32, u32)> =
        members.iter().map(|m| (m.row, members[kept[&m.cluster].0].row)).collect();
    let counts = corpus.counts();
    // Few short rows are usual, and `summary` counts them.
    if counts.too_short > 0 && 2 * counts.too_short >= counts.rows {
        (cx.tell)(Tell::Warning(format!(
            "{} of {} rows have fewer than {} tokens and are not compared: a lower `min_tokens` \
             compares them",
            counts.too_short,
            counts.rows,
            step.args.min_tokens.max(1)
        )));
    }
    let similarities =
        on_thread(move || corpus.similarities(&pairs).map_err(similarity_error)).await?;
    tables(step, &cx.session, &members, &kept, &similarities, (&counts, against))
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

/// Splits clusters of rows that are similar through others, so that each row of a cluster is similar
/// to the kept one. Rows that are similar to none are in no cluster then.
async fn around_kept_rows(
    step: &BoundDedup,
    corpus: &Arc<Corpus>,
    mut members: Vec<Member>,
) -> Result<Vec<Member>, StepError> {
    let Thresholds { set, multiset, .. } = step.thresholds();
    let mut cluster_of: Vec<u32> = members.iter().map(|member| member.row).collect();
    let mut sizes: HashMap<u32, usize> = HashMap::new();
    let mut open: Vec<usize> = (0..members.len()).collect();
    // Each round keeps the first open row of every cluster and closes those similar to it.
    while !open.is_empty() {
        let first = kept(&members, open.iter().copied(), step.args.keep);
        let kept_row = |at: &usize| members[first[&members[*at].cluster].0].row;
        let pairs: Vec<(u32, u32)> =
            open.iter().map(|at| (members[*at].row, kept_row(at))).collect();
        let (corpus, of_pairs) = (Arc::clone(corpus), pairs.clone());
        let similarities =
            on_thread(move || corpus.similarities(&of_pairs).map_err(similarity_error)).await?;
        let mut similar = similarities.into_iter().zip(&pairs);
        open.retain(|at| {
            let Some(((jaccard, multiset_jaccard), (row, kept))) = similar.next() else {
                return false;
            };
            let is_near = jaccard >= set && multiset_jaccard >= multiset;
            if row == kept || is_near {
                cluster_of[*at] = *kept;
                *sizes.entry(*kept).or_default() += 1;
            }
            row != kept && !is_near
        });
    }
    for (member, cluster) in members.iter_mut().zip(cluster_of) {
        member.cluster = cluster;
    }
    members.retain(|member| sizes.get(&member.cluster).is_some_and(|size| *size > 1));
    Ok(members)
}

/// By cluster: the position of the kept one of these members, and their number.
fn kept(
    members: &[Member],
    positions: impl Iterator<Item = usize>,
    keep: Keep,
) -> HashMap<u32, (usize, i64)> {
    let mut kept: HashMap<u32, (usize, i64)> = HashMap::new();
    for at in positions {
        let member = &members[at];
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
    session: &SessionContext,
    members: &[Member],
    kept: &HashMap<u32, (usize, i64)>,
    similarities: &[(f64, f64)],
    (counts, against): (&CorpusCounts, Option<AgainstCounts>),
) -> Result<Decided, StepError> {
    let of = |member: &Member| &members[kept[&member.cluster].0];
    let all = || members.iter().zip(similarities.iter().copied());
    let clusters = all().map(|(member, (jaccard, multiset_jaccard))| ClusterRow {
        id: &member.id,
        cluster: &of(member).id,
        size: kept[&member.cluster].1,
        kept: of(member).row == member.row,
        jaccard,
        multiset_jaccard,
    });
    let clusters = typed_rows::table(session, &step.ports[2].table.stored(), clusters)?;
    let rejected = all().filter(|(member, _)| of(member).row != member.row);
    let rejected = rejected.map(|(member, (jaccard, multiset_jaccard))| {
        let Thresholds { set, multiset, .. } = step.thresholds();
        let direct = jaccard >= set && multiset_jaccard >= multiset;
        let linked = if direct { "similar to" } else { "similar through other rows to" };
        let kept = &of(member).id;
        let values = format!("(set Jaccard {jaccard:.3}, multiset Jaccard {multiset_jaccard:.3})");
        RejectedRow {
            id: member.id.clone(),
            rule: "duplicate",
            reason: format!("{linked} {kept} {values}"),
            duplicate_of: Some(kept.clone()),
            jaccard,
            multiset_jaccard,
            near: None,
        }
    });
    let rejected: Vec<RejectedRow> = rejected.collect();
    let summary = summary(step, kept, rejected.len() as i64, (counts, against));
    let summary = typed_rows::table(session, &step.ports[3].table.stored(), [summary])?;
    Ok(Decided { rejected, clusters, summary })
}

/// The one row of the port `summary`. Rows near to another table are not among the `counts`.
fn summary(
    step: &BoundDedup,
    kept: &HashMap<u32, (usize, i64)>,
    duplicates: i64,
    (counts, against): (&CorpusCounts, Option<AgainstCounts>),
) -> BTreeMap<&'static str, Value> {
    let near = against.map_or(0, |against| against.near as i64);
    let rows = counts.rows as i64 + near;
    let percent = |part: i64| if rows == 0 { 0.0 } else { 100.0 * part as f64 / rows as f64 };
    let mut row = BTreeMap::from([
        ("rows", json!(rows)),
        ("duplicates", json!(duplicates)),
        ("percent", json!(percent(duplicates))),
        ("kept", json!(rows - duplicates - near)),
        ("clusters", json!(kept.len())),
        ("largest_cluster", json!(kept.values().map(|(_, size)| *size).max().unwrap_or(0))),
        ("compared", json!(counts.documents as i64 + near)),
        ("too_short", json!(counts.too_short)),
        ("nulls", json!(counts.nulls)),
        ("expected_recall", json!(step.method().1)),
    ]);
    if let Some(against) = against {
        row.extend([
            ("near", json!(near)),
            ("near_percent", json!(percent(near))),
            ("near_similar", json!(against.similar)),
            ("against_rows", json!(against.rows)),
            ("against_compared", json!(against.compared)),
            ("against_too_short", json!(against.too_short)),
            ("against_nulls", json!(against.nulls)),
        ]);
    }
    row
}
