//! Workflow files: reading them, and saying what is wrong.

use galeras_workflow::parse;

/// Reads a workflow file; nothing in it is resolved.
pub(crate) fn workflow(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (workflow, diagnostics) = parse("w.yaml", &text);
    super::shown(&diagnostics);
    assert!(workflow.is_some() || diagnostics.has_errors());
    let (again, same) = parse("w.yaml", &text);
    assert_eq!(diagnostics.as_slice(), same.as_slice());
    assert_eq!(workflow.is_some(), again.is_some());
}
