//! Templates of prompts over a row.

use arrow::array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, ListBuilder, StringArray,
    StringBuilder,
};
use galeras_sql::functions::template::{RenderError, Row, Templates};

/// A template; its name for its line in messages is `t`.
pub(crate) fn templates(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let templates = match Templates::new([("t", text.as_ref())]) {
        Ok(templates) => templates,
        Err(errors) => {
            assert!(errors.iter().all(|error| error.template == "t" && !error.message.is_empty()));
            assert!(!errors.is_empty());
            return;
        }
    };
    let columns = columns();
    let known = |name: &str| columns.iter().any(|(column, _)| column == name);
    let variables = templates.variables("t", known);
    assert!(variables.is_sorted_by(|a, b| a < b), "{variables:?}");
    let columns: Vec<(String, &dyn Array)> =
        columns.iter().map(|(name, array)| (name.clone(), array.as_ref())).collect();
    for row in 0..2 {
        let row = Row::of(&columns, row).unwrap();
        match templates.render("t", &row) {
            Ok(text) => assert_eq!(templates.render("t", &row), Ok(text)),
            Err(RenderError::Row(reason) | RenderError::Template(reason)) => {
                assert!(!reason.is_empty());
            }
        }
    }
}

/// Two rows, the second of nulls.
fn columns() -> Vec<(String, ArrayRef)> {
    let mut names = ListBuilder::new(StringBuilder::new());
    names.append_value([Some("a"), None, Some("b")]);
    names.append_null();
    let code = StringArray::from(vec![Some("def f(x):\n    return x\n"), None]);
    vec![
        ("code".into(), std::sync::Arc::new(code)),
        ("nloc".into(), std::sync::Arc::new(Int64Array::from(vec![Some(2), None]))),
        ("score".into(), std::sync::Arc::new(Float64Array::from(vec![Some(0.5), None]))),
        ("public".into(), std::sync::Arc::new(BooleanArray::from(vec![Some(true), None]))),
        ("names".into(), std::sync::Arc::new(names.finish())),
    ]
}
