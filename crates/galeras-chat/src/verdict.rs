//! The meaning of a bad response: it is tried again, ends its request, or ends all. This is the table of
//! `lib.rs`, without failed connections.

use std::time::Duration;

use super::answer::Usage;
use super::ask::{Ask, LENGTH_LIMITS};
use super::endpoint::Endpoint;
use super::error::rules;
use super::error_body::ErrorBody;

/// The error of one try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AttemptError {
    pub(super) kind: Kind,
    /// One sentence, fit to be shown.
    pub(super) reason: String,
    pub(super) cost: Cost,
    /// The body of a good response in which no answer was found, without the key.
    pub(super) unread: Option<Box<str>>,
}

/// The consequence of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// No request will succeed.
    Fatal,
    /// This request will not succeed.
    Refused(&'static str),
    /// Another try may succeed, this time at the earliest.
    Again { rule: &'static str, often: bool, after: Duration },
    /// All requests have to wait, for this time if the server gives one.
    Limited(Option<Duration>),
    /// The server does not answer, or has not loaded the model yet.
    Down { loading: bool },
}

/// The cost of a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cost {
    Nothing,
    Known(Usage),
    Unknown,
}

impl AttemptError {
    pub(super) fn new(kind: Kind, reason: impl Into<String>, cost: Cost) -> Self {
        Self { kind, reason: reason.into(), cost, unread: None }
    }

    /// An error of a try that may have been billed; it is tried again once.
    pub(super) fn once(rule: &'static str, reason: impl Into<String>, cost: Cost) -> Self {
        Self::new(Kind::Again { rule, often: false, after: Duration::ZERO }, reason, cost)
    }
}

/// A response with a bad status, or with an error in its body.
pub(super) struct BadResponse<'a> {
    pub(super) status: u16,
    pub(super) body: &'a ErrorBody,
    /// The wait that the server asks for.
    pub(super) wait: Option<Duration>,
    /// The target of a redirect.
    pub(super) location: Option<&'a str>,
    /// The server advises against another try.
    pub(super) never: bool,
}

