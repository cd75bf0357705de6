//! Folders with private content: paid answers and spending.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;

use super::whole_file::make_folder;

/// Creates a folder that others can neither read nor enter, and the folders above it, with the
/// usual rights. An existing folder is unchanged: its owner may have opened it to others.
///
/// A group whose members may write to each other's new folders (umask 002) keeps that right here:
/// they share the store.
///
/// # Errors
/// If it cannot be created.
pub fn create_private(folder: &Path) -> io::Result<()> {
    if let Some(parent) = folder.parent() {
        make_folder(parent)?;
    }
    match DirBuilder::new().mode(0o770).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        Err(error) => Err(error),
        Ok(()) => {
            let rights = fs::metadata(folder)?.permissions().mode() & 0o777;
            match private(rights) {
                same if same == rights => Ok(()),
                less => fs::set_permissions(folder, Permissions::from_mode(less)),
            }
        }
    }
}

/// The private part of the rights that the umask left.
fn private(rights: u32) -> u32 {
    if rights & 0o020 == 0 { rights & 0o700 } else { rights & 0o770 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_folder_is_private_and_another_is_left_alone() {
        let top = tempfile::tempdir().unwrap();
        let folder = top.path().join("store/downloads");
        let mode = || fs::metadata(&folder).unwrap().permissions().mode() & 0o7777;
        create_private(&folder).unwrap();
        assert_eq!(mode() & 0o007, 0);
        assert_ne!(mode() & 0o070, 0o050, "no right to read without the right to write");
        fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        create_private(&folder).unwrap();
        assert_eq!(mode(), 0o755);
        fs::write(top.path().join("file"), "").unwrap();
        assert!(create_private(&top.path().join("file")).is_err());
    }

    #[test]
    fn a_group_keeps_what_it_has_if_it_may_write() {
        assert_eq!(private(0o750), 0o700);
        assert_eq!(private(0o770), 0o770);
        assert_eq!(private(0o700), 0o700);
    }
}
