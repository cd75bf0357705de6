//! The arguments of `generate`, and which of them belong to which provider.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::str::FromStr;

use crate::code::Code;
use crate::operator::ArgError;
use galeras_chat::Usd;

/// The address of OpenAI's own server.
const OPENAI: &str = "https://api.openai.com/v1";
/// The variable of the key for it.
const OPENAI_KEY: &str = "OPENAI_API_KEY";
/// The most answers to one prompt.
const MAX_SAMPLES: u32 = 10_000;

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Args")]
pub(super) struct GenerateArgs {
    /// Who answers.
    #[serde(default)]
    pub(super) provider: Provider,
    /// The model's name, as the server knows it; for `ngram` and `replay` the text of the column
    /// `model`.
    #[serde(default)]
    pub(super) model: Option<String>,
    /// The column with the conversation: `messages` as `prompt` writes them, or a text.
    #[serde(default)]
    messages: Option<String>,
    /// What becomes the `prediction`: the code in the answer, or all of it.
    #[serde(default)]
    pub(super) extract: Extract,
    /// Answers to each prompt.
    #[serde(default)]
    #[schemars(range(min = 1, max = 10_000))]
    samples: Option<u32>,
    /// Where random choices come from. A server may ignore it.
    #[serde(default)]
    pub(super) seed: Option<i64>,
    /// How much chance there is in the choice of tokens; 0 for none.
    #[serde(default)]
    #[schemars(range(min = 0.0))]
    pub(super) temperature: Option<f64>,
    /// The most tokens of an answer.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub(super) max_tokens: Option<u64>,
    /// Texts that end an answer.
    #[serde(default)]
    pub(super) stop: Vec<String>,

    /// `openai`: the address that ends before `/chat/completions`; OpenAI's own if absent.
    #[serde(default)]
    base_url: Option<String>,
    /// `openai`: the environment variable with the key. If it is absent or empty: OPENAI_API_KEY
    /// for OpenAI's own server, none for others.
    #[serde(default)]
    pub(super) api_key_env: Option<String>,
    /// `openai`: only tokens of this share of the probability are drawn.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub(super) top_p: Option<f64>,
    /// `openai`: more of the request, as the server wants it, such as
    /// `{ max_completion_tokens: 500 }`.
    #[serde(default)]
    pub(super) extra_body: Map<String, Value>,
    /// `openai`: requests under way at a time (16).
    #[serde(default)]
    #[schemars(range(min = 1, max = 4096))]
    concurrency: Option<usize>,
    /// `openai`: the most requests in any 60 seconds.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub(super) requests_per_minute: Option<u64>,
    /// `openai`: the most tokens in any 60 seconds, read and written.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub(super) tokens_per_minute: Option<u64>,
    /// `openai`: how long an answer may take (600).
    #[serde(default)]
    timeout_seconds: Option<f64>,
    /// `openai`: how often a request is sent at most (5).
    #[serde(default)]
    #[schemars(range(min = 1, max = 100))]
    tries: Option<u32>,
    /// `openai`: what all cells of this step may spend together, in US dollars, over all runs until
    /// everything is answered. Needs `price` and `max_tokens`.
    #[serde(default)]
    pub(super) max_usd: Option<f64>,
    /// `openai`: what tokens cost.
    #[serde(default)]
    pub(super) price: Option<PriceArgs>,

    /// `ngram`: the column with the code to go on from (`random_cut`).
    #[serde(default)]
    code: Option<String>,
    /// `ngram`: the column of the port `train` with the texts to learn from (`code`).
    #[serde(default)]
    train_column: Option<String>,
    /// `ngram`: tokens of an n-gram (6).
    #[serde(default)]
    #[schemars(range(min = 2, max = 8))]
    order: Option<usize>,

