//! A folder for the Hugging Face Hub: the publishable rows of tables as Parquet, with a card,
//! Croissant metadata, the attribution of every repository, and a citation.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array as _, AsArray, BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType, SchemaRef};
use futures::StreamExt;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use sha2::{Digest as _, Sha256};

use super::card::{attribution, card, citation};
use super::croissant::croissant;
use super::error::{AboutFile as _, ShareError};
use super::licences::{Licences, Verdict};
use super::privacy::Privacy;
use galeras_base::digest::{Digest, table_digest};
use galeras_display::{ColumnSummary, TableSummary};
use galeras_engine::plan::{Input, Plan};
use galeras_engine::runner::{RunError, StepManifests, open, open_port};
use galeras_operator::StepError;
use galeras_operator::table_digest::TableHasher;
use galeras_sql::session::{column, session};
use galeras_store::Store;

/// The split that rows are in: they are for evaluation, not for training.
pub(super) const SPLIT: &str = "test";
/// The name of the file with Croissant metadata.
pub(super) const CROISSANT: &str = "croissant.json";

/// A table of a data set, with the rows that may be published.
#[derive(Clone, Debug)]
pub struct PublishedTable {
    /// The table as it was named.
    pub table: String,
    /// Its name in the data set.
    pub name: String,
    /// Its columns, with their descriptions.
    pub schema: SchemaRef,
    /// The columns that identify a row.
    pub key: Vec<String>,
    /// Rows that are published.
    pub rows: u64,
    /// Rows that were left out, by reason.
    pub left_out: BTreeMap<String, u64>,
    /// Rows by licence; those without one under the empty text.
    pub licences: BTreeMap<String, u64>,
    /// The digest of the published data.
    pub digest: Digest,
    /// The file, below the folder.
    pub file: String,
    /// Its size.
    pub bytes: u64,
    /// The size of its rows in memory.
    pub memory: u64,
    /// The digest of its bytes, as Croissant wants it.
    pub sha256: String,
    /// The summaries of its columns.
    pub columns: Vec<ColumnSummary>,
}

/// The metadata of a repository with published rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attribution {
    /// Its licence, if it is known.
    pub licence: Option<String>,
    /// Its address, if a row has it.
    pub address: Option<String>,
    /// Its rows, in all tables.
    pub rows: u64,
}

/// A data set: the metadata in its files.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// The workflow's name.
    pub name: String,
    /// Its purpose.
    pub description: Option<String>,
    /// The tables.
    pub tables: Vec<PublishedTable>,
    /// The repositories.
    pub repositories: BTreeMap<String, Attribution>,
    /// When the last of the results was computed.
    pub computed: String,
    /// Its authors; empty if none were given.
    pub authors: Vec<String>,
    /// The workflow file, as a word of a command, and its settings.
    pub command: String,
    /// The graph of the steps in Mermaid.
    pub graph: String,
    /// The loss of rows: each step with the row counts of its tables.
    pub attrition: Vec<(String, Vec<(String, u64)>)>,
    /// The pins in `galeras.lock`, a line each.
    pub locked: Vec<String>,
    /// It includes rows without a known, permitted licence.
    pub any_licence: bool,
}

impl Dataset {
    /// Rows that are published.
    pub fn rows(&self) -> u64 {
        self.tables.iter().map(|table| table.rows).sum()
    }

    /// Rows that were left out.
    pub fn left_out(&self) -> u64 {
        self.tables.iter().flat_map(|table| table.left_out.values()).sum()
    }

    /// Its authors, on one line.
    pub(super) fn makers(&self) -> String {
        match self.authors.as_slice() {
            [] => format!("The authors of {}", self.name),
            named => named.join(", "),
        }
    }

    /// The licences of the rows, with how many have each.
    pub(super) fn licences(&self) -> BTreeMap<&str, u64> {
        let mut licences = BTreeMap::new();
        for (licence, rows) in self.tables.iter().flat_map(|table| &table.licences) {
            *licences.entry(licence.as_str()).or_default() += rows;
        }
        licences
    }

    /// Writes the descriptions of the data set into its folder.
    ///
    /// # Errors
    /// If a disk fails.
    pub fn describe(&self, folder: &Path) -> Result<(), ShareError> {
        let files = [
            ("README.md", card(self)),
            (CROISSANT, croissant(self)),
            ("CITATION.cff", citation(self)),
            ("ATTRIBUTION.md", attribution(self)),
        ];
        for (name, text) in files {
            let path = folder.join(name);
            fs::write(&path, text).about("write", &path)?;
        }
        Ok(())
    }
}

