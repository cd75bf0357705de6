//! The work on one repository: opens or fetches it, then mines it in pieces.
//!
//! Fetching waits for a network, so several repositories are fetched at a time; mining uses a
//! thread for each piece.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use arrow::array::RecordBatch;
use futures::future::BoxFuture;
use galeras_git::ObjectId;
use tokio::sync::mpsc;

use super::super::patterns::suffixes;
use super::super::repository_access::{blocking, check_consent, check_places, open};
use super::columns::Batches;
use galeras_base::digest::Digest;
use galeras_git::{
    Activity, Fetcher, GitError, GitErrorKind, MineOptions, MinePlan, Mining, Network, Repository,
    RepositoryLocation, guarded, plan, remote_head, trees,
};
use galeras_net::secret_in;
use galeras_operator::worker_threads::StopOnDrop;
use galeras_operator::{Consent, FanOutError, FanOutWork, LowerContext, Tell, redirect_check};

const SAY_COMMITS: usize = 64;

pub(super) struct Task {
    pub(super) repo: String,
    pub(super) address: String,
    /// The commit to walk history from.
    pub(super) head: String,
    /// A branch to use instead of `head`.
    pub(super) branch: Option<String>,
    pub(super) options: Arc<MineOptions>,
    /// The patterns of `include` as written.
    pub(super) patterns: String,
}

/// A repository with all needed objects, and the commits to mine.
type Ready = (Repository, MinePlan);

struct MiningWork {
    task: Arc<Task>,
    mining: Arc<Mining>,
    cut: Digest,
    mined: Arc<AtomicUsize>,
    say: Say,
    tell: Arc<dyn Fn(Tell) + Send + Sync>,
    /// The warning that no file matched was sent.
    warned: AtomicBool,
    folder: bool,
}

/// Reports progress for the repository, a wait, or a warning.
type Say = Arc<dyn Fn(&str, fn(String) -> Tell) + Send + Sync>;

impl Task {
    /// The reason why the repository may not be read.
    pub(super) fn refusal(&self, cx: &LowerContext) -> Option<FanOutError> {
        let checked = self.location(cx).and_then(|location| {
            let checked = check_places(&location, cx.env.consent.as_ref());
            checked.map_err(|error| failure("fetch", &error, true))
        });
        checked.err()
    }

    /// The location of the repository, if the user agreed to read it. Places that a folder leads to
    /// are checked when it is opened.
    fn location(&self, cx: &LowerContext) -> Result<RepositoryLocation, FanOutError> {
        let failed = |error| failure("fetch", &error, true);
        if let Some(secret) = secret_in(&self.address) {
            let message = format!("the address must not hold {secret}");
            return Err(failed(GitError::new(GitErrorKind::Other, message)));
        }
        let location = RepositoryLocation::parse(&self.address, &cx.base).map_err(failed)?;
        check_consent(&location, cx.env.consent.as_ref()).map_err(failed)?;
        Ok(location)
    }

