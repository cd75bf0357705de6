//! `ops` and `schema`: the documentation that derives from the operators, and the contracts of the
//! published tables: their columns as the shipped workflows give them.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};

use super::context::{Exit, Failure, fail, fail_unknown, failed, print, print_json};
use crate::registry::REGISTRY;
use galeras_base::scratch::ScratchFolder;
use galeras_engine::plan::{Locking, PlanSettings, instead_of, plan};
use galeras_operator::table_digest::type_name;
use galeras_operator::{Descriptor, Effect, column_description, column_unit};
use galeras_study::runs::value_text;
use galeras_workflow::json_schema;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum OpsFormat {
    /// For a terminal.
    #[default]
    Human,
    /// For Markdown: the table of all operators, or an operator's page.
    Markdown,
    /// One JSON object per operator and line.
    Json,
}

#[derive(Args)]
pub(crate) struct OpsArgs {
    /// The operator to document.
    name: Option<String>,
    /// How to answer.
    #[arg(long, value_enum, default_value_t)]
    format: OpsFormat,
}

pub(crate) fn ops(args: &OpsArgs) -> Result<Exit, Failure> {
    let chosen: Vec<&Descriptor> = match &args.name {
        None => REGISTRY.iter().map(|o| o.descriptor()).collect(),
        Some(name) => match REGISTRY.get(name) {
            Some(operator) => vec![operator.descriptor()],
            None => return Err(unknown(name, REGISTRY.iter().map(|o| o.descriptor().name))),
        },
    };
    match (args.format, args.name.is_some()) {
        (OpsFormat::Json, _) => {
            for operator in chosen {
                print_json(&json!({
                    "name": operator.name, "version": operator.version,
                    "grain": operator.grain.name(), "effect": operator.effect.name(),
                    "summary": operator.summary(), "doc": operator.doc,
                    "args": (operator.args_schema)(),
                }))?;
            }
            Ok(Exit::Done)
        }
        (OpsFormat::Markdown, false) => print(&markdown_table()),
        (_, true) => print(&page(chosen[0])),
        (OpsFormat::Human, false) => {
            let mut text = String::new();
            for operator in chosen {
                let _ = writeln!(text, "{:9}  {}", operator.name, operator.summary());
            }
            text.push_str("\ngaleras ops NAME documents one of them.\n");
            print(&text)
        }
    }
}

fn markdown_table() -> String {
    let mut text = "| op | grain | what it does | arguments |\n|---|---|---|---|\n".to_string();
    for operator in REGISTRY.iter().map(|o| o.descriptor()) {
        let arguments: Vec<String> = arguments(operator).into_iter().map(|a| a.short()).collect();
        let grain = match operator.effect {
            Effect::Pure => operator.grain.name().to_string(),
            effect => format!("{}, {}", operator.grain.name(), effect.name()),
        };
        let _ = writeln!(
            text,
            "| `{}` | {grain} | {} | {} |",
            operator.name,
            operator.summary(),
            arguments.join(", ")
        );
    }
    text
}

/// An operator's page: its documentation, with the arguments after its example.
fn page(operator: &Descriptor) -> String {
    let mut list = String::new();
    for argument in arguments(operator) {
        let _ = writeln!(list, "- {}", argument.line());
    }
    // The example is the first section.
    let second = operator.doc.match_indices("\n## ").nth(1);
    let (example, rest) = operator.doc.split_at(second.map_or(operator.doc.len(), |(at, _)| at));
    format!(
        "# {}\n\n{example}\n## Arguments\n{list}{rest}\nGrain {}, effect {}, version {}.\n",
        operator.name,
        operator.grain.name(),
        operator.effect.name(),
        operator.version
    )
}

struct Argument {
    name: String,
    required: bool,
    kind: String,
    default: Option<Value>,
    description: String,
}

impl Argument {
    fn short(&self) -> String {
        match (&self.default, self.required) {
            (_, true) => format!("`{}!`", self.name),
            (Some(value), _)
                if !value.is_null() && ![json!([]), json!({}), json!("")].contains(value) =>
            {
                format!("`{}` ({})", self.name, value_text(value))
            }
            _ => format!("`{}`", self.name),
        }
    }

    fn line(&self) -> String {
        let mut line = format!("`{}`: {}", self.name, self.kind);
        if self.required {
            line.push_str(", required");
        } else if let Some(value) =
            self.default.as_ref().filter(|v| !v.is_null() && **v != json!(""))
        {
            let _ = write!(line, ", default {}", value_text(value));
        }
        format!("{line}. {}", self.description)
    }
}

