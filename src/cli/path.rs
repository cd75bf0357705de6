//! `path`: the location of a table's Parquet file in the store.

use clap::Args;
use serde_json::{Map, Value, json};

use super::context::{Exit, Failure, Surveyed, fail, load, print_json};
use super::{Format, WorkflowArgs, screen};
use galeras_engine::plan::{TableRef, cell_columns};

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

pub(crate) async fn path(args: PathArgs) -> Result<Exit, Failure> {
    let surveyed = load(&args.workflow, args.format).await?;
    let input = surveyed.computed_table(&args.step)?;
    for table in &input.tables {
        let missing = || fail(format!("`{}` has no stored table", args.step), Exit::Failed);
        let place = place(&surveyed, table).ok_or_else(missing)?;
        told(&surveyed, table, &place, args.format)?;
    }
    Ok(Exit::Done)
}

fn place(surveyed: &Surveyed, table: &TableRef) -> Option<Vec<u8>> {
    use std::os::unix::ffi::OsStringExt as _;
    let blob = surveyed.states[table.step].manifest.as_ref()?.port(table.port)?.blob;
    Some(match surveyed.store.local_blob(&blob) {
        Some(file) => std::path::absolute(&file).unwrap_or(file).into_os_string().into_vec(),
        None => {
            let (base, path) = (surveyed.store.url(), surveyed.store.blob_path(&blob));
            format!("{}/{path}", base.as_str().trim_end_matches('/')).into_bytes()
        }
    })
}

fn told(
    surveyed: &Surveyed,
    table: &TableRef,
    place: &[u8],
    format: Format,
) -> Result<Exit, Failure> {
    if format == Format::Human {
        // For `$(galeras path …)`: unescaped, since a folder's name may contain any bytes.
        return screen::write_out(&mut screen::data_stdout(), &[place, b"\n"].concat());
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
