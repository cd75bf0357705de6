//! Consent to the actions of a workflow.
//!
//! [`Trust`] combines the actions that need no consent ([`Ground`]), the consent of the command
//! line ([`Allowance`]) and of earlier runs, and the actions of a plan ([`requests`]), among them
//! the ways of data to servers (`DataFlow`). The reasons are in docs/trust.md.

mod allowance;
mod flow;
mod ground;
mod memory;

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Mutex;

use self::ground::settled;
use crate::locked;
use crate::plan::Plan;
use galeras_base::terminal_escape::{escape_all, shell_word};
use galeras_operator::{Access, Consent, DataSource, RefusedAccess};
use galeras_workflow::SourceSpan;

pub use allowance::Allowance;
pub(crate) use flow::DataFlow;
pub use ground::Ground;
pub(crate) use memory::consent_folders;
pub use memory::{StoreMemory, TrustMemory};

/// All consent for a workflow: actions that need none, and consent of the command line, of earlier
/// runs, and of this one.
#[derive(Debug, Default)]
pub struct Trust {
    ground: Ground,
    allowed: Vec<Allowance>,
    everything: bool,
    memory: TrustMemory,
    agreed: Mutex<BTreeSet<Access>>,
    refused: Mutex<BTreeSet<Access>>,
}

impl Trust {
    /// The trust in the workflow with this ground and memory. `everything` allows all actions.
    pub fn new(
        ground: Ground,
        memory: TrustMemory,
        allowed: Vec<Allowance>,
        everything: bool,
    ) -> Self {
        Self { ground, memory, allowed, everything, ..Self::default() }
    }

    /// True if this is allowed; its paths are resolved.
    fn grants(&self, access: &Access) -> bool {
        self.everything
            || !self.ground.asks(access)
            || self.allowed.iter().any(|allowance| allowance.covers(access))
            || locked(&self.agreed).contains(access)
            || self.memory.knows(access)
    }

    /// The requests without consent.
    pub fn open(&self, requests: Vec<AccessRequest>) -> Vec<AccessRequest> {
        requests.into_iter().filter(|request| !self.grants(&request.access)).collect()
    }

    /// The actions refused since the last call: steps may ask before there is a plan.
    pub fn take_refused(&self) -> Vec<Access> {
        std::mem::take(&mut *locked(&self.refused)).into_iter().collect()
    }

    /// Records consent for this run and for later ones; returns the folder where it is stored.
    ///
    /// # Errors
    /// If it cannot be stored; it still counts for this run.
    pub fn agree<'a>(
        &self,
        accesses: impl IntoIterator<Item = &'a Access>,
    ) -> io::Result<Option<&Path>> {
        let mut folder = Ok(None);
        for access in accesses {
            locked(&self.agreed).insert(access.clone());
            if folder.is_ok() {
                folder = self.memory.remember(access).map(Some);
            }
        }
        folder
    }
}

impl Consent for Trust {
    fn refusal(&self, access: &Access) -> Option<RefusedAccess> {
        let access = settled(access);
        if self.grants(&access) {
            return None;
        }
        let flag = shell_word(&Allowance::of(&access).to_string());
        let refused = RefusedAccess {
            message: phrase(&access),
            help: format!("allow it with --allow {flag}"),
        };
        locked(&self.refused).insert(access);
        Some(refused)
    }

    fn is_users_data(&self, from: &DataSource) -> bool {
        !self.everything && self.ground.is_users_data(from)
    }
}

/// A requested action, its steps and outputs, and its place in the file.
#[derive(Clone, Debug)]
pub struct AccessRequest {
    /// The action. Links in its paths are resolved.
    pub access: Access,
    /// The steps and outputs that need it: ``step `a` ``.
    pub by: Vec<String>,
    /// The first place that requests it.
    pub place: SourceSpan,
}

/// The name for a workflow's remote in `by`.
const REMOTE: &str = "`remote`";

impl AccessRequest {
    /// True if only steps need it, not an output, the report or the remote.
    pub fn is_of_steps(&self) -> bool {
        self.by.iter().all(|by| by.starts_with("step "))
    }
}

