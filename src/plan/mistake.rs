//! From mistakes to diagnostics: where an operator's mistake stands in the file, and whether a
//! place has been complained about already.

use std::sync::Arc;

use crate::operator::ArgError;
use crate::workflow::{Diagnostic, Diagnostics, Node, Source, Span};

/// An operator's complaint at the place of the argument it is about.
pub(super) fn diagnostic_of(
    error: &ArgError,
    source: &Arc<Source>,
    with: Option<&Node>,
    fallback: Span,
) -> Diagnostic {
    let span = match with {
        Some(node) if !error.path.is_empty() => node.nearest(&error.path).span,
        _ => fallback,
    };
    let diagnostic = Diagnostic::error(error.code, error.message.as_str(), source, span);
    match &error.help {
        Some(help) => diagnostic.with_help(help.as_str()),
        None => diagnostic,
    }
}

/// Whether a mistake within this place has been reported already.
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
