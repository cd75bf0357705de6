//! Paths in the values of params. Those of the command line and those that an embedding workflow
//! passes start in another folder than those of the file.

use std::path::{Component, Path, PathBuf};

use galeras_workflow::{ParamType, with_moved_paths};

/// A text of the command line, whose relative paths start in `from`, as a workflow in the folder
/// `base` must read it. A path becomes absolute, since the value may be used anywhere. Repositories
/// are part of results, so theirs stay relative to `base` and do not reveal the location.
pub(super) fn given_text(ty: Option<ParamType>, text: &str, from: &Path, base: &Path) -> String {
    match ty {
        Some(ParamType::Path) => absolute(text, from),
        Some(ParamType::Repos) => moved_list(text, from, base),
        _ => text.to_string(),
    }
}

/// A text of the command line, whose relative paths start in `from`, as typed in the folder `here`.
pub(super) fn text_here(ty: Option<ParamType>, text: &str, from: &Path, here: &Path) -> String {
    match ty {
        _ if from == here => text.to_string(),
        ty => given_text(ty, text, from, here),
    }
}

/// A path that starts in `from`; an empty one stays empty.
pub(super) fn absolute(path: &str, from: &Path) -> String {
    match path {
        "" => String::new(),
        path => from.join(path).to_string_lossy().into_owned(),
    }
}

/// Rewrites a list of repositories whose relative paths start in `from` to paths that start in
/// `to`.
pub(super) fn moved_list(list: &str, from: &Path, to: &Path) -> String {
    let exists = |path: &str| from.join(path).exists();
    with_moved_paths(list, exists, |path| {
        let there = from.join(path);
        let moved = || relative(path, &from.canonicalize().ok()?, &to.canonicalize().ok()?);
        match there.exists() && Path::new(path).is_relative() {
            true => moved().unwrap_or_else(|| absolute(path, from)),
            // Unchanged, or a path that an error can name.
            false => absolute(path, from),
        }
    })
}

/// The path from the folder `to` to the target of `path` from the folder `from`. Both folders are
/// without links; links in `path` stay, and are followed when it is opened. `None` if it is not
/// valid text.
fn relative(path: &str, from: &Path, to: &Path) -> Option<String> {
    let shared = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
    let mut way: Vec<Component<'_>> = Vec::new();
    way.extend(to.components().skip(shared).map(|_| Component::ParentDir));
    let ups = way.len();
    way.extend(from.components().skip(shared));
    // Parts of `from` may be removed: they are not links.
    let mut own = way.len() - ups;
    for part in Path::new(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if own > 0 => {
                way.pop();
                own -= 1;
            }
            part => {
                // After a name that may be a link, nothing may be removed.
                own = if part == Component::ParentDir { own } else { 0 };
                way.push(part);
            }
        }
    }
    let way: PathBuf = way.into_iter().collect();
    let text = way.to_str()?;
    Some(match way.components().next() {
        None => ".".to_string(),
        Some(Component::ParentDir) => text.to_string(),
        Some(_) => format!("./{text}"),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_to_the_same_from_another_folder() {
        let way = |path, from, to| relative(path, Path::new(from), Path::new(to)).unwrap();
        assert_eq!(way("./clone", "/p", "/p"), "./clone");
        assert_eq!(way("clone", "/p", "/p/flows"), "../clone");
        assert_eq!(way("../clone", "/p/sub", "/p/flows"), "../clone");
        assert_eq!(way("../../x", "/p/sub", "/p/sub/flows"), "../../../x");
        assert_eq!(way("flows/r", "/p", "/p/flows"), "../flows/r");
        assert_eq!(way(".", "/p/r", "/p"), "./r");
        assert_eq!(way("..", "/p/r", "/p"), ".");
        // `link` may lead anywhere, so `link/..` is not its folder.
        assert_eq!(way("link/../r", "/p/sub", "/p"), "./sub/link/../r");
    }

    #[test]
    fn what_is_not_there_is_named_in_full() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("flows")).unwrap();
        std::fs::create_dir_all(root.join("r")).unwrap();
        let list = moved_list("./r,psf/requests,./none,/x", &root, &root.join("flows"));
        assert_eq!(list, format!("../r,psf/requests,{}/./none,/x", root.display()));
        assert_eq!(given_text(Some(ParamType::Path), "", &root, &root), "");
        let path = given_text(Some(ParamType::Path), "a b", &root, &root);
        assert_eq!(path, root.join("a b").to_str().unwrap());
        assert_eq!(given_text(Some(ParamType::String), "./r", &root, &root.join("r")), "./r");
    }
}
