//! The runs of the workflow, and the differences between two of them.

use axum::extract::{Query, State};
use galeras_pages::model::{TableBlock, TableColumn};
use galeras_pages::view::tables_page;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::{Answered, Refusal, Served, html};
use crate::diff_tables::{PortDiff, compare_ports};
use crate::runs::{
    StepPair, Verdict, changed_params, outcome, params_text, results_digest, step_pairs, value_text,
};
use galeras_store::RunRecord;

const LISTED: usize = 100;

const EXAMPLES: usize = 20;

pub(super) async fn runs(State(served): State<Served>) -> Answered {
    let snapshot = served.study.snapshot().await?;
    let listed: Vec<&RunRecord> = snapshot.runs.iter().take(LISTED).collect();
    let rows = listed.iter().map(|run| {
        vec![
            json!(run.id),
            json!(run.started),
            run.status.map_or(Value::Null, |_| json!(run.seconds)),
            json!(outcome(run)),
            json!(run.steps.len()),
            json!(results_digest(run).map(|digest| digest.short())),
            json!(params_text(&run.params)),
        ]
    });
    let names = ["run", "started", "took", "outcome", "steps", "results", "params"];
    let table =
        TableBlock { total: Some(snapshot.runs.len() as u64), ..block("", &names, rows.collect()) };
    let recorded = listed.iter().filter(|run| !run.steps.is_empty());
    let mut choices: Vec<String> = recorded.map(|run| run.id.clone()).collect();
    if choices.len() < 2 {
        choices.clear();
    }
    let (text, tables) = match listed.is_empty() {
        true => ("No run of this workflow is recorded yet.", Vec::new()),
        false => ("Two runs with the same results came to the same tables.", vec![table]),
    };
    let (frame, events) = (served.frame(&snapshot, "/runs"), snapshot.events());
    Ok(html(tables_page(&frame, "Runs", text, &tables, &choices, &events)?))
}

#[derive(Deserialize)]
pub(super) struct RunPairQuery {
    old: String,
    new: String,
}

pub(super) async fn diff(
    State(served): State<Served>,
    Query(query): Query<RunPairQuery>,
) -> Answered {
    let snapshot = served.study.snapshot().await?;
    let find = |id: &str| {
        let found = snapshot.runs.iter().find(|run| run.id == id);
        found.ok_or_else(|| Refusal::missing("There is no such run of this workflow."))
    };
    let (old, new) = (find(&query.old)?, find(&query.new)?);
    let _reading = served.study.reading().await?;
    let pairs = step_pairs(old, new, &[]);
    let steps = pairs.iter().map(|pair| {
        let rows = pair.port(galeras_operator::MAIN).map(|port| port.map(|port| port.rows));
        vec![
            json!(pair.name),
            json!(pair.verdict().name()),
            json!(rows[0]),
            json!(rows[1]),
            json!(pair.new.and_then(|step| step.reason).map(|reason| reason.code())),
            json!(pair.new.and_then(|step| step.detail.clone())),
        ]
    });
    let names = ["step", "verdict", "rows of the earlier", "rows of the later", "reason", "detail"];
    let mut tables = vec![block("Steps", &names, steps.collect())];
    let params = changed_params(old, new);
    if !params.is_empty() {
        let rows =
            params.into_iter().map(|(name, old, new)| vec![json!(name), json!(old), json!(new)]);
        tables.push(block("Params", &["param", "earlier", "later"], rows.collect()));
    }
    for pair in pairs.iter().filter(|pair| pair.verdict() == Verdict::Differs) {
        for port in pair.differing_ports() {
            let found = compare_ports(&served.study.store, pair, &port, EXAMPLES).await;
            match found {
                Ok(found) => tables.push(port_table(pair, &found)),
                Err(_) => tables.push(TableBlock {
                    title: format!("{}.{port}", pair.name),
                    caption: "Its stored tables cannot be read any more.".into(),
                    ..TableBlock::default()
                }),
            }
        }
    }
    let text = format!("From {} ({}) to {} ({}).", old.id, outcome(old), new.id, outcome(new));
    let frame = served.frame(&snapshot, "/runs");
    Ok(html(tables_page(&frame, "Two runs", &text, &tables, &[], "")?))
}

/// The differences between two tables: numbers in the caption, and examples of changed rows.
fn port_table(pair: &StepPair<'_>, diff: &PortDiff) -> TableBlock {
    let title = format!("{}.{}", pair.name, diff.port);
    let mut said = Vec::new();
    for (what, names) in
        [("Columns added", &diff.added_columns), ("Columns gone", &diff.removed_columns)]
    {
        if !names.is_empty() {
            said.push(format!("{what}: {}.", names.join(", ")));
        }
    }
    for (name, old, new) in &diff.retyped {
        said.push(format!("{name} was {old} and is {new}."));
    }
    let rows = match &diff.rows {
        Err(why) => {
            said.push(format!("Rows are not compared: {why}."));
            return TableBlock { caption: said.join(" "), ..block(&title, &[], Vec::new()) };
        }
        Ok(rows) => rows,
    };
    said.push(format!(
        "{} rows are new, {} gone, {} changed, {} the same.",
        rows.added, rows.removed, rows.changed, rows.same
    ));
    let examples = rows.examples.iter().flat_map(|example| {
        let key: Vec<String> = example.key.values().map(value_text).collect();
        let key = key.join(", ");
        example.old.iter().map(move |(name, old)| {
            let new = example.new.get(name).cloned().unwrap_or(Value::Null);
            vec![json!(key), json!(name), old.clone(), new]
        })
    });
    let table = block(&title, &["row", "column", "earlier", "later"], examples.collect());
    TableBlock { caption: said.join(" "), ..table }
}

pub(super) fn block(title: &str, names: &[&str], rows: Vec<Vec<Value>>) -> TableBlock {
    let column = |name: &&str| TableColumn { name: name.to_string(), ..TableColumn::default() };
    TableBlock {
        title: title.to_string(),
        columns: names.iter().map(column).collect(),
        rows,
        file_name: title.replace(['.', '[', ']', '/'], "_"),
        ..TableBlock::default()
    }
}