fn arguments(operator: &Descriptor) -> Vec<Argument> {
    let schema = (operator.args_schema)();
    let none = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    properties
        .iter()
        .map(|(name, property)| Argument {
            name: name.clone(),
            required: required.iter().any(|r| r == name),
            kind: kind(property),
            default: property.get("default").cloned(),
            description: property
                .get("description")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .replace('\n', " "),
        })
        .collect()
}

/// The type of a property in one or two words.
fn kind(schema: &Value) -> String {
    for word in ["oneOf", "anyOf"] {
        if let Some(choices) = schema.get(word).and_then(Value::as_array) {
            let kinds: Vec<String> = choices
                .iter()
                .filter(|c| c.get("type").and_then(Value::as_str) != Some("null"))
                .map(kind)
                .collect();
            return kinds.join(" or ");
        }
    }
    if let Some(constant) = schema.get("const") {
        return value_text(constant);
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return values
            .iter()
            .filter(|v| !v.is_null())
            .map(value_text)
            .collect::<Vec<_>>()
            .join(" or ");
    }
    let name = match schema.get("type") {
        Some(Value::String(name)) => name.as_str(),
        Some(Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).find(|n| *n != "null").unwrap_or("any")
        }
        _ => return "any".into(),
    };
    match name {
        "array" => format!("list of {}", schema.get("items").map_or("any".into(), kind)),
        "object" => "mapping".into(),
        "integer" => "int".into(),
        "number" => "float".into(),
        other => other.into(),
    }
}

#[derive(Args)]
pub(crate) struct SchemaArgs {
    /// An operator, or a published table; workflow files if absent.
    name: Option<String>,
}

pub(crate) async fn schema(args: &SchemaArgs) -> Result<Exit, Failure> {
    let value = match &args.name {
        None => {
            let operators: Vec<(&str, &str, Value)> = REGISTRY
                .iter()
                .map(|o| o.descriptor())
                .map(|d| (d.name, d.summary(), (d.args_schema)()))
                .collect();
            json_schema(&operators)
        }
        Some(name) => match REGISTRY.get(name) {
            Some(operator) => (operator.descriptor().args_schema)(),
            None => match contract(name).await {
                Some(Ok(contract)) => contract,
                Some(Err(message)) => return Err(failed(message)),
                None => {
                    let known = REGISTRY.iter().map(|o| o.descriptor().name).chain(table_names());
                    return Err(unknown(name, known));
                }
            },
        },
    };
    let text = serde_json::to_string_pretty(&value).map_err(failed)?;
    print(&format!("{text}\n"))
}

fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Failure {
    let message = format!("there is no `{name}`");
    match instead_of(name) {
        Some(advice) => fail(format!("{message}; {advice}"), Exit::Invalid),
        None => fail_unknown(&message, name, known, "there are"),
    }
}

/// The workflow that ships with the program: `galeras init` writes it.
pub(super) const QUICKSTART: &str = include_str!("../../workflows/quickstart.yaml");

/// The workflows that make the published tables.
const WORKFLOWS: [(&str, &str); 2] = [
    ("collect.yaml", include_str!("../../workflows/collect.yaml")),
    ("galeras.yaml", include_str!("../../workflows/galeras.yaml")),
];

/// A published table: name, the workflow and its step that give it, its description.
const TABLES: &[(&str, &str, &str, &str)] = &[
    ("raw_data", "collect.yaml", "raw_data", "RawData: changed methods with their features."),
    ("random_cut", "galeras.yaml", "random_cut", "RandomCut: methods cut at a random place."),
    (
        "table_1",
        "galeras.yaml",
        "table_1",
        "Table I: the features of each testbed, mean ± deviation.",
    ),
];

pub(super) fn table_names() -> impl Iterator<Item = &'static str> {
    TABLES.iter().map(|t| t.0)
}

async fn contract(name: &str) -> Option<Result<Value, String>> {
    let (_, workflow, step, description) = TABLES.iter().find(|t| t.0 == name)?;
    Some(derive(name, workflow, step, description).await)
}

