//! Reads `steps` with their data tests (`assert`), and `outputs`. The plan finds cycles, unknown
//! steps, ports and columns, and mistakes in SQL.

use std::collections::HashMap;

use strum::VariantNames as _;

use super::columns::ItemType;
use super::diagnostic::quote;
use super::expr::has_expression;
use super::node::{Node, Value};
use super::reader::{WorkflowReader, describe};
use super::source::Span;
use super::spec::{
    Assert, AssertKind, AssertSeverity, Contract, From, Output, PaperSpec, Reference, SchemaField,
    StepKind, StepSpec, Text,
};
use crate::code::Code;

const STEP_KEYS: [&str; 8] =
    ["op", "uses", "from", "with", "matrix", "schema", "assert", "description"];
const ASSERT_OPTIONS: [&str; 2] = ["severity", "port"];
const OUTPUT_KEYS: [&str; 12] = [
    "from", "path", "column", "shape", "rows", "show", "columns", "digits", "caption", "label",
    "bold", "pivot",
];
/// The keys of tables for papers.
const PAPER_KEYS: [&str; 6] = ["columns", "digits", "caption", "label", "bold", "pivot"];
const OUTPUT_SUFFIXES: [&str; 11] =
    [".parquet", ".jsonl", ".json", ".csv", ".tex", ".md", ".txt", ".svg", ".png", ".pdf", ".html"];
/// The form of an output's path.
pub const OUTPUT_PATH_HELP: &str = "an output is a file below `--out`, as in \
    `folder/name.parquet`: rows are written as .parquet, .jsonl, .json or .csv; a table for a \
    paper as .tex or .md; the text in a `column` of a table of one row as .txt, .json, .svg or \
    .html; a figure as .svg, .png or .pdf";

/// Files that tools obey in any folder, of those that can be written, in small letters: a workflow
/// must not leave a script for `npm install` or a rule for a compiler behind.
const CONFIGURATION_FILES: [&str; 27] = [
    "agents.md",
    "angular.json",
    "app.json",
    "biome.json",
    "bower.json",
    "claude.md",
    "cmakelists.txt",
    "cmakepresets.json",
    "compile_commands.json",
    "composer.json",
    "constraints.txt",
    "deno.json",
    "firebase.json",
    "gemini.md",
    "jsconfig.json",
    "lerna.json",
    "npm-shrinkwrap.json",
    "nx.json",
    "package-lock.json",
    "package.json",
    "pyrightconfig.json",
    "renovate.json",
    "requirements.txt",
    "tsconfig.json",
    "turbo.json",
    "vcpkg.json",
    "vercel.json",
];

/// An entry of `steps` with wrong indentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unindented {
    /// The name of a step without anything below it.
    Step,
    Key,
}

