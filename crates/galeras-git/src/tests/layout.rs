//! The parts of a repository: places outside of its folder are asked about before they are read, and
//! files without an end are refused.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{TestRepository, fails, mined};
use crate::{GitError, GitErrorKind, Repository, places};

/// A repository with a commit; what it has is in a pack, or in a file for each object.
fn made(packed: bool) -> (TestRepository, String) {
    let mut made = TestRepository::new();
    made.write("m.py", "def f(self):\n    return 1\n");
    let head = made.commit();
    if packed {
        made.git(&["repack", "-q", "-a", "-d"], b"");
        made.git(&["pack-refs", "--all"], b"");
    }
    (made, head)
}

/// A bare repository without a commit.
fn empty(dir: &Path, head: &str) {
    for folder in ["objects/info", "objects/pack", "refs/heads"] {
        fs::create_dir_all(dir.join(folder)).unwrap();
    }
    fs::write(dir.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(dir.join("refs/heads/main"), format!("{head}\n")).unwrap();
}

/// The places outside of the folder that are asked about.
fn asked(dir: &Path) -> Vec<PathBuf> {
    let mut asked = Vec::new();
    let mut note = |place: &Path| {
        asked.push(place.to_path_buf());
        Ok(())
    };
    places(dir, &mut note).unwrap();
    asked
}

fn refused(dir: &Path) -> GitError {
    let mut no = |_: &Path| Err(GitError::other("no"));
    match Repository::open_judged(dir, &mut no) {
        Ok(_) => panic!("{} was opened", dir.display()),
        Err(error) => error,
    }
}

/// Replaces a file or folder by a link to the one of the same name in `other`.
fn link(dir: &Path, other: &Path, name: &Path) {
    let at = dir.join(name);
    fs::create_dir_all(at.parent().unwrap()).unwrap();
    if at.is_dir() {
        fs::remove_dir_all(&at).unwrap();
    }
    symlink(other.join(name), at).unwrap();
}

#[test]
fn places_outside_of_a_folder_are_asked_about_first() {
    // How the folder leads there, and to what.
    type Lead = fn(&Path, &Path);
    let leads: [(&str, bool, Lead); 11] = [
        ("", false, |dir, other| {
            fs::write(dir.join(".git"), format!("gitdir: {}\n", other.display())).unwrap();
        }),
        ("", false, |dir, other| symlink(other, dir.join(".git")).unwrap()),
        // These are in a bare repository.
        ("", false, |dir, other| {
            fs::write(dir.join("commondir"), other.to_str().unwrap()).unwrap();
        }),
        ("objects", true, |dir, other| {
            let list = format!("# a comment\n{}/objects\n", other.display());
            fs::write(dir.join("objects/info/alternates"), list).unwrap();
        }),
        ("objects", false, |dir, other| {
            // One after the other.
            fs::create_dir_all(dir.join("more/info")).unwrap();
            fs::write(dir.join("objects/info/alternates"), "../more").unwrap();
            let list = format!("\"{}/objects\"", other.display());
            fs::write(dir.join("more/info/alternates"), list).unwrap();
        }),
        ("objects", true, |dir, other| link(dir, other, "objects".as_ref())),
        ("objects/pack", true, |dir, other| link(dir, other, "objects/pack".as_ref())),
        ("*.pack", true, |dir, other| {
            for file in super::files_below(&other.join("objects/pack")) {
                let name = file.strip_prefix(other).unwrap();
                match file.extension().is_some_and(|extension| extension == "pack") {
                    true => link(dir, other, name),
                    false => drop(fs::copy(&file, dir.join(name)).unwrap()),
                }
            }
        }),
        ("objects/??", false, |dir, other| {
            for file in super::files_below(&other.join("objects")) {
                let folder = file.parent().unwrap().strip_prefix(other).unwrap();
                if folder.as_os_str().len() == "objects/??".len() && !dir.join(folder).exists() {
                    link(dir, other, folder);
                }
            }
        }),
        ("objects/??/*", false, |dir, other| {
            for file in super::files_below(&other.join("objects")) {
                link(dir, other, file.strip_prefix(other).unwrap());
            }
        }),
        ("refs/heads", false, |dir, other| {
            link(dir, other, "refs/heads".as_ref());
            let objects = format!("{}/objects", other.display());
            fs::write(dir.join("objects/info/alternates"), objects).unwrap();
        }),
    ];
    for (at, (to, packed, lead)) in leads.into_iter().enumerate() {
        let (other, head) = made(packed);
        let other_dir = other.dir().canonicalize().unwrap().join(".git");
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("r");
        fs::create_dir(&dir).unwrap();
        if at > 1 {
            empty(&dir, &head);
        }
        lead(&dir, &other_dir);
        let asked = asked(&dir);
        assert!(!asked.is_empty(), "{at}");
        for place in &asked {
            assert!(place.starts_with(&other_dir), "{at}: {asked:?}");
        }
        let exact = !to.contains(['*', '?']);
        assert!(!exact || asked.contains(&other_dir.join(to)), "{at}: {asked:?}");
        assert_eq!(refused(&dir).message, "no", "{at}");
        // With consent, it is a repository as any other.
        assert_eq!(mined(&dir).unwrap().rows.len(), 1, "{at}");
    }
}

#[test]
fn single_files_may_be_links_to_elsewhere() {
    let (other, head) = made(true);
    let other = other.dir().canonicalize().unwrap().join(".git");
    for name in ["HEAD", "packed-refs", "config", "shallow", "refs/heads/x", "config.worktree"] {
        fs::create_dir_all(other.join(name).parent().unwrap()).unwrap();
        if !other.join(name).exists() {
            fs::write(other.join(name), "").unwrap();
        }
        let root = tempfile::tempdir().unwrap();
        empty(root.path(), &head);
        fs::remove_file(root.path().join(name)).ok();
        link(root.path(), &other, name.as_ref());
        assert_eq!(asked(root.path()), [other.join(name)], "{name}");
        assert_eq!(refused(root.path()).message, "no", "{name}");
    }
}

#[test]
fn what_stays_in_the_folder_is_not_asked_about() {
    let (made, _) = made(false);
    made.git(&["worktree", "add", "-q", "-b", "side", "tree"], b"");
    made.git(&["clone", "-q", "--shared", "--bare", ".git", "shared"], b"");
    let git = made.dir().join(".git");
    fs::rename(git.join("objects"), made.dir().join("kept")).unwrap();
    symlink("../kept", git.join("objects")).unwrap();
    symlink("nowhere", git.join("refs/heads/dangling")).unwrap();
    symlink(".", git.join("refs/heads/loop")).unwrap();
    symlink("/nowhere", git.join("hooks/link")).ok();
    assert!(asked(made.dir()).is_empty());
    assert_eq!(mined(made.dir()).unwrap().rows.len(), 1);
    // Each of these leads to the folder around it, and nowhere else.
    let whole = made.dir().canonicalize().unwrap();
    for name in ["tree", "shared"] {
        let asked = asked(&made.dir().join(name));
        assert!(
            !asked.is_empty() && asked.iter().all(|place| place.starts_with(&whole)),
            "{asked:?}"
        );
        assert_eq!(mined(&made.dir().join(name)).unwrap().rows.len(), 1, "{name}");
    }
}

#[test]
fn files_without_an_end_are_refused_by_name() {
    let names = "config config.worktree commondir gitdir shallow packed-refs HEAD refs/heads/other \
                 refs/replace/x objects/info/alternates objects/pack/p.idx objects/ab/cd";
    let (made, _) = made(false);
    let git = made.dir().join(".git");
    for name in names.split(' ') {
        let file = git.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let kept = fs::read(&file).ok();
        let is_object = name.starts_with("objects/") && !name.ends_with("alternates");
        for what in ["a named pipe", "a device", "KB"] {
            fs::remove_file(&file).ok();
            match what {
                "a named pipe" => {
                    assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
                }
                "a device" => symlink("/dev/zero", &file).unwrap(),
                // Objects are not read as a whole.
                _ if is_object => continue,
                _ => File::create(&file).unwrap().set_len(1 << 40).unwrap(),
            }
            let error = mined(made.dir()).unwrap_err();
            assert!(error.message.contains(name) && error.message.contains(what), "{error}");
            let limit = what == "KB";
            let kind = if limit { GitErrorKind::Limit } else { GitErrorKind::Damaged };
            assert_eq!(error.kind, kind, "{error}");
        }
        fs::remove_file(&file).ok();
        kept.into_iter().for_each(|kept| fs::write(&file, kept).unwrap());
    }
    assert_eq!(mined(made.dir()).unwrap().rows.len(), 1);
    File::create(made.dir().join("file")).unwrap().set_len(1 << 40).unwrap();
    fs::rename(&git, made.dir().join("gone")).unwrap();
    fs::rename(made.dir().join("file"), &git).unwrap();
    fails(mined(made.dir()), GitErrorKind::Limit, ".git");
}

#[test]
fn a_folder_leads_to_so_many_places_and_no_more() {
    let root = tempfile::tempdir().unwrap();
    empty(root.path(), &"1".repeat(40));
    let list: String = (0..70)
        .map(|at| {
            let name = format!("o{at}");
            fs::create_dir(root.path().join(&name)).unwrap();
            format!("../{name}\n")
        })
        .collect();
    fs::write(root.path().join("objects/info/alternates"), list).unwrap();
    fails(places(root.path(), &mut |_| Ok(())), GitErrorKind::Limit, "64");
    fs::remove_file(root.path().join("objects/info/alternates")).unwrap();
    let others = tempfile::tempdir().unwrap();
    for at in 0..300 {
        let file = others.path().join(format!("{at}"));
        fs::write(&file, "").unwrap();
        symlink(file, root.path().join(format!("refs/heads/{at}"))).unwrap();
    }
    fails(places(root.path(), &mut |_| Ok(())), GitErrorKind::Limit, "256");
}

#[test]
fn settings_and_references_name_no_other_files() {
    let (made, head) = made(false);
    let git = made.dir().join(".git");
    // Were it read, the only commit would be cut off, or replaced.
    made.write("cut", &format!("{head}\n"));
    let settings = "\n[gitoxide \"core\"]\n\tshallowFile = ../cut\n[gitoxide \"objects\"]\n\t\
                    replaceRefBase = refs/odd/\n";
    let config = fs::read_to_string(git.join("config")).unwrap();
    fs::write(git.join("config"), config + settings).unwrap();
    fs::create_dir(git.join("refs/odd")).unwrap();
    fs::write(git.join("refs/odd").join(&head), format!("{}\n", "1".repeat(40))).unwrap();
    let repository = Repository::open(made.dir()).unwrap();
    assert!(repository.shallow().unwrap().is_empty());
    assert_eq!(mined(made.dir()).unwrap().rows.len(), 1);
    // A reference to a file next to `refs`.
    fs::create_dir(git.join("odd")).unwrap();
    fs::write(git.join("odd/place"), format!("{head}\n")).unwrap();
    fs::write(git.join("refs/heads/other"), "ref: odd/place\n").unwrap();
    for target in ["odd/place", "refs/heads/other"] {
        fs::write(git.join("HEAD"), format!("ref: {target}\n")).unwrap();
        let error = Repository::open(made.dir()).unwrap().head(None).unwrap_err();
        assert!(error.message.contains("not below `refs`"), "{target}: {error}");
    }
    fs::write(git.join("HEAD"), "ref: refs/heads/other\n").unwrap();
    fs::write(git.join("refs/heads/other"), "ref: refs/heads/other\n").unwrap();
    fails(Repository::open(made.dir()).unwrap().head(None), GitErrorKind::Damaged, "");
    fs::write(git.join("refs/heads/other"), "ref: refs/heads/main\n").unwrap();
    let found = Repository::open(made.dir()).unwrap().head(None).unwrap();
    assert_eq!((found.branch.as_str(), found.commit.to_string()), ("other", head));
}

#[test]
fn an_index_of_many_packs_names_none_elsewhere() {
    let (other, head) = made(true);
    other.git(&["multi-pack-index", "write"], b"");
    let packs = other.dir().join(".git/objects/pack");
    let mut index = fs::read(packs.join("multi-pack-index")).unwrap();
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("r");
    empty(&dir, &head);
    fs::create_dir(root.path().join("o")).unwrap();
    for entry in fs::read_dir(&packs).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "pack") {
            // A name of the same length, in another folder.
            let name = path.with_extension("idx").file_name().unwrap().as_encoded_bytes().to_vec();
            let elsewhere = format!("../../../o/{}.idx", "p".repeat(name.len() - 15));
            let at = index.windows(name.len()).position(|window| window == name).unwrap();
            index[at..at + name.len()].copy_from_slice(elsewhere.as_bytes());
            let to = dir.join("objects/pack").join(elsewhere).with_extension("pack");
            fs::copy(path, to).unwrap();
        }
    }
    fs::write(dir.join("objects/pack/multi-pack-index"), index).unwrap();
    assert!(asked(&dir).is_empty());
    let error = mined(&dir).unwrap_err();
    assert!(error.message.contains("could not be found"), "{error}");
}

#[test]
fn formats_that_are_not_read_are_named() {
    for (extension, refused) in [
        ("objectFormat = sha1", None),
        ("objectFormat = sha256", Some("`sha256`, and only SHA-1")),
        ("refStorage = files", None),
        ("refstorage = reftable", Some("`reftable`, and only files")),
    ] {
        let (repository, _) = made(false);
        let dir = repository.dir();
        let config = dir.join(".git/config");
        let text = fs::read_to_string(&config).unwrap();
        let text = text.replace("repositoryformatversion = 0", "repositoryformatversion = 1");
        fs::write(&config, format!("{text}[extensions]\n\t{extension}\n")).unwrap();
        match refused {
            Some(words) => drop(fails(Repository::open(dir), GitErrorKind::Other, words)),
            None => drop(Repository::open(dir).unwrap().head(None).unwrap()),
        }
    }
}
