//! `generate`: asks a model for answers.

mod args;
mod baseline;
mod conversation;
mod extract;
mod forecast;
mod logprobs;
mod ngram;
mod ports;
mod provider;
mod replay;
mod request;
mod rows;
mod server;

use arrow::datatypes::DataType;
use async_trait::async_trait;
use serde_json::Value;

use self::args::GenerateArgs;
use self::baseline::Baseline;
use self::ngram::Ngram;
use self::ports::AnswerColumns;
use self::provider::Provider;
use self::replay::{Replay, Source};
use self::server::ServerStep;
use galeras_operator::columns::{is_text, require_column};
use galeras_operator::{
    ArgError, BindContext, BoundStep, Descriptor, Effect, Grain, InputPorts, Operator, args_schema,
    parse_args,
};
use galeras_sql::functions::messages_type;
use galeras_workflow::code::Code;

const NAME: &str = "generate";
/// The port with the texts that `ngram` learns from.
const TRAIN: &str = "train";
/// The port with the answers that `replay` gives.
const ANSWERS: &str = "answers";

struct GenerateOperator;

/// The operator.
pub const GENERATE: &dyn Operator = &GenerateOperator;

const DOC: &str = include_str!("doc.md");

const DESCRIPTOR: Descriptor = Descriptor {
    name: NAME,
    version: 1,
    // The grain, like the effect, is that of a model behind a server.
    grain: Grain::of::<ServerStep, _>(),
    effect: Effect::External,
    inputs: InputPorts::OneAnd(&[TRAIN, ANSWERS]),
    doc: DOC,
    args_schema: args_schema::<GenerateArgs>,
};

#[async_trait]
impl Operator for GenerateOperator {
    fn descriptor(&self) -> &'static Descriptor {
        &DESCRIPTOR
    }

    async fn bind(
        &self,
        args: &Value,
        cx: &BindContext,
    ) -> Result<Box<dyn BoundStep>, Vec<ArgError>> {
        let given = args;
        let args: GenerateArgs = parse_args(given)?;
        let mut errors = args.check(given);
        if args.has_messages() {
            let said = |kind: &DataType| is_text(kind) || *kind == messages_type();
            let wanted = "the `messages` of `prompt`, or utf8,";
            require_column(cx, "messages", args.messages(), wanted, said, &mut errors);
        }
        let port = match args.provider {
            Provider::Ngram => Some(TRAIN),
            Provider::Replay => Some(ANSWERS),
            _ => None,
        };
        for name in cx.inputs.keys().filter(|name| [TRAIN, ANSWERS].contains(&name.as_str())) {
            if port != Some(name) {
                let message = format!("this provider takes no port `{name}`");
                errors.push(ArgError::new("provider", Code::WrongInputs, message));
            }
        }
        if let Some(port) = port
            && !cx.inputs.contains_key(port)
        {
            let message = format!("this provider needs a table at the port `{port}`");
            let error = ArgError::new("provider", Code::WrongInputs, message);
            errors.push(error.help(format!("from: {{ input: prompts, {port}: some_step }}")));
        }
        match args.provider {
            Provider::Openai | Provider::Anthropic => ServerStep::check(&args, cx, &mut errors),
            Provider::Ngram => Ngram::check(&args, cx, &mut errors),
            Provider::Replay => Replay::check(&args, cx, &mut errors),
            Provider::Echo | Provider::Reference => Baseline::check(&args, cx, &mut errors),
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let input = cx.input();
        let key = input.key.clone();
        let ports = |columns: AnswerColumns| ports::ports(&input, columns);
        let model = args.model.clone();
        let named = |name: &str| model.clone().unwrap_or_else(|| name.to_string());
        let plain = AnswerColumns::default();
        let step: Box<dyn BoundStep> = match args.provider {
            Provider::Openai | Provider::Anthropic => {
                let (model, ports) = (named(""), ports(server::columns(&args)));
                let of = ServerStep::of(&args, &model);
                let pinned = cx.pins.version(NAME, &of).map(str::to_string);
                Box::new(ServerStep { args, model, key, pinned, ports })
            }
            Provider::Ngram => {
                Box::new(Ngram { model: named("ngram"), args, key, ports: ports(plain) })
            }
            Provider::Replay => {
                let source = Source::of(&args, cx);
                let ports = ports(source.columns());
                Box::new(Replay { source, args, key, ports })
            }
            Provider::Echo | Provider::Reference => {
                let model = named(args.provider.name());
                Box::new(Baseline { model, args, key, ports: ports(plain) })
            }
        };
        Ok(step)
    }
}
