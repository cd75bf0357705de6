//! Reads a CSV file as a table: its schema, from the whole file, and its rows.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions, StringArray, StringBuilder};
use arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};
use datafusion::catalog::streaming::StreamingTable;
use datafusion::error::{DataFusionError, Result as DataFusionResult};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::streaming::PartitionStream;

use super::csv_rows::{CsvDialect, CsvRow, CsvRows};
use super::csv_values::{GuessedType, typed};
use super::types::DeclaredTypes;
use galeras_operator::worker_threads::on_thread;
use galeras_sql::session::{MAX_COLUMNS, too_many_columns, two_columns};

/// The schema of the file: the declared types, and inferred types for the other columns, from all
/// values.
///
/// # Errors
/// The problem with the file, in words, with the line.
pub(super) fn csv_schema(
    file: &Path,
    dialect: &CsvDialect,
    declared: &DeclaredTypes,
) -> Result<Schema, String> {
    let mut reader = TextReader::open(file, dialect)?;
    let known: Vec<Option<&FieldRef>> = reader.names.iter().map(|n| declared.get(n)).collect();
    let mut guesses: Vec<GuessedType> = known.iter().map(|_| GuessedType::default()).collect();
    while let Some(rows) = reader.next()? {
        for ((texts, known), guess) in rows.columns.iter().zip(&known).zip(&mut guesses) {
            match known {
                Some(field) => drop(typed(texts, field, &rows.lines)?),
                None => texts.iter().zip(&rows.lines).for_each(|(text, line)| {
                    if let Some(text) = text {
                        guess.see(text, *line);
                    }
                }),
            }
        }
    }
    let field = |((name, known), guess): ((&String, Option<&FieldRef>), &GuessedType)| match known {
        Some(field) => Ok(Arc::clone(field)),
        None => Ok(Arc::new(Field::new(name, guess.data_type(name)?, true))),
    };
    let fields = reader.names.iter().zip(known).zip(&guesses).map(field);
    Ok(Schema::new(fields.collect::<Result<Vec<FieldRef>, String>>()?))
}

pub(super) fn csv_table(
    file: &Path,
    dialect: &CsvDialect,
    schema: Schema,
) -> DataFusionResult<Arc<StreamingTable>> {
    let schema = Arc::new(schema);
    let (file, dialect) = (file.to_path_buf(), dialect.clone());
    let rows = CsvPartition { file, dialect, schema: Arc::clone(&schema) };
    Ok(Arc::new(StreamingTable::try_new(schema, vec![Arc::new(rows)])?))
}

#[derive(Debug)]
struct CsvPartition {
    file: PathBuf,
    dialect: CsvDialect,
    schema: SchemaRef,
}

const QUEUE: usize = 2;

impl PartitionStream for CsvPartition {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let mut stream = RecordBatchReceiverStream::builder(Arc::clone(&self.schema), QUEUE);
        let (sender, file, schema) = (stream.tx(), self.file.clone(), Arc::clone(&self.schema));
        let dialect = self.dialect.clone();
        let read = move || -> DataFusionResult<()> {
            let mut reader =
                TextReader::open(&file, &dialect).map_err(DataFusionError::Execution)?;
            while let Some(rows) = reader.next().map_err(DataFusionError::Execution)? {
                let batch = rows.typed(&schema).map_err(DataFusionError::Execution)?;
                if sender.blocking_send(Ok(batch)).is_err() {
                    break;
                }
            }
            Ok(())
        };
        // It waits for the receiver.
        stream.spawn(async move {
            let result = on_thread(move || Ok(read())).await;
            result.unwrap_or_else(|error| Err(DataFusionError::External(Box::new(error))))
        });
        stream.build()
    }
}

struct TextRows {
    columns: Vec<StringArray>,
    lines: Vec<u64>,
}

impl TextRows {
    fn typed(&self, schema: &SchemaRef) -> Result<RecordBatch, String> {
        let columns = self.columns.iter().zip(schema.fields());
        let columns = columns.map(|(texts, field)| typed(texts, field, &self.lines));
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        let rows = RecordBatchOptions::new().with_row_count(Some(self.lines.len()));
        RecordBatch::try_new_with_options(Arc::clone(schema), columns, &rows)
            .map_err(|e| e.to_string())
    }
}

/// The most rows, and bytes, per batch.
const ROWS: usize = 8192;
const BYTES: usize = 16 << 20;

struct TextReader {
    rows: CsvRows,
    names: Vec<String>,
    null_values: Vec<String>,
}

impl TextReader {
    fn open(file: &Path, dialect: &CsvDialect) -> Result<Self, String> {
        let rows = CsvRows::open(file, dialect.delimiter)?;
        let (mut rows, mut row) = (rows, CsvRow::default());
        loop {
            if !rows.next(&mut row)? {
                return Err("the file is empty".into());
            }
            if !row.is_blank() {
                break;
            }
        }
        if row.len() > MAX_COLUMNS {
            return Err(too_many_columns(row.len()));
        }
        let names: Vec<String> =
            row.values().map(|name| name.unwrap_or_default().to_owned()).collect();
        let mut known = HashSet::new();
        match names.iter().find(|name| !known.insert(name.as_str())) {
            Some(twice) => Err(two_columns(twice)),
            None => Ok(Self { rows, names, null_values: dialect.null_values.clone() }),
        }
    }

    fn next(&mut self) -> Result<Option<TextRows>, String> {
        let mut columns: Vec<StringBuilder> =
            self.names.iter().map(|_| StringBuilder::with_capacity(64, 0)).collect();
        let (mut lines, mut bytes, mut row) = (Vec::new(), 0, CsvRow::default());
        while lines.len() < ROWS && bytes < BYTES && self.rows.next(&mut row)? {
            // In a file with one column, a blank row is a null value.
            if row.is_blank() && columns.len() > 1 {
                continue;
            }
            if row.len() != columns.len() {
                return Err(format!(
                    "line {}: the row has {} values, and the header {} names",
                    row.line,
                    row.len(),
                    columns.len()
                ));
            }
            for (column, value) in columns.iter_mut().zip(row.values_but(&self.null_values)) {
                column.append_option(value);
            }
            lines.push(row.line);
            bytes += row.size();
        }
        let columns = columns.into_iter().map(|mut column| column.finish()).collect();
        Ok((!lines.is_empty()).then_some(TextRows { columns, lines }))
    }
}