    /// Opens or fetches the repository and finds its commits.
    pub(super) async fn ready(self, cx: &LowerContext) -> Result<Box<dyn FanOutWork>, FanOutError> {
        let stop = StopOnDrop::default();
        let say: Say = {
            let (tell, repo) = (Arc::clone(&cx.tell), self.repo.clone());
            Arc::new(move |doing: &str, how: fn(String) -> Tell| {
                tell(how(format!("{repo}: {doing}")));
            })
        };
        let task = Arc::new(self);
        let location = task.location(cx)?;
        let folder = matches!(location, RepositoryLocation::Folder(_));
        let ready = {
            let (task, say, stop) = (Arc::clone(&task), Arc::clone(&say), stop.flag());
            let (downloads, consent) = (cx.downloads.clone(), Arc::clone(&cx.env.consent));
            let redirects = redirect_check(Arc::clone(&cx.env.consent));
            blocking(move || match location {
                RepositoryLocation::Folder(folder) => task.open(&folder, consent.as_ref(), &stop),
                RepositoryLocation::Remote(url) => {
                    let name = Digest::of(url.as_bytes()).to_string();
                    let folder = downloads.join("git").join(name);
                    let doing = move |activity: Activity| match activity.warning() {
                        Some(warning) => say(warning, Tell::Warning),
                        None if activity.is_waiting() => say(&described(&activity), Tell::Waiting),
                        None => say(&described(&activity), Tell::Activity),
                    };
                    let doing = Arc::new(doing);
                    let network = Network::new(Arc::clone(&stop), doing, redirects);
                    task.fetch(&url, &folder, &network)
                }
            })
            .await
        };
        let (repository, plan) = ready.map_err(|error| failure("fetch", &error, folder))?;
        let mining = Mining::new(repository, plan, Arc::clone(&task.options));
        let cut = cut(mining.plan());
        let (mining, mined) = (Arc::new(mining), Arc::default());
        let (tell, warned) = (Arc::clone(&cx.tell), AtomicBool::new(false));
        Ok(Box::new(MiningWork { task, mining, cut, mined, say, tell, warned, folder }))
    }

    fn open(
        &self,
        folder: &Path,
        consent: &dyn Consent,
        stop: &AtomicBool,
    ) -> Result<Ready, GitError> {
        guarded(|| {
            let repository = open(folder, consent)?;
            let head = match &self.branch {
                Some(branch) => repository.head(Some(branch))?.commit,
                None => self.head()?,
            };
            let plan = plan(&repository, head, &self.options, stop)?;
            Ok((repository, plan))
        })
    }

    /// Fetches the needed part of a repository, and finds the commits to mine.
    fn fetch(&self, url: &str, folder: &Path, network: &Network) -> Result<Ready, GitError> {
        let head = match &self.branch {
            Some(branch) => remote_head(url, Some(branch), network)?.commit,
            None => self.head()?,
        };
        let fetch = || guarded(|| self.fetch_window(url, folder, head, network));
        match fetch() {
            // The objects of an earlier run may be damaged.
            Err(error) if error.kind == GitErrorKind::Damaged => {
                use std::fs::{remove_dir_all, remove_file};
                let removed =
                    if folder.is_dir() { remove_dir_all(folder) } else { remove_file(folder) };
                removed.map_err(|_| error).and_then(|()| fetch())
            }
            fetched => fetched,
        }
    }

    /// Fetches in stages, each of which determines the next: commits, the trees of those in the
    /// window and of their parents, the files that differ.
    ///
    /// Downloads are verified on arrival, and objects of an earlier run when they are opened, so
    /// that damage is found before any row is made.
    fn fetch_window(
        &self,
        url: &str,
        folder: &Path,
        head: ObjectId,
        network: &Network,
    ) -> Result<Ready, GitError> {
        let stop = &network.interrupt;
        let mut fetcher = Fetcher::open(url, folder, network)?;
        fetcher.commits(head)?;
        let trees = trees(&Repository::open(folder)?, head, &self.options, stop)?;
        fetcher.trees(head, &trees)?;
        let repository = Repository::open(folder)?;
        let plan = plan(&repository, head, &self.options, stop)?;
        plan.compare(&repository, &self.options, stop)?;
        fetcher.files(head, &plan.blobs())?;
        match plan.damage() {
            // For example, a pack is missing. If the server left out a tree, it would do so again.
            Some(damage) if fetcher.is_reused() => Err(damage.clone()),
            // Opened again to include new objects.
            _ => Ok((Repository::open(folder)?, plan)),
        }
    }

    fn head(&self) -> Result<ObjectId, GitError> {
        ObjectId::from_hex(self.head.as_bytes()).map_err(|_| {
            let text = format!("`{}` in head_sha is not a commit id", self.head);
            GitError::new(GitErrorKind::Other, text)
        })
    }

