//! Namespaces, and the file system that a program sees in them.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};

use nix::sched::{CloneFlags, unshare};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive,
    mount_change, mount_remount, unmount,
};

use crate::protocol::{Failure, Launch, Readable, Step};
use crate::specification::{TEMPORARY, WORK};

/// Device files that exist inside, in addition to [`ZERO`].
pub(crate) const DEVICES: [&str; 4] = ["/dev/null", "/dev/full", "/dev/random", "/dev/urandom"];

/// A device file that programs can only read.
pub(crate) const ZERO: &str = "/dev/zero";

/// The user that every program is inside a namespace of users.
const INNER_USER: u32 = 1000;

/// Leaves the namespaces of the caller, except those of mounts. The next process that is started is
/// the first of its PID namespace. A user without privileges becomes the root of a namespace first.
pub(crate) fn leave(is_root: bool, network: bool) -> Result<(), Failure> {
    let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    if !is_root {
        unshare(CloneFlags::CLONE_NEWUSER).step("making a user namespace")?;
        let proc = open_proc()?;
        map_user(&proc, 0, uid, gid)?;
    }
    for (flag, name) in [
        (CloneFlags::CLONE_NEWPID, "PID"),
        (CloneFlags::CLONE_NEWNET, "network"),
        (CloneFlags::CLONE_NEWIPC, "IPC"),
        (CloneFlags::CLONE_NEWUTS, "UTS"),
    ] {
        if flag != CloneFlags::CLONE_NEWNET || !network {
            unshare(flag).step(format!("making a {name} namespace"))?;
        }
    }
    rustix::system::sethostname(b"sandbox").step("naming the host")
}

/// Puts a program without any privileges into a user namespace, in which it is always the same user.
pub(crate) fn become_user(proc: &OwnedFd, outer: u32) -> Result<(), Failure> {
    unshare(CloneFlags::CLONE_NEWUSER).step("making a user namespace")?;
    map_user(proc, INNER_USER, outer, outer)
}

/// A descriptor of `/proc`, which stays of use when that of another namespace is mounted over it.
pub(crate) fn open_proc() -> Result<OwnedFd, Failure> {
    rustix::fs::open("/proc", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .step("opening /proc")
}

/// Opens a path that has been resolved. Since then, another program may have replaced a part of it by a link.
pub(crate) fn open_without_links(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    Ok(openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?)
}

fn map_user(proc: &OwnedFd, inner: u32, uid: u32, gid: u32) -> Result<(), Failure> {
    let write = |name: &str, text: String| -> io::Result<()> {
        let path = format!("self/{name}");
        let file = openat(proc, path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
        File::from(file).write_all(text.as_bytes())
    };
    write("setgroups", "deny".into()).step("writing setgroups of a user namespace")?;
    write("uid_map", format!("{inner} {uid} 1")).step("writing uid_map of a user namespace")?;
    write("gid_map", format!("{inner} {gid} 1")).step("writing gid_map of a user namespace")
}

/// Builds a file system with nothing but the readable paths, a few devices, and the scratch folder,
/// which alone can be written to; then leaves the old one.
pub(crate) fn build_root(launch: &Launch) -> Result<(), Failure> {
    unshare(CloneFlags::CLONE_NEWNS).step("making a mount namespace")?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .step("making mounts private")?;
    let root = place_for_root(&launch.readable)
        .ok_or_else(|| Failure::new("building a file system", "no folder to mount it on"))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", root, "tmpfs", flags, c"mode=0755,size=4m,nr_inodes=8192")
        .step(format!("mounting tmpfs on {}", root.display()))?;

    let scratch = root.join(".scratch");
    let inside = |path: &str| root.join(path.trim_start_matches('/'));
    let options = format!(
        "mode=0755,size={},nr_inodes={}",
        launch.limits.scratch.max(1 << 16),
        launch.limits.scratch_files.saturating_add(4).max(16)
    );
    let options = std::ffi::CString::new(options).step("options of the scratch folder")?;
    let make = |name: &str, path: &str| -> io::Result<()> {
        let source = scratch.join(name);
        fs::create_dir(&source)?;
        if let Some(id) = launch.id {
            chown(&source, Some(id), Some(id))?;
        }
        fs::create_dir_all(inside(path))?;
        Ok(mount_bind(&source, inside(path))?)
    };
    (|| -> io::Result<()> {
        fs::create_dir(&scratch)?;
        mount("tmpfs", &scratch, "tmpfs", flags, options.as_c_str())?;
        make("work", WORK)?;
        make("tmp", TEMPORARY)?;
        unmount(&scratch, UnmountFlags::DETACH)?;
        fs::remove_dir(&scratch)
    })()
    .step("making the scratch folder")?;

    for readable in &launch.readable {
        expose(root, readable).step(format!("making {} readable", readable.path.display()))?;
    }
    make_devices(root).step("making devices")?;
    fs::create_dir(inside("/proc")).step("making /proc")?;
    // In some containers parts of /proc are hidden, and the kernel then refuses another one. Python
    // does without.
    let proc_flags = flags | MountFlags::NOEXEC;
    let _ = mount("proc", inside("/proc"), "proc", proc_flags, c"subset=pid");
    if let Some(directory) = &launch.directory {
        fs::create_dir_all(root.join(directory.strip_prefix("/").unwrap_or(directory)))
            .step(format!("making {}", directory.display()))?;
    }
    let shared = launch.readable.iter().filter(|readable| readable.writable);
    let shared: Vec<PathBuf> =
        shared.map(|path| root.join(path.real.strip_prefix("/").unwrap_or(&path.real))).collect();
    limit_mounts(root, &[inside(WORK), inside(TEMPORARY), inside("/proc")], &shared)?;

    (|| -> io::Result<()> {
        std::env::set_current_dir(root)?;
        rustix::process::pivot_root(".", ".")?;
        unmount(".", UnmountFlags::DETACH)?;
        std::env::set_current_dir("/")?;
        Ok(mount_remount("/", MountFlags::BIND | MountFlags::RDONLY | flags, c"")?)
    })()
    .step("changing the root folder")
}

/// A folder to build the new root on: it hides the folder's contents, which must not be needed.
fn place_for_root(readable: &[Readable]) -> Option<&'static Path> {
    ["/sys", "/mnt", "/media", "/srv", "/boot", "/opt"].into_iter().map(Path::new).find(|place| {
        fs::symlink_metadata(place).is_ok_and(|data| data.is_dir())
            && !readable.iter().any(|readable| readable.real.starts_with(place))
    })
}

fn expose(root: &Path, readable: &Readable) -> io::Result<()> {
    let inside = |path: &Path| root.join(path.strip_prefix("/").unwrap_or(path));
    let target = inside(&readable.real);
    let is_there = fs::symlink_metadata(&target).is_ok();
    if !is_there {
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder)?;
        }
        if readable.real.is_dir() {
            fs::create_dir(&target)?;
        } else {
            File::create(&target)?;
        }
    }
    // A writable folder in a read-only one needs a separate mount.
    if !readable.hollow && (!is_there || readable.writable) {
        let source = open_without_links(&readable.real)?;
        mount_bind_recursive(format!("/proc/self/fd/{}", source.as_raw_fd()), &target)?;
    }
    let name = inside(&readable.path);
    if readable.path != readable.real && fs::symlink_metadata(&name).is_err() {
        if let Some(folder) = name.parent() {
            fs::create_dir_all(folder)?;
        }
        symlink(&readable.real, name)?;
    }
    Ok(())
}

