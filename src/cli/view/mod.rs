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
    Exit, fail, fail_cache, note, open_store, plan_file, print, show_diagnostics,
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

pub(crate) async fn view(args: ViewArgs) -> Exit {
    let workflow = &args.look.workflow;
    let store = match open_store(&workflow.store.cache).await {
        Ok(store) => store,
        Err(exit) => return exit,
    };
    let settings = match args.look.settings(&store).await {
        Ok(settings) => settings,
        Err(error) => return fail_cache(&error),
    };
    let consent = trust(&workflow.file, &workflow.set, &workflow.allow, None);
    let (cache, out) = (&workflow.store.cache, Path::new("."));
    let planned =
        plan_file(&workflow.file, settings.clone(), cache, Locking::Pinned, consent, out).await;
    let plan = match planned {
        Ok((plan, diagnostics)) => {
            show_diagnostics(&diagnostics, Format::Human);
            match plan {
                Some(plan) => plan,
                None => return Exit::Invalid,
            }
        }
        Err(exit) => return exit,
    };
    let study = match Study::open(workflow.clone(), settings, plan, store).await {
        Ok(study) => Arc::new(study),
        Err(message) => return fail(&message, Exit::Failed),
    };
    // Loopback only: the tables and ratings are private.
    let bound = match TcpListener::bind(("127.0.0.1", args.port)).await {
        Ok(listener) => listener.local_addr().map(|address| (listener, address.port())),
        Err(error) => Err(error),
    };
    let (listener, port) = match bound {
        Ok(bound) => bound,
        Err(error) => {
            let message = format!("cannot listen on 127.0.0.1:{}: {error}", args.port);
            return fail(&format!("{message}; --port 0 takes any free port"), Exit::Failed);
        }
    };
    let guard = match Guard::new(port) {
        Ok(guard) => guard,
        Err(error) => {
            return fail(&format!("the system gives no random bytes: {error}"), Exit::Disk);
        }
    };
    // Set up before the address is printed: its reader may stop the server at once.
    let cancel = CancellationToken::new();
    watch_signals(cancel.clone());
    let address = guard.address();
    if print(&format!("{address}\n")) != Exit::Done {
        return Exit::Disk;
    }
    note("open this address in a browser; everyone who has it can rate; Ctrl-C ends the server");
    if args.open {
        open_browser(&address);
    }
    match serve(listener, guard, study, cancel).await {
        Ok(()) => Exit::Done,
        Err(error) => fail(&format!("the server ended: {error}"), Exit::Failed),
    }
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
