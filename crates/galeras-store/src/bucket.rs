//! Small and large objects by name in a bucket, or wherever else objects are: on a web server, in
//! memory.
//!
//! A put is atomic. What two may put at a time is put under a condition, where the server can do that:
//! only if nothing is there, or only if what is there is what was read.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path as ObjectPath;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode, PutPayload, UpdateVersion};
use tokio::task::JoinHandle;

use super::answer::ServerFailure;
use super::error::StoreError;
use super::object::{MAX_SMALL, ObjectEntry};
use galeras_base::error_chain;

pub(super) struct BucketBackend {
    pub(super) objects: Arc<dyn ObjectStore>,
    root: ObjectPath,
    /// The location of the store, for messages.
    place: String,
    /// What gives leases back.
    pub(super) releases: Mutex<Vec<JoinHandle<()>>>,
}

/// What came of a put under a condition.
pub(super) enum ConditionalPut {
    /// It is there, in this version.
    Done(UpdateVersion),
    /// The condition did not hold.
    Refused,
    /// The server knows no such puts.
    Unknown,
}

impl BucketBackend {
    pub(super) fn new(objects: Arc<dyn ObjectStore>, root: ObjectPath, location: &str) -> Self {
        let place = location.trim_end_matches('/').to_string();
        Self { objects, root, place, releases: Mutex::default() }
    }

    /// Where an object is in [`Self::objects`].
    pub(super) fn path(&self, name: &str) -> ObjectPath {
        below(&self.root, name)
    }

    /// The error of an operation on an object.
    pub(super) fn failed(
        &self,
        operation: &str,
        name: &str,
        error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> StoreError {
        let place = &self.place;
        match name {
            "" => StoreError::of(operation, place, error),
            _ => StoreError::of(operation, format!("{place}/{name}"), error),
        }
    }

    /// The content of an object, or `None` if it is not there.
    pub(super) async fn read(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.read_version(name).await?.map(|(bytes, _)| bytes))
    }

    /// The content of an object and which version of it that is.
    pub(super) async fn read_version(
        &self,
        name: &str,
    ) -> Result<Option<(Vec<u8>, UpdateVersion)>, StoreError> {
        let failed = |error| self.failed("read", name, error);
        let object = match self.objects.get(&self.path(name)).await {
            Ok(object) => object,
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let about = &object.meta;
        let version = UpdateVersion { e_tag: about.e_tag.clone(), version: about.version.clone() };
        // Never as much memory as the server says that it takes.
        let (mut bytes, mut chunks) = (Vec::new(), object.into_stream());
        while let Some(chunk) = chunks.try_next().await.map_err(failed)? {
            let room = MAX_SMALL as usize - bytes.len();
            bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if chunk.len() > room {
                break;
            }
        }
        Ok(Some((bytes, version)))
    }

    /// An object as it comes; `None` if it is not there.
    pub(super) async fn chunks(
        &self,
        name: &str,
    ) -> Result<Option<BoxStream<'static, object_store::Result<Bytes>>>, StoreError> {
        match self.objects.get(&self.path(name)).await {
            Ok(object) => Ok(Some(object.into_stream())),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed("read", name, error)),
        }
    }

    /// Writes an object, or replaces it: whole or not at all.
    pub(super) async fn write(
        &self,
        name: &str,
        bytes: impl Into<PutPayload>,
    ) -> Result<(), StoreError> {
        let put = self.objects.put(&self.path(name), bytes.into()).await;
        put.map(|_| ()).map_err(|error| self.failed("write", name, error))
    }

    /// Writes an object if nothing is there (`PutMode::Create`), or if what is there is still this
    /// version (`PutMode::Update`).
    pub(super) async fn write_if(
        &self,
        name: &str,
        bytes: impl Into<PutPayload>,
        condition: PutMode,
    ) -> Result<ConditionalPut, StoreError> {
        let replaces = matches!(condition, PutMode::Update(_));
        let put = self.objects.put_opts(&self.path(name), bytes.into(), condition.into()).await;
        match put {
            Ok(put) => Ok(ConditionalPut::Done(put.into())),
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => {
                Ok(ConditionalPut::Refused)
            }
            // What was to be replaced is gone.
            Err(Error::NotFound { .. }) if replaces => Ok(ConditionalPut::Refused),
            Err(Error::NotImplemented { .. } | Error::NotSupported { .. }) => {
                Ok(ConditionalPut::Unknown)
            }
            Err(error) if is_unknown(&error) => Ok(ConditionalPut::Unknown),
            Err(error) => Err(self.failed("write", name, error)),
        }
    }

    /// The size of an object; `None` if it is not there.
    pub(super) async fn size(&self, name: &str) -> Result<Option<u64>, StoreError> {
        match self.objects.head(&self.path(name)).await {
            Ok(about) => Ok(Some(about.size)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed("read", name, error)),
        }
    }

    /// Removes an object; says whether it was there. Looks first: who may not remove anything can
    /// still be sure that nothing is there.
    pub(super) async fn remove(&self, name: &str) -> Result<bool, StoreError> {
        match self.size(name).await? {
            None => Ok(false),
            Some(_) => self.delete(name).await,
        }
    }

    /// Removes an object that is most likely there; says whether it was, where the server tells.
    pub(super) async fn delete(&self, name: &str) -> Result<bool, StoreError> {
        match self.objects.delete(&self.path(name)).await {
            Ok(()) => Ok(true),
            Err(Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(self.failed("remove", name, error)),
        }
    }

    /// Removes objects that were listed, many with one request where the server can do that; the
    /// number of those that were removed.
    pub(super) async fn remove_all(&self, names: Vec<String>) -> Result<u64, StoreError> {
        let paths: Vec<_> = names.iter().map(|name| Ok(self.path(name))).collect();
        let mut removed = self.objects.delete_stream(futures::stream::iter(paths).boxed());
        let mut count = 0;
        while let Some(result) = removed.next().await {
            match result {
                Ok(_) => count += 1,
                Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(self.failed("remove", "", error)),
            }
        }
        Ok(count)
    }

    /// The objects below `prefix`, in no order.
    pub(super) async fn list(&self, prefix: &str) -> Result<Vec<ObjectEntry>, StoreError> {
        let listing = self.objects.list(Some(&self.path(prefix))).map_ok(|about| ObjectEntry {
            name: inside(&self.root, &about.location),
            bytes: about.size,
            modified: about.last_modified.into(),
        });
        let listing: Result<Vec<_>, _> = listing.try_collect().await;
        listing.map_err(|error| self.failed("list", prefix, error))
    }
}

fn is_unknown(error: &Error) -> bool {
    let failure = error_chain::chain(error).find_map(|error| error.downcast_ref::<ServerFailure>());
    failure.is_some_and(ServerFailure::is_unknown_request)
}

/// The object called `name` below `root`.
pub(super) fn below(root: &ObjectPath, name: &str) -> ObjectPath {
    name.split('/').filter(|part| !part.is_empty()).fold(root.clone(), ObjectPath::join)
}

fn inside(root: &ObjectPath, path: &ObjectPath) -> String {
    path.as_ref()
        .strip_prefix(root.as_ref())
        .unwrap_or(path.as_ref())
        .trim_start_matches('/')
        .to_string()
}
