//! Runs programs: checks the specification, starts the launcher, and reads its outputs.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Result, SandboxError};
use crate::layer::Layer;
use crate::machine::{Launcher, Machine};
use crate::outcome::Outcome;
use crate::specification::Specification;

/// How programs are confined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// With every layer that the machine has; refused without confinement of files and network.
    #[default]
    Auto,
    /// Not at all: with the rights of the user, within the limits. Only after consent.
    None,
    /// By a command that is put before the program's, such as `bwrap`. `{work}` and `{tmp}` in its
    /// arguments are the folders that it must show as [`WORK`](crate::WORK) and
    /// [`TEMPORARY`](crate::TEMPORARY).
    Command(Vec<String>),
}

/// Runs programs in one way on one machine. Shared between threads, each of which runs one program
/// at a time.
#[derive(Clone, Debug)]
pub struct Sandbox {
    launcher: Launcher,
    policy: Policy,
    #[cfg(target_os = "linux")]
    confinement: crate::protocol::Confinement,
    layers: Vec<Layer>,
    sealed: Vec<PathBuf>,
    /// The paths of earlier runs, and where links led from them.
    known: Arc<Mutex<BTreeMap<PathBuf, PathBuf>>>,
}

impl Sandbox {
    /// A sandbox on this machine, or the reason why it cannot confine programs as asked.
    pub fn new(machine: &Machine, policy: Policy) -> Result<Self> {
        if !cfg!(target_os = "linux") {
            return Err(SandboxError::Refused(
                "programs can be run only on Linux: run Galeras there, or in a Linux container"
                    .into(),
            ));
        }
        if policy == Policy::Auto
            && let Some(refusal) = machine.refusal()
        {
            return Err(SandboxError::Refused(refusal));
        }
        if policy == Policy::Command(Vec::new()) {
            return Err(SandboxError::Invalid("the command of the sandbox is empty".into()));
        }
        let layers = match policy {
            Policy::Auto => machine
                .layers()
                .into_iter()
                .filter_map(|(layer, available)| available.is_ok().then_some(layer))
                .collect(),
            Policy::None => vec![Layer::ResourceLimits, Layer::Watchdog],
            Policy::Command(_) => vec![Layer::Watchdog, Layer::Wrapper],
        };
        Ok(Self {
            launcher: machine.launcher.clone(),
            #[cfg(target_os = "linux")]
            confinement: run::confinement(machine, &policy),
            policy,
            layers,
            sealed: Vec::new(),
            known: Arc::default(),
        })
    }

    /// Lets programs reach every server that the machine reaches, over IPv4 and IPv6.
    #[must_use]
    pub fn with_network(mut self) -> Self {
        #[cfg(target_os = "linux")]
        {
            self.confinement.network = true;
        }
        self.layers.retain(|layer| !matches!(layer, Layer::LandlockTcp | Layer::NetworkNamespace));
        self
    }

    /// Names folders that no program may see a part of, such as the store and the folder of consents. Of
    /// a readable folder that holds one of them, the other entries are readable. Without a mount namespace
    /// the names of files in them are visible there, but no contents. The home folder as a whole is
    /// always hidden.
    #[must_use]
    pub fn seal(mut self, folders: impl IntoIterator<Item = PathBuf>) -> Self {
        self.sealed.extend(folders.into_iter().map(resolved));
        self
    }

