//! Actions that need no consent: keys for the servers that they belong to, this machine, public
//! servers that get no secret, files of the workflow and files that the user named.
//!
//! Reading the user's data and asking a public server are free, but not both: [`Access::Send`] needs
//! consent for each pair.

use std::path::{Component, Path, PathBuf};

use url::Url;

use galeras_operator::{Access, DataSource, ServerAddress};

/// Variables that may be sent to their owner's server over TLS without asking.
const OWN_KEYS: [(&str, &str); 3] = [
    ("ANTHROPIC_API_KEY", "api.anthropic.com"),
    ("GITHUB_TOKEN", "api.github.com"),
    ("OPENAI_API_KEY", "api.openai.com"),
];

/// The folders and files that a workflow may use as its own.
#[derive(Clone, Debug, Default)]
pub struct Ground {
    /// The folder of the workflow. Its files came with the workflow.
    own: Option<PathBuf>,
    /// Folders whose files may be read and written.
    folders: Vec<PathBuf>,
    /// Files and folders that the user named, which may be read; not the files in those folders, as
    /// a value may be a part of many paths.
    named: Vec<PathBuf>,
    /// The folder for outputs.
    out: Option<PathBuf>,
    /// No server may be contacted, not even a public one.
    offline: bool,
}

impl Ground {
    /// The ground of the workflow in the file `workflow`: its folder, and the current one. `set` are
    /// the settings of the command line, `out` is the folder for outputs. None of the folders counts
    /// if it is the user's `home` or contains it, which would allow everything. A setting names a
    /// file or folder if its whole value is the path, unless that is or contains home.
    pub fn new(
        workflow: &Path,
        current: &Path,
        home: Option<&Path>,
        set: &[String],
        out: Option<&Path>,
    ) -> Self {
        let home = home.map(real);
        let small = |folder: PathBuf| is_small(&folder, home.as_deref()).then_some(folder);
        let file = real(&current.join(workflow));
        let own = file.parent().map(Path::to_path_buf).and_then(small);
        let folders = own.clone().into_iter().chain(small(real(current))).collect();
        let values = set.iter().filter_map(|setting| setting.split_once('=')).map(|(_, v)| v);
        let texts = values.flat_map(|value| std::iter::once(value).chain(value.split(',')));
        // A path is relative to the current folder or, as a text, to the workflow's.
        let starts = [Some(current), file.parent()];
        let named = texts
            .map(str::trim)
            .filter(|text| !text.is_empty())
            .filter_map(|text| match text.contains("://") {
                true => Url::parse(text).ok().and_then(|url| url.to_file_path().ok()),
                false => Some(PathBuf::from(text)),
            })
            .flat_map(|path| starts.iter().flatten().map(move |start| real(&start.join(&path))))
            .filter(|path| is_small(path, home.as_deref()))
            .collect();
        let out = out.and_then(|out| small(real(&current.join(out))));
        Self { own, folders, named, out, offline: false }
    }

    /// The same, but every server needs consent.
    pub fn offline(self) -> Self {
        Self { offline: true, ..self }
    }

    /// True if this needs consent. Paths are those that `settled` returns.
    pub fn asks(&self, access: &Access) -> bool {
        match access {
            Access::Program { .. }
            | Access::Unsandboxed { .. }
            | Access::Network { .. }
            | Access::WriteFolder { .. } => true,
            Access::Variable { name, to } => !(is_this_machine(to) || is_owner(name, to)),
            Access::Host { .. } if self.offline => true,
            Access::Host { to } => !(is_this_machine(to) || (to.is_encrypted() && to.is_public())),
            Access::Read { path } => {
                !self.named.contains(path)
                    && !self.folders.iter().any(|folder| lies_in(path, folder))
            }
            Access::Write { path } => {
                !self.folders.iter().chain(&self.out).any(|folder| lies_openly_in(path, folder))
            }
            Access::Send { to, .. } => !to.as_ref().is_some_and(is_this_machine),
        }
    }

    /// True if the data did not come with the workflow, and others cannot get it.
    pub fn is_users_data(&self, from: &DataSource) -> bool {
        match from {
            DataSource::Path(path) => !self.own.as_ref().is_some_and(|own| lies_in(path, own)),
            DataSource::Server(server) => server.uses_credentials() || !server.is_public(),
        }
    }
}

/// True for a service of this machine that needs no credentials.
fn is_this_machine(server: &ServerAddress) -> bool {
    server.is_loopback() && !server.uses_credentials()
}

/// True unless the path contains everything, or all files of the user.
fn is_small(path: &Path, home: Option<&Path>) -> bool {
    path.parent().is_some() && home.is_none_or(|home| !home.starts_with(path))
}

