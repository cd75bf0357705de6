//! The flag `--remote` of the verbs that look at a store elsewhere.

use std::path::Path;
use std::sync::Arc;

use clap::Args;

use super::exit::Exit;
use super::screen::fail;
use super::unpacked::unpacked_store;
use crate::plan::Plan;
use crate::runner::Remote;
use crate::sharing::OpenedBundle;

/// A store elsewhere.
#[derive(Args, Clone, Debug)]
pub(crate) struct RemoteArgs {
    /// A store elsewhere, whose results are as good as computed: a folder, a bucket's URL, the
    /// https:// address of a copy of a store, or a bundle (.zip).
    #[arg(long, value_name = "URL", env = "GALERAS_REMOTE")]
    remote: Option<String>,
}

impl RemoteArgs {
    /// The remote at this place, whatever else is named.
    pub(super) fn at(location: &str) -> Self {
        Self { remote: Some(location.to_string()) }
    }

    /// Whether it is a bundle, which can only be read.
    pub(super) fn is_bundle(&self) -> bool {
        self.remote.as_ref().is_some_and(|text| {
            let path = Path::new(text);
            path.is_file() && OpenedBundle::is_one(path)
        })
    }

    /// Makes the plan forget the workflow's remote if another one, or none (`--remote ''`), is named.
    pub(super) fn settle(&self, plan: &mut Plan) {
        if self.remote.is_some() {
            plan.remote = None;
        }
    }

    /// The remote that is named, or else the workflow's. Nothing is asked of it yet.
    pub(super) async fn open(&self, plan: &Plan) -> Result<Option<Arc<Remote>>, Exit> {
        let of_workflow = || plan.remote.as_ref().map(|remote| &remote.location);
        let location = self.remote.as_ref().or_else(of_workflow).filter(|text| !text.is_empty());
        let Some(location) = location else { return Ok(None) };
        let unpacked;
        let location = match Path::new(location) {
            bundle if bundle.is_file() && OpenedBundle::is_one(bundle) => {
                unpacked = unpacked_store(bundle)?;
                &unpacked
            }
            _ => location,
        };
        let remote = Remote::open(location).await.map_err(|error| {
            let exit = if error.blames_disk() { Exit::Disk } else { Exit::Failed };
            fail(&error.explained(), exit)
        })?;
        Ok(Some(Arc::new(remote)))
    }
}
