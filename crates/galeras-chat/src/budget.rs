//! A limit on what requests may cost, kept even if each costs as much as it can.
//!
//! What was spent, what requests under way may still spend, and who has to wait.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, Semaphore};

use super::error::ChatError;
use super::money::{Price, Usd};

/// A limit on the cost of all requests that share it.
///
/// A request is sent only if the limit would hold even if it and all others under way cost as
/// much as they can. Otherwise it waits, as those others may cost less. If it does not fit
/// although nothing is under way, this and every later request gets
/// [`ChatError::OverBudget`]: the first that does not fit ends the work, so that no run goes on
/// with its short prompts only.
#[derive(Debug)]
pub struct Budget {
    limit: Usd,
    price: Price,
    state: Mutex<State>,
    /// Lets one request at a time try to get money, in the order in which they came.
    turn: Semaphore,
    /// Notified when something was settled.
    settled: Notify,
}

#[derive(Debug, Default)]
struct State {
    spent: Usd,
    /// The worst cases of the requests under way.
    held: Usd,
    under_way: usize,
    over: Option<ChatError>,
}

impl Budget {
    /// A budget of which nothing is spent.
    #[must_use]
    pub fn new(limit: Usd, price: Price) -> Self {
        let (state, turn, settled) = (Mutex::default(), Semaphore::new(1), Notify::new());
        Self { limit, price, state, turn, settled }
    }

    /// What was spent, with the worst case of requests of which the cost never became known.
    pub fn spent(&self) -> Usd {
        self.state().spent
    }

    /// What tokens cost.
    pub fn price(&self) -> &Price {
        &self.price
    }

    /// Holds back as much as `worst` says until the request is settled. It is asked again
    /// whenever something was settled, since bounds get better with every answer.
    ///
    /// # Errors
    /// [`ChatError::OverBudget`] if `worst` does not fit and nothing is under way that could cost
    /// less, and ever after.
    pub async fn reserve(
        self: &Arc<Self>,
        worst: impl Fn() -> Usd,
    ) -> Result<Reservation, ChatError> {
        // Without a queue there is none to join.
        if self.turn.available_permits() > 0
            && let Some(decided) = self.try_reserve(worst())
        {
            return decided;
        }
        // Nobody closes the semaphore. The permit makes a queue, it guards no data.
        let _turn = self.turn.acquire().await;
        loop {
            let settled = self.settled.notified();
            if let Some(decided) = self.try_reserve(worst()) {
                return decided;
            }
            settled.await;
        }
    }

