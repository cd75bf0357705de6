//! Turns mistakes of operators, and missing requirements, into diagnostics with a place in the
//! file.

use std::sync::Arc;

use super::model::Plan;
use galeras_operator::ArgError;
use galeras_workflow::{Diagnostic, Diagnostics, Node, Source, Span, word_span};

/// An operator's mistake at the place of its argument, or of the word within it. `with` are the
/// arguments, and as they were before their expressions were replaced.
pub(super) fn diagnostic_of(
    error: &ArgError,
    source: &Arc<Source>,
    with: Option<(&Node, Option<&Node>)>,
    fallback: Span,
) -> Diagnostic {
    let span = match with {
        Some((node, written)) if !error.path.is_empty() => {
            let written = written.unwrap_or(node).at_pointer(&error.path);
            let word = word_of(error, source, node.at_pointer(&error.path), written);
            word.unwrap_or_else(|| node.nearest(&error.path).span)
        }
        _ => fallback,
    };
    let diagnostic = Diagnostic::error(error.code, error.message.as_str(), source, span);
    match &error.help {
        Some(help) => diagnostic.with_help(help.as_str()),
        None => diagnostic,
    }
}

/// The place of the word that a mistake is about, in an argument as written.
pub(super) fn word_of(
    error: &ArgError,
    source: &Source,
    argument: Option<&Node>,
    written: Option<&Node>,
) -> Option<Span> {
    word_span(written?, source, argument?.as_str()?, error.word.clone()?)
}

/// True if a mistake within this place has already been reported.
pub(super) fn already_reported(
    diagnostics: &Diagnostics,
    source: &Arc<Source>,
    place: Span,
) -> bool {
    diagnostics.iter().any(|d| {
        Arc::ptr_eq(&d.span.source, source)
            && (place.start..=place.end).contains(&d.span.start)
            && d.span.end() <= place.end
    })
}

/// The missing requirements of these steps, each at its place in the file.
pub fn preflight(plan: &Plan, steps: impl IntoIterator<Item = usize>) -> Diagnostics {
    let mut diagnostics = Diagnostics::default();
    for step in steps.into_iter().map(|at| &plan.steps[at]) {
        for error in step.step.missing() {
            let fallback = Span::new(step.place.start, step.place.end());
            let arguments = step.arguments.as_ref().map(|node| (node, None));
            let problem = diagnostic_of(&error, &step.source, arguments, fallback);
            diagnostics.push(problem);
        }
    }
    diagnostics
}
