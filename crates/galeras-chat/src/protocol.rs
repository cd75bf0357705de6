//! The protocols of servers. They differ in the address, the headers, and the form of an answer.

use galeras_net::Secret;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue, InvalidHeaderValue};

use super::answer::{Answer, Content, Usage, parse_choices, parse_message};

/// The protocol of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// OpenAI's chat completions: `messages` are answered.
    Chat,
    /// OpenAI's completions: the model continues the text `prompt`, up to a `suffix` if the server
    /// supports that.
    Completions,
    /// Anthropic's messages API.
    Messages,
}

/// The version of the messages API that is spoken.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// The ends of the addresses of Ollama's own protocol.
const OLLAMA: [(&str, &str); 2] = [
    ("/api/chat", "is the OpenAI-compatible one: `/v1` instead of `/api/chat`"),
    ("/api/generate", "is the OpenAI-compatible one: `/v1` instead of `/api/generate`"),
];

impl Protocol {
    /// The path after the base of every server.
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Chat => "/chat/completions",
            Self::Completions => "/completions",
            Self::Messages => "/v1/messages",
        }
    }

    /// The name of the service at the address.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat completions",
            Self::Completions => "completions",
            Self::Messages => "messages of Anthropic's API",
        }
    }

    /// A hint for a user with a wrong address.
    pub(super) fn hint(self) -> &'static str {
        match self {
            Self::Chat | Self::Completions => "the address of most servers ends in /v1",
            Self::Messages => "the address ends before /v1/messages",
        }
    }

    /// The base of the path of an address that a user wrote, which may be complete.
    ///
    /// # Errors
    /// A problem in words that follow “the address of the endpoint”.
    pub(super) fn base(self, path: &str) -> Result<&str, &'static str> {
        let path = path.trim_end_matches('/');
        let ends: &[(&str, &str)] = match self {
            Self::Chat => &[
                OLLAMA[0],
                OLLAMA[1],
                ("/completions", "takes chats, not prompts: it ends before `/completions`"),
                ("/messages", "is that of chat completions: it ends before `/messages`"),
                ("/responses", "is that of chat completions: it ends before `/responses`"),
            ],
            Self::Completions => &[
                OLLAMA[0],
                OLLAMA[1],
                ("/chat", "takes prompts, not chats: it ends before `/chat/completions`"),
                ("/messages", "is that of completions: it ends before `/messages`"),
                ("/responses", "is that of completions: it ends before `/responses`"),
            ],
            Self::Messages => &[
                ("/completions", "is that of the messages API: it ends before `/v1/messages`"),
                ("/complete", "is that of the messages API: it ends before `/v1/messages`"),
            ],
        };
        let base = match self {
            Self::Messages => {
                let base = path.strip_suffix("/messages").unwrap_or(path);
                base.strip_suffix("/v1").unwrap_or(base)
            }
            _ => path.strip_suffix(self.path()).unwrap_or(path),
        };
        match ends.iter().find(|(end, _)| base.ends_with(end)) {
            Some((_, why)) => Err(why),
            None => Ok(base.trim_end_matches('/')),
        }
    }

    /// The headers that every request has, with the key in one of them.
    pub(super) fn headers(self, key: Option<&Secret>) -> Result<HeaderMap, InvalidHeaderValue> {
        let mut headers = HeaderMap::new();
        if self == Self::Messages {
            let version = HeaderValue::from_static(ANTHROPIC_VERSION);
            headers.insert(HeaderName::from_static("anthropic-version"), version);
        }
        if let Some(key) = key {
            let (name, value) = match self {
                Self::Messages => (HeaderName::from_static("x-api-key"), key.expose().to_string()),
                _ => (AUTHORIZATION, format!("Bearer {}", key.expose())),
            };
            let mut value = HeaderValue::try_from(value)?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(headers)
    }

    /// The answer in a body in which another version of this crate found none.
    pub fn answer(self, body: &str) -> Option<Answer> {
        let (usage, content) = self.parse(body.as_bytes()).ok()?;
        let Content::Answer(answer) = content else { return None };
        let Usage { prompt_tokens, completion_tokens } = usage;
        Some(Answer { prompt_tokens, completion_tokens, ..*answer })
    }

    /// Reads the body of an answer.
    pub(super) fn parse(self, body: &[u8]) -> serde_json::Result<(Usage, Content)> {
        match self {
            Self::Chat | Self::Completions => parse_choices(body),
            Self::Messages => parse_message(body),
        }
    }
}
