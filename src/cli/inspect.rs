//! `plan`, `check`, `explain`, `graph`: show a workflow and the effects of a run.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::context::{
    Exit, Failure, LookArgs, Surveyed, answer, fail_unknown, load, load_with_remote, look,
    named_step, note, plan_file, print, print_json, show_diagnostics,
};
use super::remote::RemoteArgs;
use super::resources::{EngineArgs, MemoryArgs};
use super::run::{OutArgs, requests_of_run};
use super::{Format, Settings, StoreArgs, WorkflowArgs};
use galeras_base::terminal_escape::{escape, escape_json, shell_word};
use galeras_chat::Usd;
use galeras_display::{GraphFormat, bytes, count, limit_text, render_graph, requests_text};
use galeras_engine::plan::{Plan, PlannedStep};
use galeras_engine::runner::{Forecast, StepState, limit_states, output_conflicts, step_requests};
use galeras_engine::trust::{AccessRequest, Allowance, phrase, report_request, requests};
use galeras_operator::NoConsent;
use galeras_operator::event::{LimitState, StepRequests};
use galeras_study::step_graph;
use galeras_workflow::code::Code;
use galeras_workflow::{Diagnostics, Node};

#[derive(Args)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    workflow: WorkflowArgs,
    #[command(flatten)]
    remote: RemoteArgs,
    #[command(flatten)]
    memory: MemoryArgs,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    out: OutArgs,
    /// How to answer.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(crate) async fn plan(args: PlanArgs) -> Result<Exit, Failure> {
    let out = &args.out.folder;
    let (workflow, format) = (&args.workflow, args.format);
    let (surveyed, _) = load_with_remote(workflow, format, out, &args.remote, true).await?;
    let plan = &surveyed.plan;
    let asks = asks(&args.workflow, &surveyed, out);
    let asked = PlannedRequests::of(&surveyed).await?;
    let mut refused = surveyed.lacking();
    let all: Vec<usize> = (0..plan.steps.len()).collect();
    refused.extend(output_conflicts(plan, &surveyed.store, &all, &args.out.options()).await?);
    if args.format == Format::Json {
        let steps: Vec<Value> = plan
            .steps
            .iter()
            .zip(&surveyed.states)
            .zip(&asked.steps)
            .map(|((step, state), requests)| {
                let (word, reason, detail) = words(plan, state);
                json!({"step": step.name, "op": step.operator.descriptor().name, "state": word,
                    "reason": reason, "detail": detail, "rows": rows(state),
                    "requests": requests, "place": args.engine.place(&*step.step)})
            })
            .collect();
        let ask = |request: &AccessRequest| {
            json!({"by": request.by, "does": phrase(&request.access),
                "allow": Allowance::of(&request.access).to_string()})
        };
        let asks: Vec<Value> = asks.iter().map(ask).collect();
        print_json(&json!({"event": "plan", "workflow": plan.name, "steps": steps,
            "limits": asked.limits, "memory": args.memory.bytes(), "asks": asks}))?;
        return refusing(&refused, args.format);
    }
    let wide = plan.steps.iter().map(|s| s.name.chars().count()).max().unwrap_or(0).min(40);
    let mut text = String::new();
    for (at, (step, state)) in plan.steps.iter().zip(&surveyed.states).enumerate() {
        let (word, reason, detail) = words(plan, state);
        let rows = rows(state).map(|n| format!("{} rows", count(n))).unwrap_or_default();
        let name = escape(&step.name);
        let line = format!("{name:wide$}  {word:5}  {rows:>14}  {reason}");
        let _ = writeln!(text, "{}", line.trim_end());
        if let Some(detail) = detail {
            let _ = writeln!(text, "{:wide$}  {}", "", escape(&detail));
        }
        if let Some(line) = asked.line(&surveyed, at) {
            let _ = writeln!(text, "{:wide$}  {line}", "");
        }
    }
    for line in asked.summary() {
        let _ = writeln!(text, "{line}");
    }
    let hits = surveyed.states.iter().filter(|s| s.forecast.is_hit()).count();
    let (all, cache) = (plan.steps.len(), workflow.cache()?);
    let _ = writeln!(text, "{hits} of {all} steps are stored in {}", escape(&cache));
    if hits < plan.steps.len() {
        let memory = bytes(args.memory.bytes() as u64);
        let _ = writeln!(text, "a run would take up to about {memory} of memory (--memory)");
    }
    if let Some(address) = args.engine.address() {
        let _ = writeln!(text, "who would do the steps, with the cluster at {}:", escape(address));
        for step in &plan.steps {
            let (name, place) = (escape(&step.name), args.engine.place(&*step.step));
            let _ = writeln!(text, "  {name:wide$}  {}", place.unwrap_or_default());
        }
    }
    if !asks.is_empty() {
        text.push_str("a run would ask for your consent to this:\n");
    }
    for request in &asks {
        let (by, flag) = (request.by.join(", "), Allowance::of(&request.access).to_string());
        let (what, by, flag) = (phrase(&request.access), escape(&by), shell_word(&flag));
        let _ = writeln!(text, "  {by} {what}  (--allow {flag})");
    }
    print(&text)?;
    refusing(&refused, args.format)
}

