//! Checks references that params decide under the other `choices` of those params.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::expander::{Expander, Site, StepTargets};
use super::graph;
use super::model::StepTarget;
use super::reference::TableFinder;
use super::resolve::{open_references, reference_of, resolved};
use super::scalar::plain;
use galeras_workflow::code::Code;
use galeras_workflow::{Cells, Diagnostic, Diagnostics, Node, StepRef, collect_refs};

const MAX_COMBINATIONS: usize = 1_000;

impl Expander {
    /// Reports references that are missing or circular under another choice.
    pub(super) fn check_choices(&mut self, site: &Site<'_>, targets: &StepTargets) {
        let open: Vec<&Node> = open_references(site.written).collect();
        let mut params = BTreeSet::new();
        for node in &open {
            let names = choosing(site, node);
            for params in combinations(site, &names) {
                let found = self.found(|this| this.check_choice(site, node, &params, targets));
                self.report(found, &names, &params);
            }
            params.extend(names);
        }
        for name in params {
            for params in combinations(site, &[name]) {
                let mut found = Diagnostics::new();
                let other = resolved(site.written, &params, &mut Diagnostics::new());
                graph::order(&other, &mut found);
                let cycles = found.into_sorted().into_iter().filter(|d| d.code == Code::Cycle);
                self.report(cycles.collect(), &[name], &params);
            }
        }
    }

    /// Collects the diagnostics of `check` without keeping them.
    fn found(&mut self, check: impl FnOnce(&mut Self)) -> Vec<Diagnostic> {
        let before = std::mem::take(&mut self.diagnostics);
        check(self);
        std::mem::replace(&mut self.diagnostics, before).into_sorted()
    }

    fn report(&mut self, found: Vec<Diagnostic>, names: &[&str], params: &Map<String, Value>) {
        let value = |name: &&str| {
            let value = params.get(*name).map(plain).unwrap_or_default();
            format!("{name} = {value}")
        };
        let choice = names.iter().map(value).collect::<Vec<_>>().join(", ");
        for problem in found {
            self.diagnostics.push(problem.with_label(format!("with {choice}")));
        }
    }

    fn check_choice(
        &mut self,
        site: &Site<'_>,
        node: &Node,
        params: &Map<String, Value>,
        targets: &StepTargets,
    ) {
        let source = &site.workflow.source;
        let Some(reference) = reference_of(node, params, source, &mut self.diagnostics) else {
            return;
        };
        self.check_target(site, &reference, targets);
    }

    fn check_target(&mut self, site: &Site<'_>, reference: &StepRef, targets: &StepTargets) {
        let Some(upstream) = targets.get(&reference.step) else {
            self.diagnostics.push(graph::unknown_step(site.workflow, reference));
            return;
        };
        let mut finder = TableFinder { steps: &self.steps, diagnostics: &mut self.diagnostics };
        if let Cells::Select(selection) = &reference.cells
            && finder.check_selection(site, reference, upstream.all(), selection).is_none()
        {
            return;
        }
        let planned = upstream.all().iter().map(|(_, target)| target);
        let mut planned = planned.filter(|target| !matches!(target, StepTarget::Broken));
        if let Some(target) = planned.next() {
            finder.port(site, reference, target, "");
        }
    }
}

/// The params with choices that a reference depends on.
fn choosing<'a>(site: &Site<'a>, node: &Node) -> Vec<&'a str> {
    let used = collect_refs(node, &site.written.source, &mut Diagnostics::new());
    let mut names: Vec<&str> = Vec::new();
    for param in used.iter().filter_map(|used| site.written.param(&used.name)) {
        if !param.choices.is_empty() && !names.contains(&param.name.value.as_str()) {
            names.push(&param.name.value);
        }
    }
    names
}

/// The values of the params under each combination of choices except the present one.
fn combinations(site: &Site<'_>, names: &[&str]) -> Vec<Map<String, Value>> {
    let mut all = vec![site.params.clone()];
    for param in names.iter().filter_map(|name| site.written.param(name)) {
        let with = |params: &Map<String, Value>, choice: &Node| {
            let mut params = params.clone();
            params.insert(param.name.value.clone(), choice.to_json());
            params
        };
        if all.len() * param.choices.len() > MAX_COMBINATIONS {
            break;
        }
        let every =
            all.iter().flat_map(|p| param.choices.iter().map(move |choice| with(p, choice)));
        all = every.collect();
    }
    all.retain(|params| params != site.params);
    all
}
