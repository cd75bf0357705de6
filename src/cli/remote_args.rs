//! The flag `--remote` of verbs that use another store.

use std::path::Path;
use std::sync::Arc;

use clap::Args;

use super::exit::{Exit, Failure, fail};
use super::screen::note;
use super::store_places::unpacked_store;
use galeras_base::small_file;
use galeras_base::terminal_escape::escape;
use galeras_engine::plan::{Plan, PlannedSigners};
use galeras_engine::runner::{Remote, SignatureDemand};
use galeras_operator::{Consent, RefusedAccess};
use galeras_store::AllowedSigners;
use galeras_study::sharing::OpenedBundle;

/// Another store.
#[derive(Args, Clone, Debug)]
pub(crate) struct RemoteArgs {
    /// Another store, whose results are used like computed ones: a folder, the URL of a bucket
    /// (s3://bucket/prefix, gs://…), the https:// address of a copy of a store, or a bundle (.zip).
    #[arg(long, value_name = "URL", env = "GALERAS_REMOTE")]
    remote: Option<String>,
    #[command(flatten)]
    signers: SignersArgs,
}

/// The signatures that are trusted.
#[derive(Args, Clone, Debug)]
pub(crate) struct SignersArgs {
    /// Accept only signed results from another store: a file of allowed signers as `ssh-keygen -Y verify`
    /// and Git read it. Replaces that of the workflow; empty for none.
    #[arg(long, value_name = "FILE", env = "GALERAS_ALLOWED_SIGNERS")]
    allowed_signers: Option<String>,
}

impl SignersArgs {
    pub(super) fn named(&self) -> Result<Option<SignatureDemand>, Failure> {
        let file = self.allowed_signers.as_ref().filter(|file| !file.is_empty());
        file.map(|file| read_signers(Path::new(file))).transpose()
    }

    /// The allowed signers that the user or else the workflow names.
    fn demand(&self, plan: &Plan) -> Result<Option<SignatureDemand>, Failure> {
        match &plan.allowed_signers {
            Some(own) if self.allowed_signers.is_none() => read_signers(&own.path).map(Some),
            _ => self.named(),
        }
    }

    /// The same, if the file may be read.
    pub(super) fn of_workflow(
        &self,
        plan: &Plan,
        consent: &dyn Consent,
    ) -> Result<Option<SignatureDemand>, Failure> {
        let own = plan.allowed_signers.as_ref().filter(|_| self.allowed_signers.is_none());
        if let Some(refused) = own.and_then(|own| consent.refusal(&own.access())) {
            note(&format!("the allowed signers were not read: `remote` {}", refused.message));
            return Ok(None);
        }
        self.demand(plan)
    }
}

impl RemoteArgs {
    /// The remote at this place, instead of any other.
    pub(super) fn at(&self, location: &str) -> Self {
        Self { remote: Some(location.to_string()), ..self.clone() }
    }

    /// Returns true for a bundle, which is read-only.
    pub(super) fn is_bundle(&self) -> bool {
        self.remote.as_ref().is_some_and(|text| {
            let path = Path::new(text);
            path.is_file() && OpenedBundle::is_one(path)
        })
    }

    /// Makes the plan forget the workflow's remote if another one, or none (`--remote ''`), is named,
    /// and its allowed signers if others, or none, are.
    pub(super) fn settle(&self, plan: &mut Plan) {
        if self.remote.is_some() {
            plan.remote = None;
        }
        if self.signers.allowed_signers.is_some() {
            plan.allowed_signers = None;
        }
    }

    /// The reason why the workflow's remote and its allowed signers may not be used before the user
    /// agrees.
    pub(super) fn refusal(plan: &Plan, consent: &dyn Consent) -> Option<RefusedAccess> {
        let reads = plan.remote.iter().map(|remote| remote.access.clone());
        let mut reads = reads.chain(plan.allowed_signers.iter().map(PlannedSigners::access));
        reads.find_map(|access| consent.refusal(&access))
    }

    /// The named remote, or else the workflow's. No request is sent yet.
    pub(super) async fn open(&self, plan: &Plan) -> Result<Option<Arc<Remote>>, Failure> {
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
        let demand = self.signers.demand(plan)?;
        let remote = Remote::open(location, demand).await?;
        Ok(Some(Arc::new(remote)))
    }
}

const MAX_SIGNERS: u64 = 16 << 20;

fn read_signers(path: &Path) -> Result<SignatureDemand, Failure> {
    let file = path.display().to_string();
    let refused = |problem: String| {
        let message = format!("{}: {problem}", escape(&file));
        fail(format!("the allowed signers cannot be read: {message}"), Exit::Invalid)
    };
    let bytes = small_file::read_named(path, MAX_SIGNERS);
    let bytes = bytes.map_err(|error| refused(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| refused("it is not UTF-8 text".into()))?;
    let signers = AllowedSigners::parse(&text).map_err(|error| refused(error.to_string()))?;
    Ok(SignatureDemand { signers, file })
}