    /// The changed files of the window, if none of them is to be mined: known after all commits
    /// were compared.
    fn nothing_matched(&self, plan: &MinePlan) -> Option<String> {
        let passed_over = plan.nothing_changed().filter(|_| plan.commits() > 0)?;
        let commits = match plan.commits() {
            1 => "the only commit in the window changes no".to_string(),
            n => format!("none of the {n} commits in the window changes a"),
        };
        let there = match passed_over.is_empty() {
            true => String::new(),
            false => format!("; what they change is {}", suffixes(&passed_over)),
        };
        Some(format!(
            "{}: {commits} file that `include` ({}) matches{there}",
            self.repo, self.patterns
        ))
    }
}

impl FanOutWork for MiningWork {
    fn pieces(&self) -> u32 {
        u32::try_from(self.mining.plan().pieces()).unwrap_or(u32::MAX)
    }

    fn cut(&self) -> Digest {
        self.cut
    }

    fn expand(
        &self,
        piece: u32,
        out: mpsc::Sender<RecordBatch>,
    ) -> BoxFuture<'_, Result<(), FanOutError>> {
        Box::pin(async move {
            let stop = StopOnDrop::default();
            let flag = stop.flag();
            let (mining, mined) = (Arc::clone(&self.mining), Arc::clone(&self.mined));
            let say = Arc::clone(&self.say);
            let sink = Batches::new(&self.task.repo, &self.task.head, out);
            let mut sink = sink.map_err(|error| failure("mine", &error, self.folder))?;
            let work = move || {
                let total = mining.plan().commits();
                let done = |commits| {
                    let before = mined.fetch_add(commits, Ordering::Relaxed);
                    if before.is_multiple_of(SAY_COMMITS) {
                        say(&format!("mining commit {} of {total}", before + 1), Tell::Activity);
                    }
                };
                mining.mine(piece as usize, &mut sink, &flag, &done)
            };
            let _stop = stop;
            blocking(work).await.map_err(|error| {
                // A repository that is too large is rejected as a whole, at any point.
                let rule = if error.kind == GitErrorKind::Limit { "fetch" } else { "mine" };
                failure(rule, &error, self.folder)
            })?;
            if let Some(warning) = self.task.nothing_matched(self.mining.plan())
                && !self.warned.swap(true, Ordering::Relaxed)
            {
                (self.tell)(Tell::Warning(warning));
            }
            Ok(())
        })
    }
}

/// A digest of all pieces' commits, so that pieces of another history or another split differ.
fn cut(plan: &MinePlan) -> Digest {
    let mut ids = Vec::with_capacity(20 * plan.commits());
    for piece in 0..plan.pieces() {
        let before = ids.len();
        plan.piece_ids(piece).for_each(|id| ids.extend_from_slice(id.as_slice()));
        ids.extend_from_slice(&((ids.len() - before) as u64).to_le_bytes());
    }
    Digest::of(&ids)
}

/// The error that ends the work on a repository. A problem with a folder may be fixed at any time,
/// and a retry costs little.
fn failure(rule: &'static str, error: &GitError, folder: bool) -> FanOutError {
    let passes = matches!(
        error.kind,
        GitErrorKind::Transient | GitErrorKind::Interrupted | GitErrorKind::NotAgreed
    );
    FanOutError { rule, reason: error.message.clone(), retry: passes || folder }
}

fn described(activity: &Activity) -> String {
    let Activity { what, bytes, objects, detail } = activity;
    match (*what, detail) {
        ("waiting", Some(why)) => format!("waiting: {why}"),
        (what, _) if *objects > 0 || *bytes > 0 => {
            format!("fetching {what}, {objects} objects, {:.1} MB", *bytes as f64 / 1e6)
        }
        (what, Some(detail)) => format!("fetching {what}: {detail}"),
        (what, None) => format!("fetching {what}"),
    }
}