fn is_owner(variable: &str, server: &ServerAddress) -> bool {
    let own = |(name, host): &(&str, &str)| *name == variable && server.authority() == *host;
    server.is_encrypted() && OWN_KEYS.iter().any(own)
}

/// True if a resolved path is the folder or inside it.
pub(super) fn lies_in(path: &Path, folder: &Path) -> bool {
    path.starts_with(folder) && !path.components().any(|part| part == Component::ParentDir)
}

/// The same, and nothing below the folder is hidden: programs keep their configuration in such
/// places (`.git`, `.vscode`).
fn lies_openly_in(path: &Path, folder: &Path) -> bool {
    let hidden = |part: Component<'_>| part.as_os_str().as_encoded_bytes().starts_with(b".");
    lies_in(path, folder)
        && path.strip_prefix(folder).is_ok_and(|rest| !rest.components().any(hidden))
}

/// The same with resolved paths, so that they can be compared.
pub(super) fn settled(access: &Access) -> Access {
    match access {
        Access::Read { path } => Access::Read { path: real(path) },
        Access::Write { path } => Access::Write { path: real(path) },
        Access::WriteFolder { path } => Access::WriteFolder { path: real(path) },
        Access::Program { command, folder, files } => {
            Access::Program { command: command.clone(), folder: real(folder), files: files.clone() }
        }
        Access::Send { from: DataSource::Path(path), to } => {
            Access::Send { from: DataSource::Path(real(path)), to: to.clone() }
        }
        other => other.clone(),
    }
}

