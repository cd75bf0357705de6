//! The providers of answers, and the arguments of each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::IntoStaticStr;

use galeras_operator::ArgError;
use galeras_workflow::code::Code;

#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, IntoStaticStr, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub(super) enum Provider {
    /// A server that speaks OpenAI's chat completions, or completions: vLLM, llama.cpp, Ollama, a
    /// gateway, OpenAI.
    #[default]
    Openai,
    /// A server that speaks Anthropic's messages API.
    Anthropic,
    /// A small n-gram model that is trained on the port `train`.
    Ngram,
    /// A table of answers, at the port `answers`.
    Replay,
    /// No model: the given code is returned. A model that does no better has written nothing.
    Echo,
    /// The right answer, from a column: an upper bound.
    Reference,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum EndpointName {
    /// `/chat/completions`: the conversation in `messages` is answered.
    #[default]
    Chat,
    /// `/completions`: continues the text in `prompt`, as base models do.
    Completions,
}

impl Provider {
    /// The provider is a server: it is asked over a network and may charge money.
    pub(super) fn is_server(self) -> bool {
        SERVERS.contains(&self)
    }

    /// The name in workflows.
    pub(super) fn name(self) -> &'static str {
        self.into()
    }
}

use Provider::{Anthropic, Echo, Ngram, Openai, Reference, Replay};

const ALL: &[Provider] = &[Openai, Anthropic, Ngram, Replay, Echo, Reference];
const SERVERS: &[Provider] = &[Openai, Anthropic];
const MODELS: &[Provider] = &[Openai, Anthropic, Ngram];

/// Every argument, with the providers that accept it.
const TAKERS: &[(&str, &[Provider])] = &[
    ("provider", ALL),
    ("model", ALL),
    ("messages", &[Openai, Anthropic, Ngram, Echo]),
    ("extract", ALL),
    ("samples", ALL),
    ("seed", &[Openai, Ngram]),
    ("temperature", MODELS),
    ("max_tokens", MODELS),
    ("stop", MODELS),
    ("endpoint", &[Openai]),
    ("prompt", &[Openai]),
    ("suffix", &[Openai]),
    ("logprobs", &[Openai]),
    ("base_url", SERVERS),
    ("api_key_env", SERVERS),
    ("top_p", SERVERS),
    ("extra_body", SERVERS),
    ("concurrency", SERVERS),
    ("requests_per_minute", SERVERS),
    ("tokens_per_minute", SERVERS),
    ("timeout_seconds", SERVERS),
    ("tries", SERVERS),
    ("min_answered", SERVERS),
    ("max_usd", SERVERS),
    ("price", SERVERS),
    ("code", &[Ngram]),
    ("train_column", &[Ngram]),
    ("order", &[Ngram]),
    ("given", &[Echo]),
    ("reference", &[Reference]),
    ("on", &[Replay]),
    ("answer", &[Replay]),
];

/// The arguments that name a column with the question or the answer. A user who confuses two of
/// them gets the right name.
const COLUMNS: [&str; 6] = ["given", "reference", "answer", "code", "messages", "prompt"];

/// The arguments of `args` that this provider does not accept.
pub(super) fn misplaced(provider: Provider, endpoint: EndpointName, args: &Value) -> Vec<ArgError> {
    let given = args.as_object().into_iter().flatten().filter(|(_, value)| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    });
    given.filter_map(|(name, _)| misplaced_one(provider, endpoint, name)).collect()
}

fn misplaced_one(provider: Provider, endpoint: EndpointName, name: &str) -> Option<ArgError> {
    let error = |to: &str| {
        let message = format!("`{name}` belongs to `{to}`");
        ArgError::new(name, Code::ConflictingArguments, message)
    };
    let (_, takers) = TAKERS.iter().find(|(argument, _)| *argument == name)?;
    if takers.contains(&provider) {
        return match (name, endpoint) {
            ("prompt" | "suffix", EndpointName::Chat) => Some(error("endpoint: completions").help(
                "`messages` names the column of a chat; for a text that goes on, add \
                 `endpoint: completions`",
            )),
            ("messages", EndpointName::Completions) => {
                Some(error("endpoint: chat").help("did you mean `prompt`?"))
            }
            _ => None,
        };
    }
    let names: Vec<&str> = takers.iter().map(|taker| taker.name()).collect();
    let error = error(&format!("provider: {}", names.join("` or `")));
    let takes = |argument: &&str| {
        let found = TAKERS.iter().find(|(name, _)| name == argument);
        found.is_some_and(|(_, takers)| takers.contains(&provider))
    };
    let meant = COLUMNS.iter().find(|other| takes(other)).filter(|_| COLUMNS.contains(&name));
    Some(match meant {
        Some(meant) => error.help(format!("did you mean `{meant}`?")),
        None => {
            let all: Vec<&str> =
                TAKERS.iter().map(|(name, _)| *name).filter(|n| takes(n)).collect();
            error.help(format!("`provider: {}` takes {}", provider.name(), all.join(", ")))
        }
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::super::args::GenerateArgs;
    use super::*;
    use galeras_operator::args_schema;

    #[test]
    fn every_argument_has_its_providers() {
        let schema = args_schema::<GenerateArgs>();
        let known: BTreeSet<&str> = schema["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| name.as_str())
            .collect();
        let listed: BTreeSet<&str> = TAKERS.iter().map(|(name, _)| *name).collect();
        assert_eq!(listed, known);
        assert_eq!(listed.len(), TAKERS.len());
        assert!(COLUMNS.iter().all(|name| listed.contains(name)));
    }

    #[test]
    fn who_has_taken_one_argument_for_another_is_told() {
        let told = |provider, endpoint, args| {
            let errors = misplaced(provider, endpoint, &args);
            let said = |error: &ArgError| {
                format!(
                    "{}: {}; {}",
                    error.path,
                    error.message,
                    error.help.as_deref().unwrap_or("")
                )
            };
            errors.iter().map(said).collect::<Vec<_>>()
        };
        let chat = EndpointName::Chat;
        assert_eq!(
            told(Echo, chat, json!({"code": "x", "model": "m", "stop": [], "seed": null})),
            ["code: `code` belongs to `provider: ngram`; did you mean `given`?"]
        );
        assert_eq!(
            told(Reference, chat, json!({"given": "x"})),
            ["given: `given` belongs to `provider: echo`; did you mean `reference`?"]
        );
        assert_eq!(
            told(Openai, EndpointName::Completions, json!({"messages": "x", "suffix": "y"})),
            ["messages: `messages` belongs to `endpoint: chat`; did you mean `prompt`?"]
        );
        assert_eq!(
            told(Echo, chat, json!({"seed": 1})),
            ["seed: `seed` belongs to `provider: openai` or `ngram`; `provider: echo` takes \
              provider, model, messages, extract, samples, given"]
        );
        assert_eq!(told(Openai, chat, json!({"prompt": "x"})).len(), 1);
        assert!(told(Openai, chat, json!({"messages": "x", "seed": 1, "price": {}})).is_empty());
    }
}
