//! Spending limits: `max_usd` of steps and `budget` of workflows.
//!
//! A limit applies to all cells together, of the step and of the steps that embed its workflow. A
//! step has its own limit, the budget of its file, and the budgets of the files that embed it.

use std::collections::{BTreeMap, HashSet};

use galeras_chat::{SpendingLimit, Usd};

use super::expander::{Expander, Site};
use super::model::{FileBudget, PlannedLimit, PlannedStep};
use super::params::scope;
use galeras_operator::{Lowering, PaymentTerms};
use galeras_workflow::code::Code;
use galeras_workflow::{
    Diagnostic, Node, SourceSpan, Span, Value, budget_limit_problem, quote, substitute_node,
};

impl Expander {
    pub(super) fn budget(&mut self, site: &Site<'_>) {
        let Some(spec) = &site.workflow.budget else { return };
        let source = &site.workflow.source;
        let usd = self.limit(site, "max_usd", spec.max_usd.as_ref(), |node| match node.value {
            Value::Int(n) => n.to_string().parse::<Usd>().ok(),
            Value::Float(x) => x.to_string().parse::<Usd>().ok(),
            _ => None,
        });
        let requests = spec.max_requests.as_ref();
        let requests = self.limit(site, "max_requests", requests, |node| {
            node.as_i64().and_then(|n| u64::try_from(n).ok())
        });
        let budget = FileBudget {
            path: site.family.to_string(),
            max_usd: usd,
            max_requests: requests,
            place: SourceSpan::new(source, spec.span),
        };
        let Some(other) = self.budgets.iter().find(|other| other.path == budget.path) else {
            self.budgets.push(budget);
            return;
        };
        if (other.max_usd, other.max_requests) != (budget.max_usd, budget.max_requests) {
            let message = format!(
                "the cells of {} give the workflow that they embed different budgets",
                quote(budget.path.trim_end_matches('/'))
            );
            let problem = site.error(Code::WrongValue, message, spec.span);
            self.diagnostics.push(problem.with_help("a budget is for all cells together"));
        }
    }

    fn limit<T>(
        &mut self,
        site: &Site<'_>,
        key: &str,
        node: Option<&Node>,
        read: impl Fn(&Node) -> Option<T>,
    ) -> Option<T> {
        let node = node?;
        let source = &site.workflow.source;
        let before = self.diagnostics.len();
        let node = substitute_node(node, source, &scope(site.params), &mut self.diagnostics);
        if self.diagnostics.len() > before {
            return None;
        }
        let value = read(&node).filter(|_| !budget_limit_problem(key, &node));
        if value.is_none() {
            let wanted = match key {
                "max_usd" => "an amount of US dollars, 0 or more, with 18 decimals at most",
                _ => "a whole number, 0 or more",
            };
            let message = format!("`{key}` of `budget` must be {wanted}");
            self.diagnostics.push(site.error(Code::WrongValue, message, node.span));
        }
        value
    }

    /// The limits of the planned steps. Reports limits that contradict each other or cannot be
    /// kept.
    pub(super) fn limits(&mut self) -> Vec<PlannedLimit> {
        let paid: Vec<(usize, PaymentTerms)> = self
            .steps
            .iter()
            .enumerate()
            .filter_map(|(at, step)| match step.step.lowering() {
                Lowering::Paid(paid) => Some((at, paid.terms()?)),
                Lowering::Row(_) | Lowering::FanOut(_) | Lowering::Table(_) => None,
            })
            .collect();
        let mut limits = self.step_limits(&paid);
        for budget in std::mem::take(&mut self.budgets) {
            let bounded: Vec<&(usize, PaymentTerms)> = paid
                .iter()
                .filter(|(at, _)| self.steps[*at].family.starts_with(&budget.path))
                .collect();
            if budget.max_usd.is_some() {
                self.check_priced(&budget, &bounded);
            }
            let name = budget.path.trim_end_matches('/');
            let (account, owner) = match name {
                "" => ("/".into(), "the `budget` of the workflow".into()),
                name => (budget.path.clone(), format!("the `budget` of {}", quote(name))),
            };
            let FileBudget { max_usd, max_requests, .. } = budget;
            let limit = SpendingLimit { account, owner, max_usd, max_requests };
            let steps = bounded.into_iter().map(|(at, _)| *at).collect();
            limits.push(PlannedLimit { limit, steps });
        }
        limits
    }

