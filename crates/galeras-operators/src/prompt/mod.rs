//! `prompt`: builds the messages to a model about a row, under each treatment.

use std::collections::{BTreeMap, BTreeSet};

use arrow::datatypes::DataType;
use datafusion::dataframe::DataFrame;
use datafusion::functions::core::expr_fn::get_field;
use datafusion::logical_expr::{Expr, case, cast, lit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use galeras_base::id::ID;
use galeras_operator::columns::text_field;
use galeras_operator::rejects::{reject_table, reject_values};
use galeras_operator::{
    ArgError, BindContext, BoundStep, Descriptor, Effect, Grain, InputPorts, Lowering, MAIN,
    Operator, Port, Ports, REJECTS, RowStep, StepError, TableSchema, TypedOperator, args_schema,
    describe,
};
use galeras_sql::functions::{
    Message, RenderPrompts, RowId, SYSTEM, Treatment, call, compile, messages_type,
};
use galeras_sql::projection::{keep_hidden, project};
use galeras_sql::session::column;
use galeras_workflow::code::Code;

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The treatments by name: a template, or the templates of several turns.
    treatments: BTreeMap<String, Turns>,
    /// A template for the system message of every treatment without one.
    #[serde(default)]
    system: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Turns {
    /// One message of the user.
    One(String),
    /// Messages in order. The model answers after each message of the user that no message of
    /// the assistant follows.
    Many(Vec<Turn>),
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Turn {
    /// A message of the user.
    User(String),
    /// A message with its role.
    Said(Said),
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Said {
    /// The role of the speaker.
    role: Role,
    /// The template of the message.
    content: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
enum Role {
    System,
    User,
    Assistant,
}

struct PromptOperator;

/// The operator.
pub const PROMPT: &dyn Operator = &PromptOperator;

impl TypedOperator for PromptOperator {
    type Args = Args;

    const DESCRIPTOR: Descriptor = Descriptor {
        name: "prompt",
        version: 3,
        grain: Grain::of::<BoundPrompt, _>(),
        effect: Effect::Pure,
        inputs: InputPorts::One,
        doc: include_str!("doc.md"),
        args_schema: args_schema::<Args>,
    };

    fn bind(args: Args, cx: &BindContext) -> Result<Box<dyn BoundStep>, Vec<ArgError>> {
        let given = given(&args)?;
        let treatments: Vec<Treatment> =
            given.iter().map(|(treatment, _)| treatment.clone()).collect();
        let input = cx.input();
        let (mut errors, mut warnings) = (Vec::new(), Vec::new());
        let mut reads = BTreeSet::new();
        let messages = || {
            given.iter().flat_map(|(treatment, paths)| {
                paths.iter().enumerate().map(move |(at, path)| (treatment.template(at), path))
            })
        };
        match compile(&treatments) {
            Err(mistakes) => {
                for error in mistakes {
                    let named = messages().find(|(template, _)| *template == error.template);
                    let path = named.map_or("treatments", |(_, path)| path);
                    errors.push(ArgError::new(path, Code::BadTemplate, error.message));
                }
            }
            Ok(templates) => {
                let is_column = |name: &str| input.field(name).is_some();
                for (template, path) in messages() {
                    for variable in templates.variables(&template, is_column) {
                        if input.field(&variable).is_none() {
                            errors.push(ArgError::unknown_column(path, &variable, input.names()));
                        }
                        reads.insert(variable);
                    }
                }
                let is_constant = |treatment: &Treatment| {
                    let mut at = 0..treatment.messages.len();
                    at.all(|at| templates.variables(&treatment.template(at), is_column).is_empty())
                };
                for (treatment, paths) in given.iter().filter(|(t, _)| is_constant(t)) {
                    warnings.extend(paths.last().map(|path| constant(treatment, path, &input)));
                }
            }
        }
        // Reports an error in a shared template only once.
        errors.dedup_by(|a, b| a.path == b.path && a.message == b.message);
        ArgError::none(errors)?;
        let count = |name, about, unit| describe(name, DataType::Int64, false, about, Some(unit));
        let added = [
            text_field(ID, "the row's identity: of the data point and the treatment"),
            text_field(SNIPPET, "the `id` of the data point that the prompt is about"),
            text_field("treatment", "the treatment's name"),
            describe("messages", messages_type(), false, "the conversation so far", None),
            text_field("template", "the treatment's templates, one below the other"),
            text_field("prompt", "the messages without that of the system, one below the other"),
            count("prompt_size", "words of the prompt", "words"),
            count("p_vocab_size", "distinct words of the prompt", "words"),
            count("p_n_whitespaces", "spaces of the prompt", "characters"),
        ];
        let ports = vec![
            Port::new(MAIN, input.extended(&added, &[ID], None)?.keyed(&[ID])),
            Port::new(REJECTS, reject_table(&input)),
        ];
        let reads = reads.into_iter().collect();
        Ok(Box::new(BoundPrompt { treatments, reads, warnings, key: input.key, ports }))
    }
}

/// The warning about a treatment that does not depend on the row.
fn constant(treatment: &Treatment, path: &str, input: &TableSchema) -> ArgError {
    let message =
        format!("the treatment `{}` uses no column: every row gets this prompt", treatment.name);
    let in_one_brace = |name: &&str| {
        let written = format!("{{{name}}}");
        treatment.messages.iter().any(|message| message.content.contains(&written))
    };
    let help = match input.names().find(in_one_brace) {
        Some(name) => format!("a column is in two braces: {{{{ {name} }}}}"),
        None => "name a column in two braces, as in {{ code }}, unless that is meant".to_string(),
    };
    ArgError::new(path, Code::ConstantPrompt, message).help(help)
}

/// The treatments, with the paths of their messages in the arguments.
fn given(args: &Args) -> Result<Vec<(Treatment, Vec<String>)>, Vec<ArgError>> {
    let mut errors = Vec::new();
    if args.treatments.is_empty() {
        let message = "at least one treatment is needed";
        errors.push(ArgError::new("treatments", Code::OutOfRange, message));
    }
    let mut all = Vec::new();
    for (name, turns) in &args.treatments {
        let path = format!("treatments.{name}");
        let said =
            |role: Role, content: &str| Message { role: role.to_string(), content: content.into() };
        let (mut messages, mut paths) = match turns {
            Turns::One(text) => (vec![said(Role::User, text)], vec![path.clone()]),
            Turns::Many(turns) => turns
                .iter()
                .enumerate()
                .map(|(at, turn)| match turn {
                    Turn::User(text) => (said(Role::User, text), format!("{path}[{at}]")),
                    Turn::Said(s) => (said(s.role, &s.content), format!("{path}[{at}].content")),
                })
                .unzip(),
        };
        if let Some(text) = &args.system
            && messages.first().is_none_or(|first| first.role != SYSTEM)
        {
            messages.insert(0, said(Role::System, text));
            paths.insert(0, "system".into());
        }
        let mut refuse = |message: &str| {
            errors.push(ArgError::new(path.as_str(), Code::BadTurns, message));
        };
        if name.is_empty() {
            refuse("a treatment needs a name");
        }
        if messages.last().is_none_or(|last| last.role != "user") {
            refuse("a treatment must end with a message of the user, which the model answers");
        }
        if messages.iter().skip(1).any(|message| message.role == SYSTEM) {
            refuse("a system message must come first");
        }
        all.push((Treatment { name: name.clone(), messages }, paths));
    }
    ArgError::none(errors).map(|()| all)
}

#[derive(Debug)]
struct BoundPrompt {
    treatments: Vec<Treatment>,
    reads: Vec<String>,
    warnings: Vec<ArgError>,
    key: Vec<String>,
    ports: Vec<Port>,
}

impl BoundStep for BoundPrompt {
    fn args(&self) -> Value {
        json!({"treatments": self.treatments})
    }

    fn ports(&self) -> &[Port] {
        &self.ports
    }

    fn warnings(&self) -> Vec<ArgError> {
        self.warnings.clone()
    }

    fn lowering(&self) -> Lowering<'_> {
        Lowering::Row(self)
    }
}

const SNIPPET: &str = "snippet_id";
/// The struct column that the function returns for a row.
const RENDERED: &str = "__prompts";
const ONE: &str = "__prompt";
/// The data point's `id`, until the prompt's replaces it.
const PARENT: &str = "__parent";

impl RowStep for BoundPrompt {
    fn is_light(&self) -> bool {
        true
    }

    fn reads(&self) -> Vec<String> {
        self.reads.clone()
    }

    fn evaluate(&self, rows: DataFrame) -> Result<DataFrame, StepError> {
        let literal = |value: Value| lit(value.to_string());
        let mut args = vec![literal(json!(self.treatments)), literal(json!(self.reads))];
        args.extend(self.reads.iter().map(|name| column(name)));
        keep_hidden(rows, vec![call::<RenderPrompts>(args).alias(RENDERED)])
    }

    fn ports(&self, rows: DataFrame) -> Result<Ports, StepError> {
        let rendered = |name: &str| get_field(column(RENDERED), name);
        let one = |name: &str| get_field(column(ONE), name);
        let rejected = rows.clone().filter(rendered("reason").is_not_null())?;
        let reject = reject_values(rendered("treatment"), rendered("reason"));
        let parent = match self.key.as_slice() {
            [id] => cast(column(id), DataType::Utf8),
            keys => call::<RowId>(keys.iter().map(|name| column(name)).collect()),
        };
        let kept = rows
            .filter(rendered("reason").is_null())?
            .with_column(PARENT, parent)?
            .with_column(ONE, rendered("prompts"))?
            .unnest_columns(&[ONE])?;
        let mut produced: Vec<(&str, Expr)> =
            ["treatment", "messages", "prompt", "prompt_size", "p_vocab_size", "p_n_whitespaces"]
                .map(|name| (name, one(name)))
                .to_vec();
        let mut template = case(one("treatment"));
        for treatment in &self.treatments {
            let said = treatment.messages.iter().filter(|message| message.role != SYSTEM);
            let texts: Vec<&str> = said.map(|message| message.content.as_str()).collect();
            template = template.when(lit(treatment.name.as_str()), lit(texts.join("\n")));
        }
        produced.push(("template", template.end()?));
        produced.push((ID, call::<RowId>(vec![column(PARENT), one("treatment")])));
        produced.push((SNIPPET, column(PARENT)));
        Ok(vec![
            (MAIN, project(kept, &self.ports[0].table, produced)?),
            (REJECTS, project(rejected, &self.ports[1].table, reject)?),
        ])
    }
}
