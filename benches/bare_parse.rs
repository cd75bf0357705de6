//! Measures how long tree-sitter alone takes for the texts of a table: the baseline of `ast` and
//! `methods`.
//!
//! One parser on one thread parses every text once and drops the tree, without limits, features or
//! storage. Reading the file is not timed.
//!
//! Run it with (`benches/ast_vs_parse.py` does): `cargo bench --bench bare_parse -- FILE.parquet
//! [COLUMN] [REPETITIONS]`. COLUMN has text or bytes (default `code`), REPETITIONS defaults to 3.
//! `GALERAS_BARE_PARSE_FILE` also names the file. Without a file nothing is measured.
//!
//! Prints one JSON object, `{"texts", "bytes", "nodes", "errors", "seconds": […], "cpu_seconds":
//! […]}`. `nodes` (below the roots) and `errors` (texts with a syntax error) prove that the work
//! was done; `cpu_seconds` is the processor time of the thread (null if the system does not report
//! it).

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::fs::File;
use std::time::Instant;

use arrow::array::{Array, AsArray};
use arrow::datatypes::DataType;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use tree_sitter::Parser;

fn main() -> Result<(), Box<dyn Error>> {
    // Cargo adds `--bench`.
    let mut args = std::env::args().skip(1).filter(|arg| !arg.starts_with("--"));
    let file = args.next().or_else(|| std::env::var("GALERAS_BARE_PARSE_FILE").ok());
    let Some(file) = file else { return Ok(()) };
    let column = args.next().unwrap_or_else(|| "code".to_string());
    let repetitions: usize = args.next().map_or(Ok(3), |n| n.parse())?;

    let texts = texts(&file, &column)?;
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_python::LANGUAGE.into())?;
    let mut seconds = Vec::with_capacity(repetitions);
    let mut cpu_seconds = Vec::with_capacity(repetitions);
    let (mut nodes, mut errors) = (0, 0);
    for _ in 0..repetitions {
        (nodes, errors) = (0, 0);
        let (started, used) = (Instant::now(), processor_seconds());
        for text in &texts {
            let tree = parser.parse(text, None).ok_or("tree-sitter gave no tree")?;
            let root = tree.root_node();
            nodes += root.descendant_count() - 1;
            errors += usize::from(root.has_error());
        }
        seconds.push(started.elapsed().as_secs_f64());
        cpu_seconds.push(processor_seconds().zip(used).map(|(now, then)| now - then));
    }
    let bytes: usize = texts.iter().map(Vec::len).sum();
    let result = serde_json::json!({
        "texts": texts.len(),
        "bytes": bytes,
        "nodes": nodes,
        "errors": errors,
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
    });
    println!("{result}");
    Ok(())
}

/// How long this thread has been on a processor, on Linux.
fn processor_seconds() -> Option<f64> {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: f64 = times.split_whitespace().next()?.parse().ok()?;
    Some(nanoseconds / 1e9)
}

/// The values of one column; nulls are left out.
fn texts(file: &str, column: &str) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(file)?)?;
    let mask = ProjectionMask::columns(builder.parquet_schema(), [column]);
    let mut texts = Vec::new();
    for batch in builder.with_projection(mask).build()? {
        let batch = batch?;
        let array = batch.column_by_name(column).ok_or("the file has no such column")?;
        match array.data_type() {
            DataType::Utf8 => {
                texts.extend(array.as_string::<i32>().iter().flatten().map(|s| s.into()));
            }
            DataType::Binary => {
                texts.extend(array.as_binary::<i32>().iter().flatten().map(<[u8]>::to_vec));
            }
            other => return Err(format!("column {column} has type {other}").into()),
        }
    }
    Ok(texts)
}
