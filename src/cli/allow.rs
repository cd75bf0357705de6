//! `--allow`: what the command line lets a workflow do to the machine.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

use crate::trust::{Allowance, Ground, Trust, TrustMemory};

/// What the command line allows.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct AllowArgs {
    /// Allow what a workflow does to the machine, with commas: exec, env:NAME=HOST, host:HOST,
    /// read:PATH, write:PATH. May be repeated.
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = Allowance::parse)]
    allow: Vec<Allowance>,
    /// Allow whatever the workflow does: for one that you wrote or read.
    #[arg(long)]
    allow_all: bool,
}

impl AllowArgs {
    /// The same, and what lies in a folder may be read: one that was unpacked for this command.
    pub(super) fn and_reading(&self, folder: &Path) -> Self {
        let mut allow = self.clone();
        let real = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
        allow.allow.push(Allowance::Read(real));
        allow
    }
}

/// What is known about a workflow and what it may do; `out` is the folder for outputs.
pub(super) fn trust(
    file: &Path,
    set: &[String],
    allow: &AllowArgs,
    out: Option<&Path>,
) -> Arc<Trust> {
    let current = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let ground = Ground::new(file, &current, home.as_deref(), set, out);
    let workflow = current.join(file);
    let workflow = workflow.canonicalize().unwrap_or(workflow);
    let memory = TrustMemory::of_user(workflow);
    Arc::new(Trust::new(ground, memory, allow.allow.clone(), allow.allow_all))
}