    /// `replay`: the columns that the input and the port `answers` share to find each other. If
    /// absent, `prompt_id` of the answers is the `id` of the prompt.
    #[serde(default)]
    pub(super) on: Vec<String>,
    /// `replay`: the column of the port `answers` with the answer (`raw_response`).
    #[serde(default)]
    answer: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Provider {
    /// A server that speaks OpenAI's chat completions: vLLM, llama.cpp, Ollama, a gateway, OpenAI.
    #[default]
    Openai,
    /// A small n-gram model that is trained on the port `train`.
    Ngram,
    /// A table of answers, at the port `answers`.
    Replay,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Extract {
    /// The code in a fenced block, or all of an answer without one.
    #[default]
    Code,
    /// The answer as it came.
    Raw,
}

impl Extract {
    pub(super) fn is_code(self) -> bool {
        self == Self::Code
    }
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PriceArgs {
    /// US dollars for a million tokens of prompts.
    input: f64,
    /// US dollars for a million tokens of answers.
    output: f64,
}

impl PriceArgs {
    /// The exact price of a token.
    pub(super) fn per_million(&self) -> Result<galeras_chat::Price, String> {
        let usd = |price: f64| Usd::from_str(&price.to_string());
        galeras_chat::Price::per_million(usd(self.input)?, usd(self.output)?)
    }
}

impl GenerateArgs {
    pub(super) fn messages(&self) -> &str {
        self.messages.as_deref().unwrap_or("messages")
    }

    pub(super) fn samples(&self) -> u32 {
        self.samples.unwrap_or(1)
    }

    /// The address without the slash that it may end with: the same server.
    pub(super) fn base_url(&self) -> &str {
        self.base_url.as_deref().unwrap_or(OPENAI).trim().trim_end_matches('/')
    }

    pub(super) fn api_key_env(&self) -> Option<&str> {
        let own = self.base_url() == OPENAI;
        let given = self.api_key_env.as_deref().filter(|name| !name.is_empty());
        given.or(own.then_some(OPENAI_KEY))
    }

    pub(super) fn concurrency(&self) -> usize {
        self.concurrency.unwrap_or(16)
    }

    pub(super) fn timeout_seconds(&self) -> f64 {
        self.timeout_seconds.unwrap_or(600.0)
    }

    pub(super) fn tries(&self) -> u32 {
        self.tries.unwrap_or(5)
    }

    /// The most money, of arguments that were checked.
    pub(super) fn max_usd(&self) -> Option<Usd> {
        self.max_usd.and_then(|limit| Usd::from_str(&limit.to_string()).ok())
    }

    /// Whether the length of answers is limited.
    pub(super) fn limits_answers(&self) -> bool {
        self.max_tokens.is_some() || self.extra_body.contains_key("max_completion_tokens")
    }

    pub(super) fn code(&self) -> &str {
        self.code.as_deref().unwrap_or("random_cut")
    }

    pub(super) fn train_column(&self) -> &str {
        self.train_column.as_deref().unwrap_or("code")
    }

    pub(super) fn order(&self) -> usize {
        self.order.unwrap_or(galeras_ngram::NgramModel::DEFAULT_ORDER)
    }

    pub(super) fn answer(&self) -> &str {
        self.answer.as_deref().unwrap_or("raw_response")
    }

    /// What is wrong with the arguments, whatever the input.
    pub(super) fn check(&self) -> Vec<ArgError> {
        let mut errors = Vec::new();
        for (name, given, provider) in self.belongings() {
            if given && provider != self.provider {
                let provider = match provider {
                    Provider::Openai => "openai",
                    Provider::Ngram => "ngram",
                    Provider::Replay => "replay",
                };
                let message = format!("`{name}` belongs to `provider: {provider}`");
                errors.push(ArgError::new(name, Code::ConflictingArguments, message));
            }
        }
        let mut refuse = |path: &str, message: &str| {
            errors.push(ArgError::new(path, Code::OutOfRange, message));
        };
        if !(1..=MAX_SAMPLES).contains(&self.samples()) {
            refuse("samples", "`samples` must be between 1 and 10000");
        }
        if self.temperature.is_some_and(|t| !t.is_finite() || t < 0.0) {
            refuse("temperature", "`temperature` must be 0 or more");
        }
        if self.top_p.is_some_and(|p| !(0.0..=1.0).contains(&p)) {
            refuse("top_p", "a share must be between 0 and 1");
        }
        if self.max_tokens == Some(0) {
            refuse("max_tokens", "`max_tokens` must be at least 1");
        }
        if self.stop.iter().any(String::is_empty) {
            refuse("stop", "an empty text would end every answer");
        }
        if !(self.timeout_seconds() > 0.0 && self.timeout_seconds() <= 86_400.0) {
            refuse(
                "timeout_seconds",
                "`timeout_seconds` must be more than 0 and at most 86400, which is a day",
            );
        }
        if self.provider == Provider::Openai {
            self.check_openai(&mut errors);
        }
        if self.provider == Provider::Ngram && self.seed.is_none() {
            let error =
                ArgError::new("", Code::MissingArgument, "`provider: ngram` needs a `seed`");
            errors.push(error.help("seed: 42"));
        }
        errors
    }

    fn check_openai(&self, errors: &mut Vec<ArgError>) {
        if self.model.as_ref().is_none_or(|model| model.trim().is_empty()) {
            let message = "`provider: openai` needs a `model`";
            errors.push(ArgError::new("model", Code::MissingArgument, message));
        }
        if let Err(error) = galeras_chat::Endpoint::new(self.base_url(), None) {
            errors.push(ArgError::new("base_url", Code::BadUrl, error.to_string()));
        } else if let Some(secret) = galeras_net::secret_in(self.base_url()) {
            let message = format!("the address of the endpoint must not hold {secret}");
            let error = ArgError::new("base_url", Code::BadUrl, message);
            errors.push(error.help("the key is in the variable that `api_key_env` names"));
        }
        for name in ["model", "messages", "stream", "n"] {
            if self.extra_body.contains_key(name) {
                let message = format!("`extra_body` must not have `{name}`: the step sets it");
                let path = format!("extra_body.{name}");
                errors.push(ArgError::new(path, Code::ConflictingArguments, message));
            }
        }
        if let Some(Err(why)) = self.price.as_ref().map(PriceArgs::per_million) {
            errors.push(ArgError::new("price", Code::OutOfRange, why));
        }
        let Some(limit) = self.max_usd else { return };
        if !limit.is_finite() || limit < 0.0 || self.max_usd().is_none() {
            let message = "`max_usd` must be 0 or more, with 18 decimals at most";
            errors.push(ArgError::new("max_usd", Code::OutOfRange, message));
        }
        let free = self.price.as_ref().is_some_and(|price| price.output == 0.0);
        let limited = free || self.limits_answers();
        for (name, given) in [("price", self.price.is_some()), ("max_tokens", limited)] {
            if !given {
                let message = format!(
                    "`max_usd` needs `{name}`, to know what a request may cost before it is sent"
                );
                errors.push(ArgError::new("max_usd", Code::MissingArgument, message));
            }
        }
    }

    /// The arguments that only one provider has: name, whether it is given, provider.
    fn belongings(&self) -> [(&'static str, bool, Provider); 16] {
        use Provider::{Ngram, Openai, Replay};
        [
            ("base_url", self.base_url.is_some(), Openai),
            ("api_key_env", self.api_key_env.is_some(), Openai),
            ("top_p", self.top_p.is_some(), Openai),
            ("extra_body", !self.extra_body.is_empty(), Openai),
            ("concurrency", self.concurrency.is_some(), Openai),
            ("requests_per_minute", self.requests_per_minute.is_some(), Openai),
            ("tokens_per_minute", self.tokens_per_minute.is_some(), Openai),
            ("timeout_seconds", self.timeout_seconds.is_some(), Openai),
            ("tries", self.tries.is_some(), Openai),
            ("max_usd", self.max_usd.is_some(), Openai),
            ("price", self.price.is_some(), Openai),
            ("code", self.code.is_some(), Ngram),
            ("train_column", self.train_column.is_some(), Ngram),
            ("order", self.order.is_some(), Ngram),
            ("on", !self.on.is_empty(), Replay),
            ("answer", self.answer.is_some(), Replay),
        ]
    }
}
