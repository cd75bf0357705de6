//! `--allow`: what the command line lets a workflow do to the machine.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

use galeras_engine::trust::{Allowance, Ground, Trust, TrustMemory};

/// The permissions given on the command line.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct AllowArgs {
    /// Allow what a workflow does to the machine, with commas: exec, env:NAME=HOST, host:HOST,
    /// read:PATH, write:PATH. May be repeated.
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = Allowance::parse)]
    allow: Vec<Allowance>,
    /// Allow everything the workflow does: for one that you wrote or read.
    #[arg(long)]
    allow_all: bool,
}

/// The trust in a workflow and its permissions; `out` is the folder for outputs.
pub(super) fn trust(
    file: &Path,
    set: &[String],
    allow: &AllowArgs,
    out: Option<&Path>,
) -> Arc<Trust> {
    trust_on(file, set, out, allow, |ground| ground)
}

/// The same for the workflow of a bundle unpacked into `folder`: files in there may be read, and
/// only servers that are allowed are asked, so that verifying a bundle reveals nothing to its
/// maker.
pub(super) fn trust_in_bundle(file: &Path, folder: &Path, allow: &AllowArgs) -> Arc<Trust> {
    let mut allow = allow.clone();
    let real = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    allow.allow.push(Allowance::Read(real));
    trust_on(file, &[], None, &allow, Ground::offline)
}

fn trust_on(
    file: &Path,
    set: &[String],
    out: Option<&Path>,
    allow: &AllowArgs,
    limited: impl Fn(Ground) -> Ground,
) -> Arc<Trust> {
    let current = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let ground = limited(Ground::new(file, &current, home.as_deref(), set, out));
    let workflow = current.join(file);
    let memory = TrustMemory::of_user(workflow.canonicalize().unwrap_or(workflow));
    Arc::new(Trust::new(ground, memory, allow.allow.clone(), allow.allow_all))
}
