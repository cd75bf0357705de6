//! Requests to GitHub's REST API that succeed in the end or say why not.
//!
//! One GET with its headers, redirects within the host, waiting for limits and trying again.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http_body_util::BodyExt as _;
use octocrab::Octocrab;
use serde::Deserialize;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::error::{GithubError, GithubErrorKind};
use super::limits::{Head, Verdict};
use super::notice::{SearchNotice, SearchNotify};
use super::{time, transport};
use galeras_net::{Clock, Secret, SystemClock, causes, has_slashes};

/// The address of github.com's API.
pub const GITHUB: &str = "https://api.github.com";

/// How often a request is sent before a failing network or server is given up.
const TRIES: u32 = 8;
/// How many answers in a row may say that a limit is exceeded.
const LIMITED_TRIES: u32 = 7;
/// GitHub asks for a minute at least after a secondary limit that it says nothing more about.
const SECONDARY_WAIT: u64 = 60;
/// The longest wait, in seconds: GitHub's longest window is an hour.
const LONGEST_WAIT: u64 = 3_600 + 300;
/// GitHub itself gives up after 10 seconds; the rest is for slow networks.
const TIMEOUT: Duration = Duration::from_secs(60);
const REDIRECTS: usize = 5;
/// The longest answer, in bytes. A page of 100 repositories has some 600 kB.
const LONGEST_ANSWER: usize = 64 << 20;
/// The longest answer that is looked into for what went wrong. Parsed, an answer may take many
/// times its bytes, and GitHub says it in a few hundred.
const LONGEST_MESSAGE: usize = 1 << 20;
/// The longest quote of a server's words, in characters.
const LONGEST_QUOTE: usize = 300;

/// A client of one GitHub server.
///
/// Requests are sent one after the other; GitHub asks not to send them at once. Its `Debug`
/// shows no token.
pub struct GithubClient {
    /// Without a slash at its end.
    base: Url,
    token: Option<Secret>,
    clock: Arc<dyn Clock>,
    timeout: Duration,
    /// The longest answer that is read, in bytes.
    pub(super) longest_answer: usize,
    /// Made with the first request, because it needs the runtime.
    octocrab: OnceCell<Octocrab>,
    /// When the window of a used-up limit ends, in seconds since 1970; 0 if none is.
    used_up_until: AtomicU64,
}

/// A good answer.
pub(super) struct Answer<T> {
    pub(super) value: T,
    /// Whether GitHub says that there is a next page.
    pub(super) more: bool,
    /// The address of the next page, if it is on the same server.
    pub(super) next: Option<Url>,
}

/// Why one try gave nothing.
enum Failure {
    Again { why: String, at_least: u64 },
    Limited { seconds: Option<u64>, primary: bool },
    Final(GithubError),
}

impl From<GithubError> for Failure {
    fn from(error: GithubError) -> Self {
        Self::Final(error)
    }
}

impl GithubClient {
    /// A client of the API at `base_url`: [`GITHUB`], or `https://HOST/api/v3` of a GitHub
    /// Enterprise server. The token is sent to this scheme, host and port only.
    ///
    /// # Errors
    /// [`GithubErrorKind::Other`] if `base_url` is not an http or https URL, or has a user, a
    /// password, a query or a fragment.
    pub fn new(base_url: &str, token: Option<Secret>) -> Result<Self, GithubError> {
        let wrong = |why: &str| GithubError::other(format!("the address of the API {why}"));
        let mut base = Url::parse(base_url).map_err(|e| wrong(&format!("is invalid: {e}")))?;
        let web = matches!(base.scheme(), "http" | "https") && has_slashes(base_url);
        if !web || base.host_str().is_none() {
            return Err(wrong("must begin with https://"));
        }
        // Not quoted: it may hold a password.
        if !base.username().is_empty() || base.password().is_some() {
            return Err(wrong("must not hold a user or password"));
        }
        if base.query().is_some() || base.fragment().is_some() {
            return Err(wrong("must not hold `?` or `#`"));
        }
        let path = base.path().trim_end_matches('/').to_string();
        base.set_path(&path);
        Ok(Self {
            base,
            token,
            clock: Arc::new(SystemClock::new()),
            timeout: TIMEOUT,
            longest_answer: LONGEST_ANSWER,
            octocrab: OnceCell::new(),
            used_up_until: AtomicU64::new(0),
        })
    }

