//! The default store: the folder `cache` of the project that a workflow belongs to.

use std::env;
use std::iter::once;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The name of the default store.
const NAME: &str = "cache";

/// Any of these makes a folder `cache` a store. A project may come with an empty one that has a
/// README.
const CONTENTS: [&str; 4] = ["actions", "blobs", "runs", "README.md"];

/// Any of these makes a folder that of a project.
const MARKERS: [&str; 2] = ["galeras.lock", ".git"];

/// The default store of this workflow file, or of this folder. It does not depend on the current
/// folder, but the path is relative if it is below that.
///
/// It is the nearest store at or above the workflow; else it is next to the nearest `galeras.lock`
/// or `.git`, or next to the workflow. The folders above a Git repository do not count, and neither
/// do those of other users and those that everybody may write to: a store decides results.
pub fn default_store(of: &Path) -> PathBuf {
    let here = env::current_dir().and_then(|here| here.canonicalize()).unwrap_or_default();
    let folder = match of.metadata() {
        Ok(about) if about.is_dir() => of,
        // A pipe.
        Ok(about) if !about.is_file() => Path::new(""),
        _ => of.parent().unwrap_or(of),
    };
    let folder = here.join(folder);
    let folder = folder.canonicalize().unwrap_or(folder);
    let owner = folder.metadata().map(|about| about.uid()).ok();
    let is_own = |above: &&Path| {
        let about = above.metadata();
        about.is_ok_and(|about| Some(about.uid()) == owner && about.mode() & 0o002 == 0)
    };
    let above = folder.ancestors().skip(1).take_while(is_own);
    let mut project: Vec<&Path> = once(folder.as_path()).chain(above).collect();
    if let Some(top) = project.iter().position(|folder| folder.join(".git").exists()) {
        project.truncate(top + 1);
    }
    let has_store = |folder: &&&Path| {
        let store = folder.join(NAME);
        CONTENTS.iter().any(|name| store.join(name).exists())
    };
    let is_marked = |folder: &&&Path| MARKERS.iter().any(|name| folder.join(name).exists());
    let root = project.iter().find(has_store).or_else(|| project.iter().find(is_marked));
    let root = root.copied().unwrap_or(&folder);
    root.strip_prefix(&here).unwrap_or(root).join(NAME)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_store_is_that_of_the_project() {
        for (files, wanted) in [
            (&[] as &[&str], "a/study/flows/cache"),
            (&["a/study/cache/actions/x"], "a/study/cache"),
            // A folder of this name that has nothing of a store, as in /var.
            (&["a/cache/apt/x"], "a/study/flows/cache"),
            (&["a/study/cache/README.md", "a/cache/runs/x"], "a/study/cache"),
            (&["a/study/.git/HEAD"], "a/study/cache"),
            (&["a/study/galeras.lock", "a/galeras.lock"], "a/study/cache"),
            // A store counts more than a lock file, which may have come later.
            (&["a/study/flows/galeras.lock", "a/study/cache/runs/x"], "a/study/cache"),
            // Another project.
            (&["a/study/.git/HEAD", "a/cache/runs/x"], "a/study/cache"),
            (&["a/study/flows/cache/blobs/x", "a/study/.git/HEAD"], "a/study/flows/cache"),
        ] {
            let top = tempfile::tempdir().unwrap();
            let root = top.path().canonicalize().unwrap();
            for file in files.iter().chain(&["a/study/flows/w.yaml"]) {
                let path = root.join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "").unwrap();
            }
            for of in ["a/study/flows/w.yaml", "a/study/flows", "a/../a/study/flows/new.yaml"] {
                assert_eq!(default_store(&root.join(of)), root.join(wanted), "{files:?}");
            }
        }
    }

    #[test]
    fn a_folder_that_everybody_may_write_to_brings_no_store() {
        let top = tempfile::tempdir().unwrap();
        let root = top.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("shared/cache/actions")).unwrap();
        fs::create_dir_all(root.join("shared/mine")).unwrap();
        let mine = root.join("shared/mine");
        assert_eq!(default_store(&mine), root.join("shared/cache"));
        fs::set_permissions(root.join("shared"), Permissions::from_mode(0o777)).unwrap();
        assert_eq!(default_store(&mine), mine.join("cache"));
    }
}
