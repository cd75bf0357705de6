//! `view`: serves the pages of a study on loopback.

mod address;
mod answer;
mod guard;
mod indexes;
mod live;
mod ratings;
mod review;
mod row;
mod runs;
mod served;
mod server;
mod steps;
mod study;
mod table;
mod table_filter;
mod table_rows;

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use clap::Args;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use self::guard::Guard;
use self::server::serve;
use self::study::Study;
use super::Format;
use super::allow::trust;
use super::context::{
    Exit, Failure, fail, failed, note, open_store, plan_file, print, show_diagnostics,
};
use super::recall::LookArgs;
use super::signals::watch_signals;
use galeras_engine::plan::Locking;

#[doc(hidden)]
pub use self::table_filter::condition as table_condition;

#[derive(Args)]
pub(crate) struct ViewArgs {
    #[command(flatten)]
    look: LookArgs,
    /// The port to listen on; 0 for any that is free.
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
    /// Open the address in a browser (by `xdg-open`).
    #[arg(long)]
    open: bool,
}

pub(crate) async fn view(args: ViewArgs) -> Result<Exit, Failure> {
    let workflow = &args.look.workflow;
    let store = open_store(&workflow.store.cache).await?;
    let settings = args.look.settings(&store).await?;
    let consent = trust(&workflow.file, &workflow.set, &workflow.allow, None);
    let (cache, out) = (&workflow.store.cache, Path::new("."));
    let (plan, diagnostics) =
        plan_file(&workflow.file, settings.clone(), cache, Locking::Pinned, consent, out).await?;
    show_diagnostics(&diagnostics, Format::Human);
    let plan = plan.ok_or(Exit::Invalid)?;
    let study = Study::open(workflow.clone(), settings, plan, store).await.map_err(failed)?;
    // Loopback only: the tables and ratings are private.
    let bound = TcpListener::bind(("127.0.0.1", args.port)).await;
    let bound = bound.and_then(|listener| Ok((listener.local_addr()?.port(), listener)));
    let (port, listener) = bound.map_err(|error| {
        let message = format!("cannot listen on 127.0.0.1:{}: {error}", args.port);
        failed(format!("{message}; --port 0 takes any free port"))
    })?;
    let guard = Guard::new(port)
        .map_err(|error| fail(format!("the system gives no random bytes: {error}"), Exit::Disk))?;
    // Set up before the address is printed: its reader may stop the server at once.
    let cancel = CancellationToken::new();
    watch_signals(cancel.clone());
    let address = guard.address();
    print(&format!("{address}\n"))?;
    note("open this address in a browser; everyone who has it can rate; Ctrl-C ends the server");
    if args.open {
        open_browser(&address);
    }
    let served = serve(listener, guard, Arc::new(study), cancel).await;
    served.map_err(|error| failed(format!("the server ended: {error}")))?;
    Ok(Exit::Done)
}

/// Opens the address; a missing browser is not an error.
fn open_browser(address: &str) {
    let started = std::process::Command::new("xdg-open")
        .arg(address)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if let Err(error) = started {
        note(&format!("cannot open a browser: {error}"));
    }
}
