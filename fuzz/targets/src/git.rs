//! Mining a repository whose objects, or whose pack, are the input. Needs the `git` program.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use galeras_git::{
    ChangedMethod, CommitFacts, GitError, MineOptions, MinePlan, Mining, ObjectId, Repository,
    Sink, Window, plan, trees,
};
use gix::objs::Kind;
use globset::{Glob, GlobSetBuilder};

use crate::git_script::{Record, pack as packed, read, stored};

/// Returns the value of a success; an error must have a message.
fn said<T>(result: Result<T, GitError>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            assert!(!error.message.is_empty());
            assert!(!error.message.contains("panicked"), "{}", error.message);
            None
        }
    }
}

/// Loose objects as a script describes them; the last commit is the head.
pub(crate) fn objects(input: &[u8]) {
    let records = read(input);
    let Some(head) = last_commit(&records) else { return };
    let folder = tempfile::tempdir().unwrap();
    bare(folder.path());
    for record in &records {
        if let Record::Object { kind, content, id } = record {
            let name = id.to_string();
            let path = folder.path().join("objects").join(&name[..2]).join(&name[2..]);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let mut bytes = format!("{kind} {}\0", content.len()).into_bytes();
            bytes.extend_from_slice(content);
            fs::write(path, stored(&bytes)).unwrap();
        }
    }
    fs::write(folder.path().join("HEAD"), format!("{head}\n")).unwrap();
    mine_all(folder.path(), head);
}

/// An empty repository, as `git init --bare` makes it.
fn bare(folder: &Path) {
    fs::create_dir_all(folder.join("objects")).unwrap();
    fs::create_dir_all(folder.join("refs/heads")).unwrap();
    fs::write(folder.join("config"), "[core]\n\trepositoryformatversion = 0\n\tbare = true\n")
        .unwrap();
}

/// A pack as a script describes it, as far as git writes an index of it.
pub(crate) fn pack(input: &[u8]) {
    let records = read(input);
    let head = last_commit(&records).unwrap_or_else(|| ObjectId::from([1; 20]));
    let folder = tempfile::tempdir().unwrap();
    bare(folder.path());
    fs::write(folder.path().join("HEAD"), "ref: refs/heads/main\n").unwrap();
    let mut git = Command::new("git")
        .args(["index-pack", "--stdin"])
        .env("GIT_DIR", folder.path())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Git may end before it has read a broken pack.
    let _ = git.stdin.take().unwrap().write_all(&packed(&records));
    if git.wait().unwrap().success() {
        mine_all(folder.path(), head);
    }
}

fn last_commit(records: &[Record]) -> Option<ObjectId> {
    records.iter().rev().find_map(|record| match record {
        Record::Object { kind: Kind::Commit, id, .. } => Some(*id),
        _ => None,
    })
}

/// Checks what is mined, and writes it down.
#[derive(Debug, Default, PartialEq)]
struct Checked {
    methods: Vec<String>,
    refused: Vec<String>,
}

impl Sink for Checked {
    fn method(&mut self, commit: &CommitFacts, changed: ChangedMethod<'_>) -> Result<(), GitError> {
        assert_eq!(commit.id.len(), 40);
        assert!(changed.changed_lines > 0, "{changed:?}");
        let bytes = (changed.method.end_byte - changed.method.start_byte) as usize;
        assert_eq!(changed.code.len(), bytes, "{changed:?}");
        self.methods.push(format!("{commit:?} {changed:?}"));
        Ok(())
    }

    fn refused(
        &mut self,
        commit: &str,
        path: Option<&str>,
        rule: &'static str,
        reason: &str,
    ) -> Result<(), GitError> {
        assert!(commit.len() == 40 && !rule.is_empty() && !reason.is_empty());
        assert!(!reason.contains("panicked"), "{reason}");
        self.refused.push(format!("{commit} {path:?} {rule} {reason}"));
        Ok(())
    }

    fn end(&mut self) -> Result<(), GitError> {
        Ok(())
    }
}

/// Mines all Python files of all commits, twice: the changes of a commit are found when it is mined,
/// as in a folder, or for all of them before, as in a fetched repository.
fn mine_all(folder: &Path, head: ObjectId) {
    let Some(repository) = said(Repository::open(folder)) else { return };
    let _ = said(repository.head(None));
    let _ = said(repository.shallow());
    let include = GlobSetBuilder::new().add(Glob::new("**/*.py").unwrap()).build().unwrap();
    let options = Arc::new(MineOptions {
        window: Window { since: i64::MIN, until: i64::MAX },
        merges: true,
        nested: true,
        include,
        max_file_bytes: 1 << 16,
        jobs: 1,
    });
    let interrupt = AtomicBool::new(false);
    let _ = said(trees(&repository, head, &options, &interrupt));
    let Some(lazy) = said(plan(&repository, head, &options, &interrupt)) else { return };
    assert!(lazy.blobs().is_empty() && lazy.damage().is_none(), "nothing was compared yet");
    let one = mined(repository, lazy, &options);

    let repository = Repository::open(folder).unwrap();
    let before = plan(&repository, head, &options, &interrupt).unwrap();
    if said(before.compare(&repository, &options, &interrupt)).is_none() {
        return;
    }
    assert!(before.blobs().is_sorted_by(|one, next| one < next), "each once, in order");
    let nothing = before.nothing_changed().is_some();
    let _ = said(before.damage().cloned().map_or(Ok(()), Err));
    let other = mined(repository, before, &options);
    assert_eq!(one, other);
    assert!(!nothing || other.iter().flatten().all(|piece| piece.methods.is_empty()), "{other:?}");
}

/// The results of each piece; `None` of one that ends with an error.
fn mined(
    repository: Repository,
    plan: MinePlan,
    options: &Arc<MineOptions>,
) -> Vec<Option<Checked>> {
    let pieces = plan.pieces();
    let mining = Mining::new(repository, plan, Arc::clone(options));
    let interrupt = AtomicBool::new(false);
    let piece = |piece| {
        let mut checked = Checked::default();
        said(mining.mine(piece, &mut checked, &interrupt, &|_| ())).map(|()| checked)
    };
    (0..pieces).map(piece).collect()
}
