//! The ways of data through a plan: from the user's files and services to servers.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::ground::{lies_in, settled};
use crate::plan::Plan;
use galeras_operator::{
    Access, Consent, DataSource, Demand, Lowering, RefusedAccess, ServerAddress,
};

/// Places of data that did not come with the workflow. Most steps share the set of an input.
type Sources = Arc<BTreeSet<DataSource>>;

/// The servers that a table reaches; `None` for those that rows name.
type Servers = BTreeSet<Option<ServerAddress>>;

/// The data that reaches each step, by position in the plan.
#[derive(Debug, Default)]
pub(crate) struct DataFlow {
    steps: Vec<StepFlow>,
}

#[derive(Clone, Debug, Default)]
struct StepFlow {
    /// The origins of the content of its inputs.
    content: Sources,
    /// The places that its inputs only list: see [`Demand::is_listing`].
    listed: Sources,
    /// Its own servers, with the argument that names each.
    asks: Vec<(Option<ServerAddress>, String)>,
    /// The servers of the steps after it.
    after: Servers,
    /// It opens what its rows name.
    opens_rows: bool,
}

impl DataFlow {
    /// Follows the data that is the user's by `consent`.
    pub(crate) fn of(plan: &Plan, consent: &dyn Consent) -> Self {
        let mut steps: Vec<StepFlow> = Vec::with_capacity(plan.steps.len());
        // The sources of the tables of each step.
        let mut made: Vec<(Sources, Sources)> = Vec::with_capacity(plan.steps.len());
        for step in &plan.steps {
            let inputs: Vec<&(Sources, Sources)> = step.upstream().map(|at| &made[at]).collect();
            let content = union(inputs.iter().map(|input| &input.0));
            let listed = union(inputs.iter().map(|input| &input.1));
            let opens_rows = matches!(step.step.lowering(), Lowering::FanOut(_));
            let (mut own, mut own_listed) = (Sources::default(), Sources::default());
            let mut asks = Vec::new();
            for Demand { access, at, is_listing } in step.step.demands() {
                if let Access::Host { to } | Access::Variable { to, .. } = &access {
                    asks.push((Some(to.clone()), at));
                }
                let Some(source) = DataSource::of(&settled(&access)) else { continue };
                // With a token, a list has what only its owner may see. A model answers prompts.
                let has_token = is_listing && matches!(access, Access::Variable { .. });
                if !has_token && !consent.is_users_data(&source) {
                    continue;
                }
                let sources = if is_listing { &mut own_listed } else { &mut own };
                // A repository leads to places within its folder.
                if !sources.iter().any(|known| includes(known, &source)) {
                    Arc::make_mut(sources).insert(source);
                }
            }
            if opens_rows {
                asks.push((None, String::new()));
            }
            made.push((
                union([&content, &own].into_iter().chain(opens_rows.then_some(&listed))),
                union([&listed, &own_listed]),
            ));
            steps.push(StepFlow { content, listed, asks, after: Servers::new(), opens_rows });
        }
        for (at, step) in plan.steps.iter().enumerate().rev() {
            let own = steps[at].asks.iter().map(|(to, _)| to.clone());
            let reached: Servers = steps[at].after.iter().cloned().chain(own).collect();
            for before in step.upstream() {
                steps[before].after.extend(reached.iter().cloned());
            }
        }
        Self { steps }
    }

    /// The sending of data that reaches the step to its servers.
    pub(super) fn sends(&self, step: usize) -> Vec<Demand> {
        let flow = &self.steps[step];
        let sends = |(to, at): &(Option<ServerAddress>, String)| {
            let sends = flow.sent_to(to.as_ref()).into_iter();
            sends.map(|access| Demand::new(at, access)).collect::<Vec<_>>()
        };
        flow.asks.iter().flat_map(sends).collect()
    }

    /// The consent for a running step: an action that would send the user's data needs consent for
    /// that as well.
    pub(crate) fn consent(&self, step: usize, consent: &Arc<dyn Consent>) -> Arc<dyn Consent> {
        let flow = &self.steps[step];
        let opens = flow.opens_rows && !flow.after.is_empty();
        if flow.content.is_empty() && flow.listed.is_empty() && !opens {
            return Arc::clone(consent);
        }
        Arc::new(FlowConsent { flow: flow.clone(), consent: Arc::clone(consent) })
    }
}

impl StepFlow {
    /// The sending of its inputs to a server. Servers that rows name get addresses by purpose.
    fn sent_to(&self, to: Option<&ServerAddress>) -> Vec<Access> {
        let listed = to.map(|_| &*self.listed).into_iter().flatten();
        let sources: BTreeSet<&DataSource> = self.content.iter().chain(listed).collect();
        let send = |from: &DataSource| Access::Send { from: from.clone(), to: to.cloned() };
        sources.into_iter().map(send).collect()
    }
}

fn union<'a>(sets: impl IntoIterator<Item = &'a Sources>) -> Sources {
    let mut all = Sources::default();
    for set in sets.into_iter().filter(|set| !set.is_empty()) {
        if all.is_empty() {
            all = Arc::clone(set);
        } else if !Arc::ptr_eq(&all, set) {
            Arc::make_mut(&mut all).extend(set.iter().cloned());
        }
    }
    all
}

/// The user's decisions, for one step.
#[derive(Debug)]
struct FlowConsent {
    flow: StepFlow,
    consent: Arc<dyn Consent>,
}

impl FlowConsent {
    /// The sending that follows from an action.
    fn sends(&self, access: &Access) -> Vec<Access> {
        let StepFlow { content, listed, after, opens_rows, .. } = &self.flow;
        let mut sends = Vec::new();
        if let Access::Host { to } | Access::Variable { to, .. } = access {
            sends.extend(self.flow.sent_to(Some(to).filter(|_| !opens_rows)));
        }
        // Only the rows name this place: where its data goes was not asked before the run.
        if *opens_rows
            && let Some(from) = DataSource::of(&settled(access))
            && self.consent.is_users_data(&from)
            && !content.iter().chain(&**listed).any(|known| includes(known, &from))
        {
            sends
                .extend(after.iter().map(|to| Access::Send { from: from.clone(), to: to.clone() }));
        }
        sends
    }
}

/// True if the place is, or is in, the known one.
fn includes(known: &DataSource, place: &DataSource) -> bool {
    match (known, place) {
        (DataSource::Path(folder), DataSource::Path(path)) => lies_in(path, folder),
        (known, place) => known == place,
    }
}

impl Consent for FlowConsent {
    fn refusal(&self, access: &Access) -> Option<RefusedAccess> {
        let sends = || self.sends(access).iter().find_map(|send| self.consent.refusal(send));
        self.consent.refusal(access).or_else(sends)
    }

    fn is_users_data(&self, from: &DataSource) -> bool {
        self.consent.is_users_data(from)
    }
}