/// The actions of these steps of the plan, of outputs and of the remote. Outputs count if there is
/// a folder `out`. Each action occurs once, in the order of the plan. `consent` knows which data
/// is the user's.
pub fn requests(
    plan: &Plan,
    steps: &[usize],
    out: Option<&Path>,
    consent: &dyn Consent,
) -> Vec<AccessRequest> {
    let mut found: Vec<AccessRequest> = Vec::new();
    let mut add = |access: &Access, by: String, place: SourceSpan| {
        let access = settled(access);
        match found.iter_mut().find(|request| request.access == access) {
            Some(request) => request.by.push(by),
            None => found.push(AccessRequest { access, by: vec![by], place }),
        }
    };
    let flow = DataFlow::of(plan, consent);
    for (at, step) in steps.iter().map(|at| (*at, &plan.steps[*at])) {
        let sends = flow.sends(at);
        for demand in step.step.demands().into_iter().chain(sends) {
            let by = format!("step `{}`", step.name);
            add(&demand.access, by, step.span_of(&demand.at));
        }
    }
    let Some(out) = out else { return found };
    if let Some(remote) = &plan.remote {
        add(&remote.access, REMOTE.into(), remote.place.clone());
    }
    if let Some(signers) = &plan.allowed_signers {
        add(&signers.access(), REMOTE.into(), signers.place.clone());
    }
    for output in &plan.outputs {
        if output.input.tables.iter().all(|table| steps.contains(&table.step)) {
            let access = Access::Write { path: out.join(&output.path) };
            add(&access, format!("output `{}`", output.name), output.place.clone());
        }
    }
    found
}

/// The writing of the report, if the workflow names a path; relative paths start in `out`.
pub fn report_request(plan: &Plan, out: &Path) -> Option<AccessRequest> {
    let file = plan.report.file.as_ref()?;
    let access = settled(&Access::Write { path: out.join(&file.path) });
    Some(AccessRequest { access, by: vec!["`report`".into()], place: file.place.clone() })
}

/// The action without its subject: `reads /etc/passwd, outside of …`.
pub fn phrase(access: &Access) -> String {
    match access {
        Access::Program { command, .. } => format!("runs a program: `{}`", escape_all(command)),
        Access::Unsandboxed { command } => {
            format!("runs a program without a sandbox: `{}`", escape_all(command))
        }
        Access::Network { command } => {
            format!("lets a program reach any server: `{}`", escape_all(command))
        }
        Access::Variable { name, to } => {
            let open = if to.is_encrypted() { "" } else { ", unencrypted" };
            let (name, to) = (escape_all(name), escape_all(&to.to_string()));
            format!("sends the value of the environment variable {name} to {to}{open}")
        }
        Access::Host { to } => {
            let with = if to.uses_credentials() { ", with your keys" } else { "" };
            format!("connects to {}{with}", escape_all(&to.to_string()))
        }
        Access::Read { path } => {
            let path = escape_all(&path.to_string_lossy());
            format!("reads {path}, outside of the workflow's folder and the current one")
        }
        Access::Write { path } => {
            let path = escape_all(&path.to_string_lossy());
            format!(
                "writes {path}, outside of the folder for outputs (a home folder is not one), or \
                 hidden in it"
            )
        }
        Access::WriteFolder { path } => {
            let path = escape_all(&path.to_string_lossy());
            format!("lets a program write any file in {path}, also hidden ones")
        }
        Access::Send { from, to } => {
            let from = escape_all(&from.to_string());
            let to = match to {
                Some(to) => escape_all(&to.to_string()),
                None => "the servers that its rows name".to_string(),
            };
            format!("sends data from {from}, which did not come with the workflow, to {to}")
        }
    }
}

/// A command, line by line.
pub fn program_lines(command: &str) -> Vec<String> {
    command.trim_end().split('\n').map(escape_all).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_the_terminal() {
        let command = "echo a\x1b[2K\r\n\tb\u{202e}".to_string();
        assert_eq!(program_lines(&command), ["echo a\\u{1b}[2K\\r", "\\tb\\u{202e}"]);
        let access = Access::Program { command, folder: "/".into(), files: Vec::new() };
        assert!(!phrase(&access).chars().any(char::is_control), "{}", phrase(&access));
    }
}
