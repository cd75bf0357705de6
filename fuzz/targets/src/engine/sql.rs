//! SQL: `check:` and `where:` over one row, and the queries of the operator `sql`.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use galeras_sql::session::{parse_row_expr, session};

/// An expression over the columns of a table. It is planned and not computed.
pub(crate) fn row_expression(input: &[u8]) {
    let sql = String::from_utf8_lossy(input);
    let schema = Arc::new(Schema::new(vec![
        Field::new("id", DataType::Utf8, false),
        Field::new("code", DataType::Utf8, true),
        Field::new("nloc", DataType::Int64, true),
        Field::new("score", DataType::Float64, true),
        Field::new("public", DataType::Boolean, true),
        Field::new("names", DataType::new_list(DataType::Utf8, true), true),
    ]));
    match parse_row_expr(&session(1), &schema, &sql, "check") {
        Ok(expression) => {
            assert!(expression.columns.is_sorted_by(|a, b| a < b));
            let known = |name: &String| schema.field_with_name(name).is_ok();
            assert!(expression.columns.iter().all(known), "{:?}", expression.columns);
        }
        Err(error) => assert!(!error.message.is_empty()),
    }
}

/// A query over a table of three columns, in a workflow that is planned.
pub(crate) fn query(input: &[u8]) {
    let folder = super::folder();
    let data = folder.join("data.csv");
    if !data.exists() {
        std::fs::write(data, "id,code,nloc\na,x = 1,1\nb,y = 2,2\n").unwrap();
    }
    // A text in JSON is also one in YAML.
    let query = serde_json::Value::from(String::from_utf8_lossy(input).as_ref());
    let text = format!(
        "galeras: 1\nsteps:\n  data:\n    op: read\n    with: {{ path: data.csv }}\n  query:\n    \
         op: sql\n    from: data\n    with:\n      query: {query}\n"
    );
    super::wait(async {
        if let Some(plan) = super::planned(&folder, &text).await {
            let step = plan.step("query").expect("it was planned");
            assert!(!step.step.ports().is_empty());
        }
    });
}
