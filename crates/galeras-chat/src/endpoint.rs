//! The endpoint of requests, and the check of the address that a user wrote.

use std::fmt;

use url::{Host, Url};

use super::error::ChatError;
use super::protocol::Protocol;
use galeras_net::{Secret, has_slashes, one_line};

/// The longest quote of a server's words, in characters.
const LONGEST_QUOTE: usize = 200;

/// An endpoint that speaks one of the protocols, and the key for it.
///
/// The key is sent to this address only, as redirects are not followed. `Debug` and `Display`
/// show neither it nor the query of the address, which may hold another one.
#[derive(Clone)]
pub struct Endpoint {
    pub(super) protocol: Protocol,
    pub(super) url: Url,
    pub(super) key: Option<Secret>,
}

impl Endpoint {
    /// The endpoint below `base_url`, which is written as for the protocol's own clients, with or
    /// without a slash at its end: `http://host:8000/v1` for OpenAI's, `http://host:8000` (or with
    /// `/v1`) for Anthropic's. An address that already ends in the path of the protocol is taken as
    /// well, and a query (Azure's `?api-version=…`) is kept.
    ///
    /// # Errors
    /// [`ChatError::Fatal`] if `base_url` is not an http or https URL, holds a user, a password or
    /// a fragment, or ends like another API's address.
    pub fn new(protocol: Protocol, base_url: &str, key: Option<Secret>) -> Result<Self, ChatError> {
        let wrong = |why: &str| ChatError::Fatal(format!("the address of the endpoint {why}"));
        // Not quoted before it is known to hold no password.
        let mut url = Url::parse(base_url.trim()).map_err(|error| match error {
            url::ParseError::RelativeUrlWithoutBase => wrong("must begin with https:// or http://"),
            error => wrong(&format!("is invalid: {error}")),
        })?;
        let web = matches!(url.scheme(), "http" | "https") && has_slashes(base_url);
        if !web || url.host_str().is_none() {
            return Err(wrong("must begin with https:// or http://"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("must not hold a user or password; keys are given by variables"));
        }
        if url.fragment().is_some() {
            return Err(wrong("must not hold `#`"));
        }
        let base = protocol.base(url.path()).map_err(wrong)?;
        let path = format!("{base}{}", protocol.path());
        url.set_path(&path);
        Ok(Self { protocol, url, key })
    }

    /// Returns true if the key goes over a network without encryption.
    pub fn shows_key(&self) -> bool {
        let here = match self.url.host() {
            Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        };
        self.key.is_some() && self.url.scheme() == "http" && !here
    }

    /// Scheme, host and port.
    pub(super) fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    /// A text of the server on one short line, without the key.
    pub(super) fn quote(&self, text: &str) -> String {
        match &self.key {
            Some(key) => one_line(&key.scrub(text), LONGEST_QUOTE),
            None => one_line(text, LONGEST_QUOTE),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin(), self.url.path())
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({self}, {:?})", self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_as_users_write_them() {
        use Protocol::{Chat, Completions, Messages};
        let [azure, query] = ["https://host/openai/v1?api-version=p", "https://host/anthropic?x=1"];
        for (protocol, written, sent) in [
            (Chat, "http://host:8000/v1", "http://host:8000/v1/chat/completions"),
            (Chat, "http://host:8000/v1/", "http://host:8000/v1/chat/completions"),
            (Chat, " https://host/v1//", "https://host/v1/chat/completions"),
            (Chat, "http://host:11434", "http://host:11434/chat/completions"),
            (Chat, "http://host/v1/chat/completions", "http://host/v1/chat/completions"),
            (Chat, "http://host/v1/chat/completions/", "http://host/v1/chat/completions"),
            (Chat, azure, "https://host/openai/v1/chat/completions?api-version=p"),
            (Chat, "http://[::1]:80/v1", "http://[::1]/v1/chat/completions"),
            (Completions, "http://host/v1/", "http://host/v1/completions"),
            (Completions, "http://host/v1/completions", "http://host/v1/completions"),
            (Completions, "http://host/v1/fim", "http://host/v1/fim/completions"),
            (Messages, "https://host", "https://host/v1/messages"),
            (Messages, "https://host/", "https://host/v1/messages"),
            (Messages, "https://host/v1", "https://host/v1/messages"),
            (Messages, "https://host/v1/messages/", "https://host/v1/messages"),
            (Messages, query, "https://host/anthropic/v1/messages?x=1"),
        ] {
            let endpoint = Endpoint::new(protocol, written, None).unwrap();
            assert_eq!(endpoint.url.as_str(), sent);
            assert!(!endpoint.to_string().contains('?'));
        }
    }

    #[test]
    fn wrong_addresses_are_explained_without_quoting_them() {
        use Protocol::{Chat, Completions, Messages};
        for (protocol, written, part) in [
            (Chat, "host:8000/v1", "https://"),
            (Chat, "/v1", "https://"),
            (Chat, "", "https://"),
            (Chat, "ftp://host/v1", "https://"),
            (Chat, "https:host/v1", "https://"),
            (Chat, "https:\\\\host/v1", "https://"),
            (Chat, "http://", "empty host"),
            (Chat, "http://me:hunter2@host/v1", "user or password"),
            (Chat, "http://hunter2@host/v1", "user or password"),
            (Chat, "http://host/v1#hunter2", "`#`"),
            (Chat, "http://host/v1/completions", "chats"),
            (Chat, "http://host:11434/api/chat", "/v1"),
            (Chat, "http://ho st/v1", "invalid"),
            (Chat, "http://host/v1/messages", "chat completions"),
            (Completions, "http://host/v1/chat/completions", "not chats"),
            (Completions, "http://host/api/generate", "/v1"),
            (Messages, "http://host/v1/chat/completions", "/v1/messages"),
            (Messages, "http://host/v1/complete", "/v1/messages"),
        ] {
            let error = Endpoint::new(protocol, written, None).unwrap_err().to_string();
            assert!(error.contains(part), "{written}: {error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn a_key_in_the_clear_is_noticed() {
        let key = || Some(Secret::new("K", "sk-0123456789").unwrap());
        let chat = |url: &str, key| Endpoint::new(Protocol::Chat, url, key).unwrap();
        for (url, key, shows) in [
            ("http://10.0.0.1/v1", key(), true),
            ("http://10.0.0.1/v1", None, false),
            ("https://10.0.0.1/v1", key(), false),
            ("http://localhost/v1", key(), false),
            ("http://127.0.0.1:8000/v1", key(), false),
            ("http://[::1]/v1", key(), false),
        ] {
            assert_eq!(chat(url, key).shows_key(), shows, "{url}");
        }
        let shown = format!("{:?}", chat("http://h/v1?key=hunter2", key()));
        assert_eq!(shown, "Endpoint(http://h/v1/chat/completions, Some(Secret($K)))");
    }
}