async fn derive(
    name: &str,
    workflow: &str,
    step: &str,
    description: &str,
) -> Result<Value, String> {
    let folder = ScratchFolder::create().map_err(|e| e.to_string())?;
    for (file, text) in WORKFLOWS {
        std::fs::write(folder.path().join(file), text).map_err(|e| e.to_string())?;
    }
    // The default of the param `ratings`.
    std::fs::create_dir(folder.path().join("ratings")).map_err(|e| e.to_string())?;
    let file = folder.path().join(workflow);
    let settings = PlanSettings {
        set: Vec::new(),
        working_dir: PathBuf::from("."),
        downloads: folder.path().to_path_buf(),
        out: folder.path().to_path_buf(),
        guarded: Vec::new(),
        lock: Locking::Ignored,
        ..PlanSettings::default()
    };
    let (plan, diagnostics) = plan(&file, REGISTRY, &settings).await;
    let plan = plan.ok_or_else(|| {
        diagnostics.iter().map(galeras_workflow::plain).collect::<Vec<_>>().join("\n")
    })?;
    let step = plan.step(step).ok_or("the shipped workflow has no such step")?;
    let table = &step.step.ports()[0].table;
    let mut columns = Map::new();
    let mut descriptions = Map::new();
    for field in table.schema.fields() {
        let mark = if field.is_nullable() { "" } else { "!" };
        // A contract tells a timestamp without its unit and zone.
        let kind = type_name(field.data_type());
        let kind = kind.split('[').next().unwrap_or(&kind);
        columns.insert(field.name().clone(), json!(format!("{kind}{mark}")));
        if let Some(text) = column_description(field) {
            let unit = column_unit(field).map(|u| format!(" [{u}]")).unwrap_or_default();
            descriptions.insert(field.name().clone(), json!(format!("{text}{unit}")));
        }
    }
    Ok(json!({
        "name": name, "description": description, "key": table.key, "columns": columns,
        "descriptions": descriptions,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use galeras_operator::{ARGUMENT_LANGUAGE, Grain};
    use galeras_workflow::Language;

    /// The documented grain belongs to a type of step; this is the grain of the documented
    /// example's step.
    #[tokio::test]
    async fn documented_grains_are_those_of_bound_steps() {
        for operator in REGISTRY.iter().map(|o| o.descriptor()) {
            let folder = tempfile::tempdir().unwrap();
            let example = operator.doc.lines().skip_while(|line| *line != "```yaml").skip(1);
            let steps: String = example
                .take_while(|line| *line != "```")
                .map(|line| format!("  {line}\n"))
                .collect();
            let file = folder.path().join("w.yaml");
            std::fs::write(&file, format!("galeras: 1\nsteps:\n{steps}")).unwrap();
            std::fs::write(folder.path().join("data.csv"), "source,n\nx,2\n").unwrap();
            let downloads = folder.path().join("downloads");
            let settings = PlanSettings { downloads, ..PlanSettings::default() };
            let (plan, diagnostics) = plan(&file, REGISTRY, &settings).await;
            let plan = plan.unwrap_or_else(|| panic!("{}: {diagnostics:?}", operator.name));
            let of_operator = |step: &&galeras_engine::plan::PlannedStep| {
                step.operator.descriptor().name == operator.name
            };
            let grains: Vec<Grain> =
                plan.steps.iter().filter(of_operator).map(|s| s.step.lowering().grain()).collect();
            // The documentation of `generate` describes models behind a server. The example uses
            // the n-gram model, which answers a whole table at once.
            let wanted = match operator.name {
                "generate" => Grain::Table,
                _ => operator.grain,
            };
            assert!(!grains.is_empty(), "{}", operator.name);
            assert!(grains.iter().all(|grain| *grain == wanted), "{}: {grains:?}", operator.name);
        }
    }

    fn places(schema: &Value, path: &str, found: &mut Vec<String>) {
        if let Some(language) = schema.get(ARGUMENT_LANGUAGE) {
            let known: Language = language.as_str().unwrap().parse().unwrap();
            found.push(format!("{path} {known}"));
        }
        for alternative in ["anyOf", "oneOf"] {
            for schema in schema.get(alternative).and_then(Value::as_array).into_iter().flatten() {
                places(schema, path, found);
            }
        }
        for (name, schema) in
            schema.get("properties").and_then(Value::as_object).into_iter().flatten()
        {
            places(schema, &format!("{path}.{name}"), found);
        }
        if let Some(items) = schema.get("items") {
            places(items, &format!("{path}[]"), found);
        }
    }

    #[test]
    fn the_arguments_that_are_code_are_known() {
        let mut found = Vec::new();
        for operator in REGISTRY.iter().map(|o| o.descriptor()) {
            places(&(operator.args_schema)(), operator.name, &mut found);
        }
        found.sort();
        assert_eq!(found, ["exec.command shell", "sql.query sql", "validate.rules[].check sql"]);
    }
}