    /// The layers that are active in every run.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Runs a program to its end and ends everything that it has started. Blocks; `cancelled` is asked some
    /// times a second.
    #[cfg(target_os = "linux")]
    pub fn run(
        &self,
        specification: Specification,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Outcome> {
        run::run(self, specification, cancelled)
    }

    /// Only Linux can confine programs.
    #[cfg(not(target_os = "linux"))]
    pub fn run(&self, _: Specification, _: &dyn Fn() -> bool) -> Result<Outcome> {
        Err(SandboxError::Refused("programs can be run only on Linux".into()))
    }

    /// The path without links that programs see for this one. It stays the same: a program that writes must not
    /// lead the next one elsewhere.
    pub fn resolve(&self, path: &Path) -> Result<PathBuf> {
        let failed = |error: io::Error| {
            SandboxError::Invalid(format!("cannot read `{}`: {error}", path.display()))
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let real = match known.get(path) {
            Some(real) => real.clone(),
            None => path.canonicalize().map_err(failed)?,
        };
        if real.canonicalize().map_err(failed)? != real {
            return Err(failed(io::Error::other("a part of it has become a link")));
        }
        known.insert(path.to_owned(), real.clone());
        Ok(real)
    }

    /// Refuses a folder that would show what is to be hidden.
    fn check_visible(&self, path: &Path, real: &Path) -> Result<()> {
        let refuse = |why: &str| {
            Err(SandboxError::Invalid(format!(
                "programs must not read `{}`: {why}",
                path.display()
            )))
        };
        if ["/proc", "/sys", "/dev", "/run"].iter().any(|system| real.starts_with(system))
            || real == Path::new("/")
        {
            return refuse("name the folders that they need");
        }
        if let Some(sealed) = self.sealed.iter().find(|sealed| real.starts_with(sealed)) {
            return refuse(&format!("`{}` holds results and consents", sealed.display()));
        }
        let home = std::env::home_dir().and_then(|home| home.canonicalize().ok());
        if home.is_some_and(|home| home.starts_with(real)) {
            return refuse("it contains your home folder; name the folder inside that they need");
        }
        Ok(())
    }
}

/// The path without links. Its last parts need not exist yet.
fn resolved(path: PathBuf) -> PathBuf {
    let found = path.ancestors().find_map(|there| Some((there, there.canonicalize().ok()?)));
    match found.map(|(there, real)| path.strip_prefix(there).map(|rest| real.join(rest))) {
        Some(Ok(real)) => real,
        _ => path,
    }
}

#[cfg(target_os = "linux")]
pub(crate) use run::probe;

#[cfg(target_os = "linux")]
mod run {
    use std::fs::{self, File, Permissions};
    use std::io::{self, Read, Write as _};
    use std::os::fd::{AsFd, OwnedFd};
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::net::UnixStream;
    use std::path::{Component, Path, PathBuf};
    use std::process::{Child, Command, Stdio};

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
    use tempfile::TempDir;

    use super::{Policy, Sandbox};
    use crate::error::{Result, SandboxError};
    use crate::launcher::VERB;
    use crate::machine::{Launcher, Machine};
    use crate::outcome::{Captured, Clip, Ending, Outcome};
    use crate::process_tree::remove_folder;
    use crate::protocol::{self, Confinement, Failure, FileHeader, Launch, Message, Readable};
    use crate::specification::{
        Input, NETWORK_PATHS, Output, SYSTEM_PATHS, Specification, TEMPORARY, WORK, environment,
    };

    pub(super) fn confinement(machine: &Machine, policy: &Policy) -> Confinement {
        match policy {
            Policy::Auto => Confinement {
                namespaces: machine.namespaces.is_ok(),
                network: false,
                user_namespace: machine.namespaces == Ok(true),
                landlock: machine.landlock.clone().ok(),
                seccomp: machine.seccomp.is_ok(),
                unprivileged_user: machine.is_root,
                resource_limits: true,
            },
            Policy::None => Confinement { resource_limits: true, ..Confinement::default() },
            Policy::Command(_) => Confinement::default(),
        }
    }

    /// Confines a process and lets it end.
    pub(crate) fn probe(launcher: &Launcher, confinement: Confinement) -> Result<Message> {
        let launch =
            Launch { readable: outermost(existing(&SYSTEM_PATHS)), ..Launch::probe(confinement) };
        let (mut child, socket) = start(launcher, Stdio::null(), Stdio::null())?;
        let answer =
            protocol::send(&socket, &launch, &[], None).and_then(|()| protocol::receive(&socket));
        let _ = child.wait();
        match answer {
            Ok(Some((Message::Failed(failure), ..))) => {
                Err(SandboxError::Refused(format!("{}: {}", failure.step, failure.reason)))
            }
            Ok(Some((message, ..))) => Ok(message),
            Ok(None) => Err(SandboxError::machine("starting the launcher", "it gave no answer")),
            Err(error) => Err(SandboxError::machine("starting the launcher", error)),
        }
    }

    fn start(launcher: &Launcher, stdout: Stdio, stderr: Stdio) -> Result<(Child, UnixStream)> {
        let start = || {
            let (ours, theirs) = UnixStream::pair()?;
            let mut command = Command::new(&launcher.program);
            command
                .arg(VERB)
                .env_clear()
                .stdin(OwnedFd::from(theirs))
                .stdout(stdout)
                .stderr(stderr);
            Ok::<_, io::Error>((command.spawn()?, ours))
        };
        start().map_err(|error| SandboxError::machine("starting the launcher", error))
    }

    /// Those of these paths of the system that exist here.
    fn existing(paths: &[&str]) -> Vec<Readable> {
        let real = |path: &&str| {
            let path = PathBuf::from(*path);
            let real = path.canonicalize().ok()?;
            Some(Readable { path, real, writable: false, hollow: false })
        };
        paths.iter().filter_map(real).collect()
    }

    /// The paths that programs may see.
    fn visible(sandbox: &Sandbox, specification: &Specification) -> Result<Vec<Readable>> {
        let mut all = existing(&SYSTEM_PATHS);
        for system in &all {
            sandbox.check_visible(&system.path, &system.real)?;
            let mut sealed = sandbox.sealed.iter();
            if let Some(sealed) = sealed.find(|sealed| sealed.starts_with(&system.real)) {
                return Err(SandboxError::Invalid(format!(
                    "every program sees `{}`, but `{}` holds results and consents: move that elsewhere",
                    system.path.display(),
                    sealed.display()
                )));
            }
        }
        if sandbox.confinement.network {
            all.extend(existing(&NETWORK_PATHS));
        }
        for path in &specification.readable {
            show(sandbox, path, false, &mut all)?;
        }
        for path in &specification.writable {
            show(sandbox, path, true, &mut all)?;
        }
        let hidden: Vec<PathBuf> =
            specification.hidden.iter().filter_map(|path| path.canonicalize().ok()).collect();
        if !hidden.is_empty() {
            let whole = std::mem::take(&mut all);
            let folders: Vec<PathBuf> = whole
                .iter()
                .filter(|readable| readable.path == readable.real)
                .map(|readable| readable.real.clone())
                .collect();
            for readable in whole {
                show_rest(readable, &folders, &hidden, &mut all)
                    .map_err(|error| SandboxError::machine("hiding files", error))?;
            }
        }
        Ok(outermost(all))
    }

    /// Adds a path without the hidden files. Of a folder that holds one of them, the other entries are shown
    /// one by one, with links that stay within the folders that programs may see.
    fn show_rest(
        readable: Readable,
        folders: &[PathBuf],
        hidden: &[PathBuf],
        all: &mut Vec<Readable>,
    ) -> io::Result<()> {
        if hidden.contains(&readable.real) {
            return Ok(());
        }
        if !hidden.iter().any(|file| file.starts_with(&readable.real)) {
            all.push(readable);
            return Ok(());
        }
        let is_within = |path: &Path| folders.iter().any(|folder| path.starts_with(folder));
        // The folder behind a link may be shown where it is.
        if readable.path == readable.real || !is_within(&readable.real) {
            for entry in fs::read_dir(&readable.real)? {
                let path = readable.real.join(entry?.file_name());
                // A link may lead nowhere, or to something that is not to be seen.
                if let Ok(real) = path.canonicalize()
                    && (real == path || is_within(&real))
                {
                    let entry = Readable { path, real, writable: readable.writable, hollow: false };
                    show_rest(entry, folders, hidden, all)?;
                }
            }
        }
        all.push(Readable { hollow: true, writable: false, ..readable });
        Ok(())
    }

    /// Adds a path that the program may see, or, if a sealed folder is in it, the other entries.
    fn show(sandbox: &Sandbox, path: &Path, writable: bool, all: &mut Vec<Readable>) -> Result<()> {
        let failed = |error: io::Error| {
            SandboxError::Invalid(format!("cannot read `{}`: {error}", path.display()))
        };
        let real = sandbox.resolve(path)?;
        if !path.is_absolute() {
            let message = format!("`{}` must be an absolute path", path.display());
            return Err(SandboxError::Invalid(message));
        }
        // A mount point needs a path without `..`.
        let up = path.components().any(|part| part == Component::ParentDir);
        let path = if up { real.as_path() } else { path };
        sandbox.check_visible(path, &real)?;
        let Some(sealed) = sandbox.sealed.iter().find(|sealed| sealed.starts_with(&real)) else {
            all.push(Readable { path: path.to_owned(), real, writable, hollow: false });
            return Ok(());
        };
        if writable {
            return Err(SandboxError::Invalid(format!(
                "programs must not write to `{}`: `{}` in it holds results and consents; name another folder",
                path.display(),
                sealed.display()
            )));
        }
        for entry in fs::read_dir(&real).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            // A link may lead anywhere.
            let is_link = entry.file_type().map_err(failed)?.is_symlink();
            if !is_link && !sandbox.sealed.contains(&entry.path()) {
                show(sandbox, &path.join(entry.file_name()), writable, all)?;
            }
        }
        Ok(())
    }

    /// Parents first, without what is below one of them and thus there already.
    fn outermost(mut all: Vec<Readable>) -> Vec<Readable> {
        all.sort_by(|a, b| (&a.real, b.writable).cmp(&(&b.real, a.writable)));
        // Sorted by their parts, a folder is followed by all that is below it.
        let mut above: Vec<(PathBuf, bool)> = Vec::new();
        all.retain(|Readable { path, real, writable, hollow }| {
            above.retain(|(folder, _)| real.starts_with(folder));
            let is_there =
                above.iter().any(|(folder, shared)| folder != real && (*shared || !writable));
            if !hollow {
                above.push((real.clone(), *writable));
            }
            path != real || !is_there
        });
        all
    }

    pub(super) fn run(
        sandbox: &Sandbox,
        specification: Specification,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Outcome> {
        specification.check()?;
        if sandbox.confinement.network && !sandbox.confinement.seccomp {
            // Nothing else denies sockets of other kinds, such as those of services of this machine.
            return Err(SandboxError::Refused(
                "a program with a network needs seccomp, which this machine does not have".into(),
            ));
        }
        let Specification { command, files, environment: variables, limits, .. } = &specification;
        let folder = if sandbox.confinement.namespaces { None } else { Some(scratch_folder()?) };
        let on_disk = |name: &str| folder.as_ref().map(|folder| folder.path().join(name));
        let (work, temporary) = (on_disk("work"), on_disk("tmp"));
        let names: Vec<(String, &str)> = [(&work, WORK), (&temporary, TEMPORARY)]
            .into_iter()
            .filter_map(|(path, name)| Some((path.as_ref()?.to_str()?.to_owned(), name)))
            .collect();

        let mut environment = match (&sandbox.policy, &work, &temporary) {
            (Policy::Auto | Policy::None, Some(work), Some(temporary)) => {
                environment(work, temporary)
            }
            _ => environment(Path::new(WORK), Path::new(TEMPORARY)),
        };
        environment.extend(variables.clone());
        let command = match &sandbox.policy {
            Policy::Command(wrapper) => {
                let fill = |word: &String| match names.as_slice() {
                    [(work, _), (temporary, _)] => {
                        word.replace("{work}", work).replace("{tmp}", temporary)
                    }
                    _ => word.clone(),
                };
                wrapper.iter().map(fill).chain(command.iter().cloned()).collect()
            }
            Policy::Auto | Policy::None => command.clone(),
        };
        let launch = Launch {
            command,
            environment,
            files: files
                .iter()
                .map(|file| FileHeader {
                    path: file.path.clone(),
                    length: file.bytes.len(),
                    executable: file.executable,
                })
                .collect(),
            readable: visible(sandbox, &specification)?,
            directory: specification.directory.clone(),
            patience: specification.patience,
            limits: *limits,
            confinement: sandbox.confinement.clone(),
            folder: folder.as_ref().map(|folder| folder.path().to_owned()),
            id: None,
        };
        let bytes: Vec<&[u8]> = files.iter().map(|file| file.bytes.as_slice()).collect();
        let input = match &specification.stdin {
            Input::Empty => None,
            Input::Bytes(bytes) => Some(sealed_file(bytes)?),
            Input::Fd(fd) => Some(duplicate(fd)?),
        };
        let stdio = |output: &Output| match output {
            Output::Captured => Ok(Stdio::piped()),
            Output::Fd(fd) => duplicate(fd).map(Stdio::from),
        };
        let (mut child, socket) =
            start(&sandbox.launcher, stdio(&specification.stdout)?, stdio(&specification.stderr)?)?;
        // An error here means that the launcher has ended. It is reported below.
        let _ = protocol::send(&socket, &launch, &bytes, input.as_ref().map(AsFd::as_fd));
        // The other ends of pipes must not stay open here.
        drop((input, launch));
        let limits = *limits;
        drop(specification);

        let mut outputs = Outputs::new(&mut child, limits.output);
        let report = outputs.read(&socket, limits.output_total, cancelled);
        let _ = child.wait();
        // Of a wrapper, a process may be left that puts links there. `TempDir` does not follow them.
        if let (Policy::Auto, Some(folder), Ok((Message::Done { .. }, _))) =
            (&sandbox.policy, &folder, &report)
        {
            remove_folder(folder.path());
        }
        let [stdout, stderr] = outputs.finish(&names);
        let (ending, usage) = match report? {
            (Message::Done { ending, usage }, Interruption::None) => (ending, usage),
            (Message::Done { usage, .. }, Interruption::Output) => (Ending::Output, usage),
            (Message::Cancelled, Interruption::Output) => (Ending::Output, crate::Usage::default()),
            (_, Interruption::Cancelled) => return Err(SandboxError::Cancelled),
            (Message::Failed(Failure { reason, not_started: true, step }), _) => {
                let program = step.strip_prefix("starting ").unwrap_or(&step).to_owned();
                return Err(SandboxError::NotStarted { program, reason });
            }
            (Message::Failed(failure), _) => {
                return Err(SandboxError::machine(failure.step, failure.reason));
            }
            (Message::Cancelled | Message::Ready { .. }, Interruption::None) => {
                return Err(SandboxError::machine("running the program", "unexpected answer"));
            }
            (Message::Ready { .. }, Interruption::Output) => {
                (Ending::Output, crate::Usage::default())
            }
        };
        Ok(Outcome { ending, usage, stdout, stderr, layers: sandbox.layers.clone() })
    }

    fn scratch_folder() -> Result<TempDir> {
        let make = || {
            let folder = tempfile::Builder::new()
                .prefix("galeras-sandbox-")
                .permissions(Permissions::from_mode(0o700))
                .tempdir()?;
            fs::create_dir(folder.path().join("work"))?;
            fs::create_dir(folder.path().join("tmp"))?;
            Ok::<_, io::Error>(folder)
        };
        make().map_err(|error| SandboxError::machine("making the scratch folder", error))
    }

    fn duplicate(fd: &OwnedFd) -> Result<OwnedFd> {
        fd.try_clone().map_err(|error| SandboxError::machine("passing a file on", error))
    }

    fn sealed_file(bytes: &[u8]) -> Result<OwnedFd> {
        use std::io::Seek as _;

        let make = || {
            let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
            let mut file = File::from(memfd_create("stdin", flags)?);
            file.write_all(bytes)?;
            file.rewind()?;
            fcntl_add_seals(
                &file,
                SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL,
            )?;
            Ok::<_, io::Error>(OwnedFd::from(file))
        };
        make().map_err(|error| SandboxError::machine("passing the input on", error))
    }

    /// Why the caller ended a program.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Interruption {
        None,
        Cancelled,
        Output,
    }

    /// The captured outputs.
    struct Outputs {
        open: [Option<Box<dyn ReadFd>>; 2],
        clips: [Option<Clip>; 2],
    }

    trait ReadFd: Read + AsFd {}
    impl<T: Read + AsFd> ReadFd for T {}

    impl Outputs {
        fn new(child: &mut Child, limit: u64) -> Self {
            let stdout = child.stdout.take().map(|out| Box::new(out) as Box<dyn ReadFd>);
            let stderr = child.stderr.take().map(|out| Box::new(out) as Box<dyn ReadFd>);
            let open = [stdout, stderr];
            let clips = [0, 1].map(|index| open[index].is_some().then(|| Clip::new(limit)));
            Self { open, clips }
        }

        /// Reads both outputs until the launcher has reported and ended.
        fn read(
            &mut self,
            socket: &UnixStream,
            most: u64,
            cancelled: &dyn Fn() -> bool,
        ) -> Result<(Message, Interruption)> {
            let mut report = None;
            let mut interruption = Interruption::None;
            let mut buffer = vec![0; 64 << 10];
            let mut socket_open = true;
            while socket_open || self.open.iter().any(Option::is_some) {
                let mut ready = [false; 3];
                {
                    let mut fds = Vec::with_capacity(3);
                    let sources = [
                        socket_open.then(|| socket.as_fd()),
                        self.open[0].as_ref().map(|out| out.as_fd()),
                        self.open[1].as_ref().map(|out| out.as_fd()),
                    ];
                    let mut indices = Vec::with_capacity(3);
                    for (index, fd) in sources.iter().enumerate() {
                        if let Some(fd) = fd {
                            fds.push(PollFd::from_borrowed_fd(*fd, PollFlags::IN));
                            indices.push(index);
                        }
                    }
                    match poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 100_000_000 })) {
                        Ok(_) | Err(rustix::io::Errno::INTR) => {}
                        Err(error) => return Err(SandboxError::machine("reading outputs", error)),
                    }
                    for (fd, index) in fds.iter().zip(indices) {
                        ready[index] = !fd.revents().is_empty();
                    }
                }
                for index in 0..2 {
                    if ready[index + 1]
                        && let (Some(out), Some(clip)) =
                            (&mut self.open[index], &mut self.clips[index])
                    {
                        match out.read(&mut buffer) {
                            Ok(0) => self.open[index] = None,
                            Ok(bytes) => clip.push(&buffer[..bytes]),
                            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                            Err(error) => {
                                return Err(SandboxError::machine("reading outputs", error));
                            }
                        }
                    }
                }
                if ready[0] {
                    match protocol::receive::<Message>(socket) {
                        Ok(Some((message, ..))) => report = Some(message),
                        Ok(None) => socket_open = false,
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Err(_) => socket_open = false,
                    }
                }
                let total: u64 = self.clips.iter().flatten().map(Clip::total).sum();
                if interruption == Interruption::None && report.is_none() {
                    if cancelled() {
                        interruption = Interruption::Cancelled;
                    } else if total > most {
                        interruption = Interruption::Output;
                    }
                    if interruption != Interruption::None {
                        // The launcher sees the end of our messages, and ends the program.
                        let _ = socket.shutdown(std::net::Shutdown::Write);
                    }
                }
            }
            match report {
                Some(report) => Ok((report, interruption)),
                None if interruption == Interruption::Cancelled => Err(SandboxError::Cancelled),
                None => {
                    Err(SandboxError::machine("running the program", "the launcher was killed"))
                }
            }
        }

        fn finish(self, names: &[(String, &str)]) -> [Captured; 2] {
            self.clips.map(|clip| clip.map(|clip| clip.finish(names)).unwrap_or_default())
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn what_a_folder_shows_already_is_left_out() {
            let readable = |path: &str, real: &str, writable, hollow| Readable {
                path: path.into(),
                real: real.into(),
                writable,
                hollow,
            };
            let same = |path: &str, writable, hollow| readable(path, path, writable, hollow);
            let all = vec![
                same("/a/b/c", false, false),
                same("/a", false, false),
                same("/a/b", true, false),
                same("/a/b/d", true, false),
                same("/ab", false, false),
                readable("/link", "/a/e", false, false),
                same("/h", false, true),
                same("/h/x", false, false),
                same("/h/x/y", false, false),
            ];
            let left: Vec<(String, bool)> = outermost(all)
                .into_iter()
                .map(|readable| (readable.path.display().to_string(), readable.writable))
                .collect();
            let expected = [("/a", false), ("/a/b", true), ("/link", false), ("/ab", false)];
            let expected = expected.into_iter().chain([("/h", false), ("/h/x", false)]);
            let expected: Vec<_> = expected.map(|(path, w)| (path.to_owned(), w)).collect();
            assert_eq!(left, expected);
        }
    }
}
