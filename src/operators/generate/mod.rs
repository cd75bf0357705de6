//! `generate`: what a model answers.

mod args;
mod conversation;
mod extract;
mod forecast;
mod ngram;
mod openai;
mod ports;
mod replay;
mod rows;

use arrow::datatypes::DataType;
use futures::future::BoxFuture;
use serde_json::Value;

use self::args::{GenerateArgs, Provider};
use self::ngram::Ngram;
use self::openai::OpenAi;
use self::replay::Replay;
use super::columns::{is_text, require_column};
use crate::code::Code;
use crate::functions::messages_type;
use crate::operator::{
    ArgError, BindContext, BoundStep, Descriptor, Effect, Grain, InputPorts, Operator, args_schema,
    parse_args,
};

/// The operator's name.
const NAME: &str = "generate";
/// The port with the texts that `ngram` learns from.
const TRAIN: &str = "train";
/// The port with the answers that `replay` gives.
const ANSWERS: &str = "answers";

/// The operator.
pub(super) struct GenerateOperator;

const DOC: &str = include_str!("doc.md");

const DESCRIPTOR: Descriptor = Descriptor {
    name: NAME,
    version: 1,
    // As the effect, the grain is that of a model behind a server.
    grain: Grain::of::<OpenAi, _>(),
    effect: Effect::External,
    inputs: InputPorts::OneAnd(&[TRAIN, ANSWERS]),
    doc: DOC,
    args_schema: args_schema::<GenerateArgs>,
};

impl Operator for GenerateOperator {
    fn descriptor(&self) -> &'static Descriptor {
        &DESCRIPTOR
    }

    fn bind<'a>(
        &'a self,
        args: &'a Value,
        cx: &'a BindContext,
    ) -> BoxFuture<'a, Result<Box<dyn BoundStep>, Vec<ArgError>>> {
        Box::pin(async move {
            let args: GenerateArgs = parse_args(args)?;
            let mut errors = args.check();
            if args.provider != Provider::Replay {
                let said = |kind: &DataType| is_text(kind) || *kind == messages_type();
                let wanted = "the `messages` of `prompt`, or utf8,";
                require_column(cx, "messages", args.messages(), wanted, said, &mut errors);
            }
            let port = match args.provider {
                Provider::Openai => None,
                Provider::Ngram => Some(TRAIN),
                Provider::Replay => Some(ANSWERS),
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
                Provider::Openai => {}
                Provider::Ngram => Ngram::check(&args, cx, &mut errors),
                Provider::Replay => Replay::check(&args, cx, &mut errors),
            }
            if !errors.is_empty() {
                return Err(errors);
            }
            let input = cx.input();
            let ports = ports::ports(&input);
            let named = |default: &str| args.model.clone().unwrap_or_else(|| default.to_string());
            let step: Box<dyn BoundStep> = match args.provider {
                Provider::Openai => {
                    let model = named("");
                    let of = OpenAi::of(args.base_url(), &model);
                    let pinned = cx.pins.version(NAME, &of).map(str::to_string);
                    Box::new(OpenAi { args, model, key: input.key, pinned, ports })
                }
                Provider::Ngram => {
                    Box::new(Ngram { model: named("ngram"), args, key: input.key, ports })
                }
                Provider::Replay => {
                    Box::new(Replay { model: named("replay"), args, key: input.key, ports })
                }
            };
            Ok(step)
        })
    }
}
