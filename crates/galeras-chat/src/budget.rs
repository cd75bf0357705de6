//! Limits on the cost of requests, kept even if each request costs as much as it can: across parallel
//! requests, across parallel processes, and by a process that follows a killed one.
//!
//! The accounts hold the money spent, the money that running requests may still spend, and the log's
//! record of both. A budget is the queue of one client's requests for money from some of them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, Semaphore};

use super::error::ChatError;
use super::money::Usd;

/// The share of the remaining money that is logged ahead of need, as a divisor.
const AHEAD: u32 = 16;

/// The number of requests and their cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expense {
    /// Requests that were sent.
    pub requests: u64,
    /// US dollars.
    pub usd: Usd,
}

impl Expense {
    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let requests = self.requests.saturating_add(other.requests);
        Self { requests, usd: self.usd.plus(other.usd) }
    }

    fn minus(self, other: Self) -> Self {
        let requests = self.requests.saturating_sub(other.requests);
        Self { requests, usd: self.usd.minus(other.usd) }
    }

    fn at_least(self, other: Self) -> Self {
        Self { requests: self.requests.max(other.requests), usd: self.usd.max(other.usd) }
    }

    fn covers(self, other: Self) -> bool {
        self.requests >= other.requests && self.usd >= other.usd
    }
}

/// A limit on the sum of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpendingLimit {
    /// The name in the log.
    pub account: String,
    /// The name in messages: `the step …`, `the workflow`.
    pub owner: String,
    /// The most money.
    pub max_usd: Option<Usd>,
    /// The most requests.
    pub max_requests: Option<u64>,
}

/// The money spent, by account.
pub type Expenses = BTreeMap<String, Expense>;

/// A durable record of possible spending, which outlives a killed process and is shared by parallel
/// processes.
pub trait SpendingLog: Send + Sync + fmt::Debug {
    /// Calls `decide` with the possible spending of other processes, by account, and writes its result:
    /// the total possible spending of this process, by account. Other processes cannot write meanwhile,
    /// and the record is on disk when this returns. May block.
    ///
    /// # Errors
    /// The reason why the record could not be read or written.
    fn write(&self, decide: &mut dyn FnMut(&Expenses) -> Option<Expenses>) -> Result<(), String>;
}

/// The accounts of a process, one for each limit.
#[derive(Debug)]
pub struct Accounts {
    state: Mutex<Vec<AccountState>>,
    log: Option<Arc<dyn SpendingLog>>,
    /// One task at a time writes to the log.
    writing: tokio::sync::Mutex<()>,
    /// Notified when a request was settled.
    settled: Notify,
}

#[derive(Debug)]
struct AccountState {
    limit: SpendingLimit,
    /// The possible spending of other processes when the log was last read.
    others: Expense,
    spent: Expense,
    /// The worst cases of the requests under way.
    held: Expense,
    /// The possible spending of this process in the log.
    logged: Expense,
    under_way: usize,
    over: Option<ChatError>,
}

/// The result of an attempt to hold money back.
enum Attempt {
    /// The money is held.
    Held,
    /// It may fit if running requests cost less.
    Wait,
    /// It fits, but is not in the log yet.
    Unlogged,
    /// It does not fit.
    Over(ChatError),
}

impl Accounts {
    /// Creates accounts without spending. With a `log`, only logged money is spent.
    #[must_use]
    pub fn new(limits: Vec<SpendingLimit>, log: Option<Arc<dyn SpendingLog>>) -> Arc<Self> {
        let account = |limit| AccountState {
            limit,
            others: Expense::default(),
            spent: Expense::default(),
            held: Expense::default(),
            logged: Expense::default(),
            under_way: 0,
            over: None,
        };
        Arc::new(Self {
            state: Mutex::new(limits.into_iter().map(account).collect()),
            log,
            writing: tokio::sync::Mutex::new(()),
            settled: Notify::new(),
        })
    }

    /// The spending of this process from an account, with the worst case of requests whose cost never
    /// became known.
    #[must_use]
    pub fn spent(&self, account: usize) -> Expense {
        self.state().get(account).map_or_else(Expense::default, |account| account.spent)
    }

    /// Replaces possible spending in the log by the real one, if there was any.
    ///
    /// # Errors
    /// Those of the log.
    pub fn balance(&self) -> Result<(), String> {
        let Some(log) = &self.log else { return Ok(()) };
        if self.state().iter().all(|account| account.logged == Expense::default()) {
            return Ok(());
        }
        log.write(&mut |_| {
            let mut state = self.state();
            let exact = state.iter_mut().map(|account| {
                account.logged = account.spent.plus(account.held);
                (account.limit.account.clone(), account.logged)
            });
            Some(exact.collect())
        })
    }

    fn limits_money(&self, places: &[usize]) -> bool {
        let state = self.state();
        places.iter().any(|at| state[*at].limit.max_usd.is_some())
    }