impl WorkflowReader<'_> {
    pub(super) fn step(&mut self, name: Text, node: &Node) -> StepSpec {
        let what = format!("step {}", quote(&name.value));
        let mut step = StepSpec { name, span: node.span, ..StepSpec::default() };
        if node.as_map().is_none() {
            self.wrong_type(node, &what, "a mapping with `op` or `uses`");
            return step;
        }
        self.step_keys(node, &what);
        step.kind = self.kind(&what, step.name.span, node);
        step.from = node.get("from").map(|n| self.from(n));
        step.with = node.get("with").and_then(|n| self.with(n));
        step.matrix = node.get("matrix").map(|n| self.matrix(n));
        step.schema = node.get("schema").and_then(|n| self.contract(n));
        step.asserts = node.get("assert").map_or_else(Vec::new, |n| self.asserts(n));
        step.description = self.optional_text(node, "description");
        step
    }

    /// Reports keys that a step does not have. Most unknown keys are meant as arguments.
    fn step_keys(&mut self, node: &Node, what: &str) {
        for (key, _) in node.as_map().unwrap_or_default() {
            let Some(name) = key.as_str().filter(|name| !STEP_KEYS.contains(name)) else {
                continue;
            };
            let free = STEP_KEYS.iter().copied().filter(|known| node.get(known).is_none());
            let message = format!("{what} has no key {}", quote(name));
            let problem = self.error(Code::UnknownKey, message, key.span);
            let first_word = name.split_whitespace().next();
            let without_colon = STEP_KEYS.into_iter().find(|known| first_word == Some(*known));
            let meant = super::suggest::did_you_mean(name, free);
            let (name, keys) = (quote(name), STEP_KEYS.map(quote).join(", "));
            let help = match (without_colon, meant) {
                (Some(known), _) => {
                    format!("there is no colon after {}: write `{known}: …`", quote(known))
                }
                (None, Some(meant)) => format!("did you mean {}?", quote(meant)),
                (None, None) if node.get("with").is_some_and(Node::is_null) => format!(
                    "if {name} is an argument, indent it by two more spaces: arguments stand below \
                     `with`"
                ),
                (None, None) => format!(
                    "if {name} is an argument of the operator, write it below `with`; a step itself \
                     has {keys}"
                ),
            };
            self.push(problem.with_help(help));
        }
    }

    /// The keys of steps that stand in the column of the steps' names, by the names that they
    /// follow. Reported once for each step.
    ///
    /// ```yaml
    /// steps:
    ///   table:
    ///   op: read
    /// ```
    pub(super) fn unindented(&mut self, steps: &Node) -> HashMap<Span, Unindented> {
        let mut found = HashMap::new();
        let entries = steps.as_map().unwrap_or_default();
        let mut step: Option<&Node> = None;
        for (key, value) in entries {
            let Some(name) = key.as_str() else { continue };
            match step {
                Some(empty) if STEP_KEYS.contains(&name) => {
                    found.insert(key.span, Unindented::Key);
                    if found.insert(empty.span, Unindented::Step).is_some() {
                        continue;
                    }
                    let (above, name) = (quote(empty.as_str().unwrap_or("")), quote(name));
                    let message = format!("step {above} is empty, and {name} is next to it");
                    let problem = self.error(Code::MissingKey, message, key.span);
                    let problem = problem.with_related(self.source, empty.span, "the step");
                    self.push(problem.with_help(format!(
                        "indent what belongs to {above} by two more spaces: a step is all that is \
                         indented below its name"
                    )));
                }
                _ => step = value.is_null().then_some(key),
            }
        }
        found
    }

    fn kind(&mut self, what: &str, name: Span, node: &Node) -> StepKind {
        let text = match (node.entry("op"), node.entry("uses")) {
            (Some((op, value)), uses) => {
                if let Some((uses, _)) = uses {
                    let message = format!("{what} has both `op` and `uses`");
                    let problem = self.error(Code::ConflictingKeys, message, uses.span);
                    let problem = problem.with_related(self.source, op.span, "the `op`");
                    let help = "a step runs an operator or embeds a workflow, not both";
                    self.push(problem.with_help(help));
                }
                self.fixed_text(value, "`op`").map(StepKind::Op)
            }
            (None, Some((_, value))) => self.uses(value).map(StepKind::Uses),
            (None, None) => {
                // A mistyped `op` has already been reported as an unknown key.
                let typo = node.as_map().unwrap_or_default().iter().any(|(k, _)| {
                    let key = k.as_str().unwrap_or("");
                    let guess = super::suggest::did_you_mean(key, STEP_KEYS);
                    !STEP_KEYS.contains(&key) && matches!(guess, Some("op" | "uses"))
                });
                if !typo {
                    let help = "name an operator (`galeras ops` lists them), or another workflow \
                                with `uses`";
                    self.required(node, (what, "op"), name, help);
                }
                None
            }
        };
        text.unwrap_or(StepKind::Invalid)
    }

    fn uses(&mut self, node: &Node) -> Option<Text> {
        let text = self.fixed_text(node, "`uses`")?;
        let path = &text.value;
        let problem = if path.contains("://") || is_absolute(path) {
            "`uses` must be a path relative to this file"
        } else if !path.ends_with(".yaml") && !path.ends_with(".yml") {
            "`uses` must name a `.yaml` file"
        } else {
            return Some(text);
        };
        self.fail(Code::BadPath, problem, node.span, "write `./other.yaml`");
        None
    }

    fn from(&mut self, node: &Node) -> From {
        let invalid = From::Invalid(node.span);
        match &node.value {
            Value::String(_) => match self.reference_in(node) {
                Reference::Invalid(_) => invalid,
                reference => From::One(reference),
            },
            Value::Map(entries) if !entries.is_empty() => {
                let mut ports = Vec::with_capacity(entries.len());
                for (port, value) in entries {
                    let port = self.name(port);
                    let reference = self.reference(value);
                    if let (Some(port), Some(reference)) = (port, reference) {
                        ports.push((port, reference));
                    }
                }
                // A port that could not be read must not look like a missing one.
                if ports.len() < entries.len() {
                    return invalid;
                }
                From::Ports(ports)
            }
            _ => {
                self.not_a_reference(node, "`from`");
                invalid
            }
        }
    }

    pub(super) fn reference(&mut self, node: &Node) -> Option<Reference> {
        if node.as_str().is_none() {
            self.not_a_reference(node, "a reference");
            return None;
        }
        Some(self.reference_in(node)).filter(|read| !matches!(read, Reference::Invalid(_)))
    }

    fn not_a_reference(&mut self, node: &Node, what: &str) {
        let Some(items) = node.as_seq() else {
            self.wrong_type(node, what, "`step`, `step.port` or a mapping of ports");
            return;
        };
        let message = format!("{what} cannot be a list");
        let problem = self.error(Code::WrongType, message, node.span);
        // `from: a[*]` is a string in YAML, but `from: [*]` and the like are lists.
        let help = match items {
            [a, b] if a.as_str().is_some() && b.as_str().is_some() => format!(
                "name the input ports: `from: {{ left: {}, right: {} }}`",
                a.as_str().unwrap_or(""),
                b.as_str().unwrap_or("")
            ),
            _ => "name the input ports: `from: { left: a, right: b }`".to_owned(),
        };
        self.push(problem.with_help(help.chars().take(200).collect::<String>()));
    }

    fn with(&mut self, node: &Node) -> Option<Node> {
        if node.as_map().is_none() {
            // An empty `with:` has no arguments.
            if !node.is_null() {
                self.wrong_type(node, "`with`", "a mapping of arguments");
            }
            return None;
        }
        self.check_expressions(node);
        Some(node.clone())
    }

    /// Reports the mistakes that are visible before expressions have values.
    fn matrix(&mut self, node: &Node) -> Node {
        self.check_expressions(node);
        self.axes(node);
        node.clone()
    }

    fn contract(&mut self, node: &Node) -> Option<Contract> {
        match &node.value {
            Value::String(_) => self.fixed_text(node, "`schema`").map(Contract::File),
            Value::Map(entries) if !entries.is_empty() => {
                let fields = entries.iter().filter_map(|(c, t)| self.schema_field(c, t));
                Some(Contract::Fields(fields.collect()))
            }
            _ => {
                let wanted = "a mapping from columns to types, or the path of a contract";
                self.wrong_type(node, "`schema`", wanted);
                None
            }
        }
    }

    fn schema_field(&mut self, column: &Node, node: &Node) -> Option<SchemaField> {
        let column = Text { value: column.as_str()?.to_owned(), span: column.span };
        let what = format!("the type of column {}", quote(&column.value));
        let text = self.fixed_text(node, &what)?;
        match ItemType::parse(&text.value) {
            Ok(ty) => Some(SchemaField { column, ty, span: node.span }),
            Err(error) => {
                let (start, end) = error.range;
                let span = node.part_span(self.source.text(), start, end);
                let mut problem = self.error(Code::UnknownType, error.message, span);
                problem.help = error.help;
                self.push(problem);
                None
            }
        }
    }

    fn asserts(&mut self, node: &Node) -> Vec<Assert> {
        let items = self.list(node, ("`assert`", "a list such as `[{ unique: [id] }]`"), 0);
        items.unwrap_or_default().iter().filter_map(|item| self.assert(item)).collect()
    }

    fn assert(&mut self, node: &Node) -> Option<Assert> {
        let known = [AssertKind::VARIANTS, &ASSERT_OPTIONS].concat();
        let wanted = "a mapping such as `unique: [id]`";
        let entries = self.mapping(node, ("an assertion", wanted), &known)?;
        let severity = node.get("severity").and_then(|n| self.severity(n)).unwrap_or_default();
        let port = self.optional_fixed_text(node, "port");

        let is_kind = |key: &Node| AssertKind::VARIANTS.contains(&key.as_str().unwrap_or(""));
        let mut kinds = entries.iter().filter(|(key, _)| is_kind(key));
        let Some((first, value)) = kinds.next() else {
            let is_option = |key: &Node| ASSERT_OPTIONS.contains(&key.as_str().unwrap_or(""));
            // An unknown key has been reported; it is probably the missing one.
            if entries.iter().all(|(key, _)| is_option(key)) {
                let message = "an assertion needs something to check";
                let problem = self.error(Code::MissingKey, message, node.span);
                self.push(problem.with_suggestion("", AssertKind::VARIANTS.iter().copied()));
            }
            return None;
        };
        for (other, _) in kinds.filter(|(key, _)| key.as_str() != first.as_str()) {
            let message = "an assertion checks one thing";
            let problem = self.error(Code::ConflictingKeys, message, other.span);
            let problem = problem.with_related(self.source, first.span, "the first check");
            self.push(problem.with_help("write one list entry per check"));
        }
        let kind = match first.as_str().unwrap_or("") {
            "unique" => AssertKind::Unique(self.columns(value, "`unique`")?),
            "not_null" => AssertKind::NotNull(self.columns(value, "`not_null`")?),
            "accepted_values" => self.accepted_values(value)?,
            "expr" => self.condition(value)?,
            _ => self.rows(value)?,
        };
        Some(Assert { kind, severity, port, span: node.span })
    }

    fn severity(&mut self, node: &Node) -> Option<AssertSeverity> {
        let text = self.text(node, "`severity`")?;
        match text.value.as_str() {
            "error" => Some(AssertSeverity::Error),
            "warn" => Some(AssertSeverity::Warn),
            other => {
                let message = format!("there is no severity {}", quote(other));
                let problem = self.error(Code::WrongValue, message, node.span);
                self.push(match other {
                    "warning" => problem.with_help("did you mean `warn`?"),
                    _ => problem.with_suggestion(other, ["error", "warn"]),
                });
                None
            }
        }
    }

    fn columns(&mut self, node: &Node, what: &str) -> Option<Vec<Text>> {
        let Some(items) = node.as_seq().filter(|items| !items.is_empty()) else {
            let message = format!("{what} must be a list of columns, not {}", describe(node));
            let problem = self.error(Code::WrongType, message, node.span);
            self.push(match node.as_str().filter(|s| s.len() < 100) {
                Some(column) => problem.with_help(format!("write `[{column}]`")),
                None => problem,
            });
            return None;
        };
        items.iter().map(|item| self.fixed_text(item, "a column")).collect()
    }

    fn accepted_values(&mut self, node: &Node) -> Option<AssertKind> {
        let what = "`accepted_values`";
        let wanted = "a mapping such as `{ column: language, values: [python] }`";
        self.mapping(node, (what, wanted), &["column", "values"])?;
        let column = self.required(node, (what, "column"), node.head(), "add `column: name`");
        let column = column.and_then(|value| self.fixed_text(value, "`column`"));
        let values = self.required(node, (what, "values"), node.head(), "add `values: [a, b]`");
        let values = values.and_then(|value| self.values(value));
        Some(AssertKind::AcceptedValues { column: column?, values: values? })
    }

    fn values(&mut self, node: &Node) -> Option<Vec<Node>> {
        let items = self.list(node, ("`values`", "a list of at least one value"), 1)?;
        for item in items {
            if item.as_seq().is_some() || item.as_map().is_some() {
                self.wrong_type(item, "an accepted value", "a scalar");
                return None;
            }
            self.check_expressions(item);
        }
        Some(items.to_vec())
    }

    fn condition(&mut self, node: &Node) -> Option<AssertKind> {
        let text = self.text(node, "`expr`")?;
        if text.value.trim().is_empty() {
            let message = "`expr` is empty";
            self.fail(Code::WrongValue, message, node.span, "");
            return None;
        }
        self.check_expressions(node);
        Some(AssertKind::Expr(node.clone()))
    }

    fn rows(&mut self, node: &Node) -> Option<AssertKind> {
        let wanted = "a mapping with `min` or `max`";
        let entries = self.mapping(node, ("`rows`", wanted), &["min", "max"])?;
        if entries.is_empty() {
            self.required(node, ("`rows`", "min"), node.span, "write `rows: { min: 1 }`");
        }
        let (min, max) = (node.get("min"), node.get("max"));
        if min.is_none() && max.is_none() {
            return None;
        }
        for (value, key) in [(min, "`min`"), (max, "`max`")] {
            let Some(value) = value else { continue };
            if value.as_str().is_some_and(has_expression) {
                self.check_expressions(value);
            } else if value.as_i64().is_none_or(|n| n < 0) {
                self.wrong_type(value, key, "a number of rows");
                return None;
            }
        }
        if let (Some(low), Some(high)) = (min, max)
            && let (Some(a), Some(b)) = (low.as_i64(), high.as_i64())
            && a > b
        {
            let message = "`rows` has a `min` above its `max`";
            let problem = self.error(Code::WrongValue, message, low.span);
            self.push(problem.with_related(self.source, high.span, "the `max`"));
        }
        Some(AssertKind::Rows { min: min.cloned(), max: max.cloned() })
    }

    pub(super) fn output(&mut self, name: Text, node: &Node) -> Option<Output> {
        let what = format!("output {}", quote(&name.value));
        self.mapping(node, (&what, "a mapping with `from` and `path`"), &OUTPUT_KEYS)?;
        let help = "name the step: `from: step`";
        let from = self.required(node, (&what, "from"), name.span, help);
        let from = from.and_then(|value| self.reference(value));
        let help = "name a file: `path: folder/name.parquet`";
        let path = self.required(node, (&what, "path"), name.span, help);
        let path = path.and_then(|value| self.output_path(value));
        let mut word = |key: &str| match node.get(key) {
            None => Some(None),
            Some(value) => self.fixed_text(value, &format!("`{key}`")).map(Some),
        };
        let (column, shape) = (word("column")?, word("shape")?);
        let rows = node.get("rows").and_then(|value| self.rows(value));
        let paper = self.paper(node);
        let show = node.get("show").is_some_and(|value| {
            if value.as_bool().is_none() {
                self.wrong_type(value, "`show`", "true or false");
            }
            value.as_bool() == Some(true)
        });
        let (from, path) = (from?, path?);
        Some(Output { name, from, path, column, shape, rows, paper, show, span: node.span })
    }

    fn paper(&mut self, node: &Node) -> PaperSpec {
        let is_paper = |(key, _): &(Node, Node)| {
            let value = key.as_str().filter(|key| PAPER_KEYS.contains(key))?;
            Some(Text { value: value.to_owned(), span: key.span })
        };
        PaperSpec {
            first: node.as_map().unwrap_or_default().iter().find_map(is_paper),
            columns: self.section_columns(node),
            digits: node.get("digits").and_then(|value| match value.as_i64() {
                Some(digits @ 0..=12) => usize::try_from(digits).ok(),
                _ => {
                    self.wrong_type(value, "`digits`", "a number of decimals from 0 to 12");
                    None
                }
            }),
            caption: self.optional_fixed_text(node, "caption"),
            label: self.optional_fixed_text(node, "label"),
            bold: node.get("bold").map_or_else(Vec::new, |value| self.bold(value)),
            pivot: node.get("pivot").and_then(|value| self.pivot(value)),
        }
    }

    fn bold(&mut self, node: &Node) -> Vec<(Text, Text)> {
        let Some(entries) = node.as_map() else {
            self.wrong_type(node, "`bold`", "a mapping from columns to `max` or `min`");
            return Vec::new();
        };
        let entry = |(column, best): &(Node, Node)| {
            let column = self.fixed_text(column, "the name of a column")?;
            let best = self.fixed_text(best, "the best number of a column")?;
            if !["max", "min"].contains(&best.value.as_str()) {
                let message = "the best number of a column is its `max` or its `min`";
                self.fail(Code::WrongValue, message, best.span, "");
                return None;
            }
            Some((column, best))
        };
        entries.iter().filter_map(entry).collect()
    }

    fn pivot(&mut self, node: &Node) -> Option<(Text, Text)> {
        let wanted = "a mapping with `columns` and `values`, which name columns";
        self.mapping(node, ("`pivot`", wanted), &["columns", "values"])?;
        let help = "as in `pivot: { columns: treatment, values: mean }`";
        let mut name = |key: &str| {
            let value = self.required(node, ("`pivot`", key), node.span, help)?;
            self.fixed_text(value, "the name of a column")
        };
        Some((name("columns")?, name("values")?))
    }

    fn output_path(&mut self, node: &Node) -> Option<Node> {
        let path = self.text(node, "`path`")?.value;
        self.check_expressions(node);
        let Some(message) = output_path_problem(&path) else { return Some(node.clone()) };
        self.fail(Code::BadPath, message, node.span, OUTPUT_PATH_HELP);
        None
    }
}

