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

use super::card::{attribution, card};
use super::citation::citation;
use super::croissant::croissant;
use super::dataset_model::{Attribution, CROISSANT, Dataset, PublishedTable};
use super::error::ShareError;
use super::licences::{Licences, Verdict};
use super::privacy::Privacy;
use super::table_texts::find_in_texts;
use galeras_base::digest::table_digest;
use galeras_display::TableSummary;
use galeras_engine::plan::{Input, Plan};
use galeras_engine::runner::{RunError, StepManifests, open};
use galeras_operator::StepError;
use galeras_operator::table_digest::TableHasher;
use galeras_sql::session::{column, session};
use galeras_store::Store;

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
                let table = galeras_engine::runner::open_port(
                    &session(1),
                    self.store,
                    self.plan,
                    at,
                    port.name,
                    self.done,
                );
                let rows = table
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
        let failed =
            |error: &dyn std::fmt::Display| StepError::new(format!("table {table}: {error}"));
        let session = session(1);
        let rows =
            open(&session, self.store, self.plan, input, self.done).map_err(RunError::from)?;
        let order = input.schema.key.iter().map(|name| column(name).sort(true, true)).collect();
        let rows = rows.sort(order).map_err(RunError::from)?;
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
        let broken = |error: &dyn std::fmt::Display| ShareError::of("write", &path, error);
        let out = File::create(&path).map_err(|error| broken(&error))?;
        let level = ZstdLevel::try_new(3).unwrap_or_default();
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(level))
            .set_created_by("galeras".to_string())
            .build();
        let mut out = BufWriter::new(out);
        let mut writer = ArrowWriter::try_new(&mut out, Arc::clone(&schema), Some(properties))
            .map_err(|error| broken(&error))?;
        let (mut hasher, mut summary) = (TableHasher::new(&schema), TableSummary::new(&schema));
        let (mut memory, mut left_out, mut licences) = (0, BTreeMap::new(), BTreeMap::new());
        let mut stream = rows.execute_stream().await.map_err(RunError::from)?;
        while let Some(batch) = stream.next().await {
            let batch = batch.map_err(RunError::from)?;
            let batch = self.kept(&batch, &mut left_out, &mut licences, repositories)?;
            let look = |text: &str| self.privacy.in_cell(text).map(str::to_string);
            if let Some((column, what)) = find_in_texts(&batch, &look) {
                let message = format!("the table {table} holds {what}, in the column {column}");
                return Err(ShareError::Refused(message));
            }
            hasher.update(&batch).map_err(|error| RunError::from(failed(&error)))?;
            summary.add(&batch).map_err(RunError::from)?;
            for column in batch.columns() {
                memory += column.to_data().get_slice_memory_size().map_err(RunError::from)? as u64;
            }
            writer.write(&batch).map_err(|error| broken(&error))?;
        }
        writer.close().map_err(|error| broken(&error))?;
        out.flush().map_err(|error| broken(&error))?;
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
            bytes: fs::metadata(&path).map_err(|error| broken(&error))?.len(),
            sha256: sha256(&path).map_err(|error| broken(&error))?,
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

impl Dataset {
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
            fs::write(&path, text).map_err(|error| ShareError::of("write", &path, error))?;
        }
        Ok(())
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
