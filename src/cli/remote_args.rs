//! The flag `--remote` of the verbs that look at a store elsewhere.

use std::sync::Arc;

use clap::Args;

use super::exit::Exit;
use super::screen::fail;
use crate::plan::Plan;
use crate::runner::Remote;

/// A store elsewhere.
#[derive(Args, Clone, Debug)]
pub(crate) struct RemoteArgs {
    /// A store elsewhere, whose results are as good as computed: a folder, a bucket's URL, or the
    /// https:// address of a copy of a store.
    #[arg(long, value_name = "URL", env = "GALERAS_REMOTE")]
    remote: Option<String>,
}

impl RemoteArgs {
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
        let remote = Remote::open(location).await.map_err(|error| {
            let exit = if error.blames_disk() { Exit::Disk } else { Exit::Failed };
            fail(&error.explained(), exit)
        })?;
        Ok(Some(Arc::new(remote)))
    }
}
