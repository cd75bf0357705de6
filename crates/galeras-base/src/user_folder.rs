//! The folder for data of the user that belongs to no workflow, such as remembered consent.

use std::path::PathBuf;

/// `$XDG_DATA_HOME/galeras`, or `~/.local/share/galeras`; `None` if the user has no such folder.
pub fn data_folder() -> Option<PathBuf> {
    let variable =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = variable("XDG_DATA_HOME");
    let data = data.or_else(|| variable("HOME").map(|home| home.join(".local/share")));
    data.map(|data| data.join("galeras"))
}
