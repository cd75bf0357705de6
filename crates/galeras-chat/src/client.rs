//! Requests that succeed in the end or say why not.
//!
//! Lives here: the settings, and the way of one request through budget, pace and tries. Does
//! not live here: what a failure means (`verdict`, `transport`).

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::answer::{Answer, Usage};
use super::ask::Ask;
use super::backoff::Backoff;
use super::budget::{Budget, Reservation};
use super::clock::{Clock, SystemClock};
use super::endpoint::Endpoint;
use super::error::{ChatError, rules};
use super::estimate::Estimate;
use super::notice::{Notice, NoticeFn};
use super::pace::{Pace, Slot, TOLD};
use super::transport::Transport;
use super::verdict::{Cost, Kind, Trouble};
use super::words;

/// How often a request is sent that may have been billed each time.
const BILLED_TRIES: u32 = 2;
/// How often one request may be told to wait while others are answered.
const LIMITED_TRIES: u32 = 20;
/// The longest wait for one request that a failing server may ask for.
const LONGEST: Duration = Duration::from_secs(3_600);
/// The wait for a server that is down grows no more after as many: every 8 seconds is often enough.
const LOOKS: u32 = 4;
/// Waits of single requests are told from this length on: there are many of them at once.
const LONG: Duration = Duration::from_secs(15);

/// How a client goes about its requests.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How many requests the caller sends side by side. As many connections are kept.
    pub concurrency: usize,
    /// The most requests in any 60 seconds.
    pub requests_per_minute: Option<u64>,
    /// The most tokens in any 60 seconds, those of prompts and answers together.
    pub tokens_per_minute: Option<u64>,
    /// How long one try may take, from its connection to the last byte of the answer.
    pub timeout: Duration,
    /// How often a request is sent at most.
    pub tries: u32,
    /// How long a server that was there may be unreachable, or load its model.
    pub patience: Duration,
    /// The longest answer in bytes, as it is sent.
    pub max_answer_bytes: usize,
    /// What all requests may cost. May be shared by several clients.
    pub budget: Option<Arc<Budget>>,
    /// Spreads waits that are drawn.
    pub seed: u64,
}

impl Default for Settings {
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
            seed: 0,
        }
    }
}

/// A client of one endpoint, shared by all requests to it. Its `Debug` shows no key.
pub struct Client {
    transport: Transport,
    settings: Settings,
    clock: Arc<dyn Clock>,
    pace: Pace,
    estimate: Estimate,
    backoff: Backoff,
    /// Requests so far, by which their waits differ.
    asked: AtomicU64,
    /// Since when nobody answers.
    down_since: Mutex<Option<Duration>>,
    down_told: AtomicBool,
    /// What ended it all. Set before `stop` is cancelled.
    ended: OnceLock<ChatError>,
    stop: CancellationToken,
}

impl Client {
    /// A client of `endpoint`.
    ///
    /// # Errors
    /// [`ChatError::Fatal`] if there is no usable TLS configuration.
    pub fn new(endpoint: Endpoint, settings: Settings) -> Result<Self, ChatError> {
        Self::with_clock(endpoint, settings, Arc::new(SystemClock::new()))
    }

