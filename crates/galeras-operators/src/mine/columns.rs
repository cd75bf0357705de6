//! The columns of mined methods, and the batches that threads send.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, Int64Builder, RecordBatch, StringBuilder, TimestampMicrosecondBuilder, new_null_array,
};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use tokio::sync::mpsc;

use galeras_base::id::{ID, row_id};
use galeras_git::{ChangedMethod, CommitFacts, GitError, GitErrorKind, Sink};
use galeras_operator::{StepError, TableSchema, describe};

const BATCH_ROWS: usize = 1024;
/// The approximate bytes of text in a batch.
const BATCH_BYTES: usize = 2 << 20;

/// Points in time are stored in microseconds and UTC.
pub(super) fn time_type() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

pub(super) fn methods_table() -> TableSchema {
    let text = |name, about| describe(name, DataType::Utf8, false, about, None);
    let line = |name, about| describe(name, DataType::Int64, false, about, None);
    let fields = [
        text(ID, "the row's identity"),
        text("repo", "the repository"),
        text("url", "where the repository was fetched from"),
        text("commit_id", "the commit that changed the method"),
        describe("commit_time", time_type(), false, "the committer's date", None),
        describe("author_time", time_type(), true, "the author's date", None),
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
        describe(
            "changed_lines",
            DataType::Int64,
            false,
            "lines of the method that the commit added, and lines that it took away",
            Some("lines"),
        ),
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

pub(super) struct Batches {
    repo: String,
    head: Arc<str>,
    schema: SchemaRef,
    out: mpsc::Sender<RecordBatch>,
    texts: Vec<StringBuilder>,
    times: [TimestampMicrosecondBuilder; 2],
    lines: [Int64Builder; 3],
    rows: usize,
    bytes: usize,
}

const TEXTS: [&str; 14] = [
    ID,
    "repo",
    "commit_id",
    "commit_message",
    "path",
    "file_name",
    "fun_name",
    "qualified_name",
    "code",
    "code_before",
    "change",
    "rule",
    "reason",
    HEAD,
];

impl Batches {
    pub(super) fn new(repo: &str, head: &str, out: mpsc::Sender<RecordBatch>) -> Self {
        let time = || TimestampMicrosecondBuilder::new().with_timezone("UTC");
        Self {
            repo: repo.to_string(),
            head: head.into(),
            schema: output_schema(),
            out,
            texts: TEXTS.iter().map(|_| StringBuilder::new()).collect(),
            times: [time(), time()],
            lines: [Int64Builder::new(), Int64Builder::new(), Int64Builder::new()],
            rows: 0,
            bytes: 0,
        }
    }

    fn row(
        &mut self,
        texts: [Option<&str>; 13],
        times: [Option<i64>; 2],
        lines: [Option<i64>; 3],
    ) -> Result<(), GitError> {
        let head = Arc::clone(&self.head);
        let texts = texts.into_iter().chain([Some(&*head)]);
        for (builder, text) in self.texts.iter_mut().zip(texts) {
            builder.append_option(text);
            self.bytes += text.map_or(0, str::len);
        }
        for (builder, seconds) in self.times.iter_mut().zip(times) {
            builder.append_option(seconds.map(|seconds| seconds * 1_000_000));
        }
        for (builder, line) in self.lines.iter_mut().zip(lines) {
            builder.append_option(line);
        }
        self.rows += 1;
        if self.rows >= BATCH_ROWS || self.bytes >= BATCH_BYTES { self.send() } else { Ok(()) }
    }

    fn send(&mut self) -> Result<(), GitError> {
        if self.rows == 0 {
            return Ok(());
        }
        let batch =
            self.finish().map_err(|error| GitError::new(GitErrorKind::Other, error.to_string()))?;
        let gone = |_| GitError::new(GitErrorKind::Interrupted, "the receiver of the rows is gone");
        self.out.blocking_send(batch).map_err(gone)
    }

    fn finish(&mut self) -> Result<RecordBatch, StepError> {
        let mut texts = self.texts.iter_mut().map(|builder| Arc::new(builder.finish()));
        let mut times = self.times.iter_mut().map(|builder| Arc::new(builder.finish()));
        let mut lines = self.lines.iter_mut().map(|builder| Arc::new(builder.finish()));
        let rows = self.rows;
        let columns = self.schema.fields().iter().map(|field| {
            let column: Option<ArrayRef> = match field.data_type() {
                DataType::Utf8 => texts.next().map(|array| array as ArrayRef),
                DataType::Int64 => lines.next().map(|array| array as ArrayRef),
                _ => times.next().map(|array| array as ArrayRef),
            };
            column.unwrap_or_else(|| new_null_array(field.data_type(), rows))
        });
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns.collect())?;
        (self.rows, self.bytes) = (0, 0);
        Ok(batch)
    }

    fn reject(
        &mut self,
        commit: Option<&str>,
        path: Option<&str>,
        rule: &str,
        reason: &str,
    ) -> Result<(), GitError> {
        let repo = std::mem::take(&mut self.repo);
        let parts = [&repo, commit.unwrap_or_default(), path.unwrap_or_default()];
        let id = row_id(parts.into_iter().map(str::as_bytes));
        let mut texts = [None; 13];
        texts[..3].copy_from_slice(&[Some(id.as_str()), Some(&repo), commit]);
        texts[4] = path;
        texts[11..].copy_from_slice(&[Some(rule), Some(reason)]);
        let sent = self.row(texts, [None; 2], [None; 3]);
        self.repo = repo;
        sent
    }

    /// The row of a completely rejected repository.
    pub(super) fn rejected(
        (repo, head): (&str, &str),
        rule: &str,
        reason: &str,
    ) -> Result<RecordBatch, StepError> {
        let (out, _) = mpsc::channel(1);
        let mut batches = Self::new(repo, head, out);
        batches
            .reject(None, None, rule, reason)
            .map_err(|error| StepError::new(error.to_string()))?;
        batches.finish()
    }
}

impl Sink for Batches {
    fn method(&mut self, commit: &CommitFacts, changed: ChangedMethod<'_>) -> Result<(), GitError> {
        let ChangedMethod { path, method, code, code_before, changed_lines } = changed;
        let repo = std::mem::take(&mut self.repo);
        let ordinal = method.ordinal.to_string();
        let parts = [&repo, &commit.id, path, method.qualified_name, &ordinal];
        let id = row_id(parts.into_iter().map(str::as_bytes));
        let change = if code_before.is_some() { "modified" } else { "added" };
        let sent = self.row(
            [
                Some(&id),
                Some(&repo),
                Some(&commit.id),
                Some(&commit.message),
                Some(path),
                Some(path.rsplit('/').next().unwrap_or(path)),
                Some(method.fun_name),
                Some(method.qualified_name),
                Some(code),
                code_before,
                Some(change),
                None,
                None,
            ],
            [Some(commit.committed), commit.authored],
            [
                Some(i64::from(method.start_line)),
                Some(i64::from(method.end_line)),
                Some(i64::from(changed_lines)),
            ],
        );
        self.repo = repo;
        sent
    }

    fn refused(
        &mut self,
        commit: &str,
        path: Option<&str>,
        rule: &'static str,
        reason: &str,
    ) -> Result<(), GitError> {
        self.reject(Some(commit), path, rule, reason)
    }

    fn end(&mut self) -> Result<(), GitError> {
        self.send()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_columns_are_listed_in_the_order_of_the_schema() {
        let schema = output_schema();
        let texts = schema.fields().iter().filter(|field| *field.data_type() == DataType::Utf8);
        assert_eq!(texts.map(|field| field.name().as_str()).collect::<Vec<_>>(), TEXTS);
    }

    #[test]
    fn a_rejected_repository_is_one_row() {
        let batch = Batches::rejected(("a/b", "1"), "fetch", "gone").unwrap();
        assert_eq!(batch.num_rows(), 1);
        let nulls = |name: &str| batch.column_by_name(name).unwrap().null_count();
        assert_eq!((nulls("rule"), nulls("code"), nulls("commit_id"), nulls("repo")), (0, 1, 1, 0));
    }
}
