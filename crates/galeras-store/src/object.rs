//! What there is to say of a stored object without reading it.

use std::time::SystemTime;

/// The most bytes of a small object: a manifest that names a million tables. Of more only the
/// beginning is read, which is not what its own digest says.
pub(super) const MAX_SMALL: u64 = 64 << 20;

/// A stored object in a listing.
#[derive(Clone, Debug)]
pub(super) struct ObjectEntry {
    /// Its name within the store, with `/`.
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) modified: SystemTime,
}
