//! The spending of a run: limits, requests to come, and money spent.
//!
//! The accounts of the limits outlive the run in a ledger of the store.

use std::collections::BTreeMap;
use std::sync::Arc;

use galeras_chat::{Accounts, Budget, Expense, SpendingLog};

use super::error::RunError;
use super::input::open;
use super::key::{StepManifests, step_key};
use super::paid_step::EarlierAnswers;
use crate::plan::{Plan, PlannedLimit, PlannedStep};
use galeras_operator::event::{LimitState, RunEvent, StepRequests, StepSpending};
use galeras_operator::{Lowering, PaidStep, PaymentTerms, RequestForecast};
use galeras_sql::session::session;
use galeras_store::{SpendingLedger, Store};

pub(super) struct RunSpending {
    accounts: Arc<Accounts>,
    ledger: Option<Arc<SpendingLedger>>,
    /// The budget of each step, by position in the plan; `None` for steps without requests.
    budgets: Vec<Option<Arc<Budget>>>,
}

impl RunSpending {
    /// The accounts of the plan's limits. Opens no file.
    pub(super) fn new(plan: &Plan) -> Self {
        let limits: Vec<_> = plan.limits.iter().map(|planned| planned.limit.clone()).collect();
        let ledger = (!limits.is_empty()).then(|| Arc::new(ledger(plan)));
        let log = ledger.clone().map(|ledger| ledger as Arc<dyn SpendingLog>);
        let accounts = Accounts::new(limits, log);
        let budget = |(at, step): (usize, &PlannedStep)| {
            paid(step)?;
            let limits = plan.limits.iter().enumerate();
            let bounding = limits.filter(|(_, limit)| limit.steps.binary_search(&at).is_ok());
            let places = bounding.map(|(place, _)| place).collect();
            Some(Budget::new(Arc::clone(&accounts), places))
        };
        let budgets = plan.steps.iter().enumerate().map(budget).collect();
        Self { accounts, ledger, budgets }
    }

    /// The budget of the step at this position.
    pub(super) fn budget(&self, at: usize) -> Arc<Budget> {
        self.budgets.get(at).cloned().flatten().unwrap_or_else(Budget::unlimited)
    }

    /// The spending, if a request was sent.
    pub(super) fn spent(&self, plan: &Plan) -> Option<RunEvent> {
        let spent = |(step, budget): (&PlannedStep, &Option<Arc<Budget>>)| {
            let tally = budget.as_ref()?.tally();
            let price = paid(step).and_then(|(_, terms)| terms.price);
            (tally.requests > 0).then(|| StepSpending {
                step: step.name.clone(),
                requests: tally.requests,
                unknown: tally.unknown,
                prompt_tokens: tally.prompt_tokens,
                completion_tokens: tally.completion_tokens,
                usd: price.map(|_| tally.usd),
            })
        };
        let steps: Vec<_> = plan.steps.iter().zip(&self.budgets).filter_map(spent).collect();
        (!steps.is_empty()).then_some(RunEvent::Spent { steps })
    }

    /// Writes the actual spending, and closes the accounts whose requests are all answered: `done`
    /// has the valid results.
    pub(super) fn close(&self, plan: &Plan, done: &StepManifests) -> Result<(), String> {
        let Some(ledger) = &self.ledger else { return Ok(()) };
        self.accounts.balance()?;
        let answered = |at: &usize| {
            let result = done.get(*at).and_then(Option::as_ref);
            result.is_some_and(|manifest| manifest.retry_rows == 0)
        };
        let complete = plan.limits.iter().filter(|limit| limit.steps.iter().all(answered));
        let complete: Vec<String> = complete.map(|planned| planned.limit.account.clone()).collect();
        ledger.close(&complete).map_err(|error| error.to_string())
    }
}

fn ledger(plan: &Plan) -> SpendingLedger {
    SpendingLedger::new(&plan.downloads, &plan.name)
}

/// The limits that apply to any of these steps, with their spending.
///
/// # Errors
/// If the ledger is damaged or cannot be read.
pub fn limit_states(
    plan: &Plan,
    steps: impl Fn(usize) -> bool,
) -> Result<Vec<LimitState>, RunError> {
    let bounding = plan.limits.iter().filter(|limit| limit.steps.iter().any(|at| steps(*at)));
    let bounding: Vec<_> = bounding.collect();
    if bounding.is_empty() {
        return Ok(Vec::new());
    }
    let spent = ledger(plan).spent()?;
    let state = |PlannedLimit { limit, .. }: &PlannedLimit| {
        let Expense { requests, usd } = spent.get(&limit.account).copied().unwrap_or_default();
        LimitState {
            owner: limit.owner.clone(),
            max_usd: limit.max_usd,
            max_requests: limit.max_requests,
            spent_usd: Some(usd),
            spent_requests: requests,
        }
    };
    Ok(bounding.into_iter().map(state).collect())
}

/// The step and its terms, if its answers may cost money.
fn paid(step: &PlannedStep) -> Option<(&dyn PaidStep, PaymentTerms)> {
    match step.step.lowering() {
        Lowering::Paid(paid) => Some((paid, paid.terms()?)),
        Lowering::Row(_) | Lowering::FanOut(_) | Lowering::Table(_) => None,
    }
}

/// True if the step's requests may be billed, or if it has a limit.
pub(super) fn may_cost(plan: &Plan, at: usize) -> bool {
    let bounded = || plan.limits.iter().any(|limit| limit.steps.binary_search(&at).is_ok());
    paid(&plan.steps[at]).is_some_and(|(_, terms)| terms.may_cost() || bounded())
}

/// The requests that the step at this position will send; `None` for a step without requests.
/// `done` has its inputs; without them only the model and the server are known. Sends nothing.
///
/// # Errors
/// If inputs or earlier answers cannot be read.
pub async fn step_requests(
    plan: &Plan,
    store: &Store,
    at: usize,
    done: &StepManifests,
    forced: bool,
) -> Result<Option<StepRequests>, RunError> {
    let step = &plan.steps[at];
    let Some((paid, terms)) = paid(step) else { return Ok(None) };
    if step.upstream().any(|upstream| done[upstream].is_none()) {
        return Ok(Some(requests(step, terms, None)));
    }
    let recipe = step_key(plan, step, done)?.preimage.recipe();
    let session = session(1);
    let answers = match forced {
        true => EarlierAnswers::default(),
        false => EarlierAnswers::now(&session, store, &plan.downloads, &recipe).await?,
    };
    let mut inputs = BTreeMap::new();
    for input in &step.inputs {
        inputs.insert(input.port.clone(), open(&session, store, plan, input, done)?);
    }
    let forecast = paid.forecast(&answers, inputs).await?;
    Ok(Some(requests(step, terms, Some(forecast))))
}

fn requests(
    step: &PlannedStep,
    terms: PaymentTerms,
    forecast: Option<RequestForecast>,
) -> StepRequests {
    let known = forecast.unwrap_or_default();
    StepRequests {
        step: step.name.clone(),
        model: terms.model,
        server: terms.server.map(|server| server.to_string()).unwrap_or_default(),
        requests: forecast.map(|forecast| forecast.requests),
        answered: known.answered,
        prompt_tokens: known.prompt_tokens,
        completion_tokens: known.completion_tokens,
        usd: known.usd,
    }
}