impl BadResponse<'_> {
    /// Judges the response to `ask` from `endpoint`.
    pub(super) fn judge(&self, ask: &Ask, endpoint: &Endpoint) -> AttemptError {
        let status = self.status;
        let quote = endpoint.quote(&self.body.message);
        let quoted = if quote.is_empty() { String::new() } else { format!(": {quote}") };
        let key = endpoint.key.as_ref().map(|key| format!("${}", key.variable()));
        let fatal = |text: String| AttemptError::new(Kind::Fatal, text, Cost::Nothing);
        match status {
            300..=399 => fatal(self.redirect(endpoint)),
            401 => fatal(match key {
                Some(key) => format!("{endpoint} does not take the key in {key}{quoted}"),
                None => format!("{endpoint} wants a key{quoted}"),
            }),
            402 => fatal(format!("the account has no money left at {}{quoted}", endpoint.origin())),
            403 if self.body.mentions(&["moderation", "flagged"]) => filtered(&quoted),
            403 => fatal(match key {
                Some(key) => format!("{endpoint} refuses (HTTP 403) the key in {key}{quoted}"),
                None => format!("{endpoint} refuses (HTTP 403){quoted}"),
            }),
            404 | 410 if self.body.mentions(&["model"]) || self.body.is(&["model_not_found"]) => {
                fatal(no_model(ask, endpoint, &quoted))
            }
            404 | 405 | 410 | 501 => {
                let (name, hint) = (endpoint.protocol.name(), endpoint.protocol.hint());
                fatal(format!("there are no {name} at {endpoint} (HTTP {status}){quoted}; {hint}"))
            }
            407 => fatal(format!("the proxy wants a login (HTTP 407){quoted}")),
            400 | 422 => self.bad_request(ask, endpoint, &quoted),
            413 => refused(format!("the request is too long for the server{quoted}")),
            429 if self.body.is(QUOTA) => {
                fatal(format!("the quota of {} is used up{quoted}", endpoint.origin()))
            }
            429 if self.body.mentions(&["request too large"]) => {
                refused(format!("the request is longer than its limit allows{quoted}"))
            }
            429 => {
                let reason = format!("the server limits requests (HTTP 429){quoted}");
                AttemptError::new(Kind::Limited(self.wait), reason, Cost::Nothing)
            }
            503 if self.body.mentions(LOADING) => {
                let reason = format!("the server loads its model (HTTP 503){quoted}");
                AttemptError::new(Kind::Down { loading: true }, reason, Cost::Nothing)
            }
            500..=599 if self.is_too_long() => {
                refused(format!("the prompt does not fit into the context{quoted}"))
            }
            503 | 529 if self.wait.is_some() => {
                let reason = format!("the server is busy (HTTP {status}){quoted}");
                AttemptError::new(Kind::Limited(self.wait), reason, Cost::Nothing)
            }
            408 | 409 | 425 | 500..=599 => self.failed(&quoted),
            _ => refused(format!("the server refuses (HTTP {status}){quoted}")),
        }
    }

    fn redirect(&self, endpoint: &Endpoint) -> String {
        let to = self.location.and_then(|to| endpoint.url.join(to).ok());
        let Some(to) = to else {
            return format!("{endpoint} redirects to nowhere (HTTP {})", self.status);
        };
        // Without the query, which may hold anything.
        let to = format!("{}{}", to.origin().ascii_serialization(), to.path());
        let to = endpoint.quote(&to);
        format!(
            "{endpoint} redirects to {to}, which is not followed, as the key is not for there; \
             if you trust it, make it the address"
        )
    }

    fn bad_request(&self, ask: &Ask, endpoint: &Endpoint, quoted: &str) -> AttemptError {
        let fatal = |text: String| AttemptError::new(Kind::Fatal, text, Cost::Nothing);
        let refused = |text: &str| refused(format!("{text}{quoted}"));
        if self.body.mentions(&["credit balance is too low"]) {
            let origin = endpoint.origin();
            return fatal(format!("the account has no money left at {origin}{quoted}"));
        }
        if self.body.mentions(&["maximum allowed number of output tokens"]) {
            return fatal(format!("`max_tokens` is more than the model allows{quoted}"));
        }
        if self.body.is(FILTERED) || self.body.mentions(&["content management policy"]) {
            return filtered(quoted);
        }
        if self.body.mentions(&["https server", "https port"]) {
            return fatal(format!("{} speaks https:// only{quoted}", endpoint.origin()));
        }
        if self.is_too_long() {
            return refused("the prompt does not fit into the context");
        }
        let gone = ["does not exist", "not found", "not a valid model", "unknown model"];
        let model = self.body.mentions(&["model"]) && self.body.mentions(&gone);
        if self.body.is(&["model_not_found", "invalid_model"]) || model {
            return fatal(no_model(ask, endpoint, quoted));
        }
        if !self.body.is(UNSUPPORTED) && !self.body.mentions(UNSUPPORTED_WORDS) {
            return refused("the server refuses the request");
        }
        let [old, new] = LENGTH_LIMITS;
        let named = |name: &str| {
            let named = self.body.param == name || self.body.mentions(&[&format!("'{name}'")]);
            named && ask.completion_limit().is_some()
        };
        let wrong = |wrong: &str, right: &str| {
            format!(
                "the server does not know `{wrong}`; limit answers by `{right}` instead{quoted}"
            )
        };
        fatal(if named(old) && self.body.param != new {
            wrong(old, new)
        } else if named(new) {
            wrong(new, old)
        } else {
            format!("the server does not take a parameter of the request; leave it out{quoted}")
        })
    }

    /// Returns true if the prompt and its answer are longer than the context.
    fn is_too_long(&self) -> bool {
        self.body.is(&["context_length_exceeded", "exceed_context_size_error"])
            || self.body.mentions(&[
                "context length",
                "context size",
                "context window",
                "maximum context",
                "context limit",
                "prompt is too long",
                "max_tokens must be at least 1, got -",
            ])
    }

    fn failed(&self, quoted: &str) -> AttemptError {
        let reason = format!("the server failed (HTTP {}){quoted}", self.status);
        // The backend behind a gateway may have answered, but too late.
        let cost =
            if matches!(self.status, 408 | 504 | 524) { Cost::Unknown } else { Cost::Nothing };
        let rule = rules::SERVER_ERROR;
        let kind = if self.never {
            Kind::Refused(rule)
        } else {
            Kind::Again { rule, often: true, after: self.wait.unwrap_or_default() }
        };
        AttemptError::new(kind, reason, cost)
    }
}

/// The error of a request that the server refuses.
fn refused(reason: String) -> AttemptError {
    AttemptError::new(Kind::Refused(rules::REFUSED), reason, Cost::Nothing)
}

/// The error of a prompt that a filter of the server stopped.
fn filtered(quoted: &str) -> AttemptError {
    let reason = format!("a filter stopped the prompt{quoted}");
    AttemptError::new(Kind::Refused(rules::CONTENT_FILTER), reason, Cost::Nothing)
}

const QUOTA: &[&str] = &[
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing_not_active",
    "insufficient_balance",
];

const LOADING: &[&str] = &["loading model", "model is loading", "is currently loading"];

const FILTERED: &[&str] = &[
    "content_filter",
    "content_policy_violation",
    "responsibleaipolicyviolation",
    "invalid_prompt",
    "data_inspection_failed",
];

const UNSUPPORTED: &[&str] =
    &["unsupported_parameter", "unsupported_value", "unknown_parameter", "extra_forbidden"];

const UNSUPPORTED_WORDS: &[&str] = &[
    "unsupported param",
    "unsupported value",
    "unknown parameter",
    "unrecognized request argument",
    "extra inputs are not permitted",
    "extra fields not permitted",
    "suffix is not currently supported",
    "cannot both be specified",
];

