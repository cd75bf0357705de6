//! The objects of a repository, as far as they are wanted.
//!
//! What is asked for, in which pieces, and what is asked again.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use gix::ObjectId;

use super::explain::at;
use super::folder::{Extent, Folder};
use super::link::Link;
use super::network::Network;
use super::request::Request;
use super::wire::Wire;
use crate::error::{GitError, GitErrorKind};

/// How many objects are asked for at once, where each is named.
const BATCH: usize = 20_000;

/// How many may be asked for in one request at most. A want has 50 bytes, and servers with
/// git's own HTTP refuse requests of more than 10 MiB.
const MOST: usize = 150_000;

/// What came over the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Bytes, with the protocol around the objects.
    pub bytes: u64,
    /// Objects.
    pub objects: u64,
}

/// Fetches from one repository into one folder, which it keeps for itself while it lives.
pub struct Fetcher {
    url: String,
    net: Network,
    wire: Arc<Wire>,
    folder: Folder,
    link: Option<Link>,
    filters: Option<bool>,
    reused: bool,
    /// [`BATCH`], except in tests.
    pub(super) batch: usize,
}

impl Fetcher {
    /// Opens the bare repository in the folder `dir`, or creates it. The server is not asked yet.
    /// Waits while another process fetches into the folder, and reads the packs that are there
    /// once, to see that they are what was written.
    ///
    /// # Errors
    /// `Interrupted` if the flag is set while waiting, `Damaged` if a pack in the folder is not
    /// what was written or if a folder stands where a file should, `Other` if the file system
    /// fails.
    pub fn open(url: &str, dir: &Path, net: &Network) -> Result<Self, GitError> {
        let wire = Wire::new(net);
        let folder = Folder::open(dir, &wire)?;
        let (url, net) = (url.to_string(), net.clone());
        let reused = folder.has_packs();
        Ok(Self { url, net, wire, folder, link: None, filters: None, reused, batch: BATCH })
    }

    /// The folder: a bare repository. Open it again after fetching, to see new packs.
    pub fn dir(&self) -> &Path {
        self.folder.path()
    }

    /// Whether there were objects in the folder when it was opened: an earlier run's, which the
    /// disk may have changed since.
    pub fn is_reused(&self) -> bool {
        self.reused
    }

    /// Whether the object is in the folder.
    pub fn contains(&self, id: &gix::oid) -> bool {
        self.folder.contains(id)
    }

    /// The server sends parts of a repository on demand, so that [`Self::commits`] and
    /// [`Self::objects`] work.
    ///
    /// # Errors
    /// `Transient` if the network or the server still fails at the last attempt, `Denied` if the
    /// server refuses access, `NotFound` if there is no such repository, `Interrupted` if the
    /// flag is set, `Other` if what answers is not a git server.
    pub fn supports_filter(&mut self) -> Result<bool, GitError> {
        if let Some(filters) = self.filters {
            return Ok(filters);
        }
        let (url, net, wire) = (&self.url, &self.net, &self.wire);
        let link = wire.retry(|| Link::open(url, net, wire))?;
        let filters = link.has_filters();
        self.link = Some(link);
        self.filters = Some(filters);
        Ok(filters)
    }

    /// Fetches all commits that `head` is or comes from, without trees and files. Asks for
    /// nothing if they are there.
    ///
    /// # Errors
    /// `NotFound` if the server does not have `head`, `Damaged` if its pack is corrupt; else as
    /// [`Self::supports_filter`].
    pub fn commits(&mut self, head: ObjectId) -> Result<Received, GitError> {
        self.history(head, Extent::Commits)
    }

    /// Fetches `head` and all it comes from, with all trees and files: for servers without
    /// filters. Asks for nothing if that is there.
    ///
    /// # Errors
    /// As [`Self::commits`].
    pub fn everything(&mut self, head: ObjectId) -> Result<Received, GitError> {
        self.history(head, Extent::Everything)
    }

    /// Fetches those of `ids` that are not in the folder. Without a `filter`, in batches, each of
    /// which stays if a later one fails; with one (`blob:none` for trees and all trees below
    /// them; see `git help rev-list`), in one request unless there are more than 150,000. `what`
    /// names the objects in reports.
    ///
    /// # Errors
    /// `NotFound` if the server does not have an object; else as [`Self::commits`].
    pub fn objects(
        &mut self,
        ids: &[ObjectId],
        filter: Option<&str>,
        what: &'static str,
    ) -> Result<Received, GitError> {
        let mut seen = HashSet::new();
        let missing = ids.iter().filter(|id| !self.folder.contains(id) && seen.insert(**id));
        let missing: Vec<ObjectId> = missing.copied().collect();
        self.wire.begin(what);
        let batch = if filter.is_some() { MOST } else { self.batch };
        for wants in missing.chunks(batch) {
            self.request(&Request { wants, haves: &[], filter })?;
        }
        Ok(self.done())
    }

    fn history(&mut self, head: ObjectId, extent: Extent) -> Result<Received, GitError> {
        let what = match extent {
            Extent::Commits => "commits",
            Extent::Everything => "objects",
        };
        self.wire.begin(what);
        if self.folder.has_tip(extent, &head) {
            return Ok(self.done());
        }
        let haves = self.folder.tips(extent);
        let filter = (extent == Extent::Commits).then_some("tree:0");
        self.request(&Request { wants: &[head], haves: &haves, filter })?;
        self.folder.add_tip(extent, head)?;
        Ok(self.done())
    }

    /// Makes one request, until it works or is not worth another attempt.
    fn request(&mut self, request: &Request<'_>) -> Result<(), GitError> {
        let Self { url, net, wire, folder, link, filters, .. } = self;
        let (_, objects) = wire.counts();
        wire.retry(|| {
            wire.rewind(objects);
            let mut connection = match link.take().filter(Link::is_usable) {
                Some(connection) => connection,
                None => Link::open(url, net, wire)?,
            };
            *filters = Some(connection.has_filters());
            let incoming = folder.empty_incoming()?;
            let outcome = request.run(&mut connection, url, wire, &incoming)?;
            // Only a connection that has worked is used again.
            connection.touch();
            *link = Some(connection);
            folder.adopt(&outcome)
        })?;
        match request.wants.iter().find(|id| !folder.contains(id)) {
            Some(id) => {
                let message = format!("the server did not send the object {id}");
                Err(at(url, GitError::new(GitErrorKind::NotFound, message)))
            }
            None => Ok(()),
        }
    }

    fn done(&self) -> Received {
        self.wire.report(true);
        let (bytes, objects) = self.wire.counts();
        Received { bytes, objects }
    }
}