fn make_devices(root: &Path) -> io::Result<()> {
    fs::create_dir(root.join("dev"))?;
    for device in DEVICES.into_iter().chain([ZERO]) {
        let target = root.join(device.trim_start_matches('/'));
        File::create(&target)?;
        mount_bind(device, &target)?;
    }
    for (name, target) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
        ("shm", TEMPORARY),
    ] {
        symlink(target, root.join("dev").join(name))?;
    }
    Ok(())
}

/// Takes set-user-id programs and devices from every mount below `root`, and makes it read-only unless it
/// is `shared`. Some came along below a readable path.
fn limit_mounts(root: &Path, except: &[PathBuf], shared: &[PathBuf]) -> Result<(), Failure> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").step("reading the list of mounts")?;
    for line in mounts.lines() {
        let mut fields = line.split(' ').skip(4);
        let (Some(point), Some(options)) = (fields.next(), fields.next()) else { continue };
        let point = PathBuf::from(unescaped(point));
        if point == root || !point.starts_with(root) || except.contains(&point) {
            continue;
        }
        // The list also has the mounts that the new root hides.
        if fs::symlink_metadata(&point).is_err() {
            continue;
        }
        let mut flags = MountFlags::BIND | MountFlags::NOSUID;
        let has = |name: &str| options.split(',').any(|option| option == name);
        if !shared.contains(&point) || has("ro") {
            flags |= MountFlags::RDONLY;
        }
        if !point.starts_with(root.join("dev")) {
            flags |= MountFlags::NODEV;
        }
        // A user namespace may not remove what the machine has set.
        if has("noexec") {
            flags |= MountFlags::NOEXEC;
        }
        mount_remount(&point, flags, c"").step(format!("limiting {}", point.display()))?;
    }
    Ok(())
}

/// A path of the list of mounts, in which some bytes are written as `\040`.
fn unescaped(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut result = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                result.push(char::from(byte));
                result.push_str(&part[3..]);
            }
            None => {
                result.push('\\');
                result.push_str(part);
            }
        }
    }
    result
}

/// Makes the folder's files visible to the user that a program changes to.
pub(crate) fn give_folder(folder: &Path, id: u32) -> io::Result<()> {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o711))?;
    for name in ["work", "tmp"] {
        chown(folder.join(name), Some(id), Some(id))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_mounts_are_unescaped() {
        assert_eq!(unescaped(r"/a\040b\134c"), r"/a b\c");
    }
}
