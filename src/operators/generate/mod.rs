//! `generate`: what a model answers.

mod args;
mod conversation;
mod extract;
mod ngram;
mod openai;
mod ports;
mod replay;
mod rows;

use arrow::datatypes::DataType;
use futures::future::BoxFuture;
use serde_json::Value;

use self::args::{Args, Provider};
use self::ngram::Ngram;
use self::openai::OpenAi;
use self::replay::Replay;
use super::support::{is_text, require_column};
use crate::code::Code;
use crate::functions::messages_type;
use crate::operator::{
    ArgError, BindContext, Effect, Grain, InputPorts, Operator, Step, args_schema, parse_args,
};

/// The operator's name.
const NAME: &str = "generate";
/// The port with the texts that `ngram` learns from.
const TRAIN: &str = "train";
/// The port with the answers that `replay` gives.
const ANSWERS: &str = "answers";

/// The operator.
pub(super) struct Generate;

const DOC: &str = include_str!("doc.md");

impl Operator for Generate {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> u32 {
        1
    }

    fn grain(&self) -> Grain {
        Grain::Row
    }

    fn effect(&self) -> Effect {
        Effect::External
    }

    fn inputs(&self) -> InputPorts {
        InputPorts::OneAnd(&[TRAIN, ANSWERS])
    }

    fn doc(&self) -> &'static str {
        DOC
    }

    fn args_schema(&self) -> Value {
        args_schema::<Args>()
    }

    fn bind<'a>(
        &'a self,
        args: &'a Value,
        cx: &'a BindContext,
    ) -> BoxFuture<'a, Result<Box<dyn Step>, Vec<ArgError>>> {
        Box::pin(async move {
            let args: Args = parse_args(args)?;
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
            let step: Box<dyn Step> = match args.provider {
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
