//! The client: its settings, and the way of one request through budget, pace and tries.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::answer::{Answer, Usage};
use super::ask::{Ask, Estimate};
use super::budget::{Budget, Reservation};
use super::endpoint::Endpoint;
use super::error::{ChatError, rules};
use super::money::{Price, Usd};
use super::pace::{Pace, Slot, WORTH_A_NOTICE};
use super::transport::Transport;
use super::verdict::{AttemptError, Cost, Kind};
use super::waits::{Backoff, in_words};
use galeras_net::{Clock, SystemClock};

/// The most tries of a request that may have been billed each time.
const BILLED_TRIES: u32 = 2;
/// The most times that a server may postpone one request while it answers others.
const LIMITED_TRIES: u32 = 20;
/// The longest wait for one request that a failing server may ask for.
const LONGEST: Duration = Duration::from_secs(3_600);
/// The most times that the wait for a server that is down doubles: a try every 8 seconds is enough.
const LOOKS: u32 = 4;
/// The shortest wait of a single request that makes a notice: there are many of them at once.
const LONG: Duration = Duration::from_secs(15);

/// A message for the user while requests wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChatNotice {
    /// The reason of the wait, and its length. All requests that wait for it share one notice.
    Waiting(String),
}

/// Takes the notices of a client.
pub type ChatNotify<'a> = &'a (dyn Fn(ChatNotice) + Send + Sync);

/// The settings of a client.
#[derive(Clone, Debug)]
pub struct ChatSettings {
    /// How many requests the caller sends side by side. As many connections are kept.
    pub concurrency: usize,
    /// The most requests in any 60 seconds.
    pub requests_per_minute: Option<u64>,
    /// The most tokens in any 60 seconds, those of prompts and answers together.
    pub tokens_per_minute: Option<u64>,
    /// How long one try may take, from its connection to the last byte of the answer.
    pub timeout: Duration,
    /// The most tries of a request.
    pub tries: u32,
    /// How long a server that was there may be unreachable, or load its model.
    pub patience: Duration,
    /// The longest answer in bytes, as it is sent.
    pub max_answer_bytes: usize,
    /// The budget of requests.
    pub budget: Option<Arc<Budget>>,
    /// The price of tokens. Without it, costs are unknown.
    pub price: Option<Price>,
    /// The seed of random waits.
    pub seed: u64,
}

impl Default for ChatSettings {
    fn default() -> Self {
        Self {
            concurrency: 16,
            requests_per_minute: None,
            tokens_per_minute: None,
            timeout: Duration::from_secs(600),
            tries: 5,
            patience: Duration::from_secs(60),
            max_answer_bytes: 16 << 20,
            budget: None,
            price: None,
            seed: 0,
        }
    }
}

/// A client of one endpoint, shared by all requests to it. Its `Debug` shows no key.
pub struct ChatClient {
    transport: Transport,
    settings: ChatSettings,
    clock: Arc<dyn Clock>,
    pace: Pace,
    estimate: Estimate,
    backoff: Backoff,
    /// The number of requests so far, so that their waits differ.
    asked: AtomicU64,
    /// The time since which the server has not answered.
    down_since: Mutex<Option<Duration>>,
    /// The error that ended all requests. Set before `stop` is cancelled.
    ended: OnceLock<ChatError>,
    stop: CancellationToken,
}

impl ChatClient {
    /// Creates a client of `endpoint`.
    ///
    /// # Errors
    /// [`ChatError::Fatal`] if TLS cannot be set up, or the key cannot be sent in a header.
    pub fn new(endpoint: Endpoint, settings: ChatSettings) -> Result<Self, ChatError> {
        Self::with_clock(endpoint, settings, Arc::new(SystemClock::new()))
    }

