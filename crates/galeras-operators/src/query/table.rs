//! The table of repositories: its columns, and the conversion of JSON rows to batches.

use std::sync::Arc;

use arrow::array::{RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use arrow::json::ReaderBuilder;
use serde_json::Value;

use super::repository::HeadlessRepository;
use galeras_operator::columns::text_field;
use galeras_operator::{StepError, TableSchema, describe};

pub(super) fn repositories_table() -> TableSchema {
    let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let known = |name, data_type, about, unit| describe(name, data_type, true, about, unit);
    let fields = [
        text_field("repo", "the repository: `owner/name`, or the name of a folder"),
        text_field("clone_url", "where it can be fetched or opened"),
        text_field("default_branch", "the branch whose tip is `head_sha`"),
        known("stars", DataType::Int64, "people who starred it", None),
        known("size_kb", DataType::Int64, "its size, as GitHub tells it", Some("KB")),
        known("pushed_at", time, "the last push to any branch", None),
        known("fork", DataType::Boolean, "whether it is a fork", None),
        known("language", DataType::Utf8, "the language of most of its code", None),
        known("license", DataType::Utf8, "the SPDX id of its licence", None),
        text_field("head_sha", "the commit at the tip of the branch"),
    ];
    TableSchema::default().with(&fields).keyed(&["repo"])
}

pub(super) fn repositories(rows: &[Value]) -> Result<RecordBatch, StepError> {
    batch(repositories_table().schema, rows)
}

pub(super) fn pinned_rejects(rows: &[Value]) -> Result<RecordBatch, StepError> {
    batch(rejects_schema(), rows)
}

fn batch(schema: SchemaRef, rows: &[Value]) -> Result<RecordBatch, StepError> {
    let mut decoder = ReaderBuilder::new(Arc::clone(&schema))
        .with_batch_size(rows.len().max(1))
        .with_strict_mode(true)
        .build_decoder()?;
    decoder.serialize(rows)?;
    Ok(decoder.flush()?.unwrap_or_else(|| RecordBatch::new_empty(schema)))
}

fn rejects_schema() -> SchemaRef {
    let names = ["repo", "clone_url", "rule", "reason"];
    Arc::new(Schema::new(names.map(|name| Field::new(name, DataType::Utf8, false)).to_vec()))
}

/// The rejected repositories as a batch of the port `rejects`.
pub(super) fn rejects(headless: &[HeadlessRepository]) -> Result<RecordBatch, StepError> {
    let column = |text: fn(&HeadlessRepository) -> &str| {
        Arc::new(StringArray::from_iter_values(headless.iter().map(text))) as _
    };
    let columns = vec![
        column(|h| &h.repo),
        column(|h| &h.address),
        column(|h| h.rule),
        column(|h| &h.reason),
    ];
    Ok(RecordBatch::try_new(rejects_schema(), columns)?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rows_become_typed_columns_and_unknown_ones_are_refused() {
        let row = json!({
            "repo": "a/b", "clone_url": "u", "default_branch": "main", "head_sha": "1",
            "stars": 3, "pushed_at": "2022-01-01T00:00:00Z", "fork": false,
        });
        let batch = repositories(&[row.clone(), row]).unwrap();
        assert_eq!(batch.num_rows(), 2);
        assert_eq!(batch.column_by_name("license").unwrap().null_count(), 2);
        assert_eq!(batch.column_by_name("pushed_at").unwrap().null_count(), 0);
        assert!(repositories(&[json!({"repo": "a/b", "sha": "1"})]).is_err());
        assert_eq!(repositories(&[]).unwrap().num_rows(), 0);
    }
}