/// The problem with the path of an output, if any: it must be relative, stay inside its folder,
/// end in a known suffix, and be no place of a program's configuration. Expressions count as file names; check the path again after substitution.
pub fn output_path_problem(path: &str) -> Option<String> {
    let quoted = quote(path);
    if path.contains("://") || is_absolute(path) {
        return Some(format!("{quoted} is not a relative path"));
    }
    if path.contains(|c: char| c.is_control()) {
        return Some(format!("{quoted} contains a control character"));
    }
    if path.split(['/', '\\']).any(|part| part == "..") {
        return Some(format!("{quoted} leaves the output folder"));
    }
    // `x.parquet` has a stem; `.parquet` alone is a hidden file without a name.
    let suffix = OUTPUT_SUFFIXES.iter().find_map(|s| path.strip_suffix(s));
    let named = suffix.is_some_and(|stem| !stem.is_empty() && !stem.ends_with(['/', '\\']));
    // An expression at the end may contain the suffix.
    let open_end = has_expression(path) && path.trim_end().ends_with("}}");
    if !named && !open_end {
        return Some(format!("the suffix of {quoted} names no known format"));
    }
    if path.split(['/', '\\']).any(|part| part.starts_with('.') && part != ".") {
        return Some(format!("{quoted} is hidden, where programs keep their configuration"));
    }
    let file = path.rsplit(['/', '\\']).next().unwrap_or_default().to_lowercase();
    if CONFIGURATION_FILES.contains(&file.as_str()) {
        return Some(format!("{quoted} is the name of a configuration that programs obey"));
    }
    if path.contains('\\') {
        return Some(format!("{quoted} has a backslash, but folders are written with `/`"));
    }
    None
}

fn is_absolute(path: &str) -> bool {
    let mut chars = path.chars();
    let drive = chars.next().is_some_and(|c| c.is_ascii_alphabetic()) && chars.next() == Some(':');
    path.starts_with(['/', '\\', '~']) || drive
}
