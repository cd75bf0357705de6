//! Tests of limits that several users, processes and runs share.

use std::collections::BTreeMap;

use super::*;

fn limit(account: &str, max_usd: Option<&str>, max_requests: Option<u64>) -> SpendingLimit {
    let owner = format!("the step `{account}`");
    SpendingLimit { account: account.into(), owner, max_usd: max_usd.map(usd), max_requests }
}

pub(super) fn budget(limit_usd: &str) -> Arc<Budget> {
    Budget::new(Accounts::new(vec![limit("a", Some(limit_usd), None)], None), vec![0])
}

async fn waits<T>(future: impl Future<Output = T>) -> bool {
    tokio::time::timeout(Duration::from_millis(5), future).await.is_err()
}

fn pay(mut held: Reservation, text: &str) {
    held.sent();
    held.settle(usd(text), (1, 1));
}

#[tokio::test]
async fn a_request_waits_while_others_may_cost_less() {
    let budget = budget("1");
    let mut first = budget.reserve(usd("0.6")).await.unwrap();
    first.sent();
    assert!(waits(budget.reserve(usd("0.6"))).await, "0.6 and 0.6 may be 1.2");
    let second = budget.reserve(usd("0.6"));
    let (second, ()) = tokio::join!(second, async { pay(first, "0.4") });
    pay(second.unwrap(), "0.5");
    assert_eq!(budget.tally().usd, usd("0.9"));
    let over = budget.reserve(usd("0.2")).await.unwrap_err();
    let text = "the limit of the cost is reached: $0.90 of the $1.00 that `max_usd` of the step \
                `a` allows may be spent, and the next request may cost up to $0.20";
    assert_eq!(over.to_string(), text);
    assert_eq!(budget.reserve(Usd::ZERO).await.unwrap_err(), over, "nothing afterwards");
}

#[tokio::test]
async fn what_exactly_fits_is_sent() {
    let budget = budget("1");
    for _ in 0..10 {
        pay(budget.reserve(usd("0.1")).await.unwrap(), "0.1");
    }
    drop(budget.reserve(Usd::ZERO).await.unwrap());
    assert!(budget.reserve(usd("1e-18")).await.is_err());
    assert_eq!((budget.tally().usd, budget.tally().requests), (usd("1"), 10));
}

#[tokio::test]
async fn a_dropped_request_costs_its_worst_case_if_it_was_sent() {
    let budget = budget("1");
    drop(budget.reserve(usd("0.7")).await.unwrap());
    assert_eq!(budget.tally(), Default::default());
    let mut sent = budget.reserve(usd("0.7")).await.unwrap();
    sent.sent();
    drop(sent);
    assert_eq!((budget.tally().usd, budget.tally().unknown), (usd("0.7"), 1));
}

#[tokio::test]
async fn a_cancelled_wait_does_not_stop_those_behind_it() {
    let budget = budget("1");
    let first = budget.reserve(usd("1")).await.unwrap();
    assert!(waits(budget.reserve(usd("1"))).await);
    let third = budget.reserve(usd("0.5"));
    let (third, ()) = tokio::join!(third, async { drop(first) });
    assert!(third.is_ok());
}

#[tokio::test]
async fn requests_are_limited_too() {
    let accounts = Accounts::new(vec![limit("a", None, Some(3))], None);
    let budget = Budget::new(accounts, vec![0]);
    assert!(!budget.limits_money());
    for _ in 0..3 {
        pay(budget.reserve(Usd::ZERO).await.unwrap(), "5");
    }
    let over = budget.reserve(Usd::ZERO).await.unwrap_err().to_string();
    let text = "3 of the 3 that `max_requests` of the step `a` allows may have been sent";
    assert!(over.ends_with(text), "{over}");
}

/// Two steps with one limit each, and one for both.
#[tokio::test]
async fn all_limits_of_a_request_hold_at_once() {
    let limits = [("a", "1"), ("b", "9"), ("/", "1.5")].map(|(a, usd)| limit(a, Some(usd), None));
    let accounts = Accounts::new(limits.into(), None);
    let a = Budget::new(Arc::clone(&accounts), vec![0, 2]);
    let b = Budget::new(Arc::clone(&accounts), vec![1, 2]);
    pay(a.reserve(usd("0.9")).await.unwrap(), "0.9");
    assert!(a.reserve(usd("0.2")).await.unwrap_err().to_string().contains("`a`"));
    assert!(b.reserve(usd("0.7")).await.unwrap_err().to_string().contains("`/`"));
    assert_eq!([0, 1, 2].map(|at| accounts.spent(at).usd.to_string()), ["$0.90", "$0.00", "$0.90"]);
}

/// A log in memory: the last record of each process.
#[derive(Debug, Default)]
struct SharedLog {
    lines: Mutex<BTreeMap<usize, Expenses>>,
    writes: Mutex<usize>,
}

