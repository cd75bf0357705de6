//! `doctor`: what this machine offers, and how to get what it lacks: the layers of the sandbox, interpreters,
//! tools, processors, memory and space.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use clap::Args;
use galeras_sandbox::{Layer, Machine, Missing, SYSTEM_PATHS};
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::timeout;

use super::aligned::{Side, aligned};
use super::context::{Exit, Failure, answer, failed};
use super::resources::{all_threads, machine_memory};
use super::{Format, StoreArgs};
use galeras_display::bytes;
use galeras_operators::sandbox::machine;
use galeras_store::StoreLocation;

#[derive(Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// How to answer.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Interpreters and compilers for programs in a sandbox, besides Python, and the argument that prints
/// their version.
const INTERPRETERS: [(&str, &str); 7] = [
    ("bash", "--version"),
    ("node", "--version"),
    ("java", "-version"),
    ("go", "version"),
    ("rustc", "--version"),
    ("cc", "--version"),
    ("c++", "--version"),
];

/// Programs that Galeras or a `sandbox: { command: … }` starts. `ssh-keygen` has the version that `ssh` prints.
const TOOLS: [(&str, &str); 3] =
    [("git", "--version"), ("ssh-keygen", "-V"), ("bwrap", "--version")];

/// A program that does not answer in this time has no version.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) async fn doctor(args: DoctorArgs) -> Result<Exit, Failure> {
    let machine = tokio::task::spawn_blocking(machine).await.map_err(failed)?;
    let folders: Vec<PathBuf> =
        std::env::var_os("PATH").iter().flat_map(std::env::split_paths).collect();
    let mut interpreters = Vec::new();
    for path in pythons(&folders) {
        interpreters.push(Program::at(&path, "--version").await);
    }
    for (name, argument) in INTERPRETERS {
        interpreters.push(Program::find(name, argument, &folders).await);
    }
    let mut tools = Vec::new();
    for (name, argument) in TOOLS {
        tools.push(Program::find(name, argument, &folders).await);
    }
    let cache = args.store.here()?;
    let store = match StoreLocation::parse(&cache)? {
        StoreLocation::Folder(folder) => Some(std::path::absolute(&folder).unwrap_or(folder)),
        StoreLocation::Memory(_) | StoreLocation::Bucket(_) => None,
    };
    let places = [("store", store), ("temporary files", Some(std::env::temp_dir()))];
    let spaces = places.map(|(name, folder)| (name, folder.as_deref().map(Space::of)));
    let report = Report { machine, interpreters, tools, spaces, cache: &cache };
    answer(args.format, report.json(), &report.text())
}

struct Report<'a> {
    machine: &'a Machine,
    interpreters: Vec<Program>,
    tools: Vec<Program>,
    /// The places with large files; `None` for a place that is not a folder.
    spaces: [(&'static str, Option<Space>); 2],
    cache: &'a str,
}

impl Report<'_> {
    fn json(&self) -> Value {
        let layer = |(layer, state): &(Layer, Result<(), Missing>)| match state {
            Ok(()) => json!({"layer": layer, "available": true}),
            Err(missing) => json!({"layer": layer, "available": false, "reason": missing.reason,
                "remedy": missing.remedy}),
        };
        let layers: Vec<Value> = self.machine.layers().iter().map(layer).collect();
        let programs = |all: &[Program]| all.iter().map(Program::json).collect::<Vec<_>>();
        let [store, temporary] = self.spaces.each_ref().map(|(_, space)| {
            space.as_ref().map(|Space { folder, size }| {
                let (free, total) = size.unzip();
                json!({"folder": folder.to_string_lossy(), "free": free, "total": total})
            })
        });
        json!({
            "event": "doctor",
            "galeras": env!("CARGO_PKG_VERSION"),
            "system": format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            "processors": all_threads(),
            "memory": machine_memory(),
            "sandbox": {"refusal": self.machine.refusal(), "layers": layers},
            "interpreters": programs(&self.interpreters),
            "tools": programs(&self.tools),
            "cache": self.cache,
            "store": store,
            "temporary_files": temporary,
        })
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let mut section = |head: &str, rows: Vec<[String; 3]>| {
            let lines = aligned([Side::Left; 3], &rows);
            let lines = lines.lines().map(|line| format!("  {line}\n")).collect::<String>();
            let _ = write!(text, "{head}\n{lines}");
        };
        let memory = machine_memory().map_or_else(|| "unknown".into(), bytes);
        let os = (std::env::consts::OS, std::env::consts::ARCH);
        section(
            &format!("galeras {} on {} {}", env!("CARGO_PKG_VERSION"), os.0, os.1),
            vec![
                ["processors".into(), all_threads().to_string(), String::new()],
                ["memory".into(), memory, String::new()],
            ],
        );
        let layer = |(layer, state): (Layer, Result<(), Missing>)| match state {
            Ok(()) => [layer.to_string(), "active".into(), String::new()],
            Err(Missing { reason, remedy }) => {
                let remedy = remedy.map(|remedy| format!("; to change that, {remedy}"));
                [layer.to_string(), "missing".into(), reason + &remedy.unwrap_or_default()]
            }
        };
        let head = match self.machine.refusal() {
            None => "sandbox: programs can be confined".to_string(),
            Some(refusal) => format!("sandbox: {refusal}"),
        };
        section(&head, self.machine.layers().into_iter().map(layer).collect());
        let row = |program: &Program| program.row(true);
        section("interpreters", self.interpreters.iter().map(row).collect());
        let row = |program: &Program| program.row(false);
        section("tools", self.tools.iter().map(row).collect());
        let space = |(name, space): &(&str, Option<Space>)| match space {
            Some(Space { folder, size }) => {
                let size =
                    size.map(|(free, all)| format!("{} free of {}", bytes(free), bytes(all)));
                let size = size.unwrap_or_else(|| "unknown".into());
                [(*name).into(), size, folder.display().to_string()]
            }
            None => [(*name).into(), "no folder".into(), self.cache.into()],
        };
        section("space", self.spaces.iter().map(space).collect());
        text
    }
}

