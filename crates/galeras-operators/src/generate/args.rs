//! The arguments of `generate`: their defaults and checks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::str::FromStr;

use super::provider::{EndpointName, Provider, misplaced};
use galeras_chat::{Endpoint, Protocol, Usd};
use galeras_operator::ArgError;
use galeras_workflow::code::Code;

/// The address of OpenAI's own server.
const OPENAI: &str = "https://api.openai.com/v1";
/// The variable of the key for it.
const OPENAI_KEY: &str = "OPENAI_API_KEY";
/// The same of Anthropic.
const ANTHROPIC: &str = "https://api.anthropic.com";
const ANTHROPIC_KEY: &str = "ANTHROPIC_API_KEY";
/// The most answers to one prompt.
const MAX_SAMPLES: u32 = 10_000;

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Args")]
pub(super) struct GenerateArgs {
    /// The source of the answers.
    pub(super) provider: Provider,
    /// The model's name, as the server knows it. For `replay`, the model whose answers count, if
    /// they have a column `model`; all if absent. For other providers, the text of the column
    /// `model`.
    pub(super) model: Option<String>,
    /// The column with the conversation, as `prompt` writes it, or with a text (`messages`).
    messages: Option<String>,
    /// The `prediction`: the code in the answer, or all of it. If absent, `raw` for a continued
    /// text, for `given`, for `reference` and for a replayed `prediction`, else `code`.
    extract: Option<Extract>,
    /// Answers to each prompt.
    #[schemars(range(min = 1, max = 10_000))]
    samples: Option<u32>,
    /// The seed of random choices. A server may ignore it.
    pub(super) seed: Option<i64>,
    /// The randomness of the choice of tokens; 0 for none.
    #[schemars(range(min = 0.0))]
    pub(super) temperature: Option<f64>,
    /// The most tokens of an answer.
    #[schemars(range(min = 1))]
    pub(super) max_tokens: Option<u64>,
    /// Texts that end an answer.
    pub(super) stop: Vec<String>,

    /// `openai`: a `chat`, or the continuation of a text.
    endpoint: Option<EndpointName>,
    /// `endpoint: completions`: the column with the text to continue (`prompt`).
    prompt: Option<String>,
    /// `endpoint: completions`: the column with the text that comes afterwards, for models that fill
    /// in the middle. Not every server knows it.
    pub(super) suffix: Option<String>,
    /// `openai`: the log-probabilities of the tokens of answers, as columns.
    logprobs: Option<bool>,
    /// `openai`, `anthropic`: the address that ends before `/chat/completions`, `/completions` or
    /// `/v1/messages`; that of OpenAI or Anthropic if absent.
    base_url: Option<String>,
    /// `openai`, `anthropic`: the environment variable with the key. If it is absent or empty:
    /// OPENAI_API_KEY for OpenAI's own server, ANTHROPIC_API_KEY for Anthropic's, none for others.
    pub(super) api_key_env: Option<String>,
    /// `openai`, `anthropic`: only tokens of this share of the probability are drawn.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub(super) top_p: Option<f64>,
    /// `openai`, `anthropic`: more fields of the request, such as `{ max_completion_tokens: 500 }`.
    pub(super) extra_body: Map<String, Value>,
    /// `openai`, `anthropic`: requests under way at a time (16).
    #[schemars(range(min = 1, max = 4096))]
    concurrency: Option<usize>,
    /// `openai`, `anthropic`: the most requests in any 60 seconds.
    #[schemars(range(min = 1))]
    pub(super) requests_per_minute: Option<u64>,
    /// `openai`, `anthropic`: the most tokens in any 60 seconds, read and written.
    #[schemars(range(min = 1))]
    pub(super) tokens_per_minute: Option<u64>,
    /// `openai`, `anthropic`: the most seconds for an answer (600).
    timeout_seconds: Option<f64>,
    /// `openai`, `anthropic`: the most times that a request is sent (5).
    #[schemars(range(min = 1, max = 100))]
    pub(super) tries: Option<u32>,
    /// `openai`, `anthropic`: the share of the asked prompts that must have an answer (1). With
    /// less the step fails, and its answers are kept.
    #[schemars(range(min = 0.0, max = 1.0))]
    min_answered: Option<f64>,
    /// `openai`, `anthropic`: the most US dollars that all cells of this step may spend together,
    /// over all runs until everything is answered. Needs `price` and `max_tokens`.
    pub(super) max_usd: Option<f64>,
    /// `openai`, `anthropic`: the price of tokens.
    pub(super) price: Option<PriceArgs>,

