//! GET requests to GitHub's REST API, with redirects within the host, waits for limits, and retries.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http_body_util::{BodyExt as _, LengthLimitError};
use octocrab::Octocrab;
use serde::de::DeserializeOwned;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::error::{GithubError, GithubErrorKind};
use super::limits::{Head, Verdict};
use super::search::{SearchNotice, SearchNotify};
use super::{time, transport};
use galeras_net::{Clock, Secret, SystemClock, causes, has_slashes, one_line};

/// The address of github.com's API.
pub const GITHUB: &str = "https://api.github.com";

/// The most tries of a request while the network or the server fails.
const TRIES: u32 = 8;
/// The most answers in a row with an exceeded limit.
const LIMITED_TRIES: u32 = 7;
/// The least wait, in seconds, that GitHub documents for a secondary limit without a header.
const SECONDARY_WAIT: u64 = 60;
/// The longest wait, in seconds: GitHub's longest window is an hour.
const MAX_WAIT: u64 = 3_600 + 300;
/// GitHub itself gives up after 10 seconds; the rest is for slow networks.
const TIMEOUT: Duration = Duration::from_secs(60);
const MAX_REDIRECTS: usize = 5;
/// The longest answer, in bytes. A page of 100 repositories has about 600 kB, and octocrab parses an
/// error, which may then take many times its bytes.
const MAX_ANSWER: usize = 8 << 20;
/// The longest quote of a server's text, in characters.
const MAX_QUOTE: usize = 300;

/// A client of one GitHub server.
///
/// Requests are sent one after the other; GitHub asks not to send them at once. Its `Debug`
/// shows no token.
pub struct GithubClient {
    /// Without a slash at its end.
    base: Url,
    token: Option<Secret>,
    clock: Arc<dyn Clock>,
    /// The longest wait for one answer.
    pub(super) timeout: Duration,
    /// The longest answer that is read, in bytes.
    pub(super) max_answer: usize,
    /// Created by the first request, because it needs the runtime.
    octocrab: OnceCell<Octocrab>,
    /// The end of the window of a used-up limit, in seconds since 1970; 0 without one.
    used_up_until: AtomicU64,
}

/// An answer with status 200.
///
/// octocrab's typed calls drop the headers, which have the limits. Its models also require fields that
/// GitHub Enterprise leaves out, and its `Page` prints links that it does not know.
pub(super) struct Answer<T> {
    pub(super) value: T,
    /// There is a next page. Its address is counted, as a server behind a proxy may link to another
    /// address than its own.
    pub(super) more: bool,
}

/// The failure of one try.
enum Failure {
    Again { why: String, at_least: u64 },
    Limited { seconds: Option<u64>, primary: bool },
    Final(GithubError),
}