    /// Creates a client that waits by another clock. Time-outs do not use it.
    ///
    /// # Errors
    /// As [`ChatClient::new`].
    pub fn with_clock(
        endpoint: Endpoint,
        settings: ChatSettings,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ChatError> {
        let ChatSettings { concurrency, timeout, max_answer_bytes, seed, .. } = settings;
        let (requests, tokens) = (settings.requests_per_minute, settings.tokens_per_minute);
        let (first, longest) = (Duration::from_secs(1), Duration::from_secs(30));
        Ok(Self {
            transport: Transport::new(endpoint, concurrency, timeout, max_answer_bytes)?,
            pace: Pace::new(Arc::clone(&clock), seed, concurrency.max(1), requests, tokens),
            settings,
            clock,
            estimate: Estimate::default(),
            backoff: Backoff { seed, first, longest },
            asked: AtomicU64::new(0),
            down_since: Mutex::new(None),
            ended: OnceLock::new(),
            stop: CancellationToken::new(),
        })
    }

    /// The endpoint.
    pub fn endpoint(&self) -> &Endpoint {
        &self.transport.endpoint
    }

    /// Sends `ask`, waiting and trying again by the table of this crate. `notify` takes notices of long
    /// waits.
    ///
    /// After an error that ends all requests, waiting requests get the same error and no other is sent;
    /// answers that are on their way are still taken.
    ///
    /// # Errors
    /// [`ChatError::Fatal`] or [`ChatError::OverBudget`] if no request will be answered any more,
    /// [`ChatError::Failed`] if this one was not, [`ChatError::Interrupted`] at once when `cancel`
    /// is cancelled.
    pub async fn ask(
        &self,
        ask: &Ask,
        notify: ChatNotify<'_>,
        cancel: &CancellationToken,
    ) -> Result<Answer, ChatError> {
        let result = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(ChatError::Interrupted),
            result = self.run(ask, notify) => result,
        };
        result.map_err(|error| match error {
            ChatError::Fatal(_) | ChatError::OverBudget(_) => self.end(error),
            error => error,
        })
    }

    async fn run(&self, ask: &Ask, notify: ChatNotify<'_>) -> Result<Answer, ChatError> {
        let key = self.asked.fetch_add(1, Ordering::Relaxed);
        let (mut failures, mut limited, mut downs) = (0, 0, 0);
        let mut unread = None;
        loop {
            let reservation = self.reserve(ask).await?;
            let slot = self.pace.enter(self.estimate.total(ask), notify, &self.stop).await;
            let slot = slot.ok_or_else(|| self.ended())?;
            let error = match self.send(ask, &slot, reservation).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let AttemptError { kind, reason, .. } = error;
            unread = error.unread.or(unread);
            if !matches!(kind, Kind::Down { .. }) {
                *self.down_since.lock().unwrap_or_else(PoisonError::into_inner) = None;
            }
            match kind {
                Kind::Fatal => return Err(ChatError::Fatal(reason)),
                Kind::Refused(rule) => {
                    let passing = rule == rules::SERVER_ERROR;
                    return Err(ChatError::Failed { rule, reason, passing, unread });
                }
                Kind::Again { rule, often, after } => {
                    failures += 1;
                    let tries = self.settings.tries.max(1);
                    let tries = if often { tries } else { tries.min(BILLED_TRIES) };
                    if failures >= tries || after > LONGEST {
                        let reason = match failures {
                            1 => reason,
                            _ => format!("{reason} ({failures} tries)"),
                        };
                        return Err(ChatError::Failed { rule, reason, passing: true, unread });
                    }
                    let wait = self.backoff.wait(key, failures).max(after);
                    if wait >= LONG {
                        let wait = in_words(wait);
                        notify(ChatNotice::Waiting(format!("{reason} (next try in {wait})")));
                    }
                    tracing::debug!(
                        attempt = failures,
                        rule,
                        wait_seconds = wait.as_secs_f64(),
                        "chat request failed; trying again"
                    );
                    self.sleep(wait).await?;
                }
                Kind::Limited(wait) => {
                    limited += 1;
                    if limited > LIMITED_TRIES {
                        let reason = format!("{reason} ({limited} tries)");
                        let rule = rules::REFUSED;
                        return Err(ChatError::Failed { rule, reason, passing: true, unread });
                    }
                    self.pace.limited(&slot, wait, reason)?;
                }
                Kind::Down { loading } => {
                    downs += 1;
                    let wait = self.down(key, downs, loading, reason, notify)?;
                    let wait_seconds = wait.as_secs_f64();
                    tracing::debug!(attempt = downs, loading, wait_seconds, "chat server is down");
                    self.sleep(wait).await?;
                }
            }
        }
    }

