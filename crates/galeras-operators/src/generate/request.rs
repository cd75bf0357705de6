//! The content of a request to a server, in each protocol, and the arguments that its answer
//! depends on.

use serde_json::{Map, Value, json};

use super::args::GenerateArgs;
use super::conversation::Inquiry;
use galeras_chat::Protocol;
use galeras_sql::functions::{Message, SYSTEM};

pub(super) fn body(
    args: &GenerateArgs,
    model: &str,
    asked: &Inquiry,
    sample: u32,
) -> Map<String, Value> {
    let protocol = args.protocol();
    let mut body = args.extra_body.clone();
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            body.insert(name.into(), value);
        }
    };
    set("model", Some(json!(model)));
    match asked {
        Inquiry::Messages(messages) if protocol == Protocol::Messages => {
            let (system, messages) = parted(messages);
            set("system", system.map(Value::String));
            set("messages", Some(json!(messages)));
        }
        Inquiry::Messages(messages) => set("messages", Some(json!(messages))),
        Inquiry::Text { prompt, suffix } => {
            set("prompt", Some(json!(prompt)));
            set("suffix", suffix.as_ref().map(|suffix| json!(suffix)));
        }
    }
    set("temperature", args.temperature.map(|n| json!(n)));
    set("top_p", args.top_p.map(|n| json!(n)));
    set("max_tokens", args.max_tokens.map(|n| json!(n)));
    let stop = if protocol == Protocol::Messages { "stop_sequences" } else { "stop" };
    set(stop, (!args.stop.is_empty()).then(|| json!(args.stop)));
    // With the same seed for all samples, a server that obeys it would repeat its answer.
    set("seed", args.seed.map(|seed| json!(seed.wrapping_add(i64::from(sample)))));
    // Completions also expect the number of alternative tokens to list. Some servers take 0 for no
    // log-probabilities at all.
    let wanted = if protocol == Protocol::Completions { json!(1) } else { json!(true) };
    set("logprobs", args.logprobs().then_some(wanted));
    body
}

/// The instructions, which have a separate field in the messages API, and the other messages.
fn parted(messages: &[Message]) -> (Option<String>, &[Message]) {
    let first = messages.iter().position(|message| message.role != SYSTEM);
    let (system, rest) = messages.split_at(first.unwrap_or(messages.len()));
    let texts: Vec<&str> = system.iter().map(|message| message.content.as_str()).collect();
    ((!texts.is_empty()).then(|| texts.join("\n\n")), rest)
}

/// The body of the shortest request, to learn the version of the model.
pub(super) fn hello(args: &GenerateArgs, model: &str) -> Map<String, Value> {
    let asked = match args.protocol() {
        Protocol::Completions => Inquiry::Text { prompt: "Hi".into(), suffix: None },
        _ => Inquiry::Messages(vec![Message { role: "user".into(), content: "Hi".into() }]),
    };
    let mut body = body(args, model, &asked, 0);
    body.shift_remove("logprobs");
    // The shortest possible answer; a limit under another name is left unchanged.
    if !body.contains_key("max_completion_tokens") {
        body.insert("max_tokens".into(), json!(1));
    }
    // Its budget would have to be smaller.
    body.shift_remove("thinking");
    body
}

pub(super) fn arguments(args: &GenerateArgs, model: &str, pinned: Option<&str>) -> Value {
    let mut all = json!({
        "provider": args.provider,
        "base_url": args.base_url(),
        "model": model,
        "version": pinned,
        "temperature": args.temperature,
        "top_p": args.top_p,
        "max_tokens": args.max_tokens,
        "stop": args.stop,
        "seed": args.seed,
        "extra_body": args.extra_body,
        "samples": args.samples(),
        "extract": args.extract(false),
        "price": args.price,
    });
    if args.is_completion() {
        all["endpoint"] = json!(args.endpoint());
        all["prompt"] = json!(args.prompt());
        all["suffix"] = json!(args.suffix);
    } else {
        all["messages"] = json!(args.messages());
    }
    if args.logprobs() {
        all["logprobs"] = json!(true);
    }
    all
}
