//! The columns of mined methods, and the batches that threads send.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use arrow::error::ArrowError;
use arrow::json::reader::Decoder;
use serde::Serialize;
use tokio::sync::mpsc;

use crate::typed_rows;
use galeras_base::id::{ID, row_id};
use galeras_git::{ChangedMethod, CommitFacts, GitError, GitErrorKind, Sink};
use galeras_operator::{StepError, TableSchema, describe};

const BATCH_ROWS: usize = 1024;
/// The approximate bytes of text in a batch.
const BATCH_BYTES: usize = 2 << 20;

pub(super) fn methods_table() -> TableSchema {
    let text = |name, about| describe(name, DataType::Utf8, false, about, None);
    let line = |name, about| describe(name, DataType::Int64, false, about, None);
    let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let changed = "lines of the method that the commit added, and lines that it took away";
    let fields = [
        text(ID, "the row's identity"),
        text("repo", "the repository"),
        text("url", "where the repository was fetched from"),
        text("commit_id", "the commit that changed the method"),
        describe("commit_time", time.clone(), false, "the committer's date", None),
        describe("author_time", time, true, "the author's date", None),
        text("commit_message", "the commit's message"),
        text("path", "the file's path after the commit"),
        text("file_name", "the file's name"),
        text("fun_name", "the method's name"),
        text("qualified_name", "the name with its classes and outer functions"),
        line("start_line", "first line in the file after the commit, counted from 1"),
        line("end_line", "last line in the file after the commit"),
        text("code", "the method's text after the commit, from `def` on"),
        describe("code_before", DataType::Utf8, true, "its text before the commit", None),
        text("change", "`added`, or `modified` if it was there before"),
        describe("changed_lines", DataType::Int64, false, changed, Some("lines")),
    ];
    TableSchema::default().with(&fields).keyed(&[ID])
}

/// The columns that describe a rejected item.
pub(super) fn rejected_fields() -> [FieldRef; 4] {
    let text = |name, nullable, about| describe(name, DataType::Utf8, nullable, about, None);
    [
        text(ID, false, "the row's identity"),
        text("repo", false, "the repository"),
        text("commit_id", true, "the commit; null if the whole repository is rejected"),
        text("path", true, "the file; null if the whole commit is rejected"),
    ]
}

/// The head of the repository that a row comes from.
pub(super) const HEAD: &str = "__head";

/// The output for a repository: methods, and rejects as rows with a `rule`. It does not have the
/// repository's address, since the content does not depend on it.
pub(super) fn output_schema() -> SchemaRef {
    let table = methods_table();
    let kept = table.schema.fields().iter().filter(|field| field.name() != "url");
    let more = ["rule", "reason", HEAD];
    let more = more.map(|name| Arc::new(Field::new(name, DataType::Utf8, true)));
    let nullable = |field: &FieldRef| {
        let always = matches!(field.name().as_str(), ID | "repo");
        Arc::new(Field::new(field.name(), field.data_type().clone(), !always))
    };
    Arc::new(Schema::new(kept.map(nullable).chain(more).collect::<Vec<_>>()))
}

/// A row of the output: a method, or what was rejected by a rule.
#[derive(Serialize)]
struct OutputRow<'a> {
    id: String,
    repo: &'a str,
    commit_id: Option<&'a str>,
    path: Option<&'a str>,
    #[serde(flatten)]
    method: Option<MethodRow<'a>>,
    rule: Option<&'a str>,
    reason: Option<&'a str>,
    #[serde(rename = "__head")]
    head: &'a str,
}

#[derive(Serialize)]
struct MethodRow<'a> {
    commit_time: i64,
    author_time: Option<i64>,
    commit_message: &'a str,
    file_name: &'a str,
    fun_name: &'a str,
    qualified_name: &'a str,
    start_line: u32,
    end_line: u32,
    code: &'a str,
    code_before: Option<&'a str>,
    change: &'a str,
    changed_lines: u32,
}