    /// `ngram`: the column with the code to continue (`random_cut`).
    code: Option<String>,
    /// `ngram`: the column of the port `train` with the texts to learn from (`code`).
    train_column: Option<String>,
    /// `ngram`: tokens of an n-gram (6).
    #[schemars(range(min = 2, max = 8))]
    order: Option<usize>,

    /// `echo`: the column that is returned; the last message of the user if absent.
    pub(super) given: Option<String>,
    /// `reference`: the column with the right answers.
    pub(super) reference: Option<String>,

    /// `replay`: the columns by which rows of the input and of the port `answers` are matched. If
    /// absent, `prompt_id` of the answers is the `id` of the prompt.
    pub(super) on: Vec<String>,
    /// `replay`: the column of the port `answers` with the answer (`raw_response`, or `prediction`
    /// if there is none).
    pub(super) answer: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Extract {
    /// The code in a fenced block, or all of an answer without one.
    Code,
    /// The answer as it came.
    Raw,
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
    pub(super) fn per_million(&self) -> Result<galeras_chat::Price, String> {
        let usd = |price: f64| Usd::from_str(&price.to_string());
        galeras_chat::Price::per_million(usd(self.input)?, usd(self.output)?)
    }
}

impl GenerateArgs {
    pub(super) fn messages(&self) -> &str {
        self.messages.as_deref().unwrap_or("messages")
    }

    /// The input is a conversation, not a text or a table.
    pub(super) fn has_messages(&self) -> bool {
        match self.provider {
            Provider::Openai => !self.is_completion(),
            Provider::Anthropic | Provider::Ngram => true,
            Provider::Echo => self.given.is_none(),
            Provider::Replay | Provider::Reference => false,
        }
    }

    pub(super) fn is_completion(&self) -> bool {
        self.endpoint == Some(EndpointName::Completions)
    }

    pub(super) fn endpoint(&self) -> EndpointName {
        self.endpoint.unwrap_or_default()
    }

    pub(super) fn protocol(&self) -> Protocol {
        match (self.provider, self.endpoint()) {
            (Provider::Anthropic, _) => Protocol::Messages,
            (_, EndpointName::Completions) => Protocol::Completions,
            (_, EndpointName::Chat) => Protocol::Chat,
        }
    }

    pub(super) fn prompt(&self) -> &str {
        self.prompt.as_deref().unwrap_or("prompt")
    }

    pub(super) fn logprobs(&self) -> bool {
        self.logprobs.unwrap_or(false)
    }

    /// The extraction for answers; `as_is` if a column already has the code alone.
    pub(super) fn extract(&self, as_is: bool) -> Extract {
        let raw = as_is || self.is_completion();
        self.extract.unwrap_or(if raw { Extract::Raw } else { Extract::Code })
    }

    pub(super) fn samples(&self) -> u32 {
        self.samples.unwrap_or(1)
    }

    fn own_url(&self) -> &'static str {
        if self.provider == Provider::Anthropic { ANTHROPIC } else { OPENAI }
    }

    /// The address without optional endings that mean the same server.
    pub(super) fn base_url(&self) -> &str {
        let url = self.base_url.as_deref().unwrap_or(self.own_url()).trim().trim_end_matches('/');
        match self.provider {
            Provider::Anthropic => {
                let url = url.strip_suffix("/messages").unwrap_or(url);
                url.strip_suffix("/v1").unwrap_or(url).trim_end_matches('/')
            }
            _ => url,
        }
    }

    pub(super) fn api_key_env(&self) -> Option<&str> {
        let own = (self.base_url() == self.own_url()).then_some(match self.provider {
            Provider::Anthropic => ANTHROPIC_KEY,
            _ => OPENAI_KEY,
        });
        self.api_key_env.as_deref().filter(|name| !name.is_empty()).or(own)
    }

