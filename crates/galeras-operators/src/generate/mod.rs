//! `generate`: asks a model for answers.

mod args;
mod conversation;
mod extract;
mod local;
mod ngram;
mod provider;
mod replay;
mod request;
mod rows;
mod server;
mod tables;
mod unanswered;

use arrow::datatypes::DataType;
use futures::future::BoxFuture;
use serde_json::Value;

use self::args::GenerateArgs;
use self::local::LocalStep;
use self::provider::Provider;
use self::replay::Source;
use self::server::ServerStep;
use self::tables::AnswerColumns;
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

const DESCRIPTOR: Descriptor = Descriptor {
    name: NAME,
    version: 2,
    // The grain, like the effect, is that of a model behind a server.
    grain: Grain::of::<ServerStep, _>(),
    effect: Effect::External,
    inputs: InputPorts::OneAnd(&[TRAIN, ANSWERS]),
    doc: include_str!("doc.md"),
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
                Provider::Ngram => ngram::check(&args, cx, &mut errors),
                Provider::Replay => replay::check(&args, cx, &mut errors),
                Provider::Echo | Provider::Reference => local::check(&args, cx, &mut errors),
            }
            ArgError::none(errors)?;
            let input = cx.input();
            let key = input.key.clone();
            let ports = |columns: AnswerColumns| tables::ports(&input, columns);
            let model = args.model.clone();
            let step: Box<dyn BoundStep> = match args.provider {
                Provider::Openai | Provider::Anthropic => {
                    let (model, ports) =
                        (model.unwrap_or_default(), ports(server::columns(&args))?);
                    let of = ServerStep::of(&args, &model);
                    let pinned = cx.pins.version(NAME, &of).map(str::to_string);
                    Box::new(ServerStep { args, model, key, pinned, ports })
                }
                provider => {
                    let source = (provider == Provider::Replay).then(|| Source::of(&args, cx));
                    let columns = source.as_ref().map(Source::columns).unwrap_or_default();
                    let model = model.unwrap_or_else(|| provider.name().to_string());
                    Box::new(LocalStep { model, source, args, key, ports: ports(columns)? })
                }
            };
            Ok(step)
        })
    }
}
