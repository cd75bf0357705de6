//! Resolves references with params in them (`from: "testbeds.${{ params.testbed }}"`).

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::params::scope;
use galeras_workflow::code::Code;
use galeras_workflow::{
    Diagnostic, Diagnostics, From, Node, Reference, Source, StepRef, Workflow, parse_reference,
    substitute_node,
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