/// The access that a run needs and the user has not yet agreed to.
fn asks(args: &WorkflowArgs, surveyed: &Surveyed, out: &Path) -> Vec<AccessRequest> {
    let (plan, states) = (&surveyed.plan, &surveyed.states);
    let wanted: Vec<usize> = (0..plan.steps.len()).collect();
    let misses = |at: &usize| !states[*at].forecast.is_hit();
    let trust = args.trust(Some(out));
    let mut all = requests(plan, &wanted, Some(out), &*trust);
    all.extend(report_request(plan, out));
    trust.open(requests_of_run(plan, &wanted, misses, all, &trust))
}

/// Shows why a run would be refused, if so.
fn refusing(refused: &Diagnostics, format: Format) -> Result<Exit, Failure> {
    show_diagnostics(refused, format);
    Ok(if refused.is_empty() { Exit::Done } else { Exit::Invalid })
}

fn rows(state: &StepState) -> Option<u64> {
    state.manifest.as_ref().and_then(|m| m.ports.first()).map(|p| p.rows)
}

/// A state as `hit`, `run`, `wait` or `error`, the reason's code, the details.
fn words(plan: &Plan, state: &StepState) -> (&'static str, &'static str, Option<String>) {
    match &state.forecast {
        Forecast::Hit => ("hit", "", None),
        Forecast::RemoteHit => ("hit", "", Some("in the remote".into())),
        Forecast::Runs { reason, detail } => ("run", reason.code(), detail.clone()),
        Forecast::Waits { on } => {
            let names: Vec<&str> = on.iter().map(|i| plan.steps[*i].name.as_str()).collect();
            let detail = format!("runs if the result of {} changes", names.join(", "));
            ("wait", "", Some(detail))
        }
        Forecast::Broken(why) => ("error", "", Some(why.clone())),
    }
}

/// The requests that the steps of a plan would send.
struct PlannedRequests {
    /// By position in the plan; `None` for steps without requests, or with a stored result.
    steps: Vec<Option<StepRequests>>,
    limits: Vec<LimitState>,
}

impl PlannedRequests {
    /// Reads the inputs of paid steps and the answers to them. Sends no request.
    async fn of(surveyed: &Surveyed) -> Result<Self, Failure> {
        let (plan, store, done) = (&surveyed.plan, &surveyed.store, surveyed.done());
        let mut steps = Vec::with_capacity(plan.steps.len());
        let elsewhere = |step: usize| matches!(surveyed.states[step].forecast, Forecast::RemoteHit);
        for (at, state) in surveyed.states.iter().enumerate() {
            steps.push(match state.forecast {
                Forecast::Hit | Forecast::RemoteHit | Forecast::Broken(_) => None,
                // Tables in another store are not fetched for this.
                _ if plan.steps[at].upstream().any(elsewhere) => None,
                Forecast::Runs { .. } | Forecast::Waits { .. } => {
                    step_requests(plan, store, at, &done, false).await?
                }
            });
        }
        let limits = limit_states(plan, |at| steps[at].is_some())?;
        Ok(Self { limits, steps })
    }

    fn line(&self, surveyed: &Surveyed, at: usize) -> Option<String> {
        let asked = self.steps[at].as_ref()?;
        let text = requests_text(asked);
        let line = match &surveyed.states[at] {
            StepState { forecast: Forecast::Waits { on }, .. } => {
                let names: Vec<String> =
                    on.iter().map(|at| format!("`{}`", surveyed.plan.steps[*at].name)).collect();
                let have = if on.len() == 1 { "has" } else { "have" };
                let wait = format!("{} {have} run", names.join(", "));
                match text.strip_suffix("is not known yet") {
                    Some(text) => format!("{text}is known when {wait}"),
                    None => text,
                }
            }
            _ => text,
        };
        Some(escape(&line))
    }