impl GithubClient {
    /// Creates a client of the API at `base_url`: [`GITHUB`], or `https://HOST/api/v3` of a GitHub
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
            max_answer: MAX_ANSWER,
            octocrab: OnceCell::new(),
            used_up_until: AtomicU64::new(0),
        })
    }

    /// Replaces the clock that the client waits by.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
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

    /// Sends a GET request, with waits and retries by GitHub's rules.
    pub(super) async fn get<T: DeserializeOwned>(
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
                        return Err(GithubError::new(GithubErrorKind::RateLimited, message));
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

    /// Waits if the last answer used up the limit.
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

    /// Waits.
    pub(super) async fn wait(
        &self,
        seconds: u64,
        reason: String,
        notify: SearchNotify<'_>,
        cancel: &CancellationToken,
    ) -> Result<(), GithubError> {
        if seconds > MAX_WAIT {
            let at = self.now().saturating_add(seconds);
            let until = time::format(i64::try_from(at).unwrap_or(i64::MAX));
            let message = format!("{reason} until {until}; start again then");
            return Err(GithubError::new(GithubErrorKind::RateLimited, message));
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

    /// Sends the request once, and follows redirects.
    async fn try_get<T: DeserializeOwned>(
        &self,
        url: &Url,
        attempt: u32,
    ) -> Result<Answer<T>, Failure> {
        let mut url = url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let error = match self.send(&url, attempt).await? {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let (status, headers) = (error.status_code.as_u16(), error.headers.unwrap_or_default());
            let message = self.message(&error.message, error.errors.as_deref().unwrap_or_default());
            let quoted = if message.is_empty() { String::new() } else { format!(": {message}") };
            let (kind, text) = match Head::new(status, &headers).judge(&message, self.now()) {
                Verdict::Redirect => {
                    let location = headers.get("location").and_then(|to| to.to_str().ok());
                    let text = match location.and_then(|to| url.join(to).ok()) {
                        Some(to) if self.is_home(&to) => {
                            url = to;
                            continue;
                        }
                        Some(to) => {
                            let host = self.quote(&to.origin().ascii_serialization());
                            format!("GitHub redirects to {host}, which is not followed")
                        }
                        None => format!("GitHub redirects to nowhere (HTTP {status})"),
                    };
                    (GithubErrorKind::Other, text)
                }
                Verdict::Limited { seconds, primary } => {
                    return Err(Failure::Limited { seconds, primary });
                }
                Verdict::Failed { at_least } => {
                    let why = format!("GitHub failed (HTTP {status}){quoted}");
                    return Err(Failure::Again { why, at_least });
                }
                Verdict::Unauthorized => {
                    let text = match &self.token {
                        Some(token) => {
                            format!("the token in ${} is not accepted{quoted}", token.variable())
                        }
                        None => format!("GitHub asks for a token{quoted}"),
                    };
                    (GithubErrorKind::Denied, text)
                }
                Verdict::Forbidden => (GithubErrorKind::Denied, format!("GitHub refuses{quoted}")),
                Verdict::InvalidQuery => {
                    (GithubErrorKind::InvalidQuery, format!("GitHub rejects the query{quoted}"))
                }
                Verdict::Unexpected => {
                    let text = format!("{} answered with HTTP {status}{quoted}", self.base_url());
                    (GithubErrorKind::Other, text)
                }
            };
            return Err(Failure::Final(GithubError::new(kind, text)));
        }
        Err(Failure::Final(GithubError::other("GitHub redirects in a circle")))
    }

    /// Sends one request; GitHub's own errors are the inner ones.
    async fn send<T: DeserializeOwned>(
        &self,
        url: &Url,
        attempt: u32,
    ) -> Result<Result<Answer<T>, Box<octocrab::GitHubError>>, Failure> {
        let octocrab = self.octocrab.get_or_try_init(|| async {
            transport::octocrab(&self.base, self.token.as_ref(), self.max_answer)
        });
        let octocrab = octocrab.await.map_err(Failure::Final)?;
        let sent = tokio::time::timeout(self.timeout, async {
            let answer = octocrab::map_github_error(octocrab._get(url.as_str()).await?).await?;
            let head = Head::new(answer.status().as_u16(), answer.headers());
            let link = answer.headers().get("link").and_then(|link| link.to_str().ok());
            let more = link.is_some_and(has_next);
            let body = answer.into_body().collect().await?.to_bytes();
            Ok::<_, octocrab::Error>((serde_json::from_slice::<T>(&body), head, more))
        });
        let sent = sent.await;
        let status = match &sent {
            Ok(Ok(_)) => Some(200),
            Ok(Err(octocrab::Error::GitHub { source, .. })) => Some(source.status_code.as_u16()),
            _ => None,
        };
        // Without the query, which is the user's.
        let (host, path) = (url.host_str(), url.path());
        tracing::debug!(method = "GET", host, path, status, attempt, "github request");
        let why = match sent {
            Ok(Ok((Ok(value), head, more))) => {
                if let Some(seconds) = head.used_up(self.now()) {
                    let until = self.now().saturating_add(seconds);
                    self.used_up_until.store(until, Ordering::Relaxed);
                }
                return Ok(Ok(Answer { value, more }));
            }
            Ok(Ok((Err(error), ..))) => {
                format!("GitHub's answer is damaged: {}", self.quote(&error.to_string()))
            }
            Ok(Err(octocrab::Error::GitHub { source, .. })) => return Ok(Err(source)),
            Ok(Err(error)) if is_too_long(&error) => {
                let address = format!("{}{path}", self.base.origin().ascii_serialization());
                let text = format!("{address} answers with more than {} bytes", self.max_answer);
                return Err(Failure::Final(GithubError::other(text)));
            }
            Ok(Err(error)) => format!("GitHub cannot be reached: {}", self.quote(&causes(&error))),
            Err(_) => format!("GitHub did not answer in {} seconds", self.timeout.as_secs()),
        };
        Err(Failure::Again { why, at_least: 0 })
    }

    /// Returns true if `url` is on the server that the token is for.
    fn is_home(&self, url: &Url) -> bool {
        url.origin() == self.base.origin() && url.username().is_empty() && url.password().is_none()
    }

    /// A server's text on one short line, without the token.
    fn quote(&self, text: &str) -> String {
        match &self.token {
            Some(token) => one_line(&token.scrub(text), MAX_QUOTE),
            None => one_line(text, MAX_QUOTE),
        }
    }

    /// GitHub's description of an error; empty for a page of HTML.
    fn message(&self, message: &str, errors: &[serde_json::Value]) -> String {
        if message.starts_with('<') {
            return String::new();
        }
        let mut text = message.to_string();
        for error in errors {
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

/// Returns true if a body is longer than the limit.
fn is_too_long(error: &octocrab::Error) -> bool {
    let mut errors = std::iter::successors(Some(error as &dyn Error), |error| (**error).source());
    errors.any(|error| error.is::<LengthLimitError>())
}

impl fmt::Debug for GithubClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GithubClient({}, {:?})", self.base_url(), self.token)
    }
}

/// Returns true if a `Link` header names a next page.
fn has_next(link: &str) -> bool {
    let mut parameters = link.split([';', ',']).map(str::trim);
    parameters.any(|p| p.strip_prefix("rel=").is_some_and(|rel| rel.trim_matches('"') == "next"))
}