    /// The same with another clock to wait by. Time-outs are not taken from it.
    ///
    /// # Errors
    /// As [`Client::new`].
    pub fn with_clock(
        endpoint: Endpoint,
        settings: Settings,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ChatError> {
        let Settings { concurrency, timeout, max_answer_bytes, seed, .. } = settings;
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
            down_told: AtomicBool::new(false),
            ended: OnceLock::new(),
            stop: CancellationToken::new(),
        })
    }

    /// Where requests go.
    pub fn endpoint(&self) -> &Endpoint {
        self.transport.endpoint()
    }

    /// Sends `ask`, waiting and trying again as the table of this module says. Long waits are
    /// told to `notify`.
    ///
    /// Once a request ended with an error that is for all, those that wait get the same error and
    /// no other is sent; answers under way are still taken.
    ///
    /// # Errors
    /// [`ChatError`]; `Interrupted` at once when `cancel` is cancelled.
    pub async fn ask(
        &self,
        ask: &Ask,
        notify: NoticeFn<'_>,
        cancel: &CancellationToken,
    ) -> Result<Answer, ChatError> {
        let result = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(ChatError::Interrupted),
            result = self.run(ask, notify) => result,
        };
        result.map_err(|error| match error {
            ChatError::Fatal(_) | ChatError::OverBudget { .. } => self.end(error),
            error => error,
        })
    }

    async fn run(&self, ask: &Ask, notify: NoticeFn<'_>) -> Result<Answer, ChatError> {
        let key = self.asked.fetch_add(1, Ordering::Relaxed);
        let (mut failures, mut limited, mut downs) = (0, 0, 0);
        loop {
            let reservation = self.reserve(ask).await?;
            let slot = self.pace.enter(self.estimate.total(ask), notify, &self.stop).await;
            let slot = slot.ok_or_else(|| self.ended())?;
            let Trouble { kind, reason, .. } = match self.send(ask, &slot, reservation).await {
                Ok(answer) => return Ok(answer),
                Err(trouble) => trouble,
            };
            if !matches!(kind, Kind::Down { .. }) {
                *self.down_since.lock().unwrap_or_else(PoisonError::into_inner) = None;
            }
            match kind {
                Kind::Fatal => return Err(ChatError::Fatal(reason)),
                Kind::Refused(rule) => {
                    let passing = rule == rules::SERVER_ERROR;
                    return Err(ChatError::Failed { rule, reason, passing });
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
                        return Err(ChatError::Failed { rule, reason, passing: true });
                    }
                    let wait = self.backoff.wait(key, failures).max(after);
                    if wait >= LONG {
                        let wait = words::duration(wait);
                        notify(Notice::Waiting(format!("{reason} (next try in {wait})")));
                    }
                    self.sleep(wait).await?;
                }
                Kind::Limited(wait) => {
                    limited += 1;
                    if limited > LIMITED_TRIES {
                        let reason = format!("{reason} ({limited} tries)");
                        let rule = rules::REFUSED;
                        return Err(ChatError::Failed { rule, reason, passing: true });
                    }
                    self.pace.limited(&slot, wait, reason)?;
                }
                Kind::Down { loading } => {
                    downs += 1;
                    let wait = self.down(key, downs, loading, reason, notify)?;
                    self.sleep(wait).await?;
                }
            }
        }
    }

    /// Holds back what one try may cost.
    async fn reserve(&self, ask: &Ask) -> Result<Option<Reservation>, ChatError> {
        let Some(budget) = &self.settings.budget else { return Ok(None) };
        let Some(answer) = ask.completion_limit() else {
            return Err(ChatError::Fatal(
                "a limit of the cost needs a limit of the length of answers".to_string(),
            ));
        };
        let worst = || budget.price().of(self.estimate.prompt(ask), answer);
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Err(self.ended()),
            reservation = budget.reserve(worst) => reservation.map(Some),
        }
    }

    /// One try, with what it teaches and costs.
    async fn send(
        &self,
        ask: &Ask,
        slot: &Slot,
        mut reservation: Option<Reservation>,
    ) -> Result<Answer, Trouble> {
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
            Err(trouble) => trouble.cost,
        };
        let cost = match cost {
            Cost::Nothing => Some((0, 0)),
            Cost::Known(usage) => {
                self.estimate.learn(ask, &usage);
                usage.prompt_tokens.zip(usage.completion_tokens)
            }
            Cost::Unknown => None,
        };
        // What is not known stays at its worst case.
        let Some((prompt, answer)) = cost else { return result };
        if let (Some(reservation), Some(budget)) = (reservation, &self.settings.budget) {
            reservation.settle(budget.price().of(prompt, answer));
        }
        // Servers count refused requests, too; only one that was not sent took nothing.
        let sent = !matches!(&result, Err(Trouble { kind: Kind::Down { loading: false }, .. }));
        if result.is_ok() || !sent {
            self.pace.correct(slot, prompt.saturating_add(answer));
        }
        result
    }

    /// How long to wait for a server that is not there.
    fn down(
        &self,
        key: u64,
        downs: u32,
        loading: bool,
        reason: String,
        notify: NoticeFn<'_>,
    ) -> Result<Duration, ChatError> {
        if !loading && !self.transport.reached() {
            let text = format!("{reason}; is the server running, and the address right?");
            return Err(ChatError::Fatal(text));
        }
        let now = self.clock.now();
        let mut down_since = self.down_since.lock().unwrap_or_else(PoisonError::into_inner);
        if down_since.is_none() {
            self.down_told.store(false, Ordering::Relaxed);
        }
        let since = *down_since.get_or_insert(now);
        drop(down_since);
        let left = (since + self.settings.patience).saturating_sub(now);
        if left.is_zero() {
            let patience = words::duration(self.settings.patience);
            let text = format!("{reason}; still so after {patience}; start again when it is there");
            return Err(ChatError::Fatal(text));
        }
        if left >= TOLD && !self.down_told.swap(true, Ordering::Relaxed) {
            let text = format!("{reason} (for at most {})", words::duration(left));
            notify(Notice::Waiting(text));
        }
        Ok(self.backoff.wait(key, downs.min(LOOKS)).min(left))
    }

    /// Waits, unless all has ended.
    async fn sleep(&self, wait: Duration) -> Result<(), ChatError> {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Err(self.ended()),
            () = self.clock.sleep(wait) => Ok(()),
        }
    }

    /// Lets nobody send anything from now on, because of `error` unless of an earlier one.
    fn end(&self, error: ChatError) -> ChatError {
        let error = self.ended.get_or_init(|| error).clone();
        self.stop.cancel();
        error
    }

    fn ended(&self) -> ChatError {
        self.ended.get().cloned().unwrap_or(ChatError::Interrupted)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({:?})", self.endpoint())
    }
}