/// The columns that record a row's origin.
const REPOSITORY: &str = "repo";
const LICENCE: &str = "license";
const ADDRESSES: [&str; 2] = ["url", "clone_url"];
/// The built-in corpus and its licence, CPython's.
const CORPUS: (&str, &str) = ("python-stdlib", "Python-2.0");

/// The content and settings of a data set.
pub struct Publisher<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The store.
    pub store: &'a Store,
    /// The results, by position in the plan.
    pub done: &'a StepManifests,
    /// The licences that decide which rows are published.
    pub licences: Licences,
    /// The private values that must not be in them.
    pub privacy: Privacy,
}

impl Licences {
    /// Only rows of repositories with a known, permitted licence; with `any`, all rows. Rows of
    /// excluded owners or repositories are always left out.
    pub fn of(any: bool, excluded: Vec<String>) -> Self {
        Self { any, excluded, ..Self::default() }
    }
}

impl Publisher<'_> {
    /// Learns the licences of repositories from the tables that have them.
    ///
    /// # Errors
    /// If a table cannot be read.
    pub async fn learn(&mut self) -> Result<(), ShareError> {
        for (at, manifest) in self.done.iter().enumerate() {
            let Some(manifest) = manifest else { continue };
            let args = &manifest.preimage.args;
            if args.get("corpus").and_then(serde_json::Value::as_str) == Some(CORPUS.0) {
                self.licences.add(CORPUS.0, CORPUS.1);
            }
            for port in self.plan.steps[at].step.ports() {
                let both =
                    [REPOSITORY, LICENCE].iter().all(|name| is_text(&port.table.schema, name));
                let own = self.plan.steps[at].inputs.is_empty();
                if !both || !own {
                    continue;
                }
                let (session, name) = (session(1), port.name);
                let rows = open_port(&session, self.store, self.plan, at, name, self.done)
                    .and_then(|table| Ok(table.select(vec![column(REPOSITORY), column(LICENCE)])?));
                let mut rows =
                    rows.map_err(RunError::from)?.execute_stream().await.map_err(RunError::from)?;
                while let Some(batch) = rows.next().await {
                    let batch = batch.map_err(RunError::from)?;
                    let (names, licences) = (texts(&batch, REPOSITORY), texts(&batch, LICENCE));
                    for (name, licence) in names.into_iter().zip(licences) {
                        if let (Some(name), Some(licence)) = (name, licence) {
                            self.licences.add(&name, &licence);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// The rows of a table record their origin.
    pub fn tells_origin(&self, input: &Input) -> bool {
        let schema = &input.schema.schema;
        is_text(schema, LICENCE) || is_text(schema, REPOSITORY)
    }

    /// The rows of a table name their repository, so that those of an owner can be left out.
    pub fn tells_repository(&self, input: &Input) -> bool {
        is_text(&input.schema.schema, REPOSITORY)
    }

    /// Writes the rows of a table that may be published.
    ///
    /// # Errors
    /// If it cannot be read, or a disk fails.
    pub async fn write(
        &self,
        table: &str,
        input: &Input,
        folder: &Path,
        repositories: &mut BTreeMap<String, Attribution>,
    ) -> Result<PublishedTable, ShareError> {
        let session = session(1);
        let rows =
            open(&session, self.store, self.plan, input, self.done).map_err(RunError::from)?;
        let order: Vec<_> =
            input.schema.key.iter().map(|name| column(name).sort(true, true)).collect();
        // A figure has one row and no key.
        let rows = match order.is_empty() {
            true => rows,
            false => rows.sort(order).map_err(RunError::from)?,
        };
        let schema: SchemaRef = Arc::new(rows.schema().as_arrow().clone());
        let plain = plain_name(table);
        let mut name = plain.clone();
        let mut more = 2;
        // Different tables may get the same plain name.
        while folder.join(format!("data/{name}.parquet")).exists() {
            name = format!("{plain}-{more}");
            more += 1;
        }
        let file = format!("data/{name}.parquet");
        let path = folder.join(&file);
        let out = File::create(&path).about("write", &path)?;
        let level = ZstdLevel::try_new(3).unwrap_or_default();
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(level))
            .set_created_by("galeras".to_string())
            .build();
        let mut out = BufWriter::new(out);
        let mut writer = ArrowWriter::try_new(&mut out, Arc::clone(&schema), Some(properties))
            .about("write", &path)?;
        let (mut hasher, mut summary) = (TableHasher::new(&schema), TableSummary::new(&schema));
        let (mut memory, mut left_out, mut licences) = (0, BTreeMap::new(), BTreeMap::new());
        let mut stream = rows.execute_stream().await.map_err(RunError::from)?;
        while let Some(batch) = stream.next().await {
            let batch = batch.map_err(RunError::from)?;
            let batch = self.kept(&batch, &mut left_out, &mut licences, repositories)?;
            if let Some((column, what)) = self.privacy.in_table(&batch) {
                let message = format!("the table {table} holds {what}, in the column {column}");
                return Err(ShareError::Refused(message));
            }
            hasher.update(&batch).map_err(|error| {
                RunError::from(StepError::new(format!("table {table}: {error}")))
            })?;
            summary.add(&batch).map_err(RunError::from)?;
            for column in batch.columns() {
                memory += column.to_data().get_slice_memory_size().map_err(RunError::from)? as u64;
            }
            writer.write(&batch).about("write", &path)?;
        }
        writer.close().about("write", &path)?;
        out.flush().about("write", &path)?;
        let (columns, rows) = hasher.finish();
        Ok(PublishedTable {
            table: table.to_string(),
            name,
            schema: Arc::clone(&input.schema.schema),
            key: input.schema.key.clone(),
            rows,
            left_out,
            licences,
            digest: table_digest(&columns, rows),
            bytes: fs::metadata(&path).about("write", &path)?.len(),
            sha256: sha256(&path).about("write", &path)?,
            memory,
            file,
            columns: summary.finish(),
        })
    }

    fn kept(
        &self,
        batch: &RecordBatch,
        left_out: &mut BTreeMap<String, u64>,
        licences: &mut BTreeMap<String, u64>,
        repositories: &mut BTreeMap<String, Attribution>,
    ) -> Result<RecordBatch, ShareError> {
        let (names, told) = (texts(batch, REPOSITORY), texts(batch, LICENCE));
        let addresses = ADDRESSES.map(|name| texts(batch, name));
        let mut keep = Vec::with_capacity(batch.num_rows());
        for row in 0..batch.num_rows() {
            let repository = names[row].as_deref();
            let verdict = self.licences.judge(repository, told[row].as_deref());
            keep.push(matches!(verdict, Verdict::Kept(_)));
            match verdict {
                Verdict::LeftOut(reason) => *left_out.entry(reason).or_default() += 1,
                Verdict::Kept(licence) => {
                    *licences.entry(licence.clone().unwrap_or_default()).or_default() += 1;
                    let Some(repository) = repository else { continue };
                    let known = repositories.entry(repository.to_string()).or_default();
                    known.rows += 1;
                    known.licence = known.licence.take().or(licence);
                    let address = addresses.iter().find_map(|texts| texts[row].clone());
                    known.address = known.address.take().or(address);
                }
            }
        }
        let kept = filter_record_batch(batch, &BooleanArray::from(keep));
        Ok(kept.map_err(RunError::from)?)
    }
}

fn is_text(schema: &SchemaRef, name: &str) -> bool {
    schema.field_with_name(name).is_ok_and(|field| *field.data_type() == DataType::Utf8)
}

/// The texts of a column; `None` if there is no such column.
fn texts(batch: &RecordBatch, name: &str) -> Vec<Option<String>> {
    match batch.column_by_name(name).map(|column| (column, column.data_type())) {
        Some((column, DataType::Utf8)) => {
            column.as_string::<i32>().iter().map(|text| text.map(str::to_string)).collect()
        }
        Some((column, DataType::Utf8View)) => {
            column.as_string_view().iter().map(|text| text.map(str::to_string)).collect()
        }
        _ => vec![None; batch.num_rows()],
    }
}

/// A valid configuration name for the Hub.
fn plain_name(table: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let name: String = table.chars().map(plain).collect();
    name.trim_matches(['_', '.']).to_string()
}

fn sha256(path: &Path) -> std::io::Result<String> {
    let (mut file, mut hasher, mut buffer) = (File::open(path)?, Sha256::new(), vec![0; 1 << 18]);
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            read => hasher.update(&buffer[..read]),
        }
    }
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