impl<'a> OutputRow<'a> {
    fn rejected(
        (repo, head): (&'a str, &'a str),
        (commit_id, path): (Option<&'a str>, Option<&'a str>),
        rule: &'a str,
        reason: &'a str,
    ) -> Self {
        let parts = [repo, commit_id.unwrap_or_default(), path.unwrap_or_default()];
        let id = row_id(parts.map(str::as_bytes));
        let (rule, reason) = (Some(rule), Some(reason));
        Self { id, repo, commit_id, path, method: None, rule, reason, head }
    }
}

/// The row of a completely rejected repository.
pub(super) fn rejected_repository(
    repository: (&str, &str),
    rule: &str,
    reason: &str,
) -> Result<RecordBatch, StepError> {
    let row = OutputRow::rejected(repository, (None, None), rule, reason);
    Ok(typed_rows::batches(&output_schema(), [row])?.swap_remove(0))
}

/// The rows of a piece, which leave in batches.
pub(super) struct Batches {
    repo: String,
    head: String,
    decoder: Decoder,
    /// The bytes of long texts since the last batch.
    bytes: usize,
    out: mpsc::Sender<RecordBatch>,
}

impl Batches {
    pub(super) fn new(
        repo: &str,
        head: &str,
        out: mpsc::Sender<RecordBatch>,
    ) -> Result<Self, GitError> {
        let decoder = typed_rows::decoder(&output_schema()).map_err(defect)?;
        Ok(Self { repo: repo.to_string(), head: head.to_string(), decoder, bytes: 0, out })
    }

    fn send_if_full(&mut self) -> Result<(), GitError> {
        let full = self.decoder.len() >= BATCH_ROWS || self.bytes >= BATCH_BYTES;
        if full { self.end() } else { Ok(()) }
    }
}

fn defect(error: ArrowError) -> GitError {
    GitError::new(GitErrorKind::Other, error.to_string())
}

impl Sink for Batches {
    fn method(&mut self, commit: &CommitFacts, changed: ChangedMethod<'_>) -> Result<(), GitError> {
        const MICROS: i64 = 1_000_000;
        let ChangedMethod { path, method, code, code_before, changed_lines } = changed;
        let ordinal = method.ordinal.to_string();
        let parts = [&self.repo, &commit.id, path, method.qualified_name, &ordinal];
        let row = OutputRow {
            id: row_id(parts.into_iter().map(str::as_bytes)),
            repo: &self.repo,
            commit_id: Some(&commit.id),
            path: Some(path),
            method: Some(MethodRow {
                commit_time: commit.committed * MICROS,
                author_time: commit.authored.map(|seconds| seconds * MICROS),
                commit_message: &commit.message,
                file_name: path.rsplit('/').next().unwrap_or(path),
                fun_name: method.fun_name,
                qualified_name: method.qualified_name,
                start_line: method.start_line,
                end_line: method.end_line,
                code,
                code_before,
                change: if code_before.is_some() { "modified" } else { "added" },
                changed_lines,
            }),
            rule: None,
            reason: None,
            head: &self.head,
        };
        self.decoder.serialize(&[row]).map_err(defect)?;
        self.bytes += commit.message.len() + code.len() + code_before.map_or(0, str::len);
        self.send_if_full()
    }

    fn refused(
        &mut self,
        commit: &str,
        path: Option<&str>,
        rule: &'static str,
        reason: &str,
    ) -> Result<(), GitError> {
        let place = (Some(commit), path);
        let row = OutputRow::rejected((&self.repo, &self.head), place, rule, reason);
        self.decoder.serialize(&[row]).map_err(defect)?;
        self.send_if_full()
    }

    fn end(&mut self) -> Result<(), GitError> {
        self.bytes = 0;
        let Some(batch) = self.decoder.flush().map_err(defect)? else { return Ok(()) };
        let gone = |_| GitError::new(GitErrorKind::Interrupted, "the receiver of the rows is gone");
        self.out.blocking_send(batch).map_err(gone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rejected_repository_is_one_row() {
        let batch = rejected_repository(("a/b", "1"), "fetch", "gone").unwrap();
        assert_eq!(batch.num_rows(), 1);
        let nulls = |name: &str| batch.column_by_name(name).unwrap().null_count();
        assert_eq!((nulls("rule"), nulls("code"), nulls("commit_id"), nulls("repo")), (0, 1, 1, 0));
    }
}