/// The path with all links resolved. Parts that do not exist yet are kept as written.
pub(super) fn real(path: &Path) -> PathBuf {
    // Otherwise the first part of a new relative path would have no parent.
    let path = &std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let mut missing = Vec::new();
    let mut at = path.as_path();
    loop {
        if let Ok(found) = at.canonicalize() {
            return missing.into_iter().rev().fold(found, |path, part| path.join(part));
        }
        match (at.parent(), at.file_name()) {
            (Some(parent), Some(name)) => {
                missing.push(name);
                at = parent;
            }
            _ => return path.to_path_buf(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(url: &str) -> ServerAddress {
        ServerAddress::of(url).unwrap()
    }

    #[test]
    fn keys_go_to_their_owners_and_to_this_machine() {
        let ground = Ground::default();
        let asks = |name: &str, url: &str| {
            ground.asks(&Access::Variable { name: name.into(), to: to(url) })
        };
        assert!(!asks("OPENAI_API_KEY", "https://api.openai.com/v1"));
        assert!(!asks("ANTHROPIC_API_KEY", "https://api.anthropic.com"));
        assert!(!asks("GITHUB_TOKEN", "https://api.github.com/"));
        assert!(!asks("HOME", "http://127.0.0.1:8000/v1"));
        assert!(asks("OPENAI_API_KEY", "http://api.openai.com/v1"));
        assert!(asks("OPENAI_API_KEY", "https://api.openai.com:8443/v1"));
        assert!(asks("OPENAI_API_KEY", "https://api.openai.com.evil.example/v1"));
        assert!(asks("ANTHROPIC_API_KEY", "http://api.anthropic.com"));
        assert!(asks("ANTHROPIC_API_KEY", "https://api.openai.com/v1"));
        assert!(asks("OPENAI_API_KEY", "https://api.anthropic.com"));
        assert!(asks("GITHUB_TOKEN", "https://api.openai.com/v1"));
        assert!(asks("HOME", "https://api.openai.com/v1"));
    }

    #[test]
    fn public_servers_are_reached_through_tls_only() {
        let asks = |url: &str| Ground::default().asks(&Access::Host { to: to(url) });
        assert!(!asks("https://github.com/a/b") && !asks("http://localhost:1/"));
        for url in [
            "http://example.org/",
            "git@example.org:a/b",
            "https://10.0.0.1/",
            // With the keys of the user.
            "ssh://localhost/a/b",
            "git@127.0.0.1:a/b",
            "s3://localhost/a",
            "s3://study/a",
            "gs://study/a",
        ] {
            assert!(asks(url), "{url}");
        }
    }

    #[test]
    fn data_that_did_not_come_with_the_workflow_is_not_sent_unasked() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("home/work/flows")).unwrap();
        let (work, home) = (root.join("home/work"), root.join("home"));
        let set = [format!("data={}", root.join("named.csv").display())];
        let ground = Ground::new(Path::new("flows/w.yaml"), &work, Some(&home), &set, None);
        let path = |path: &str| DataSource::Path(root.join(path));
        let server = |url: &str| DataSource::Server(to(url));
        assert!(!ground.is_users_data(&path("home/work/flows/x.csv")));
        for own in ["home/work/x.csv", "home/work/flows/../x.csv", "named.csv", "home/x.csv"] {
            assert!(ground.is_users_data(&path(own)), "{own}");
        }
        let asks = |url: Option<&str>| {
            ground.asks(&Access::Send { from: path("home/work/x.csv"), to: url.map(to) })
        };
        assert!(asks(Some("https://models.example.org/v1")) && asks(Some("https://10.0.0.1/v1")));
        assert!(asks(None) && asks(Some("ssh://localhost/x")));
        assert!(!asks(Some("http://localhost:8000/v1")));
        for private in ["http://localhost:1/", "https://10.0.0.1/", "git@example.org:a", "s3://a/"]
        {
            assert!(ground.is_users_data(&server(private)), "{private}");
        }
        assert!(!ground.is_users_data(&server("https://example.org/x.csv")));
    }

    /// The user named none of the parts of `path: ${{ params.sep }}etc${{ params.sep }}passwd`.
    #[test]
    fn a_setting_names_one_path_and_nothing_below_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("top/home/work")).unwrap();
        let (work, home) = (root.join("top/home/work"), root.join("top/home"));
        let asks = |set: &str, path: &Path| {
            let set = [format!("p={set}")];
            let ground = Ground::new(Path::new("w.yaml"), &work, Some(&home), &set, None);
            ground.asks(&settled(&Access::Read { path: work.join(path) }))
        };
        for (set, path) in [
            ("/", "/etc/passwd"),
            ("/", "/"),
            ("..", ".."),
            ("..", "../x"),
            ("../..", "../../x"),
            ("../..", "../.."),
            ("../lib", "../lib/x"),
            ("../li", "../lib"),
            ("file:///", "/etc/passwd"),
            ("a,/", "/etc/passwd"),
        ] {
            assert!(asks(set, Path::new(path)), "{set}: {path}");
        }
        for (set, path) in [("../lib", "../lib"), ("a,../lib/x", "../lib/x"), ("/etc/x", "/etc/x")]
        {
            assert!(!asks(set, Path::new(path)), "{set}: {path}");
        }
    }

    #[test]
    fn files_of_the_workflow_are_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for folder in ["home/work/flows", "home/work/data", "other/secret", "lib"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        std::os::unix::fs::symlink(root.join("other"), root.join("home/work/flows/link")).unwrap();
        let home = root.join("home");
        let ground = |file: &str, current: &str, set: &[String]| {
            let out = root.join("results");
            Ground::new(Path::new(file), &root.join(current), Some(&home), set, Some(&out))
        };
        let reads = |ground: &Ground, path: &str| {
            ground.asks(&settled(&Access::Read { path: root.join(path) }))
        };
        let work = ground("flows/w.yaml", "home/work", &[]);
        assert!(!reads(&work, "home/work/flows/x.csv") && !reads(&work, "home/work/data"));
        assert!(!reads(&work, "home/work/flows/../data/x.csv"));
        for path in [
            "home/work/flows/link/secret",
            "home/.ssh/id",
            "home/work/../x",
            "home/work/none/../../../other",
            "home/workshop",
        ] {
            assert!(reads(&work, path), "{path}");
        }
        let write = |path: &str| work.asks(&settled(&Access::Write { path: root.join(path) }));
        assert!(!write("results/a/b.csv") && write("other/b.csv"));
        for path in ["results/.git/b.csv", "results/a/.b.csv", "home/work/.vscode/tasks.json"] {
            assert!(write(path), "{path}");
        }
        assert!(work.asks(&Access::WriteFolder { path: root.join("results") }));
        // Nor is home a folder for outputs.
        let out = Some(home.as_path());
        let home_out =
            Ground::new(Path::new("flows/w.yaml"), &root.join("home/work"), Some(&home), &[], out);
        assert!(home_out.asks(&settled(&Access::Write { path: root.join("home/x.csv") })));
        // The home folder has too many files to be a workflow's folder.
        let home = ground("w.yaml", "home", &[]);
        assert!(reads(&home, "home/x.csv"));
        let set = ["repos=../../lib,/nowhere/x".to_string(), format!("d={}", root.display())];
        let named = ground("flows/w.yaml", "home/work", &set[..1]);
        assert!(!reads(&named, "lib") && reads(&named, "lib/r") && reads(&named, "other"));
        let set = [format!("d={}", root.join("other/se cret").display())];
        assert!(!reads(&ground("flows/w.yaml", "home/work", &set), "other/se cret"));
        let set = [format!("d=file://localhost{}/other/se%20cret", root.display())];
        assert!(!reads(&ground("flows/w.yaml", "home/work", &set), "other/se cret"));
    }
}