fn no_model(ask: &Ask, endpoint: &Endpoint, quoted: &str) -> String {
    format!("{} has no model `{}`{quoted}", endpoint.origin(), endpoint.quote(&ask.model))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::protocol::Protocol;
    use galeras_net::Secret;

    fn judged(status: u16, body: &str, wait: Option<Duration>) -> AttemptError {
        let body = ErrorBody::read(body.as_bytes());
        let location = Some("https://evil/x?k=1");
        let bad = BadResponse { status, body: &body, wait, location, never: false };
        let request = json!({"model": "m", "messages": [{}], "max_tokens": 5});
        let ask = Ask::new(request.as_object().unwrap().clone()).unwrap();
        let key = Secret::new("KEY", "sk-0123456789abcdef").unwrap();
        bad.judge(&ask, &Endpoint::new(Protocol::Chat, "http://host/v1", Some(key)).unwrap())
    }

    fn error(message: &str, code: &str) -> String {
        json!({"error": {"message": message, "code": code}}).to_string()
    }

    #[test]
    fn errors_that_end_all_requests() {
        let key = error("Incorrect API key provided: sk-01234****cdef", "invalid_api_key");
        let quota = error("You exceeded your current quota", "insufficient_quota");
        let vllm = r#"{"object":"error","message":"The model `m` does not exist.","code":404}"#;
        let tokens = "Unsupported parameter: 'max_tokens' is not supported with this model. Use \
                      'max_completion_tokens' instead.";
        let long = "max_tokens: 9 > 8, which is the maximum allowed number of output tokens";
        let tls = "Client sent an HTTP request to an HTTPS server.";
        for (status, body, part) in [
            (401, key, "key in $KEY"),
            (402, error("Insufficient Balance", ""), "no money"),
            (403, error("Country not supported", ""), "refuses"),
            (404, "404 page not found".into(), "/v1"),
            (404, vllm.into(), "has no model `m`"),
            (400, error("m is not a valid model ID", ""), "has no model `m`"),
            (404, error("model 'm' not found, try pulling it", ""), "has no model `m`"),
            (400, error(tokens, "unsupported_parameter"), "`max_completion_tokens` instead"),
            (400, error("Unrecognized request argument supplied: top_k", ""), "top_k"),
            (400, error("suffix is not currently supported", ""), "leave it out"),
            (400, error("Your credit balance is too low to access the API.", ""), "no money"),
            (400, error(long, ""), "`max_tokens`"),
            (400, tls.into(), "https://"),
            (405, String::new(), "/v1"),
            (407, String::new(), "proxy"),
            (429, quota, "quota"),
            (307, String::new(), "redirects to https://evil/x,"),
        ] {
            let found = judged(status, &body, None);
            assert_eq!((found.kind, found.cost), (Kind::Fatal, Cost::Nothing), "{found:?}");
            assert!(found.reason.contains(part), "{}", found.reason);
            assert!(!found.reason.contains("cdef"), "{}", found.reason);
        }
    }

    #[test]
    fn errors_that_end_one_request() {
        let azure = error("The response was filtered due to the prompt", "content_filter");
        let llama = r#"{"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}"#;
        let llama_400 = r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}"#;
        let limit = error("input length and `max_tokens` exceed context limit: 8 + 2 > 9", "");
        for (status, body, rule, part) in [
            (400, azure, rules::CONTENT_FILTER, "filter"),
            (403, error("your input was flagged", ""), rules::CONTENT_FILTER, "flagged"),
            (400, error("This model's maximum context length is 5", ""), rules::REFUSED, "context"),
            (400, error("max_tokens must be at least 1, got -186.", ""), rules::REFUSED, "context"),
            (500, llama.into(), rules::REFUSED, "context"),
            (400, llama_400.into(), rules::REFUSED, "context"),
            (400, error("something else", ""), rules::REFUSED, "something else"),
            (400, error("prompt is too long: 9 tokens > 8 maximum", ""), rules::REFUSED, "context"),
            (400, limit, rules::REFUSED, "context"),
            (413, String::new(), rules::REFUSED, "too long"),
            (418, String::new(), rules::REFUSED, "418"),
            (429, error("Request too large for gpt-4 on TPM", ""), rules::REFUSED, "longer"),
        ] {
            let found = judged(status, &body, None);
            assert_eq!(found.kind, Kind::Refused(rule), "{found:?}");
            assert!(found.reason.contains(part), "{}", found.reason);
        }
    }

    #[test]
    fn errors_that_are_tried_again() {
        let again = |after| Kind::Again { rule: rules::SERVER_ERROR, often: true, after };
        let wait = Some(Duration::from_secs(9));
        for status in [408, 409, 425, 500, 502, 503, 504, 529] {
            assert_eq!(judged(status, "", None).kind, again(Duration::ZERO), "{status}");
        }
        let gemini = error("You exceeded your current quota, please check your plan", "429");
        let loading =
            r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#;
        for (status, body, wait, kind) in [
            (500, "", wait, again(Duration::from_secs(9))),
            (503, "", wait, Kind::Limited(wait)),
            (529, "", wait, Kind::Limited(wait)),
            (429, &gemini, None, Kind::Limited(None)),
            (503, loading, None, Kind::Down { loading: true }),
        ] {
            assert_eq!(judged(status, body, wait).kind, kind, "{status} {body}");
        }
        assert_eq!(judged(504, "", None).cost, Cost::Unknown);
        assert_eq!(judged(500, "", None).cost, Cost::Nothing);
    }
}
