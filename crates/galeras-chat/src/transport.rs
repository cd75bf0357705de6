//! One request over HTTP, and its response. Bodies are read up to a limit.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use galeras_net::{AGENT, CONNECT_TIMEOUT, causes, http_builder};
use reqwest::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, LOCATION};
use reqwest::{Response, redirect};

use super::answer::{Answer, Content, Usage};
use super::ask::Ask;
use super::endpoint::Endpoint;
use super::error::{ChatError, rules};
use super::error_body::ErrorBody;
use super::verdict::{AttemptError, BadResponse, Cost, Kind};
use super::waits::{in_words, wait_of};

/// Servers close idle connections after 5 seconds (uvicorn, which vLLM runs on, llama.cpp,
/// Node.js). We do it before, as a request that crosses the closing is lost and may be billed.
const IDLE: Duration = Duration::from_secs(4);
/// The bytes of an error's body that are read.
const ERROR_BYTES: usize = 64 << 10;

/// Sends requests to one endpoint over connections that are used again.
pub(super) struct Transport {
    http: reqwest::Client,
    pub(super) endpoint: Endpoint,
    timeout: Duration,
    max_bytes: usize,
    /// The server has answered at least once.
    pub(super) reached: AtomicBool,
    /// The server has given a good answer at least once.
    good: AtomicBool,
}

impl Transport {
    pub(super) fn new(
        endpoint: Endpoint,
        concurrency: usize,
        timeout: Duration,
        max_bytes: usize,
    ) -> Result<Self, ChatError> {
        let fatal = |what: &str| ChatError::Fatal(format!("cannot set up HTTP: {what}"));
        // Without the error of the parse, which might quote the key.
        let headers = endpoint.protocol.headers(endpoint.key.as_ref());
        let mut headers = headers.map_err(|_| fatal("the key cannot be sent"))?;
        let json = HeaderValue::from_static("application/json");
        headers.insert(ACCEPT, json.clone());
        headers.insert(CONTENT_TYPE, json);
        // Half of the time-out at most, to distinguish a missing server from a slow one.
        let connect = CONNECT_TIMEOUT.min(timeout / 2);
        // No time-out between bytes: `send` limits the whole try, and models think for long.
        let http = http_builder(AGENT, connect, None)
            .default_headers(headers)
            .redirect(redirect::Policy::none())
            .pool_max_idle_per_host(concurrency.max(1))
            .pool_idle_timeout(IDLE)
            .tcp_nodelay(true)
            // Notices that the server's machine is gone while we wait for a long answer.
            .tcp_keepalive(Duration::from_secs(30))
            .build()
            .map_err(|error| fatal(&causes(&error.without_url())))?;
        let (reached, good) = (AtomicBool::new(false), AtomicBool::new(false));
        Ok(Self { http, endpoint, timeout, max_bytes, reached, good })
    }

    /// Sends `ask` once. `now` is the time since 1970.
    pub(super) async fn send(&self, ask: &Ask, now: Duration) -> Result<Answer, AttemptError> {
        // In a box: the future is large, and would be copied into each of those around it.
        let exchange = Box::pin(self.exchange(ask, now));
        let sent = tokio::time::timeout(self.timeout, exchange).await;
        sent.unwrap_or_else(|_| {
            let text = format!("no answer in {}", in_words(self.timeout));
            Err(AttemptError::once(rules::TIME_OUT, text, Cost::Unknown))
        })
    }

