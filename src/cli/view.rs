//! `view`: starts the server of a study's pages.

use std::process::Stdio;
use std::sync::Arc;

use clap::Args;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::context::{
    Exit, Failure, LookArgs, fail, failed, note, open_results, plan_file, print, show_diagnostics,
};
use super::process::watch_signals;
use super::{Format, Settings, WorkflowArgs};
use galeras_engine::plan::Plan;
use galeras_study::view::{Guard, PlanAgain, Study, serve};
use galeras_workflow::{Diagnostics, render};

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
    let store = open_results(workflow).await?;
    let settings = args.look.settings(&store).await?;
    let (plan, diagnostics) = planned(workflow, settings.clone()).await?;
    show_diagnostics(&diagnostics, Format::Human);
    let plan = plan.ok_or(Exit::Invalid)?;
    let again = workflow.clone();
    let plan_again: PlanAgain = Box::new(move || {
        let (workflow, settings) = (again.clone(), settings.clone());
        Box::pin(async move {
            match planned(&workflow, settings).await {
                Ok((Some(plan), _)) => Ok(plan),
                Ok((None, diagnostics)) => Err(render(diagnostics.as_slice(), false, 100)),
                Err(failure) => {
                    failure.show();
                    Err("the store cannot be used".to_string())
                }
            }
        })
    });
    let (file, cache) = (workflow.file.clone(), workflow.cache()?);
    let study = Study::open(file, plan, store, &cache, plan_again, workflow.trust(None));
    let study = study.await.map_err(failed)?;
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
    serve(listener, guard, Arc::new(study), cancel).await;
    Ok(Exit::Done)
}

async fn planned(
    workflow: &WorkflowArgs,
    settings: Settings,
) -> Result<(Option<Plan>, Diagnostics), Failure> {
    plan_file(&workflow.file, settings, &workflow.cache()?, workflow.trust(None)).await
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
