//! The pinned results of the examples: a function whose result changes needs a new version.
//!
//! `GALERAS_UPDATE=1 cargo test -p galeras-sql --lib pins` writes the lines of new functions and
//! new versions. It refuses a changed result under an unchanged version.

use std::collections::BTreeMap;
use std::path::Path;

use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::prelude::SessionContext;

use super::{EXAMPLE_ROWS, FunctionDoc, FunctionGroup, aggregates, function_docs, scalars};

const FILE: &str = "src/functions/pins.txt";

const HEADER: &str = "# name version digest of the example's result, written by the test `pins`\n";

fn session() -> SessionContext {
    let context = SessionContext::new();
    scalars().iter().for_each(|function| context.register_udf(function.as_ref().clone()));
    aggregates().iter().for_each(|function| context.register_udaf(function.as_ref().clone()));
    context
}

/// The result of the example as text.
async fn result(context: &SessionContext, doc: &FunctionDoc) -> String {
    let name = doc.name;
    let from = match doc.group {
        FunctionGroup::Aggregate => format!(" FROM {EXAMPLE_ROWS}"),
        FunctionGroup::Row | FunctionGroup::Score => String::new(),
    };
    let query = doc.example_query() + &from;
    let frame = context.sql(&query).await.unwrap_or_else(|e| panic!("{name}: {e}"));
    let batches = frame.collect().await.unwrap_or_else(|e| panic!("{name}: {e}"));
    let rows: usize = batches.iter().map(|batch| batch.num_rows()).sum();
    assert_eq!(rows, 1, "{name}: an example gives one row");
    let batch = batches.iter().find(|batch| batch.num_rows() == 1).unwrap();
    let options = FormatOptions::default().with_null("NULL");
    let column = ArrayFormatter::try_new(batch.column(0).as_ref(), &options).unwrap();
    column.value(0).try_to_string().unwrap()
}

fn digest(doc: &FunctionDoc, result: &str) -> String {
    let text = format!("{}\n{}\n{result}", doc.name, doc.version);
    blake3::hash(text.as_bytes()).to_hex()[..16].to_string()
}

/// The version and the digest of each function in the committed table.
fn parse(table: &str) -> BTreeMap<&str, (u32, &str)> {
    let lines = table.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            let [name, version, digest] = words[..] else { panic!("{FILE}: `{line}`") };
            (name, (version.parse().unwrap(), digest))
        })
        .collect()
}

#[tokio::test]
async fn a_changed_result_has_a_new_version() {
    let update = std::env::var_os("GALERAS_UPDATE").is_some();
    let file = Path::new(FILE);
    let committed = std::fs::read_to_string(file).unwrap();
    let mut pinned = parse(&committed);
    let context = session();
    let mut table = HEADER.to_string();
    let mut problems = Vec::new();
    for doc in function_docs() {
        let FunctionDoc { name, version, .. } = doc;
        let result = result(&context, &doc).await;
        let digest = digest(&doc, &result);
        match pinned.remove(name) {
            Some((was, old)) if was == version && old != digest => problems.push(format!(
                "`{name}` {version} gives another result than before: raise its version. Now:\n{result}"
            )),
            Some((was, _)) if was > version => {
                problems.push(format!("`{name}` was at version {was} and is at {version}"));
            }
            Some((was, _)) if was == version => {}
            _ if update => {}
            _ => problems.push(format!(
                "`{name}` {version} is not pinned: run GALERAS_UPDATE=1 cargo test -p galeras-sql --lib pins"
            )),
        }
        table.push_str(&format!("{name} {version} {digest}\n"));
    }
    if !update {
        problems.extend(pinned.keys().map(|name| format!("`{name}` is pinned but does not exist")));
    }
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
    if update {
        std::fs::write(file, table).unwrap();
    }
}