    fn summary(&self) -> Vec<String> {
        let asked: Vec<&StepRequests> = self.steps.iter().flatten().collect();
        let known: Vec<&StepRequests> =
            asked.iter().copied().filter(|asked| asked.requests.is_some()).collect();
        let mut lines = Vec::new();
        if asked.len() > 1 && !known.is_empty() {
            let requests = known.iter().filter_map(|asked| asked.requests);
            let requests = count(requests.fold(0, u64::saturating_add));
            let cost = known.iter().try_fold(Usd::ZERO, |sum, asked| Some(sum.plus(asked.usd?)));
            let cost = cost.map(|usd| format!(", at most {}", usd.rounded_up()));
            let more = match asked.len() - known.len() {
                0 => String::new(),
                n => format!(", without those of {} steps that are not known yet", count(n as u64)),
            };
            lines.push(format!("{requests} requests in all{}{more}", cost.unwrap_or_default()));
        }
        let limits = self.limits.iter().filter_map(limit_text);
        lines.extend(limits.map(|line| escape(&line)));
        lines
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
    /// How to answer.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(crate) async fn check(args: CheckArgs) -> Result<Exit, Failure> {
    if let Some(code) = &args.explain {
        return explain_code(code, args.format);
    }
    let mut exit = Exit::Done;
    for file in &args.files {
        let (set, cache) = (Settings::typed(&args.set), args.store.of(file)?);
        let planned = plan_file(file, set, &cache, Arc::new(NoConsent));
        let (plan, mut diagnostics) = planned.await?;
        diagnostics.warn_instead(
            Code::NotAllowed,
            "`check` sends nothing, so this file is not fetched, and its columns are not checked",
            "`galeras plan` fetches the file and checks the rest",
        );
        show_diagnostics(&diagnostics, args.format);
        match plan {
            Some(plan) if args.format == Format::Human => {
                let file = escape(&file.display().to_string());
                print(&format!("{file}: ok, {} steps\n", plan.steps.len()))?;
            }
            Some(_) => {}
            None if !diagnostics.has_errors() => {
                note(&format!("{}: no mistakes found so far", escape(&file.display().to_string())));
            }
            None => {
                let hidden = diagnostics.dropped();
                if hidden > 0 {
                    note(&format!("error: {hidden} more problems were not shown"));
                }
                exit = Exit::Invalid;
            }
        }
    }
    Ok(exit)
}

fn explain_code(name: &str, format: Format) -> Result<Exit, Failure> {
    let Some(code) = Code::named(name) else {
        let message = format!("there is no diagnostic code `{name}`");
        return Err(fail_unknown(&message, name, Code::all().map(Code::name), "the codes are"));
    };
    let (title, explanation) = (code.title(), code.explanation());
    answer(
        format,
        json!({"event": "explanation", "code": code.name(), "title": title,
            "explanation": explanation}),
        &format!("{code}: {title}\n\n{explanation}\n"),
    )
}

#[derive(Args)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    look: LookArgs,
    /// The step; of a matrix step a cell `gen[seed=1]`, or all of them `gen[*]`.
    step: Option<String>,
    /// How to answer.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(crate) async fn explain(args: ExplainArgs) -> Result<Exit, Failure> {
    let surveyed = look(&args.look, args.format).await?;
    let input = surveyed.table(named_step(&surveyed.plan, args.step.as_deref())?)?;
    for (place, table) in input.tables.iter().enumerate() {
        if place > 0 && args.format == Format::Human {
            print("\n")?;
        }
        explain_step(&surveyed, table.step, args.format)?;
    }
    Ok(Exit::Done)
}

fn explain_step(surveyed: &Surveyed, at: usize, format: Format) -> Result<Exit, Failure> {
    let (step, state) = (&surveyed.plan.steps[at], &surveyed.states[at]);
    let (word, reason, detail) = words(&surveyed.plan, state);
    let files = step.step.side_files().unwrap_or_default();
    let key = state.preimage.as_ref().map(|p| p.key());
    if format == Format::Json {
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
    for (name, value, place) in arguments(step) {
        let (name, place) = (escape(&name), escape(&place));
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
        if let galeras_operator::Reads::Columns(names) = step.step.reads(&input.port) {
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

/// The arguments of a step with the place of each: as the workflow writes them, then the defaults in
/// the same form, then those of the key that are derived from them or from files.
fn arguments(step: &PlannedStep) -> Vec<(String, Value, String)> {
    let mut arguments = Vec::new();
    for (key, value) in step.arguments.iter().filter_map(Node::as_map).flatten() {
        let name = key.as_str().unwrap_or_default().to_string();
        let place = step.place_of(&name);
        arguments.push((name, value.to_json(), place));
    }
    let is_written = |name: &str| step.arguments.as_ref().is_some_and(|a| a.get(name).is_some());
    let schema = (step.operator.descriptor().args_schema)();
    let known = schema["properties"].as_object();
    let in_key = step.step.args();
    for (name, about) in known.into_iter().flatten().filter(|(name, _)| !is_written(name)) {
        let default = about.get("default").filter(|default| !default.is_null());
        if let Some(value) = default.or_else(|| in_key.get(name)) {
            arguments.push((name.clone(), value.clone(), "default".to_string()));
        }
    }
    let is_known = |name: &str| known.is_some_and(|known| known.contains_key(name));
    for (name, value) in in_key.as_object().into_iter().flatten() {
        if !is_known(name) {
            arguments.push((name.clone(), value.clone(), "derived".to_string()));
        }
    }
    arguments
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
    /// A line for each step: operator, state, what it reads.
    Text,
}

#[derive(Args)]
pub(crate) struct GraphArgs {
    #[command(flatten)]
    workflow: WorkflowArgs,
    /// Draw each cell of a matrix step separately.
    #[arg(long)]
    cells: bool,
    /// The format of the graph.
    #[arg(long, value_enum, default_value_t)]
    format: Picture,
}

pub(crate) async fn graph(args: GraphArgs) -> Result<Exit, Failure> {
    let surveyed = load(&args.workflow, Format::Human).await?;
    let format = match args.format {
        Picture::Mermaid => GraphFormat::Mermaid,
        Picture::Dot => GraphFormat::Dot,
        Picture::Svg => GraphFormat::Svg,
        Picture::Text => GraphFormat::Text,
    };
    print(&render_graph(&step_graph(&surveyed, args.cells), format))
}
