//! References with params in them (`from: "testbeds.${{ params.testbed }}"`): resolves them, and
//! checks them under the other `choices` of those params.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::cell::plain;
use super::expander::{Expander, Site, StepTargets};
use super::graph;
use super::model::StepTarget;
use super::params::scope;
use super::reference::TableFinder;
use galeras_workflow::code::Code;
use galeras_workflow::{
    Cells, Diagnostic, Diagnostics, From, Node, Reference, Source, StepRef, Workflow, collect_refs,
    parse_reference, substitute_node,
};

pub(super) fn open_references(workflow: &Workflow) -> impl Iterator<Item = &Node> {
    let steps = workflow.steps.iter().filter_map(|step| step.from.as_ref());
    let references = steps.flat_map(From::references);
    let outputs = workflow.outputs.iter().map(|output| &output.from);
    let sections = workflow.report.iter().filter_map(|report| report.sections.as_ref()).flatten();
    let shown = sections.filter_map(|section| section.part.table());
    references.chain(outputs).chain(shown).filter_map(|reference| match reference {
        Reference::Open(node) => Some(node),
        Reference::Fixed(_) | Reference::Invalid(_) => None,
    })
}

/// The workflow with its references resolved for these values of the params.
pub(super) fn resolved<'a>(
    workflow: &'a Workflow,
    params: &Map<String, Value>,
    diagnostics: &mut Diagnostics,
) -> Cow<'a, Workflow> {
    if open_references(workflow).next().is_none() {
        return Cow::Borrowed(workflow);
    }
    let source = &workflow.source;
    let mut fix = |reference: &mut Reference| {
        if let Reference::Open(node) = reference {
            *reference = match reference_of(node, params, source, diagnostics) {
                Some(fixed) => Reference::Fixed(fixed),
                None => Reference::Invalid(node.span),
            };
        }
        matches!(reference, Reference::Fixed(_))
    };
    let mut fixed = workflow.clone();
    for from in fixed.steps.iter_mut().filter_map(|step| step.from.as_mut()) {
        let broken = match from {
            From::One(reference) => (!fix(reference)).then(|| reference.span()),
            From::Ports(ports) => {
                let broken =
                    ports.iter_mut().filter_map(|(port, r)| (!fix(r)).then_some(port.span));
                // All of them are resolved, so that all mistakes are reported.
                broken.collect::<Vec<_>>().into_iter().next()
            }
            From::Invalid(_) => None,
        };
        if let Some(span) = broken {
            *from = From::Invalid(span);
        }
    }
    fixed.outputs.iter_mut().for_each(|output| {
        fix(&mut output.from);
    });
    let sections = fixed.report.iter_mut().filter_map(|report| report.sections.as_mut());
    sections.flatten().filter_map(|section| section.part.table_mut()).for_each(|from| {
        fix(from);
    });
    Cow::Owned(fixed)
}

/// Resolves a reference for these values of the params and reports its mistakes.
pub(super) fn reference_of(
    node: &Node,
    params: &Map<String, Value>,
    source: &Arc<Source>,
    diagnostics: &mut Diagnostics,
) -> Option<StepRef> {
    let mut found = Diagnostics::new();
    let text = substitute_node(node, source, &scope(params), &mut found);
    let mut reference = None;
    if !found.has_errors() {
        if text.as_str().is_some() {
            reference = parse_reference(&text, source).map_err(|problem| found.push(*problem)).ok();
        } else {
            let message =
                format!("a reference must be a string, and this is of type {}", text.type_name());
            let problem = Diagnostic::error(Code::WrongType, message, source, node.span);
            found.push(problem.with_help("it names a step: `step` or `step.port`"));
        }
    }
    diagnostics.extend(found);
    reference
}

const MAX_COMBINATIONS: usize = 1_000;

impl Expander {
    /// Reports references that are missing or circular under another choice.
    pub(super) fn check_choices(&mut self, site: &Site<'_>, targets: &StepTargets) {
        let open: Vec<&Node> = open_references(site.written).collect();
        let mut params = BTreeSet::new();
        for node in &open {
            let names = choosing(site, node);
            for params in combinations(site, &names) {
                // Collected separately, so that each can name the choice.
                let before = std::mem::take(&mut self.diagnostics);
                self.check_choice(site, node, &params, targets);
                let found = std::mem::replace(&mut self.diagnostics, before).into_sorted();
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
        let Some(reference) = &reference_of(node, params, source, &mut self.diagnostics) else {
            return;
        };
        let Some(upstream) = targets.get(&reference.step) else {
            self.diagnostics.push(graph::unknown_step(site.workflow, reference));
            return;
        };
        let (workflow, steps) = (site.workflow, &self.steps);
        let mut finder = TableFinder { workflow, steps, diagnostics: &mut self.diagnostics };
        if let Cells::Select(selection) = &reference.cells
            && finder.check_selection(reference, upstream.all(), selection).is_none()
        {
            return;
        }
        let planned = upstream.all().iter().map(|(_, target)| target);
        let mut planned = planned.filter(|target| !matches!(target, StepTarget::Broken));
        if let Some(target) = planned.next() {
            finder.port(reference, target, "");
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
