//! `plan`, `check`, `explain`, `graph`: what a workflow is and what a run would do.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::allow::{AllowArgs, trust};
use super::context::{
    Exit, Surveyed, fail, fail_unknown, load, plan_file, print, print_json, show_diagnostics,
};
use super::recall::LookArgs;
use super::{Format, Settings, StoreArgs, WorkflowArgs};
use crate::code::Code;
use crate::event::StepStatus;
use crate::plan::{Locking, Plan};
use crate::report::{GraphEdge, GraphFormat, GraphNode, StepGraph, count, render_graph};
use crate::runner::{Forecast, StepState};
use crate::visible::{escape, escape_json};

#[derive(Args)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    workflow: WorkflowArgs,
    /// How to answer.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(crate) async fn plan(args: PlanArgs) -> Exit {
    let surveyed = match Surveyed::load(&args.workflow, args.format).await {
        Ok(surveyed) => surveyed,
        Err(exit) => return exit,
    };
    let plan = &surveyed.plan;
    if args.format == Format::Json {
        let steps: Vec<Value> = plan
            .steps
            .iter()
            .zip(&surveyed.states)
            .map(|(step, state)| {
                let (word, reason, detail) = words(plan, state);
                json!({"step": step.name, "op": step.operator.descriptor().name, "state": word,
                    "reason": reason, "detail": detail, "rows": rows(state)})
            })
            .collect();
        let printed = print_json(&json!({"event": "plan", "workflow": plan.name, "steps": steps}));
        return lacking(&surveyed, args.format, printed);
    }
    let wide = plan.steps.iter().map(|s| s.name.chars().count()).max().unwrap_or(0).min(40);
    let mut text = String::new();
    for (step, state) in plan.steps.iter().zip(&surveyed.states) {
        let (word, reason, detail) = words(plan, state);
        let rows = rows(state).map(|n| format!("{} rows", count(n))).unwrap_or_default();
        let name = escape(&step.name);
        let line = format!("{name:wide$}  {word:5}  {rows:>14}  {reason}");
        let _ = writeln!(text, "{}", line.trim_end());
        if let Some(detail) = detail {
            let _ = writeln!(text, "{:wide$}  {}", "", escape(&detail));
        }
    }
    let hits = surveyed.states.iter().filter(|s| matches!(s.forecast, Forecast::Hit)).count();
    let _ = writeln!(text, "{hits} of {} steps are stored", plan.steps.len());
    lacking(&surveyed, args.format, print(&text))
}

/// Shows what a run would not find; `printed` is the exit if that is nothing.
fn lacking(surveyed: &Surveyed, format: Format, printed: Exit) -> Exit {
    let lacking = surveyed.lacking();
    show_diagnostics(&lacking, format);
    if lacking.is_empty() { printed } else { Exit::Invalid }
}

fn rows(state: &StepState) -> Option<u64> {
    state.manifest.as_ref().and_then(|m| m.ports.first()).map(|p| p.rows)
}

/// A state as `hit`, `run`, `wait` or `error`, the reason's code, the details.
fn words(plan: &Plan, state: &StepState) -> (&'static str, &'static str, Option<String>) {
    match &state.forecast {
        Forecast::Hit => ("hit", "", None),
        Forecast::Runs { reason, detail } => ("run", reason.code(), detail.clone()),
        Forecast::Waits { on } => {
            let names: Vec<&str> = on.iter().map(|i| plan.steps[*i].name.as_str()).collect();
            let detail = format!("runs if the result of {} changes", names.join(", "));
            ("wait", "", Some(detail))
        }
        Forecast::Broken(why) => ("error", "", Some(why.clone())),
    }
}

#[derive(Args)]
pub(crate) struct CheckArgs {
    /// The workflow files.
    #[arg(required_unless_present = "explain")]
    files: Vec<PathBuf>,
    /// Explain a diagnostic code, such as `unknown-column`, instead.
    #[arg(long, value_name = "CODE", conflicts_with_all = ["files", "set"])]
    explain: Option<String>,
    /// Give a param another value than its default. Paths start in the current folder. May be
    /// repeated.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    set: Vec<String>,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    allow: AllowArgs,
    /// How to answer.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(crate) async fn check(args: CheckArgs) -> Exit {
    if let Some(code) = &args.explain {
        return explain_code(code, args.format);
    }
    let mut exit = Exit::Done;
    for file in &args.files {
        let consent = trust(file, &args.set, &args.allow, None);
        let (set, cache, out) = (Settings::typed(&args.set), &args.store.cache, Path::new("."));
        let planned = plan_file(file, set, cache, Locking::Pinned, consent, out).await;
        let (plan, diagnostics) = match planned {
            Ok(planned) => planned,
            Err(exit) => return exit,
        };
        show_diagnostics(&diagnostics, args.format);
        match plan {
            Some(plan) if args.format == Format::Human => {
                let file = escape(&file.display().to_string());
                print(&format!("{file}: ok, {} steps\n", plan.steps.len()));
            }
            Some(_) => {}
            None => {
                let hidden = diagnostics.dropped();
                if hidden > 0 {
                    fail(&format!("{hidden} more problems were not shown"), Exit::Invalid);
                }
                exit = Exit::Invalid;
            }
        }
    }
    exit
}