    fn step_limits(&mut self, paid: &[(usize, PaymentTerms)]) -> Vec<PlannedLimit> {
        let mut cells: BTreeMap<&str, Vec<&(usize, PaymentTerms)>> = BTreeMap::new();
        for cell in paid {
            cells.entry(&self.steps[cell.0].family).or_default().push(cell);
        }
        let mut limits = Vec::new();
        for (path, cells) in cells {
            let (first, terms) = cells[0];
            if let Some((other, differs)) = cells.iter().find(|(_, t)| t.max_usd != terms.max_usd) {
                let shown = |limit: Option<Usd>| limit.map_or("none".into(), |l| l.to_string());
                let message = format!(
                    "the cells of step {} have different `max_usd`: {} and {}",
                    quote(path),
                    shown(terms.max_usd),
                    shown(differs.max_usd)
                );
                let (step, other) = (&self.steps[*first], &self.steps[*other]);
                let problem = error(Code::ConflictingArguments, message, other, "max_usd");
                let place = step.span_of("max_usd");
                let problem = match place == other.span_of("max_usd") {
                    true => problem,
                    false => problem.with_related(
                        &place.source,
                        Span::new(place.start, place.end()),
                        "the other one",
                    ),
                };
                self.diagnostics.push(problem.with_help(
                    "it is for all cells of the step together: give one number, without `matrix.`",
                ));
                continue;
            }
            if terms.max_usd.is_none() {
                continue;
            }
            let (account, owner) = (path.to_string(), format!("the step {}", quote(path)));
            let max_usd = terms.max_usd;
            let limit = SpendingLimit { account, owner, max_usd, max_requests: None };
            let steps = cells.iter().map(|(at, _)| *at).collect();
            limits.push(PlannedLimit { limit, steps });
        }
        limits
    }

    /// Reports steps whose requests have no known price, once for all cells.
    fn check_priced(&mut self, budget: &FileBudget, bounded: &[&(usize, PaymentTerms)]) {
        let mut seen: HashSet<&str> = HashSet::new();
        for (at, terms) in bounded {
            let step = &self.steps[*at];
            let lacking = terms.lacking();
            // Missing prices for `max_usd` are reported at `max_usd`.
            if lacking.is_empty() || !seen.insert(&step.family) {
                continue;
            }
            let names: Vec<String> = lacking.iter().map(|name| format!("`{name}`")).collect();
            let message = format!(
                "step {} needs {}: `budget` limits the cost, so what a request may cost must be \
                 known before it is sent",
                quote(&step.family),
                names.join(" and ")
            );
            let place = Span::new(budget.place.start, budget.place.end());
            let problem = error(Code::MissingArgument, message, step, "");
            let problem = problem.with_related(&budget.place.source, place, "the budget");
            let help: Vec<&str> = lacking
                .iter()
                .map(|name| match *name {
                    "price" => {
                        "add `price: { input: …, output: … }`, US dollars for a million tokens, 0 \
                         where nothing is billed"
                    }
                    _ => "add `max_tokens: …`, the most tokens of an answer",
                })
                .collect();
            self.diagnostics.push(problem.with_help(help.join("; ")));
        }
    }
}

fn error(code: Code, message: String, step: &PlannedStep, argument: &str) -> Diagnostic {
    let place = step.span_of(argument);
    Diagnostic::error(code, message, &place.source, Span::new(place.start, place.end()))
}
