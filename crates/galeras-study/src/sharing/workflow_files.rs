//! Places the files of a workflow in a bundle: they keep their relative positions, because the
//! workflow uses relative paths.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::error::{AboutFile as _, ShareError};
use super::listing::is_plain;
use super::privacy::Privacy;
use galeras_engine::plan::{Plan, lock_path};

/// The folder of a bundle with the workflow and its files.
pub(super) const FOLDER: &str = "workflow";

/// The files of a workflow, and their places in a bundle.
pub(super) struct WorkflowFiles {
    /// Name in the bundle -> file.
    pub(super) files: BTreeMap<String, PathBuf>,
    /// The workflow file itself, by its name in the bundle.
    pub(super) main: String,
    /// Settings with paths, as typed in the unpacked bundle.
    pub(super) set: Vec<String>,
}

impl WorkflowFiles {
    /// The positions of the plan's files. Refuses absolute paths, files that are too far from the
    /// others, and names that are not portable.
    pub(super) fn of(plan: &Plan) -> Result<Self, ShareError> {
        let given = given_paths(plan);
        let mut near = Vec::new();
        let mut named = Vec::new();
        for path in plan.files() {
            let path = plain(&path);
            match given.iter().any(|(_, value)| path.starts_with(plain(value))) {
                true => named.push(path),
                false => near.push(path),
            }
        }
        let written = plan.steps.iter().map(|step| step.source.text());
        for text in written {
            if let Some(path) = near.iter().find(|path| text.contains(&*path.to_string_lossy())) {
                let message = format!(
                    "the workflow names {} by an absolute path, which is nowhere else; name it by \
                     a path that starts at the workflow's folder",
                    path.display()
                );
                return Err(ShareError::Refused(message));
            }
        }
        let main = near.first().cloned().unwrap_or_default();
        let top = common_folder(&near);
        let home = std::env::var_os("HOME").map(PathBuf::from);
        if home.is_some_and(|home| home != top && home.starts_with(&top)) {
            let message = "the workflow and what it reads have no folder together below your home \
                           folder; move them to one project";
            return Err(ShareError::Refused(message.into()));
        }
        let lock = lock_path(&main);
        let mut files = BTreeMap::new();
        let near = near.into_iter().chain(lock.exists().then_some(lock));
        for path in near {
            files.insert(place(&path, &top, FOLDER)?, path);
        }
        let main = place(&main, &top, FOLDER)?;
        let mut set = Vec::new();
        for setting in &plan.set {
            let name = setting.split('=').next().unwrap_or_default();
            set.push(match given.iter().position(|(param, _)| param == name) {
                None => setting.clone(),
                Some(at) => {
                    let folder = format!("{FOLDER}/{GIVEN}/{name}");
                    let value = plain(&given[at].1);
                    let above = value.parent().unwrap_or(Path::new("/")).to_path_buf();
                    format!("{name}={}", place(&value, &above, &folder)?)
                }
            });
        }
        for path in named {
            let known = given.iter().find(|(_, value)| path.starts_with(plain(value)));
            let Some((param, value)) = known else { continue };
            let value = plain(value);
            let above = value.parent().unwrap_or(Path::new("/"));
            files.insert(place(&path, above, &format!("{FOLDER}/{GIVEN}/{param}"))?, path);
        }
        Ok(Self { files, main, set })
    }
}

/// Copies the files of a workflow into a folder; returns the workflow file's name there, and the
/// settings.
///
/// # Errors
/// If a file must not be shared, or a disk fails.
pub fn copy_workflow(
    plan: &Plan,
    folder: &Path,
    privacy: &Privacy,
) -> Result<(String, Vec<String>), ShareError> {
    let workflow = WorkflowFiles::of(plan)?;
    for (name, path) in &workflow.files {
        let bytes = fs::read(path).about("read", path)?;
        if let Some((line, what)) = privacy.in_text(&String::from_utf8_lossy(&bytes)) {
            let message = format!("{}, line {line}, holds {what}", path.display());
            return Err(ShareError::Refused(message));
        }
        let place = folder.join(name);
        let written = fs::create_dir_all(place.parent().unwrap_or(folder))
            .and_then(|()| fs::write(&place, bytes));
        written.about("write", &place)?;
    }
    Ok((workflow.main, workflow.set))
}

/// The folder for files named on the command line.
const GIVEN: &str = "given";

/// The params set to a path on the command line, with their paths.
fn given_paths(plan: &Plan) -> Vec<(String, PathBuf)> {
    let names = plan.set.iter().filter_map(|setting| setting.split_once('='));
    names
        .filter_map(|(name, _)| {
            let value = plan.params.get(name)?.as_str()?;
            let path = Path::new(value);
            (path.is_absolute() && path.exists()).then(|| (name.to_string(), path.to_path_buf()))
        })
        .collect()
}

/// The path without `.` and `..`; links are kept.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf()).components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

fn common_folder(files: &[PathBuf]) -> PathBuf {
    let mut common: Option<PathBuf> = None;
    for file in files {
        let folder = file.parent().unwrap_or(Path::new("/")).to_path_buf();
        common = Some(match common {
            None => folder,
            Some(known) => {
                let shared = known.components().zip(folder.components());
                shared.take_while(|(a, b)| a == b).map(|(a, _)| a).collect()
            }
        });
    }
    common.unwrap_or_default()
}

fn place(path: &Path, top: &Path, folder: &str) -> Result<String, ShareError> {
    let refused =
        |why: &str| ShareError::Refused(format!("{} cannot be in a bundle: {why}", path.display()));
    if top.components().count() < 2 {
        let why = "it and the workflow have no folder together; move them to one project";
        return Err(refused(why));
    }
    let inside = path.strip_prefix(top).map_err(|_| refused("it lies elsewhere"))?;
    let inside = inside.to_str().ok_or_else(|| refused("its name is not UTF-8"))?;
    let name = format!("{folder}/{inside}");
    if !is_plain(&name) {
        return Err(refused("its name has characters that not every system knows"));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_keep_their_places_to_each_other() {
        let files = ["/p/flows/w.yaml", "/p/data/x.csv", "/p/flows/y.yaml"].map(PathBuf::from);
        let top = common_folder(&files);
        assert_eq!(top, Path::new("/p"));
        assert_eq!(place(&files[0], &top, FOLDER).unwrap(), "workflow/flows/w.yaml");
        assert_eq!(common_folder(&files[..1]), Path::new("/p/flows"));
        assert_eq!(plain(Path::new("/p/flows/../data/./x.csv")), files[1]);
    }

    #[test]
    fn files_without_a_folder_together_are_refused() {
        let files = ["/p/w.yaml", "/q/x.csv"].map(PathBuf::from);
        let top = common_folder(&files);
        assert!(place(&files[0], &top, FOLDER).is_err());
        assert!(place(Path::new("/p/a:b"), Path::new("/p"), FOLDER).is_err());
    }
}