    fn try_reserve(self: &Arc<Self>, worst: Usd) -> Option<Result<Reservation, ChatError>> {
        let mut state = self.state();
        if let Some(over) = &state.over {
            return Some(Err(over.clone()));
        }
        if state.spent.plus(state.held).plus(worst) <= self.limit {
            state.held = state.held.plus(worst);
            state.under_way += 1;
            return Some(Ok(Reservation { budget: Arc::clone(self), worst, cost: Usd::ZERO }));
        }
        if state.under_way > 0 {
            return None;
        }
        let over = ChatError::OverBudget { spent: state.spent, worst, limit: self.limit };
        state.over = Some(over.clone());
        Some(Err(over))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in a critical section can panic, and the sums are right at any time.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Money that is held back for one request.
///
/// Dropped before the request was [sent](Reservation::sent), it costs nothing; dropped
/// afterwards, its worst case is counted as spent: a provider bills an answer even if nobody
/// waited for it.
#[derive(Debug)]
#[must_use]
pub struct Reservation {
    budget: Arc<Budget>,
    worst: Usd,
    /// What is counted when this is dropped.
    cost: Usd,
}

impl Reservation {
    /// The request is about to be sent: from now on it may cost its worst case.
    pub fn sent(&mut self) {
        self.cost = self.worst;
    }

    /// The request has cost `actual`, which is counted even if it is above the worst case.
    pub fn settle(mut self, actual: Usd) {
        self.cost = actual;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut state = self.budget.state();
        state.held = state.held.minus(self.worst);
        state.spent = state.spent.plus(self.cost);
        state.under_way = state.under_way.saturating_sub(1);
        drop(state);
        self.budget.settled.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn usd(text: &str) -> Usd {
        text.parse().unwrap()
    }

    fn budget(limit: &str) -> Arc<Budget> {
        let price = Price::per_million(usd("1"), usd("2")).unwrap();
        Arc::new(Budget::new(usd(limit), price))
    }

    async fn waits<T>(future: impl Future<Output = T>) -> bool {
        tokio::time::timeout(Duration::from_millis(5), future).await.is_err()
    }

    #[tokio::test]
    async fn a_request_waits_while_others_may_cost_less() {
        let budget = budget("1");
        let mut first = budget.reserve(|| usd("0.6")).await.unwrap();
        first.sent();
        assert!(waits(budget.reserve(|| usd("0.6"))).await, "0.6 and 0.6 may be 1.2");
        let second = budget.reserve(|| usd("0.6"));
        let (second, ()) = tokio::join!(second, async { first.settle(usd("0.4")) });
        second.unwrap().settle(usd("0.5"));
        assert_eq!(budget.spent(), usd("0.9"));
        let over = budget.reserve(|| usd("0.2")).await.unwrap_err();
        let expected =
            ChatError::OverBudget { spent: usd("0.9"), worst: usd("0.2"), limit: usd("1") };
        assert_eq!(over, expected);
        assert_eq!(budget.reserve(|| Usd::ZERO).await.unwrap_err(), expected, "nothing afterwards");
    }

    #[tokio::test]
    async fn what_exactly_fits_is_sent() {
        let budget = budget("1");
        for _ in 0..10 {
            budget.reserve(|| usd("0.1")).await.unwrap().settle(usd("0.1"));
        }
        assert_eq!(budget.spent(), usd("1"));
        drop(budget.reserve(|| Usd::ZERO).await.unwrap());
        assert!(budget.reserve(|| usd("1e-18")).await.is_err());
    }

    #[tokio::test]
    async fn a_dropped_request_costs_its_worst_case_if_it_was_sent() {
        let budget = budget("1");
        drop(budget.reserve(|| usd("0.7")).await.unwrap());
        assert_eq!(budget.spent(), Usd::ZERO);
        let mut sent = budget.reserve(|| usd("0.7")).await.unwrap();
        sent.sent();
        drop(sent);
        assert_eq!(budget.spent(), usd("0.7"));
    }

    #[tokio::test]
    async fn a_better_bound_lets_a_waiting_request_go() {
        let budget = budget("1");
        let first = budget.reserve(|| usd("1")).await.unwrap();
        let bound = Mutex::new(usd("1"));
        let second = budget.reserve(|| *bound.lock().unwrap());
        let (second, ()) = tokio::join!(second, async {
            *bound.lock().unwrap() = usd("0.2");
            first.settle(usd("0.5"));
        });
        second.unwrap().settle(usd("0.1"));
        assert_eq!(budget.spent(), usd("0.6"));
    }

    #[tokio::test]
    async fn a_cancelled_wait_does_not_stop_those_behind_it() {
        let budget = budget("1");
        let first = budget.reserve(|| usd("1")).await.unwrap();
        assert!(waits(budget.reserve(|| usd("1"))).await);
        let third = budget.reserve(|| usd("0.5"));
        let (third, ()) = tokio::join!(third, async { first.settle(Usd::ZERO) });
        assert!(third.is_ok());
    }

    /// Many requests with costs between nothing and their worst case, in any order.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_limit_is_never_passed() {
        let budget = budget("0.01");
        let tasks = (0..2_000_u64).map(|n| {
            let budget = Arc::clone(&budget);
            tokio::spawn(async move {
                let worst = budget.price().of(n % 37, n % 11);
                let mut held = budget.reserve(|| worst).await.ok()?;
                held.sent();
                tokio::task::yield_now().await;
                held.settle(budget.price().of(n % 37 / 2, n % 11 / 3));
                Some(())
            })
        });
        let tasks: Vec<_> = tasks.collect();
        let mut sent = 0;
        for task in tasks {
            sent += usize::from(task.await.unwrap().is_some());
        }
        assert!(budget.spent() <= usd("0.01"));
        assert!(budget.spent() > usd("0.0099"), "{} of it, {sent} sent", budget.spent());
    }
}
