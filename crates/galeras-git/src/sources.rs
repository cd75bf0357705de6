//! Versions of Python files: decoded, outlined, and kept while neighbouring commits need them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use gix::ObjectId;
use gix::objs::Kind;

use super::error::{GitErrorKind, Result};
use super::repository::Objects;
use galeras_python::{Outline, ParseError, Pieces, decode_source};

/// Bytes of sources that are kept, in each of two generations.
const KEPT: usize = 48 << 20;
/// Bytes of known statements.
const PIECES: usize = 96 << 20;

/// Why a file is not mined: a rule and the reason.
pub(super) type Refusal = (&'static str, String);

/// One version of a file.
pub(super) struct Source {
    pub(super) text: String,
    outline: OnceLock<Result<Outline, ParseError>>,
}

impl Source {
    /// The methods, found at the first call.
    pub(super) fn outline(&self, sources: &Sources) -> Result<&Outline, Refusal> {
        let outline =
            self.outline.get_or_init(|| sources.pieces.outline(&self.text, sources.nested));
        outline.as_ref().map_err(|error| ("parses", error.to_string()))
    }
}

type Version = Result<Arc<Source>, Refusal>;

/// Versions by content, shared by the threads that mine one repository.
pub(super) struct Sources {
    pieces: Pieces,
    nested: bool,
    max_bytes: u64,
    generations: Mutex<Generations>,
}

/// Versions that were used since the last turn, and those that were used only before it.
#[derive(Default)]
struct Generations {
    young: HashMap<ObjectId, Version>,
    old: HashMap<ObjectId, Version>,
    bytes: usize,
}

impl Generations {
    fn get(&mut self, blob: ObjectId) -> Option<Version> {
        if let Some(version) = self.young.get(&blob) {
            return Some(version.clone());
        }
        let version = self.old.remove(&blob)?;
        self.put(blob, version.clone());
        Some(version)
    }

    fn put(&mut self, blob: ObjectId, version: Version) {
        // An outline takes about as much as the text that it was made of.
        self.bytes += version.as_ref().map_or(64, |source| 2 * source.text.len() + 256);
        self.young.insert(blob, version);
        if self.bytes > KEPT {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
    }
}

impl Sources {
    /// Versions of at most `max_bytes` each; outlines with functions inside of functions or
    /// without.
    pub(super) fn new(max_bytes: u64, nested: bool) -> Self {
        Self { pieces: Pieces::new(PIECES), nested, max_bytes, generations: Mutex::default() }
    }

    /// The version with that content, or why it cannot be mined.
    pub(super) fn get(&self, objects: &mut Objects, blob: ObjectId) -> Result<Version> {
        let known = || self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(version) = known().get(blob) {
            return Ok(version);
        }
        let version = match self.read(objects, blob) {
            Ok(version) => version,
            Err(error) if error.kind == GitErrorKind::Interrupted => return Err(error),
            Err(error) => Err(("object", error.to_string())),
        };
        known().put(blob, version.clone());
        Ok(version)
    }

    fn read(&self, objects: &mut Objects, blob: ObjectId) -> Result<Version> {
        let size = objects.size(blob)?;
        if size > self.max_bytes {
            let (size, limit) = (size.div_ceil(1024), self.max_bytes / 1024);
            let reason = format!("{size} KB are more than max_file_kb: {limit}");
            return Ok(Err(("size", reason)));
        }
        let bytes = objects.bytes(blob, Kind::Blob)?;
        Ok(match decode_source(bytes) {
            Ok(decoded) => Ok(Arc::new(Source { text: decoded.text, outline: OnceLock::new() })),
            Err(error) => Err(("decodes", error.to_string())),
        })
    }
}
