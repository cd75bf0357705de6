//! The budget of one client: the queue of requests that need money, and the money that is held back for
//! each request.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;

use super::accounts::{Accounts, Attempt, Expense};
use super::error::ChatError;
use super::money::Usd;

/// The money for the requests of one client, from accounts that other clients share.
///
/// A request is sent only if every limit holds even if it and all running requests cost as much as they
/// can, and only after that is logged. Otherwise it waits, as running requests may cost less. If it does
/// not fit although none is running, this and every later request gets [`ChatError::OverBudget`]: the
/// first one that does not fit ends the work, so that a run does not continue with its short prompts
/// only.
#[derive(Debug)]
pub struct Budget {
    accounts: Arc<Accounts>,
    /// The positions of the accounts.
    places: Vec<usize>,
    tally: Mutex<Tally>,
    /// Lets one request at a time try to get money, in the order of arrival.
    turn: Semaphore,
}

/// The requests of a budget so far, and their cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests that were sent.
    pub requests: u64,
    /// Requests of unknown cost: the answer did not arrive, or had no count of tokens. They are counted
    /// with their worst case.
    pub unknown: u64,
    /// Tokens that were read, as the server counts them.
    pub prompt_tokens: u64,
    /// Tokens that were written.
    pub completion_tokens: u64,
    /// The cost.
    pub usd: Usd,
}

impl Budget {
    /// Creates a budget from these accounts.
    #[must_use]
    pub fn new(accounts: Arc<Accounts>, places: Vec<usize>) -> Arc<Self> {
        Arc::new(Self { accounts, places, tally: Mutex::default(), turn: Semaphore::new(1) })
    }

    /// Creates a budget without a limit, which only counts.
    #[must_use]
    pub fn unlimited() -> Arc<Self> {
        Self::new(Accounts::new(Vec::new(), None), Vec::new())
    }

    /// The requests and the spending so far.
    pub fn tally(&self) -> Tally {
        *self.counted()
    }

    /// Returns true if there is a limit of money.
    pub fn limits_money(&self) -> bool {
        self.accounts.limits_money(&self.places)
    }

    /// Holds `worst` back until the request is settled.
    ///
    /// # Errors
    /// [`ChatError::OverBudget`] if it does not fit and nothing is under way that could cost less,
    /// and ever after; [`ChatError::Fatal`] if the log cannot be written.
    pub async fn reserve(self: &Arc<Self>, worst: Usd) -> Result<Reservation, ChatError> {
        let worst = Expense { requests: 1, usd: worst };
        // The first request need not queue.
        if self.turn.available_permits() > 0
            && let Attempt::Held = self.accounts.hold(&self.places, worst)
        {
            return Ok(self.reservation(worst));
        }
        // The semaphore is never closed. The permit makes a queue; it does not guard data.
        let _turn = self.turn.acquire().await;
        loop {
            let settled = self.accounts.settled.notified();
            match self.accounts.hold(&self.places, worst) {
                Attempt::Held => return Ok(self.reservation(worst)),
                Attempt::Over(error) => return Err(error),
                Attempt::Wait => settled.await,
                Attempt::Unlogged => {
                    if let Some(reservation) = self.log(worst).await? {
                        return Ok(reservation);
                    }
                }
            }
        }
    }

    /// Logs `worst`, unless it is logged by now.
    async fn log(self: &Arc<Self>, worst: Expense) -> Result<Option<Reservation>, ChatError> {
        let _writing = self.accounts.writing.lock().await;
        match self.accounts.hold(&self.places, worst) {
            Attempt::Unlogged => {}
            Attempt::Held => return Ok(Some(self.reservation(worst))),
            Attempt::Wait | Attempt::Over(_) => return Ok(None),
        }
        let own = Arc::clone(self);
        let write = move || own.accounts.log_ahead(&own.places, worst);
        let written = tokio::task::spawn_blocking(write).await;
        written.unwrap_or_else(|error| Err(error.to_string())).map_err(ChatError::Fatal)?;
        Ok(None)
    }

    fn reservation(self: &Arc<Self>, worst: Expense) -> Reservation {
        let cost = Expense::default();
        Reservation { budget: Arc::clone(self), worst, cost, tokens: None }
    }

    fn counted(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Money that is held back for one request.
///
/// Dropped before the request was [sent](Reservation::sent), it costs nothing; dropped
/// afterwards, its worst case is counted as spent: a provider also bills an answer that the client did
/// not wait for.
#[derive(Debug)]
#[must_use]
pub struct Reservation {
    budget: Arc<Budget>,
    worst: Expense,
    /// The cost that is counted on drop.
    cost: Expense,
    /// Tokens that were read and written, if known.
    tokens: Option<(u64, u64)>,
}

impl Reservation {
    /// Marks the request as sent: from now on it may cost its worst case.
    pub fn sent(&mut self) {
        self.cost = self.worst;
    }

    /// Counts the real cost, even if it is above the worst case, and these tokens of the prompt and of
    /// the answer.
    pub fn settle(mut self, actual: Usd, tokens: (u64, u64)) {
        self.cost.usd = actual;
        self.tokens = Some(tokens);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let Self { budget, worst, cost, tokens } = self;
        let mut tally = budget.counted();
        tally.requests += cost.requests;
        tally.usd = tally.usd.plus(cost.usd);
        match tokens {
            Some((prompt, answer)) => {
                tally.prompt_tokens = tally.prompt_tokens.saturating_add(*prompt);
                tally.completion_tokens = tally.completion_tokens.saturating_add(*answer);
            }
            None => tally.unknown += cost.requests,
        }
        drop(tally);
        budget.accounts.settle(&budget.places, *worst, *cost);
    }
}