/// A program that was looked for.
struct Program {
    name: String,
    /// `None` if it is in no folder of `PATH`.
    path: Option<PathBuf>,
    /// The first line that it prints about its version.
    version: Option<String>,
}

impl Program {
    async fn find(name: &str, argument: &str, folders: &[PathBuf]) -> Self {
        match folders.iter().map(|folder| folder.join(name)).find(|path| is_program(path)) {
            Some(path) => Self::at(&path, argument).await,
            None => Self { name: name.into(), path: None, version: None },
        }
    }

    async fn at(path: &Path, argument: &str) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let asked = if name == "ssh-keygen" { path.with_file_name("ssh") } else { path.into() };
        let version = version(&asked, argument).await;
        Self { name, path: Some(path.into()), version }
    }

    /// The program is in a folder that every sandbox shows.
    fn is_in_sandboxes(&self) -> bool {
        let real = self.path.as_ref().and_then(|path| path.canonicalize().ok());
        let shows = |system: &&str| {
            let system = Path::new(*system).canonicalize();
            system.is_ok_and(|system| real.as_ref().is_some_and(|real| real.starts_with(system)))
        };
        SYSTEM_PATHS.iter().any(shows)
    }

    fn json(&self) -> Value {
        let path = self.path.as_ref().map(|path| path.to_string_lossy());
        json!({"program": self.name, "path": path, "version": self.version,
            "in_sandboxes": self.is_in_sandboxes()})
    }

    fn row(&self, for_sandboxes: bool) -> [String; 3] {
        let Some(path) = &self.path else {
            return [self.name.clone(), "missing".into(), String::new()];
        };
        let version = self.version.clone().unwrap_or_else(|| "of unknown version".into());
        let mut place = path.display().to_string();
        if for_sandboxes && !self.is_in_sandboxes() {
            place.push_str("; a sandbox shows it if `read` or `files` name its folder");
        }
        [self.name.clone(), version, place]
    }
}

/// Python's interpreters in these folders, each once.
fn pythons(folders: &[PathBuf]) -> Vec<PathBuf> {
    let is_python = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let version = name.strip_prefix("python3");
        version.is_some_and(|version| {
            let minor = version.strip_prefix('.').unwrap_or(version);
            minor.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    let mut found: Vec<(PathBuf, PathBuf)> = Vec::new();
    for folder in folders {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.retain(|path| is_python(path) && is_program(path));
        paths.sort();
        for path in paths {
            let real = path.canonicalize().unwrap_or_else(|_| path.clone());
            if !found.iter().any(|(_, known)| *known == real) {
                found.push((path, real));
            }
        }
    }
    found.into_iter().map(|(path, _)| path).collect()
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

async fn version(program: &Path, argument: &str) -> Option<String> {
    let mut command = Command::new(program);
    command.arg(argument).stdin(Stdio::null()).kill_on_drop(true);
    let output = timeout(PATIENCE, command.output()).await.ok()?.ok()?;
    // Java and ssh print it as an error.
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let line = said.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(80).collect())
}

/// The space of a folder, or of the nearest one above it that exists.
struct Space {
    folder: PathBuf,
    /// Bytes that are free, and all.
    size: Option<(u64, u64)>,
}

impl Space {
    fn of(folder: &Path) -> Self {
        let existing = folder.ancestors().find(|folder| folder.exists());
        let size = existing.and_then(|folder| rustix::fs::statvfs(folder).ok());
        let size = size.map(|size| (size.f_bavail * size.f_frsize, size.f_blocks * size.f_frsize));
        Self { folder: folder.into(), size }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_python_is_found_once() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};

        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["python3.9", "python3.12", "python3-config", "python", "python3.x"] {
            std::fs::write(path(name), "").unwrap();
            std::fs::set_permissions(path(name), std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        symlink(path("python3.12"), path("python3")).unwrap();
        std::fs::write(path("python3.11"), "not a program").unwrap();
        let found = pythons(&[folder.path().into(), folder.path().into()]);
        assert_eq!(found, [path("python3"), path("python3.9")]);
    }

    #[test]
    fn a_folder_that_does_not_exist_yet_has_the_space_of_the_one_above_it() {
        let folder = tempfile::tempdir().unwrap();
        let space = Space::of(&folder.path().join("a/b"));
        assert!(space.size.is_some_and(|(free, all)| free <= all && all > 0));
        assert!(space.folder.ends_with("a/b"));
    }
}
