//! The argument `sandbox` of `exec` and `execute`: the rights of a step's programs, the consent that
//! those need, and the sandbox that follows from them.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use galeras_base::terminal_escape::shell_word;
use galeras_operator::{Access, ArgError, Demand, LowerContext, StepError};
use galeras_sandbox::{Launcher, Machine, Policy, Sandbox, SandboxError, Specification};
use galeras_workflow::code::Code;

/// The confinement of the programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum SandboxArg {
    /// The usual confinement, or none.
    Mode(SandboxMode),
    /// The usual confinement with more rights, or a command that confines.
    Settings(SandboxSettings),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SandboxMode {
    /// Every layer that this machine has; a step fails if files, network and processes cannot be
    /// protected.
    Auto,
    /// No confinement: the program may do everything that you may do.
    None,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SandboxSettings {
    /// The program may reach servers.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    network: bool,
    /// Files and folders that the program may read, relative to the workflow file. Their content does not
    /// enter the key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    read: Vec<String>,
    /// Folders that the program may also write to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    write: Vec<String>,
    /// A command in front of the program's, such as `[bwrap, …]`, which confines it instead. `{work}` and
    /// `{tmp}` in its words are the folders that the program sees as `/sandbox` and `/tmp`.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<Vec<String>>,
}

impl Default for SandboxArg {
    fn default() -> Self {
        Self::Mode(SandboxMode::Auto)
    }
}

impl SandboxArg {
    /// The usual confinement without more rights: it need not enter a key.
    pub(crate) fn is_default(&self) -> bool {
        match self {
            Self::Mode(mode) => *mode == SandboxMode::Auto,
            Self::Settings(settings) => *settings == SandboxSettings::default(),
        }
    }

    /// No confinement at all.
    pub(crate) fn is_none(&self) -> bool {
        *self == Self::Mode(SandboxMode::None)
    }

    /// A command of the workflow confines instead: the programs that it shows may be others.
    pub(crate) fn is_wrapped(&self) -> bool {
        matches!(self, Self::Settings(SandboxSettings { command: Some(_), .. }))
    }

    /// The mistakes in the argument of a workflow in the folder `base`.
    pub(crate) fn check(&self, base: &Path) -> Vec<ArgError> {
        let Self::Settings(SandboxSettings { network, read, write, command }) = self else {
            return Vec::new();
        };
        let mut errors = Vec::new();
        if command.as_ref().is_some_and(Vec::is_empty) {
            let message = "`sandbox.command` has no words";
            errors.push(ArgError::new("sandbox.command", Code::EmptyList, message));
        }
        if command.is_some() && (*network || !read.is_empty() || !write.is_empty()) {
            let message = "`sandbox.command` decides alone what programs may do";
            let error = ArgError::new("sandbox.command", Code::ConflictingArguments, message);
            let help = "remove `network`, `read` and `write`, and give the command such options";
            errors.push(error.help(help));
        }
        for (at, path) in read.iter().enumerate().filter(|(_, path)| !base.join(path).exists()) {
            let message = format!("there is no file or folder `{path}`");
            let at = format!("sandbox.read[{at}]");
            errors.push(ArgError::missing_file(at, message, base, path));
        }
        for (at, path) in write.iter().enumerate().filter(|(_, path)| !base.join(path).is_dir()) {
            let message = format!("there is no folder `{path}`");
            let at = format!("sandbox.write[{at}]");
            errors.push(ArgError::missing_file(at, message, base, path));
        }
        errors
    }

    /// The rights beyond the usual confinement, for the program `command`.
    pub(crate) fn demands(&self, command: &str, base: &Path) -> Vec<Demand> {
        let command = || command.to_string();
        let settings = match self {
            Self::Mode(SandboxMode::Auto) => return Vec::new(),
            Self::Mode(SandboxMode::None) => {
                return vec![Demand::new("sandbox", Access::Unsandboxed { command: command() })];
            }
            Self::Settings(settings) => settings,
        };
        // Such a command may be `env`, which confines nothing.
        if let Some(wrapper) = &settings.command {
            let words = wrapper.iter().map(|word| shell_word(word)).chain([command()]);
            let command = words.collect::<Vec<_>>().join(" ");
            return vec![Demand::new("sandbox.command", Access::Unsandboxed { command })];
        }
        let network = settings.network.then(|| Access::Network { command: command() });
        let network = network.map(|access| Demand::new("sandbox.network", access));
        let read = settings.read.iter().enumerate().map(|(at, path)| {
            Demand::new(format!("sandbox.read[{at}]"), Access::Read { path: base.join(path) })
        });
        let write = settings.write.iter().enumerate().map(|(at, path)| {
            let path = base.join(path);
            Demand::new(format!("sandbox.write[{at}]"), Access::WriteFolder { path })
        });
        network.into_iter().chain(read).chain(write).collect()
    }

    /// The sandbox of a running step, in which neither the store nor consents can be seen.
    ///
    /// # Errors
    /// If this machine cannot confine programs as asked; the message has a way out.
    pub(crate) fn open(&self, cx: &LowerContext) -> Result<Sandbox, StepError> {
        let (policy, network) = match self {
            Self::Mode(SandboxMode::Auto) => (Policy::Auto, false),
            Self::Mode(SandboxMode::None) => (Policy::None, false),
            Self::Settings(SandboxSettings { command: Some(command), .. }) => {
                (Policy::Command(command.clone()), false)
            }
            Self::Settings(settings) => (Policy::Auto, settings.network),
        };
        let sandbox = Sandbox::new(machine(), policy).map_err(sandbox_failed)?;
        let sandbox = if network { sandbox.with_network() } else { sandbox };
        Ok(sandbox.seal(cx.sealed.iter().cloned()))
    }

    /// Lets a program also read and write the folders of the argument.
    ///
    /// # Errors
    /// If one of its paths leads to a place that the user did not allow: since the step began, a program of
    /// another one may have put a link there.
    pub(crate) fn show_folders(
        &self,
        cx: &LowerContext,
        base: &Path,
        sandbox: &Sandbox,
        specification: &mut Specification,
    ) -> Result<(), StepError> {
        let Specification { readable, writable, .. } = specification;
        if let Self::Settings(settings) = self {
            readable.extend(settings.read.iter().map(|path| base.join(path)));
            writable.extend(settings.write.iter().map(|path| base.join(path)));
        }
        let resolved = |path: &PathBuf| sandbox.resolve(path).map_err(sandbox_failed);
        let read = readable.iter().map(|path| {
            let path = resolved(path)?;
            Ok::<_, StepError>(Access::Read { path })
        });
        let write = writable.iter().map(|path| {
            let path = resolved(path)?;
            Ok::<_, StepError>(Access::WriteFolder { path })
        });
        let accesses = read.chain(write).collect::<Result<Vec<Access>, _>>()?;
        match accesses.iter().find_map(|access| cx.env.consent.refusal(access)) {
            None => Ok(()),
            Some(refused) => {
                let message = format!("the step {}", refused.message);
                Err(StepError::new(message).help(refused.help))
            }
        }
    }
}

/// The error of a step whose program could not be run.
pub(crate) fn sandbox_failed(error: SandboxError) -> StepError {
    match error {
        SandboxError::Cancelled => StepError::interrupted(),
        other => StepError::new(other.to_string()),
    }
}

static LAUNCHER: OnceLock<Launcher> = OnceLock::new();

/// Starts confined programs with another program than the running one, for one whose `main` does not begin
/// with [`launch_if_asked`](galeras_sandbox::launch_if_asked). It counts before the first use of a sandbox.
pub fn use_launcher(program: PathBuf) {
    // The first one stays: every caller of a process names the same.
    let _ = LAUNCHER.set(Launcher::at(program));
}

/// This machine, whose layers are tried out once.
pub fn machine() -> &'static Machine {
    static MACHINE: OnceLock<Machine> = OnceLock::new();
    MACHINE.get_or_init(|| {
        Machine::probe(LAUNCHER.get().cloned().unwrap_or_else(Launcher::this_program))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn arg(value: Value) -> SandboxArg {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn rights_need_consent_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path();
        let asked = |value: Value| -> Vec<(String, Access)> {
            let demands = arg(value).demands("python3 a.py", base);
            demands.into_iter().map(|demand| (demand.at, demand.access)).collect()
        };
        let command = || "python3 a.py".to_string();
        assert!(asked(json!("auto")).is_empty() && asked(json!({})).is_empty());
        let none = Access::Unsandboxed { command: command() };
        assert_eq!(asked(json!("none")), [("sandbox".into(), none)]);
        let around = Access::Unsandboxed { command: "bwrap 'a b' python3 a.py".into() };
        let wrapped = json!({"command": ["bwrap", "a b"]});
        assert_eq!(asked(wrapped), [("sandbox.command".into(), around)]);
        let rights = json!({"network": true, "read": ["../a"], "write": ["b"]});
        assert_eq!(
            asked(rights),
            [
                ("sandbox.network".into(), Access::Network { command: command() }),
                ("sandbox.read[0]".into(), Access::Read { path: base.join("../a") }),
                ("sandbox.write[0]".into(), Access::WriteFolder { path: base.join("b") }),
            ]
        );
    }

    #[test]
    fn mistakes_name_their_place() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), "").unwrap();
        let places = |value: Value| -> Vec<String> {
            arg(value).check(folder.path()).into_iter().map(|error| error.path).collect()
        };
        assert!(places(json!({"read": ["file", "."], "write": ["."]})).is_empty());
        assert_eq!(places(json!({"read": [".", "x"]})), ["sandbox.read[1]"]);
        assert_eq!(places(json!({"write": ["file"]})), ["sandbox.write[0]"]);
        assert_eq!(places(json!({"command": []})), ["sandbox.command"]);
        let both = json!({"command": ["bwrap"], "network": true});
        assert_eq!(places(both), ["sandbox.command"]);
    }

    #[test]
    fn the_default_is_recognised_and_written_shortly() {
        assert!(arg(json!({})).is_default() && SandboxArg::default().is_default());
        assert!(!arg(json!("none")).is_default() && arg(json!("none")).is_none());
        let network = json!({"network": true});
        assert_eq!(serde_json::to_value(arg(network.clone())).unwrap(), network);
    }
}
