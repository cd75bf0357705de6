//! `path`: where the store has the Parquet file of a table.

use std::io::Write as _;

use clap::Args;
use serde_json::{Map, Value, json};

use super::context::{Exit, Surveyed, fail, print_json};
use super::{Format, WorkflowArgs, screen};
use galeras_engine::plan::{TableRef, cell_columns};
use galeras_sql::session::{WholeTableError, whole_file};

#[derive(Args)]
pub(crate) struct PathArgs {
    #[command(flatten)]
    workflow: WorkflowArgs,
    /// The table, as `show` takes it; of several cells (`gen[*]`), a file each.
    #[arg(value_name = "STEP[.PORT]")]
    step: String,
    /// How to answer.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(crate) async fn path(args: PathArgs) -> Exit {
    let surveyed = match Surveyed::load(&args.workflow, args.format).await {
        Ok(surveyed) => surveyed,
        Err(exit) => return exit,
    };
    let input = match surveyed.computed_table(&args.step) {
        Ok(input) => input,
        Err(exit) => return exit,
    };
    for table in &input.tables {
        let exit = match place(&surveyed, table) {
            Ok(Some(place)) => told(&surveyed, table, &place, args.format),
            Ok(None) => fail(&format!("`{}` has no stored table", args.step), Exit::Failed),
            Err(error) => {
                let disk = matches!(error, WholeTableError::Io(_));
                let message = format!("cannot write the table as one file: {error}");
                fail(&message, if disk { Exit::Disk } else { Exit::Failed })
            }
        };
        if exit != Exit::Done {
            return exit;
        }
    }
    Exit::Done
}

/// The file of a table, with all its columns, or its URL if the store is a bucket.
fn place(surveyed: &Surveyed, table: &TableRef) -> Result<Option<Vec<u8>>, WholeTableError> {
    use std::os::unix::ffi::OsStringExt as _;
    let manifest = surveyed.states[table.step].manifest.as_ref();
    let Some(port) = manifest.and_then(|manifest| manifest.port(table.port)) else {
        return Ok(None);
    };
    Ok(match whole_file(&surveyed.store, port)? {
        Some(file) => {
            let file = std::path::absolute(&file).unwrap_or(file);
            Some(file.into_os_string().into_vec())
        }
        None => {
            let (base, path) = (surveyed.store.url(), surveyed.store.blob_path(&port.blob));
            Some(format!("{}/{path}", base.as_str().trim_end_matches('/')).into_bytes())
        }
    })
}

fn told(surveyed: &Surveyed, table: &TableRef, place: &[u8], format: Format) -> Exit {
    if format == Format::Human {
        // For programs, `$(galeras path …)`: as it is, whatever bytes a folder's name has.
        let mut out = screen::data_stdout();
        let line = [place, b"\n"].concat();
        return match out.write_all(&line).and_then(|()| out.flush()) {
            Ok(()) => Exit::Done,
            Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Exit::Done,
            Err(_) => Exit::Disk,
        };
    }
    let step = &surveyed.plan.steps[table.step];
    let stored = surveyed.states[table.step].manifest.as_ref().and_then(|m| m.port(table.port));
    let cell: Map<String, Value> =
        cell_columns(&table.cell).map(|(name, value)| (name.to_owned(), value.clone())).collect();
    print_json(&json!({
        "event": "path", "step": step.name, "port": table.port, "cell": cell,
        "path": String::from_utf8_lossy(place), "rows": stored.map(|port| port.rows),
        "bytes": stored.map(|port| port.bytes), "digest": stored.map(|port| port.digest),
        "key": stored.map(|port| &port.key),
    }))
}