/// Prints what a diagnostic code stands for.
fn explain_code(name: &str, format: Format) -> Exit {
    let Some(code) = Code::named(name) else {
        let message = format!("there is no diagnostic code `{name}`");
        return fail_unknown(&message, name, Code::all().map(Code::name), "the codes are");
    };
    let (title, explanation) = (code.title(), code.explanation());
    match format {
        Format::Human => print(&format!("{code}: {title}\n\n{explanation}\n")),
        Format::Json => print_json(&json!({
            "event": "explanation", "code": code.name(), "title": title,
            "explanation": explanation,
        })),
    }
}

#[derive(Args)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    look: LookArgs,
    /// The step.
    step: String,
    /// How to answer.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(crate) async fn explain(args: ExplainArgs) -> Exit {
    let surveyed = match Surveyed::look(&args.look, args.format).await {
        Ok(surveyed) => surveyed,
        Err(exit) => return exit,
    };
    let (at, _) = match surveyed.find(&args.step) {
        Ok(place) => place,
        Err(exit) => return exit,
    };
    let (step, state) = (&surveyed.plan.steps[at], &surveyed.states[at]);
    let (word, reason, detail) = words(&surveyed.plan, state);
    let files = step.step.side_files().unwrap_or_default();
    let key = state.preimage.as_ref().map(|p| p.key());
    if args.format == Format::Json {
        return print_json(&json!({
            "event": "explain", "step": step.name, "op": step.operator.descriptor().name,
            "version": step.operator.descriptor().version, "state": word, "reason": reason,
            "detail": detail, "key": key, "preimage": state.preimage,
            "files": files, "manifest": state.manifest.as_deref(),
        }));
    }
    let mut text = String::new();
    let operator = step.operator.descriptor();
    let name = escape(&step.name);
    let _ = writeln!(text, "{name}: op {} version {}", operator.name, operator.version);
    let reason = if reason.is_empty() { String::new() } else { format!(", {reason}") };
    let _ = writeln!(text, "state     {word}{reason}");
    for line in detail.iter().flat_map(|d| d.split("; ")) {
        let _ = writeln!(text, "          {}", escape(line));
    }
    if let Some(key) = key {
        let _ = writeln!(text, "key       {key}");
    }
    let _ = writeln!(text, "arguments");
    for (name, value) in step.step.args().as_object().into_iter().flatten() {
        let written = step.arguments.as_ref().is_some_and(|a| a.get(name).is_some());
        let place = if written { step.place_of(name) } else { "default".to_string() };
        let (name, place) = (escape(name), escape(&place));
        let value = escape_json(value.to_string());
        let _ = writeln!(text, "  {name}: {value}  ({place})");
    }
    for input in &step.inputs {
        let digest = state.preimage.as_ref().and_then(|p| p.inputs.get(&input.port));
        let digest = digest.map_or("not computed yet".to_string(), |d| d.short());
        let from: Vec<String> = input
            .tables
            .iter()
            .map(|t| format!("{}.{}", escape(&surveyed.plan.steps[t.step].name), t.port))
            .collect();
        let _ = writeln!(text, "input     {}: {} from {}", input.port, digest, from.join(", "));
        if let crate::operator::Reads::Columns(names) = step.step.reads(&input.port) {
            let _ = writeln!(text, "          reads {}", escape(&names.join(", ")));
        }
    }
    for file in &files {
        let name = escape(&file.name);
        let _ = writeln!(text, "file      {name}: {}", file.digest.short());
    }
    if let Some(manifest) = &state.manifest {
        let _ = writeln!(
            text,
            "computed  {} in {:.2} s ({} rows computed, {} reused)",
            manifest.created,
            manifest.seconds,
            count(manifest.computed_rows),
            count(manifest.reused_rows)
        );
        for port in &manifest.ports {
            let rows = count(port.rows);
            let _ = writeln!(text, "port      {}: {rows} rows, {}", port.port, port.digest);
        }
    }
    print(&text)
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Picture {
    /// For Markdown.
    #[default]
    Mermaid,
    /// For Graphviz.
    Dot,
    /// A picture.
    Svg,
}

#[derive(Args)]
pub(crate) struct GraphArgs {
    #[command(flatten)]
    workflow: WorkflowArgs,
    /// The format of the graph.
    #[arg(long, value_enum, default_value_t)]
    format: Picture,
}

pub(crate) async fn graph(args: GraphArgs) -> Exit {
    let plan = match load(&args.workflow, Format::Human, Locking::Pinned).await {
        Ok(plan) => plan,
        Err(exit) => return exit,
    };
    let nodes = plan
        .steps
        .iter()
        .map(|step| GraphNode {
            name: step.name.clone(),
            label: step.operator.descriptor().name.to_string(),
            state: None::<StepStatus>,
        })
        .collect();
    let mut edges = Vec::new();
    for (to, step) in plan.steps.iter().enumerate() {
        for table in step.inputs.iter().flat_map(|input| &input.tables) {
            let label = (table.port != crate::operator::MAIN).then(|| table.port.to_string());
            edges.push(GraphEdge { from: table.step, to, label });
        }
    }
    let format = match args.format {
        Picture::Mermaid => GraphFormat::Mermaid,
        Picture::Dot => GraphFormat::Dot,
        Picture::Svg => GraphFormat::Svg,
    };
    print(&render_graph(&StepGraph { title: plan.name.clone(), nodes, edges }, format))
}
