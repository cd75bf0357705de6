//! The page of all steps.

use axum::extract::State;
use galeras_pages::view::steps_page;
use serde_json::{Value, json};

use super::answer::{Answered, Served, address, html};
use super::study::Snapshot;
use crate::table_name;
use galeras_engine::runner::Forecast;
use galeras_operator::MAIN;
use galeras_operator::event::StepStatus;

pub(super) async fn steps(State(served): State<Served>) -> Answered {
    let snapshot = served.study.snapshot().await?;
    let running = snapshot.runs.first().filter(|run| run.status.is_none());
    let status = match snapshot.runs.first() {
        None => "No run of this workflow is recorded yet.".to_string(),
        Some(run) => match run.status {
            None => format!("A run that started at {} still runs, or was killed.", run.started),
            Some(_) => format!(
                "The last run, {}, began {} and ended: {}.",
                run.id,
                run.started,
                crate::runs::outcome(run)
            ),
        },
    };
    let complete = snapshot.surveyed.states.iter().all(|state| state.forecast.is_hit());
    let command = if complete { String::new() } else { snapshot.surveyed.command() };
    let steps = 0..snapshot.surveyed.plan.steps.len();
    let steps: Vec<Value> = steps.map(|at| line(&snapshot, at, running.is_some())).collect();
    let page = json!({"status": status, "running": running.is_some(), "events": snapshot.events(),
        "problem": snapshot.problem, "command": command, "steps": steps});
    Ok(html(steps_page(&served.frame(&snapshot, "/"), &page)?))
}

/// A step for the template: its state as a class of the style sheet and in words, its tables.
fn line(snapshot: &Snapshot, at: usize, running: bool) -> Value {
    let (step, state) = (&snapshot.surveyed.plan.steps[at], &snapshot.surveyed.states[at]);
    let last = snapshot.runs.first().and_then(|run| run.steps.iter().find(|s| s.step == step.name));
    let failed = last.filter(|last| last.status == StepStatus::Failed);
    let (class, text, detail) = match &state.forecast {
        Forecast::Hit | Forecast::RemoteHit => ("done", "done", String::new()),
        Forecast::Broken(why) => ("failed", "cannot run", why.clone()),
        Forecast::Waits { on } => {
            let names: Vec<&str> =
                on.iter().map(|at| snapshot.surveyed.plan.steps[*at].name.as_str()).collect();
            ("missing", "waits", format!("for {}", names.join(", ")))
        }
        Forecast::Runs { reason, detail } => match failed {
            Some(failed) if !running => {
                ("failed", "failed", failed.detail.clone().unwrap_or_default())
            }
            _ if running => ("running", "runs or is next", String::new()),
            _ => ("missing", "would run", {
                let detail = detail.as_ref().map(|detail| format!(": {detail}"));
                format!("{}{}", reason.code(), detail.unwrap_or_default())
            }),
        },
    };
    let ports = step.step.ports().iter().map(|port| {
        let name = table_name(&step.name, port.name);
        let rows = state.manifest.as_ref().and_then(|m| m.port(port.name)).map(|port| port.rows);
        let address = match rows {
            Some(_) => address("/table", &[("name", &name)]),
            None => String::new(),
        };
        let name = if port.name == MAIN { "rows" } else { port.name };
        json!({"name": name, "address": address, "rows": rows})
    });
    json!({"name": step.name, "operator": step.operator.descriptor().name, "state": class,
        "state_text": text, "detail": detail, "ports": ports.collect::<Vec<Value>>()})
}