    /// Holds back the worst case of one try.
    async fn reserve(&self, ask: &Ask) -> Result<Option<Reservation>, ChatError> {
        let Some(budget) = &self.settings.budget else { return Ok(None) };
        let worst = match (&self.settings.price, ask.completion_limit()) {
            (None, _) if budget.limits_money() => {
                let text = "a limit of the cost needs a price";
                return Err(ChatError::Fatal(text.to_string()));
            }
            (None, _) => Usd::ZERO,
            (Some(price), None) if budget.limits_money() && !price.answers_are_free() => {
                let text = "a limit of the cost needs a limit of the length of answers";
                return Err(ChatError::Fatal(text.to_string()));
            }
            (Some(price), limit) => price.of(ask.most_prompt_tokens(), limit.unwrap_or(0)),
        };
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Err(self.ended()),
            reservation = budget.reserve(worst) => reservation.map(Some),
        }
    }

    /// Makes one try, settles its cost, and learns from it.
    async fn send(
        &self,
        ask: &Ask,
        slot: &Slot,
        mut reservation: Option<Reservation>,
    ) -> Result<Answer, AttemptError> {
        if let Some(reservation) = &mut reservation {
            reservation.sent();
        }
        let result = self.transport.send(ask, self.clock.now()).await;
        let cost = match &result {
            Ok(answer) => {
                self.pace.good(slot);
                Cost::Known(Usage {
                    prompt_tokens: answer.prompt_tokens,
                    completion_tokens: answer.completion_tokens,
                })
            }
            Err(error) => error.cost,
        };
        let cost = match cost {
            Cost::Nothing => Some((0, 0)),
            Cost::Known(usage) => {
                self.estimate.learn(ask, &usage);
                usage.prompt_tokens.zip(usage.completion_tokens)
            }
            Cost::Unknown => None,
        };
        // An unknown cost stays at the worst case.
        let Some((prompt, answer)) = cost else { return result };
        if let Some(reservation) = reservation {
            let price = self.settings.price.as_ref();
            reservation.settle(price.map_or(Usd::ZERO, |p| p.of(prompt, answer)), (prompt, answer));
        }
        // Servers also count refused requests; only an unsent one took nothing.
        let sent =
            !matches!(&result, Err(AttemptError { kind: Kind::Down { loading: false }, .. }));
        if result.is_ok() || !sent {
            self.pace.correct(slot, prompt.saturating_add(answer));
        }
        result
    }

    /// The wait for a server that is down.
    fn down(
        &self,
        key: u64,
        downs: u32,
        loading: bool,
        reason: String,
        notify: ChatNotify<'_>,
    ) -> Result<Duration, ChatError> {
        if !loading && !self.transport.reached.load(Ordering::Relaxed) {
            let text = format!("{reason}; is the server running, and the address right?");
            return Err(ChatError::Fatal(text));
        }
        let now = self.clock.now();
        let mut down_since = self.down_since.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = down_since.is_none();
        let since = *down_since.get_or_insert(now);
        drop(down_since);
        let left = (since + self.settings.patience).saturating_sub(now);
        if left.is_zero() {
            let patience = in_words(self.settings.patience);
            let text = format!("{reason}; still so after {patience}; start again when it is there");
            return Err(ChatError::Fatal(text));
        }
        if left >= WORTH_A_NOTICE && is_first {
            let text = format!("{reason} (for at most {})", in_words(left));
            notify(ChatNotice::Waiting(text));
        }
        Ok(self.backoff.wait(key, downs.min(LOOKS)).min(left))
    }

    /// Waits, unless all requests have ended.
    async fn sleep(&self, wait: Duration) -> Result<(), ChatError> {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Err(self.ended()),
            () = self.clock.sleep(wait) => Ok(()),
        }
    }

    /// Ends every request from now on with `error`, or with an earlier such error.
    fn end(&self, error: ChatError) -> ChatError {
        let error = self.ended.get_or_init(|| error).clone();
        self.stop.cancel();
        error
    }

    fn ended(&self) -> ChatError {
        self.ended.get().cloned().unwrap_or(ChatError::Interrupted)
    }
}

impl fmt::Debug for ChatClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChatClient({:?})", self.endpoint())
    }
}