    async fn exchange(&self, ask: &Ask, now: Duration) -> Result<Answer, AttemptError> {
        let request = self.http.post(self.endpoint.url.clone()).body(ask.body.clone());
        let response = request.send().await;
        // The path only: the query may hold a key.
        let url = &self.endpoint.url;
        tracing::debug!(
            method = "POST",
            host = url.host_str(),
            path = url.path(),
            status = response.as_ref().ok().map(|response| response.status().as_u16()),
            "chat request"
        );
        let response = response.map_err(|error| self.failed(error))?;
        self.reached.store(true, Ordering::Relaxed);
        let status = response.status().as_u16();
        let header = |name: &str| response.headers().get(name).and_then(|v| v.to_str().ok());
        if !(200..300).contains(&status) {
            let wait = wait_of(header, now);
            let never = header("x-should-retry") == Some("false");
            let location = header(LOCATION.as_str()).map(str::to_string);
            // The body only helps the user, so a failure to read it is ignored.
            let body = self.read(response, ERROR_BYTES).await.ok().flatten();
            let body = &ErrorBody::read(&body.unwrap_or_default());
            let bad = BadResponse { status, body, wait, location: location.as_deref(), never };
            return Err(bad.judge(ask, &self.endpoint));
        }
        let page = self.check_type(&response)?;
        let Some(body) = self.read(response, self.max_bytes).await? else {
            let text = format!("the answer is longer than {} bytes", self.max_bytes);
            return Err(AttemptError::new(Kind::Refused(rules::TOO_LARGE), text, Cost::Unknown));
        };
        let answer = self.parse(ask, status, page, &body)?;
        self.good.store(true, Ordering::Relaxed);
        Ok(answer)
    }

    /// Returns true if the body is a web page.
    ///
    /// # Errors
    /// If the body is a stream, or compressed.
    fn check_type(&self, response: &Response) -> Result<bool, AttemptError> {
        let header =
            |name| response.headers().get(name).and_then(|v: &HeaderValue| v.to_str().ok());
        let kind = header(CONTENT_TYPE).unwrap_or_default().to_ascii_lowercase();
        let encoding = header(CONTENT_ENCODING).unwrap_or("identity");
        let endpoint = &self.endpoint;
        let fatal = |text: String| Err(AttemptError::new(Kind::Fatal, text, Cost::Unknown));
        if kind.starts_with("text/event-stream") {
            return fatal(format!(
                "{endpoint} streams its answer (text/event-stream) although every request says \
                 `\"stream\": false`; turn streaming off in the server or gateway"
            ));
        }
        if !encoding.eq_ignore_ascii_case("identity") {
            let encoding = endpoint.quote(encoding);
            return fatal(format!("{endpoint} compresses its answer ({encoding}), unasked"));
        }
        Ok(kind.starts_with("text/html"))
    }

    /// Reads the body; `None` as soon as it has more than `most` bytes.
    async fn read(
        &self,
        mut response: Response,
        most: usize,
    ) -> Result<Option<Vec<u8>>, AttemptError> {
        if response.content_length().is_some_and(|length| length > most as u64) {
            return Ok(None);
        }
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(|error| self.failed(error))? {
            if body.len() + piece.len() > most {
                return Ok(None);
            }
            body.extend_from_slice(&piece);
        }
        Ok(Some(body))
    }

    fn parse(
        &self,
        ask: &Ask,
        status: u16,
        page: bool,
        body: &[u8],
    ) -> Result<Answer, AttemptError> {
        let endpoint = &self.endpoint;
        let malformed =
            |text: String| AttemptError::once(rules::MALFORMED_ANSWER, text, Cost::Unknown);
        let unread = || Some(self.unread(body));
        let (usage, content) = match endpoint.protocol.parse(body) {
            Ok(parsed) => parsed,
            Err(_) if body.is_empty() => {
                return Err(malformed(format!("an answer without content (HTTP {status})")));
            }
            Err(_) if page && !self.good.load(Ordering::Relaxed) => {
                let hint = endpoint.protocol.hint();
                let text = format!("{endpoint} answers with a web page; {hint}");
                return Err(AttemptError::new(Kind::Fatal, text, Cost::Nothing));
            }
            Err(error) => {
                let text = String::from_utf8_lossy(body);
                let text = text.trim_start();
                let error = match text.starts_with(['{', '[']) {
                    true => endpoint.quote(&error.to_string()),
                    false => {
                        let first = text.lines().next().unwrap_or_default();
                        format!("it is not JSON: it begins with {}", endpoint.quote(first))
                    }
                };
                let error = malformed(format!("the answer is damaged: {error}"));
                return Err(AttemptError { unread: unread(), ..error });
            }
        };
        let cost = if usage == Usage::default() { Cost::Unknown } else { Cost::Known(usage) };
        let (rule, reason) = match content {
            Content::Answer(mut answer) => {
                answer.prompt_tokens = usage.prompt_tokens;
                answer.completion_tokens = usage.completion_tokens;
                return Ok(self.scrubbed(*answer));
            }
            Content::Truncated => (rules::SERVER_ERROR, "the server broke its answer off"),
            Content::Error | Content::NoChoices => {
                (rules::NO_CHOICES, "the answer holds no choice")
            }
        };
        let error = ErrorBody::read(body);
        let explained = !error.message.is_empty() || error.status.is_some();
        if error == ErrorBody::default() || (matches!(content, Content::NoChoices) && !explained) {
            let error = AttemptError::once(rule, reason, cost);
            return Err(AttemptError { unread: unread(), ..error });
        }
        let status = error.status.unwrap_or(500);
        let bad = BadResponse { status, body: &error, wait: None, location: None, never: false };
        Err(AttemptError { cost, ..bad.judge(ask, endpoint) })
    }