    pub(super) fn concurrency(&self) -> usize {
        self.concurrency.unwrap_or(16)
    }

    pub(super) fn timeout_seconds(&self) -> f64 {
        self.timeout_seconds.unwrap_or(600.0)
    }

    pub(super) fn min_answered(&self) -> f64 {
        self.min_answered.unwrap_or(1.0)
    }

    /// The spending limit of checked arguments.
    pub(super) fn max_usd(&self) -> Option<Usd> {
        self.max_usd.and_then(|limit| Usd::from_str(&limit.to_string()).ok())
    }

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

    /// The errors that do not depend on the input; `given` are the arguments as written.
    pub(super) fn check(&self, given: &Value) -> Vec<ArgError> {
        let mut errors = misplaced(self.provider, self.endpoint(), given);
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
        if !(0.0..=1.0).contains(&self.min_answered()) {
            refuse("min_answered", "a share must be between 0 and 1");
        }
        if self.max_tokens == Some(0) {
            refuse("max_tokens", "`max_tokens` must be at least 1");
        }
        if self.stop.iter().any(String::is_empty) {
            refuse("stop", "an empty text would end every answer");
        }
        if !(self.timeout_seconds() > 0.0 && self.timeout_seconds() <= 86_400.0) {
            let day = "`timeout_seconds` must be more than 0 and at most 86400, which is a day";
            refuse("timeout_seconds", day);
        }
        if self.provider.is_server() {
            self.check_server(&mut errors);
        }
        if self.provider == Provider::Ngram && self.seed.is_none() {
            let message = "`provider: ngram` needs a `seed`";
            errors.push(ArgError::new("", Code::MissingArgument, message).help("seed: 42"));
        }
        if self.provider == Provider::Reference && self.reference.is_none() {
            let message = "`provider: reference` needs the column with the right answers";
            errors.push(ArgError::new("", Code::MissingArgument, message).help("reference: code"));
        }
        errors
    }

    fn check_server(&self, errors: &mut Vec<ArgError>) {
        if self.model.as_ref().is_none_or(|model| model.trim().is_empty()) {
            let message = format!("`provider: {}` needs a `model`", self.provider.name());
            errors.push(ArgError::new("model", Code::MissingArgument, message));
        }
        if self.provider == Provider::Anthropic {
            if self.max_tokens.is_none() {
                let message = "`provider: anthropic` needs `max_tokens`: the API wants it";
                let help = "max_tokens: 1024";
                errors.push(ArgError::new("", Code::MissingArgument, message).help(help));
            }
            if self.temperature.is_some_and(|temperature| temperature > 1.0) {
                let message = "`temperature` must be at most 1 for `provider: anthropic`";
                errors.push(ArgError::new("temperature", Code::OutOfRange, message));
            }
        }
        if let Err(error) = Endpoint::new(self.protocol(), self.base_url(), None) {
            errors.push(ArgError::new("base_url", Code::BadUrl, error.to_string()));
        } else if let Some(secret) = galeras_net::secret_in(self.base_url()) {
            let message = format!("the address of the endpoint must not hold {secret}");
            let error = ArgError::new("base_url", Code::BadUrl, message);
            errors.push(error.help("the key is in the variable that `api_key_env` names"));
        }
        let is_name = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if self.api_key_env.as_deref().is_some_and(|name| !is_name(name)) {
            // Not quoted: it may be the key.
            let message = "`api_key_env` is the name of a variable, not the key itself";
            let error = ArgError::new("api_key_env", Code::WrongValue, message);
            errors.push(error.help("as in `api_key_env: OPENAI_API_KEY`, without `$`"));
        }
        let set: &[&str] = match self.protocol() {
            Protocol::Chat => &["model", "messages", "stream", "n"],
            Protocol::Completions => &["model", "prompt", "suffix", "stream", "n", "echo"],
            Protocol::Messages => &["model", "messages", "system", "stream"],
        };
        for name in set {
            if self.extra_body.contains_key(*name) {
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
}
