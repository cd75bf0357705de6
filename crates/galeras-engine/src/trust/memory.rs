//! Earlier consent: one file per action, below the user's data folder, named by the digest of the
//! action. It is not in the store, which may be shared. The stores that the user made or trusts are
//! remembered in the same way.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde_json::{Value, json};

use galeras_base::digest::Digest;
use galeras_base::scratch::WholeFile;
use galeras_base::user_folder;
use galeras_operator::Access;
use galeras_store::timestamp;

/// The version of the hashed form; increase it whenever old consent must become invalid.
const FORMAT: u32 = 1;

/// Earlier consent for the workflow of one file.
#[derive(Clone, Debug, Default)]
pub struct TrustMemory {
    /// `None` if the user has no data folder: then nothing is remembered.
    folder: Option<PathBuf>,
    /// The workflow's file, with links resolved.
    workflow: PathBuf,
}

impl TrustMemory {
    /// The memory in `$XDG_DATA_HOME/galeras/trust`, or in `~/.local/share/galeras/trust`.
    pub fn of_user(workflow: PathBuf) -> Self {
        Self { folder: data_folder("trust"), workflow }
    }

    /// True if the user allowed this before.
    pub fn knows(&self, access: &Access) -> bool {
        let (Some(folder), Some(agreed)) = (&self.folder, self.agreed(access)) else {
            return false;
        };
        is_kept(folder, &agreed)
    }

    /// Remembers this consent, and returns the folder.
    ///
    /// # Errors
    /// If the file cannot be written, or the user has no data folder.
    pub fn remember(&self, access: &Access) -> io::Result<&Path> {
        let (Some(folder), Some(agreed)) = (&self.folder, self.agreed(access)) else {
            return Err(no_folder());
        };
        keep(folder, &agreed)?;
        Ok(folder)
    }

    /// The hashed form. `None` for a path that JSON cannot represent.
    fn agreed(&self, access: &Access) -> Option<Value> {
        let workflow = self.workflow.to_str()?;
        let access = serde_json::to_value(access).ok()?;
        Some(json!({"format": FORMAT, "workflow": workflow, "access": access}))
    }
}

/// The folders of stores that the user made on this machine, or trusts.
#[derive(Clone, Debug)]
pub struct StoreMemory {
    folder: Option<PathBuf>,
}

impl StoreMemory {
    /// The memory in `$XDG_DATA_HOME/galeras/stores`, or in `~/.local/share/galeras/stores`.
    pub fn of_user() -> Self {
        Self { folder: data_folder("stores") }
    }

    /// The memory in this folder.
    pub fn at(folder: PathBuf) -> Self {
        Self { folder: Some(folder) }
    }

    /// True if this folder is remembered. Another folder at its path is not.
    pub fn knows(&self, store: &Path) -> bool {
        let Some(folder) = &self.folder else { return false };
        identity(store).is_ok_and(|store| is_kept(folder, &store))
    }

    /// Remembers the folder.
    ///
    /// # Errors
    /// If it does not exist, the file cannot be written, or the user has no data folder.
    pub fn remember(&self, store: &Path) -> io::Result<()> {
        let folder = self.folder.as_ref().ok_or_else(no_folder)?;
        keep(folder, &identity(store)?)
    }
}

/// A clone or a copy has another inode, or at least another time of birth, where the file system
/// has one.
fn identity(store: &Path) -> io::Result<Value> {
    let (path, about) = (store.canonicalize()?, fs::metadata(store)?);
    let path = path.to_str().ok_or_else(|| io::Error::other("its path is not UTF-8"))?;
    let born = about.created().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let born = born.map(|age| age.as_nanos().to_string());
    Ok(json!({"format": FORMAT, "store": path, "inode": about.ino(), "born": born}))
}

/// The folders with the user's consents, for programs not to see them.
pub(crate) fn consent_folders() -> Vec<PathBuf> {
    ["trust", "stores"].into_iter().filter_map(data_folder).collect()
}

/// A folder in the user's data folder.
fn data_folder(name: &str) -> Option<PathBuf> {
    user_folder::data_folder().map(|folder| folder.join(name))
}

fn no_folder() -> io::Error {
    io::Error::other("there is no folder for it: HOME is not set")
}

/// True if the folder has this value, and only the user can have written it.
fn is_kept(folder: &Path, agreed: &Value) -> bool {
    if !is_private(folder) {
        return false;
    }
    let digest = Digest::of_json(agreed);
    let text = fs::read_to_string(folder.join(file_name(&digest))).unwrap_or_default();
    // A truncated file, or one whose content does not fit its name, is ignored.
    let said = serde_json::from_str::<Value>(&text).ok().and_then(|v| v.get("agreed").cloned());
    said.is_some_and(|said| Digest::of_json(&said) == digest)
}

fn keep(folder: &Path, agreed: &Value) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    if !is_private(folder) {
        let why = format!("others may write to {}", folder.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    let digest = Digest::of_json(agreed);
    let text = json!({"agreed": agreed, "at": timestamp()});
    WholeFile::write(&folder.join(file_name(&digest)), format!("{text:#}\n").as_bytes())
}

fn file_name(digest: &Digest) -> String {
    format!("{digest}.json")
}

/// True if only the user can have written the content of the folder.
fn is_private(folder: &Path) -> bool {
    let user = rustix::process::geteuid().as_raw();
    let others_write = 0o022;
    fs::metadata(folder).is_ok_and(|m| m.uid() == user && m.mode() & others_write == 0)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use galeras_operator::SideFile;

    fn program(command: &str, content: &str) -> Access {
        let digest = Digest::of(content.as_bytes());
        let files = vec![SideFile { name: "a.py".into(), digest }];
        Access::Program { command: command.into(), folder: "/w".into(), files }
    }

    #[test]
    fn just_what_was_agreed_to_is_known() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("share/galeras/trust");
        let memory = |workflow: &str| TrustMemory {
            folder: Some(folder.clone()),
            workflow: workflow.into(),
        };
        let here = memory("/w/w.yaml");
        let agreed = program("python3 a.py", "1");
        assert!(!here.knows(&agreed));
        here.remember(&agreed).unwrap();
        assert!(here.knows(&agreed));
        assert!(!here.knows(&program("python3 a.py", "2")), "the file has changed");
        assert!(!here.knows(&program("python3 a.py ", "1")), "the command has changed");
        assert!(!memory("/other/w.yaml").knows(&agreed), "it was another workflow");
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
        // Damaged files, and folders that others may write to, do not count as consent.
        let file = fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, text.replace("python3", "python2")).unwrap();
        assert!(!here.knows(&agreed));
        fs::write(&file, &text).unwrap();
        assert!(here.knows(&agreed));
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(!here.knows(&agreed) && here.remember(&agreed).is_err());
        assert!(!TrustMemory::default().knows(&agreed));
    }

    #[test]
    fn a_store_is_known_by_more_than_its_path() {
        let dir = tempfile::tempdir().unwrap();
        let memory = StoreMemory::at(dir.path().join("stores"));
        let (store, other) = (dir.path().join("cache"), dir.path().join("other"));
        assert!(memory.remember(&store).is_err(), "there is none");
        fs::create_dir(&store).unwrap();
        fs::create_dir(&other).unwrap();
        assert!(!memory.knows(&store));
        memory.remember(&store).unwrap();
        fs::write(store.join("x"), "").unwrap();
        assert!(memory.knows(&store) && !memory.knows(&other));
        // Another folder takes its place.
        fs::rename(&store, dir.path().join("old")).unwrap();
        fs::rename(&other, &store).unwrap();
        assert!(!memory.knows(&store));
    }
}