    /// The same client with another clock to wait by.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// The same client, which waits for one answer for at most `timeout` (by default 60 seconds).
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The address of the API, without a slash at its end.
    pub fn base_url(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// Seconds since 1970.
    pub(super) fn now(&self) -> u64 {
        self.clock.now().as_secs()
    }

    /// The address of `path` (with a slash before it) below the API.
    pub(super) fn address(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        let whole = format!("{}{path}", self.base.path().trim_end_matches('/'));
        url.set_path(&whole);
        url
    }

    /// GETs `url`, waiting and trying again as often as GitHub's rules and reason allow.
    ///
    /// # Errors
    /// Every kind of [`GithubErrorKind`], as each says.
    pub(super) async fn get<T: for<'de> Deserialize<'de>>(
        &self,
        url: &Url,
        notify: SearchNotify<'_>,
        cancel: &CancellationToken,
    ) -> Result<Answer<T>, GithubError> {
        let (mut failures, mut limits, mut unexplained) = (0, 0, SECONDARY_WAIT);
        let mut attempt = 0;
        loop {
            attempt += 1;
            self.wait_for_window(notify, cancel).await?;
            let tried = tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(GithubError::interrupted()),
                tried = self.try_get(url, attempt) => tried,
            };
            let (seconds, reason) = match tried {
                Ok(answer) => return Ok(answer),
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Again { why, at_least }) => {
                    failures += 1;
                    if failures == TRIES {
                        let message = format!("{why} ({TRIES} tries)");
                        return Err(GithubError::new(GithubErrorKind::Transient, message));
                    }
                    (at_least.max(1 << (failures - 1)), why)
                }
                Err(Failure::Limited { seconds, primary }) => {
                    limits += 1;
                    if limits == LIMITED_TRIES {
                        let message = format!(
                            "GitHub's rate limit is still exceeded after {limits} tries; \
                             start again later"
                        );
                        return Err(GithubError::rate_limited(message, None));
                    }
                    let seconds = seconds.unwrap_or_else(|| {
                        let wait = unexplained;
                        unexplained *= 2;
                        wait
                    });
                    let kind = if primary { "rate limit" } else { "secondary rate limit" };
                    (seconds, format!("GitHub's {kind} is used up"))
                }
            };
            self.wait(seconds, reason, notify, cancel).await?;
        }
    }

    /// Waits if the last answer was the last one that the limit allowed.
    async fn wait_for_window(
        &self,
        notify: SearchNotify<'_>,
        cancel: &CancellationToken,
    ) -> Result<(), GithubError> {
        let until = self.used_up_until.load(Ordering::Relaxed);
        let seconds = until.saturating_sub(self.now());
        if seconds > 0 {
            self.wait(seconds, "GitHub's rate limit is used up".into(), notify, cancel).await?;
        }
        self.used_up_until.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// Waits; an error if it would take too long or the caller cancels.
    pub(super) async fn wait(
        &self,
        seconds: u64,
        reason: String,
        notify: SearchNotify<'_>,
        cancel: &CancellationToken,
    ) -> Result<(), GithubError> {
        if seconds > LONGEST_WAIT {
            let at = self.now().saturating_add(seconds);
            let until = time::format(i64::try_from(at).unwrap_or(i64::MAX));
            let message = format!("{reason} until {until}; start again then");
            return Err(GithubError::rate_limited(message, Some(at)));
        }
        if !cancel.is_cancelled() {
            tracing::debug!(wait_seconds = seconds, "github request waits");
            notify(SearchNotice::Waiting { seconds, reason });
        }
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(GithubError::interrupted()),
            () = self.clock.sleep(Duration::from_secs(seconds)) => Ok(()),
        }
    }

    /// Sends the request once, with its redirects.
    async fn try_get<T: for<'de> Deserialize<'de>>(
        &self,
        url: &Url,
        attempt: u32,
    ) -> Result<Answer<T>, Failure> {
        let mut url = url.clone();
        for _ in 0..=REDIRECTS {
            let sent = tokio::time::timeout(self.timeout, self.send(&url)).await;
            let status = sent.as_ref().ok().and_then(|sent| Some(sent.as_ref().ok()?.0.status));
            // The path only: the query is the user's.
            let (host, path) = (url.host_str(), url.path());
            tracing::debug!(method = "GET", host, path, status, attempt, "github request");
            let (head, next, location, body) = sent.map_err(|_| Failure::Again {
                why: format!("GitHub did not answer in {} seconds", self.timeout.as_secs()),
                at_least: 0,
            })??;
            let message = if head.status == 200 { String::new() } else { self.message(&body) };
            let quoted = if message.is_empty() { String::new() } else { format!(": {message}") };
            let fail = |kind, text: String| Err(Failure::Final(GithubError::new(kind, text)));
            match head.judge(&message, self.now()) {
                Verdict::Success => {
                    if let Some(seconds) = head.used_up(self.now()) {
                        let until = self.now().saturating_add(seconds);
                        self.used_up_until.store(until, Ordering::Relaxed);
                    }
                    let value = serde_json::from_slice(&body).map_err(|e| Failure::Again {
                        why: format!("GitHub's answer is damaged: {}", self.quote(&e.to_string())),
                        at_least: 0,
                    })?;
                    let more = next.is_some();
                    let next = next.and_then(|link| url.join(&link).ok());
                    let next = next.filter(|next| self.is_home(next));
                    return Ok(Answer { value, more, next });
                }
                Verdict::Redirect => {
                    let to = location.and_then(|to| url.join(&to).ok());
                    let Some(to) = to else {
                        return fail(
                            GithubErrorKind::Other,
                            format!("GitHub redirects to nowhere (HTTP {})", head.status),
                        );
                    };
                    if !self.is_home(&to) {
                        let host = self.quote(&to.origin().ascii_serialization());
                        let text = format!("GitHub redirects to {host}, which is not followed");
                        return fail(GithubErrorKind::Other, text);
                    }
                    url = to;
                }
                Verdict::Limited { seconds, primary } => {
                    return Err(Failure::Limited { seconds, primary });
                }
                Verdict::Failed { at_least } => {
                    let why = format!("GitHub failed (HTTP {}){quoted}", head.status);
                    return Err(Failure::Again { why, at_least });
                }
                Verdict::Unauthorized => {
                    let text = match &self.token {
                        Some(token) => {
                            format!("the token in ${} is not accepted{quoted}", token.variable())
                        }
                        None => format!("GitHub asks for a token{quoted}"),
                    };
                    return fail(GithubErrorKind::Denied, text);
                }
                Verdict::Forbidden => {
                    return fail(GithubErrorKind::Denied, format!("GitHub refuses{quoted}"));
                }
                Verdict::InvalidQuery => {
                    let text = format!("GitHub rejects the query{quoted}");
                    return fail(GithubErrorKind::InvalidQuery, text);
                }
                Verdict::Unexpected => {
                    let (status, base) = (head.status, self.base_url());
                    let text = format!("{base} answered with HTTP {status}{quoted}");
                    return fail(GithubErrorKind::Other, text);
                }
            }
        }
        Err(GithubError::other("GitHub redirects in a circle").into())
    }

    /// One request: status and limits, the next page, where it redirects to, the body.
    async fn send(
        &self,
        url: &Url,
    ) -> Result<(Head, Option<String>, Option<String>, Vec<u8>), Failure> {
        let octocrab = self
            .octocrab
            .get_or_try_init(|| async { transport::octocrab(&self.base, self.token.as_ref()) });
        let octocrab = octocrab.await?;
        let again = |error: &octocrab::Error| Failure::Again {
            why: format!("GitHub cannot be reached: {}", self.quote(&causes(error))),
            at_least: 0,
        };
        let response = octocrab._get(url.as_str()).await.map_err(|e| again(&e))?;
        let text = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        let head = Head::new(response.status().as_u16(), text);
        let next = text("link").and_then(next_page);
        let location = text("location").map(str::to_string);
        let (mut pieces, mut body) = (response.into_body(), Vec::new());
        while let Some(frame) = pieces.frame().await {
            let frame = frame.map_err(|e| again(&e))?;
            let Some(piece) = frame.data_ref() else { continue };
            if piece.len() > self.longest_answer - body.len() {
                // The query is left out: it is the user's.
                let (base, path, most) = (self.base_url(), url.path(), self.longest_answer);
                let path =
                    path.strip_prefix(self.base.path().trim_end_matches('/')).unwrap_or(path);
                let text = format!("{base}{path} answers with more than {most} bytes");
                return Err(GithubError::other(text).into());
            }
            body.extend_from_slice(piece);
        }
        Ok((head, next, location, body))
    }

    /// Whether `url` belongs to the server that the token is for.
    fn is_home(&self, url: &Url) -> bool {
        url.origin() == self.base.origin() && url.username().is_empty() && url.password().is_none()
    }

    /// A server's words, fit to be shown: without the token, without control characters, short.
    fn quote(&self, text: &str) -> String {
        let text = match &self.token {
            Some(token) => token.scrub(text),
            None => text.to_string(),
        };
        let words: Vec<&str> =
            text.split(|c: char| c.is_control() || c == ' ').filter(|w| !w.is_empty()).collect();
        let line = words.join(" ");
        match line.char_indices().nth(LONGEST_QUOTE) {
            Some((at, _)) => format!("{}…", &line[..at]),
            None => line,
        }
    }

    /// What an error's body says; empty if it is not GitHub's JSON.
    fn message(&self, body: &[u8]) -> String {
        #[derive(Deserialize)]
        struct Body {
            message: String,
            #[serde(default)]
            errors: Vec<serde_json::Value>,
        }
        if body.len() > LONGEST_MESSAGE {
            return String::new();
        }
        let Ok(body) = serde_json::from_slice::<Body>(body) else { return String::new() };
        let mut text = body.message;
        for error in &body.errors {
            let field = |name: &str| error.get(name).and_then(serde_json::Value::as_str);
            let part = match (error.as_str().or(field("message")), field("field"), field("code")) {
                (Some(message), ..) => message.to_string(),
                (None, Some(name), Some(code)) => format!("{name}: {code}"),
                _ => continue,
            };
            text = format!("{text}; {part}");
        }
        self.quote(&text)
    }
}

impl fmt::Debug for GithubClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GithubClient({}, {:?})", self.base_url(), self.token)
    }
}

/// The address with rel="next" in a `Link` header.
fn next_page(link: &str) -> Option<String> {
    link.split('<').find_map(|part| {
        let (address, parameters) = part.split_once('>')?;
        let next = parameters.split([';', ',']).any(|p| {
            let p = p.trim();
            p.strip_prefix("rel=").is_some_and(|rel| rel.trim_matches('"') == "next")
        });
        next.then(|| address.to_string())
    })
}