    /// A body as text, without the key.
    fn unread(&self, body: &[u8]) -> Box<str> {
        let text = String::from_utf8_lossy(body).into_owned();
        match &self.endpoint.key {
            Some(key) => key.scrub_answer(text).into(),
            None => text.into(),
        }
    }

    /// Removes the key from an answer, should the server have put it there.
    fn scrubbed(&self, answer: Answer) -> Answer {
        let Some(key) = &self.endpoint.key else { return answer };
        let scrub = |text: Option<String>| text.map(|text| key.scrub_answer(text));
        Answer {
            content: key.scrub_answer(answer.content),
            reasoning: scrub(answer.reasoning),
            refusal: scrub(answer.refusal),
            finish_reason: scrub(answer.finish_reason),
            model: scrub(answer.model),
            system_fingerprint: scrub(answer.system_fingerprint),
            logprobs: answer.logprobs.filter(|tokens| {
                // In pieces the key would not be found.
                let whole: String = tokens.iter().map(|token| token.token.as_str()).collect();
                key.scrub_answer(whole.clone()) == whole
            }),
            ..answer
        }
    }

    /// The error of a request without a complete answer.
    fn failed(&self, error: reqwest::Error) -> AttemptError {
        let (connect, builder) = (error.is_connect(), error.is_builder());
        // The address is shown elsewhere; its query may hold a key.
        let cause = self.endpoint.quote(&causes(&error.without_url()));
        let lower = cause.to_ascii_lowercase();
        let has = |parts: &[&str]| parts.iter().any(|part| lower.contains(part));
        let origin = self.endpoint.origin();
        if builder {
            let text = format!("a request cannot be sent: {cause}");
            return AttemptError::new(Kind::Fatal, text, Cost::Nothing);
        }
        if connect {
            // A certificate that is wrong stays wrong; a handshake cut off does not.
            let tls = has(&["certificate", "tls", "corrupt message", "handshake"]);
            if tls && !has(&["eof", "reset", "timed out", "refused"]) {
                let mut text = format!("no safe connection to {origin}: {cause}");
                if has(&["corrupt message"]) {
                    text.push_str("; the address of a server without TLS begins with http://");
                }
                return AttemptError::new(Kind::Fatal, text, Cost::Nothing);
            }
            let text = format!("{origin} cannot be reached: {cause}");
            return AttemptError::new(Kind::Down { loading: false }, text, Cost::Nothing);
        }
        if has(&["invalid http", "invalid header", "invalid chunk", "message head is too large"]) {
            let text = format!("the answer is not HTTP: {cause}");
            return AttemptError::once(rules::MALFORMED_ANSWER, text, Cost::Unknown);
        }
        let text = format!("the connection ended before the answer did: {cause}");
        let rule = rules::CUT_CONNECTION;
        let kind = Kind::Again { rule, often: true, after: Duration::ZERO };
        AttemptError::new(kind, text, Cost::Unknown)
    }
}
