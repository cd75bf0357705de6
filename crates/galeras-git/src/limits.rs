//! How much of a repository is read: bounds on the time and memory that a repository can cost.
//!
//! They are far above real repositories (Linux has about 90,000 files), and stop those that are
//! damaged or hostile. The page `docs/limits.md` lists them.

/// The largest object that is read, in bytes: of a blob, a tree or a commit, and of the
/// bases of its deltas.
pub(super) const OBJECT_BYTES: u64 = 256 << 20;

/// The largest commit that is read, in bytes. Each of its rows holds its message.
pub(super) const COMMIT_BYTES: usize = 16 << 20;

/// The longest path, in bytes, as on Linux. Names are not empty, so that folders are at most
/// half as deep.
pub(super) const PATH_BYTES: usize = 4096;

/// Bytes of changed paths that are kept of one repository, with the data of each path.
pub(super) const CHANGED_BYTES: u64 = 1 << 30;

/// Commits of one repository that may be beyond the limits before all of it is given up: each
/// costs seconds.
pub(super) const COMMITS_BEYOND: usize = 64;

/// The references of a server as git lists them, in bytes: two million of them.
pub(super) const ADVERTISED_BYTES: u64 = 128 << 20;

/// The memory of git while it lists the references of a server, in bytes.
pub(super) const REFERENCES_MEMORY: u64 = 512 << 20;

/// The memory of git while it receives a pack, in bytes: enough for 40 million objects.
pub(super) const PACK_MEMORY: u64 = 4 << 30;

/// The most that one command fetches, in bytes.
pub(super) const FETCHED_BYTES: u64 = 64 << 30;

/// The largest file of a folder that names a place or a commit, in bytes: `.git`, `HEAD`,
/// `commondir`, a list of alternates, a reference.
pub(super) const POINTER_BYTES: u64 = 64 << 10;

/// The largest configuration of a folder, in bytes.
pub(super) const CONFIG_BYTES: u64 = 1 << 20;

/// The largest list of references (`packed-refs`) or of cut-off commits (`shallow`) of a folder, in
/// bytes: some four million of them.
pub(super) const LISTED_BYTES: u64 = 256 << 20;

/// References and objects in separate files, in a folder and in those that it leads to.
pub(super) const ENTRIES: u64 = 4_000_000;

/// Folders that a folder borrows objects from (`git clone --shared`).
pub(super) const ALTERNATES: usize = 64;

/// Places outside of a folder that it leads to.
pub(super) const PLACES: usize = 256;

/// The cost of comparing the trees of one commit with those of its parent.
#[derive(Clone, Copy, Debug)]
pub(super) struct TreeLimits {
    /// Entries of trees, those of both commits.
    pub(super) entries: u64,
    /// Bytes of trees, those of both commits.
    pub(super) bytes: u64,
    /// Files of interest that differ.
    pub(super) files: usize,
}

impl TreeLimits {
    /// Those of [`plan`](super::plan).
    pub(super) const DEFAULT: Self = Self { entries: 2_000_000, bytes: 256 << 20, files: 500_000 };
}

/// The cost of pairing the files that one commit deletes and adds, as Git's `diff.renameLimit`.
///
/// A run is a line, or 64 bytes of a longer one.
#[derive(Clone, Copy, Debug)]
pub(super) struct PairLimits {
    /// Pairs of files without an equal one on the other side.
    pub(super) pairs: usize,
    /// Bytes of these files; those beyond are not compared.
    pub(super) bytes: usize,
    /// Runs of these files.
    pub(super) read: usize,
    /// Runs that are kept in memory: the different ones of each file, of the side with fewer files.
    pub(super) kept: usize,
    /// Runs that are in both files of a pair, summed over the pairs.
    pub(super) common: usize,
}

impl PairLimits {
    /// Those of mining: 1,000 files on each side, as in Git, one or two seconds, and some 100 MB.
    pub(super) const DEFAULT: Self = Self {
        pairs: 1_000_000,
        bytes: 256 << 20,
        read: 8_000_000,
        kept: 1_000_000,
        common: 300_000_000,
    };
}