    /// Holds `worst` back in each of these accounts, or in none.
    fn hold(&self, places: &[usize], worst: Expense) -> Attempt {
        let mut state = self.state();
        let (mut wait, mut unlogged) = (false, false);
        for at in places {
            let account = &mut state[*at];
            if let Some(over) = &account.over {
                return Attempt::Over(over.clone());
            }
            let wanted = account.spent.plus(account.held).plus(worst);
            if !account.allows(wanted) {
                if account.under_way == 0 {
                    let over = ChatError::OverBudget(account.explained(worst));
                    account.over = Some(over.clone());
                    return Attempt::Over(over);
                }
                wait = true;
            }
            unlogged |= self.log.is_some() && !account.logged.covers(wanted);
        }
        if wait {
            return Attempt::Wait;
        }
        if unlogged {
            return Attempt::Unlogged;
        }
        for at in places {
            let account = &mut state[*at];
            account.held = account.held.plus(worst);
            account.under_way += 1;
        }
        Attempt::Held
    }

    /// Logs the money that `worst` needs in these accounts, and about twice the money of running
    /// requests, so that most requests find theirs logged. If other processes leave too little, nothing
    /// is logged, and the next attempt finds that. May block.
    fn log_ahead(&self, places: &[usize], worst: Expense) -> Result<(), String> {
        let Some(log) = &self.log else { return Ok(()) };
        let mut logged = Vec::new();
        log.write(&mut |others| {
            let mut state = self.state();
            for account in state.iter_mut() {
                account.others = others.get(&account.limit.account).copied().unwrap_or_default();
            }
            logged = state.iter().map(|account| account.logged).collect();
            for at in places {
                let account = &state[*at];
                let wanted = account.spent.plus(account.held).plus(worst);
                if !account.allows(wanted) {
                    logged.clear();
                    return None;
                }
                logged[*at] = logged[*at].at_least(wanted.plus(account.ahead(wanted, worst)));
            }
            let names = state.iter().map(|account| account.limit.account.clone());
            Some(names.zip(logged.iter().copied()).collect())
        })?;
        for (account, logged) in self.state().iter_mut().zip(logged) {
            account.logged = logged;
        }
        Ok(())
    }

    /// Settles a request that ended.
    fn settle(&self, places: &[usize], worst: Expense, cost: Expense) {
        let mut state = self.state();
        for at in places {
            let account = &mut state[*at];
            account.held = account.held.minus(worst);
            account.spent = account.spent.plus(cost);
            account.under_way = account.under_way.saturating_sub(1);
        }
        drop(state);
        self.settled.notify_waiters();
    }

    fn state(&self) -> MutexGuard<'_, Vec<AccountState>> {
        // No critical section can panic, and the sums are right at any time.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AccountState {
    /// Returns true if the limit allows this process to spend `wanted`.
    fn allows(&self, wanted: Expense) -> bool {
        let all = self.others.plus(wanted);
        self.limit.max_usd.is_none_or(|limit| all.usd <= limit)
            && self.limit.max_requests.is_none_or(|limit| all.requests <= limit)
    }

    /// The money in addition to `wanted` that is logged ahead.
    fn ahead(&self, wanted: Expense, worst: Expense) -> Expense {
        let Expense { requests, usd } = self.held.plus(worst);
        let all = self.others.plus(wanted);
        let left = self.limit.max_usd.map(|limit| limit.minus(all.usd).divided(AHEAD));
        let requests_left = self
            .limit
            .max_requests
            .map(|limit| limit.saturating_sub(all.requests) / u64::from(AHEAD));
        Expense {
            requests: requests_left.map_or(requests, |left| left.min(requests)),
            usd: left.map_or(usd, |left| left.min(usd)),
        }
    }

    /// Explains why a request that may cost `worst` is not sent.
    fn explained(&self, worst: Expense) -> String {
        let SpendingLimit { owner, max_usd, max_requests, .. } = &self.limit;
        let all = self.others.plus(self.spent);
        let earlier = |part: String, some: bool| match some {
            true => format!(" ({part} of it by other runs that did not finish)"),
            false => String::new(),
        };
        match (max_usd, max_requests) {
            (Some(limit), _) if all.usd.plus(worst.usd) > *limit => format!(
                "the limit of the cost is reached: {} of the {limit} that `max_usd` of {owner} \
                 allows may be spent{}, and the next request may cost up to {}",
                all.usd,
                earlier(self.others.usd.to_string(), self.others.usd > Usd::ZERO),
                worst.usd,
            ),
            (_, limit) => format!(
                "the limit of requests is reached: {} of the {} that `max_requests` of {owner} \
                 allows may have been sent{}",
                all.requests,
                limit.unwrap_or(0),
                earlier(self.others.requests.to_string(), self.others.requests > 0),
            ),
        }
    }
}

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
        // The semaphore is never closed. The permit makes a queue; it does not guard data.
        let _turn = self.turn.acquire().await;
        loop {
            let settled = self.accounts.settled.notified();
            match self.accounts.hold(&self.places, worst) {
                Attempt::Held => {
                    let (budget, cost) = (Arc::clone(self), Expense::default());
                    return Ok(Reservation { budget, worst, cost, tokens: None });
                }
                Attempt::Over(error) => return Err(error),
                Attempt::Wait => settled.await,
                Attempt::Unlogged => {
                    let _writing = self.accounts.writing.lock().await;
                    let own = Arc::clone(self);
                    let write = move || own.accounts.log_ahead(&own.places, worst);
                    let written = tokio::task::spawn_blocking(write).await;
                    let written = written.unwrap_or_else(|error| Err(error.to_string()));
                    written.map_err(ChatError::Fatal)?;
                }
            }
        }
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