#[derive(Debug)]
struct ProcessLog(usize, Arc<SharedLog>);

impl SpendingLog for ProcessLog {
    fn write(&self, decide: &mut dyn FnMut(&Expenses) -> Option<Expenses>) -> Result<(), String> {
        let mut lines = self.1.lines.lock().unwrap();
        let mut others = Expenses::new();
        for (_, spent) in lines.iter().filter(|(process, _)| **process != self.0) {
            for (account, spent) in spent {
                let sum = others.entry(account.clone()).or_default();
                *sum = sum.plus(*spent);
            }
        }
        if let Some(own) = decide(&others) {
            lines.insert(self.0, own);
            *self.1.writes.lock().unwrap() += 1;
        }
        Ok(())
    }
}

/// A process with 64 requests under way, which is killed after so many: nothing is written at its
/// end. Returns the bill, in millionths of a dollar.
async fn killed(process: usize, log: &Arc<SharedLog>, after: u64) -> u64 {
    let log: Arc<dyn SpendingLog> = Arc::new(ProcessLog(process, Arc::clone(log)));
    let accounts = Accounts::new(vec![limit("a", Some("0.1"), Some(3_000))], Some(log));
    let budget = Budget::new(accounts, vec![0]);
    let billed = Arc::new(Mutex::new((0, 0)));
    let dead = CancellationToken::new();
    let tasks = (0..64_u64).map(|task| {
        let (budget, billed, dead) = (Arc::clone(&budget), Arc::clone(&billed), dead.clone());
        tokio::spawn(async move {
            for n in 0.. {
                let worst = 40 + (task * 7 + n * 13) % 60;
                let worst_usd = usd(&format!("{worst}e-6"));
                let held = tokio::select! {
                    biased;
                    () = dead.cancelled() => return,
                    held = budget.reserve(worst_usd) => held,
                };
                let Ok(mut held) = held else { return };
                held.sent();
                let actual = worst - (n * 31 + task) % 40;
                {
                    // The server bills every request, even without a waiting client.
                    let mut billed = billed.lock().unwrap();
                    if dead.is_cancelled() {
                        return;
                    }
                    billed.0 += actual;
                    billed.1 += 1;
                    if billed.1 >= after {
                        dead.cancel();
                    }
                }
                tokio::task::yield_now().await;
                held.settle(usd(&format!("{actual}e-6")), (1, 1));
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let billed = *billed.lock().unwrap();
    billed.0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_with_64_requests_under_way_never_pass_the_limit() {
    let log = Arc::new(SharedLog::default());
    let mut billed = 0;
    for process in 0..10 {
        billed += killed(process, &log, 40 + process as u64 * 37 % 90).await;
        assert!(billed <= 100_000, "{billed} millionths after {process}");
    }
    assert!(billed > 30_000, "most of it can be used: {billed}");
}

#[tokio::test]
async fn most_requests_find_it_written_that_they_may_be_sent() {
    let shared = Arc::new(SharedLog::default());
    let log: Arc<dyn SpendingLog> = Arc::new(ProcessLog(0, Arc::clone(&shared)));
    let accounts = Accounts::new(vec![limit("a", Some("100"), None)], Some(log));
    let budget = Budget::new(Arc::clone(&accounts), vec![0]);
    for _ in 0..50 {
        let mut held = Vec::new();
        for _ in 0..64 {
            held.push(budget.reserve(usd("0.01")).await.unwrap());
        }
        held.into_iter().for_each(|held| pay(held, "0.002"));
    }
    let writes = *shared.writes.lock().unwrap();
    // One line for thirty requests at least: each waits for the disk.
    assert!(writes < 100, "{writes} for 3,200 requests");
    accounts.balance().unwrap();
    let line = shared.lines.lock().unwrap()[&0]["a"];
    assert_eq!(line, Expense { requests: 3_200, usd: usd("6.4") });
}

/// Many requests with costs between nothing and their worst case, in any order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_limit_is_never_passed() {
    let budget = budget("0.01");
    let price = Price::per_million(usd("1"), usd("2")).unwrap();
    let tasks = (0..2_000_u64).map(|n| {
        let budget = Arc::clone(&budget);
        tokio::spawn(async move {
            let mut held = budget.reserve(price.of(n % 37, n % 11)).await.ok()?;
            held.sent();
            tokio::task::yield_now().await;
            held.settle(price.of(n % 37 / 2, n % 11 / 3), (n % 37 / 2, n % 11 / 3));
            Some(())
        })
    });
    let mut sent = 0;
    for task in tasks.collect::<Vec<_>>() {
        sent += u64::from(task.await.unwrap().is_some());
    }
    let tally = budget.tally();
    assert!(tally.usd <= usd("0.01") && tally.requests == sent);
    assert!(tally.usd > usd("0.0099"), "{} of it, {sent} sent", tally.usd);
}
