//! The store of results: content-addressed tables, their manifests, the records of runs, and the
//! locks between the processes that share it.
//!
//! A result is found by its key, the digest of everything that can change it. Blobs are written to
//! a temporary file, made durable and renamed; the manifest is written last, so that the blobs in a
//! manifest exist. Missing and damaged objects are a miss, not an error, and nothing is used before
//! it was compared with its digest. A folder can be used again after its writers were killed at any
//! time.

mod backend;
mod blob;
mod blob_check;
#[cfg(any(feature = "gcs", feature = "s3"))]
mod cloud;
mod content_store;
mod error;
mod gc;
mod integrity;
mod job_objects;
mod journal;
mod local_files;
mod location;
mod lock;
mod log_lines;
mod manifest;
mod manifest_signatures;
mod object_name;
mod output_record;
mod parquet_check;
mod project_store;
mod run_record;
mod server;
mod server_error;
mod spending;
mod ssh_keygen;
mod table_file;
mod table_shape;
#[cfg(test)]
mod tests;
mod transfer;
mod verify;

pub use blob::BlobWriter;
pub use blob_check::{BlobState, VerifyLevel};
pub use content_store::{Store, StoreUsage};
pub use error::{StoreError, StoreErrorKind};
pub use gc::{GcPolicy, GcReport};
pub use journal::{AnswerJournal, JournalEntry};
pub use local_files::{refuse_link, refuse_links};
pub use location::{STORE_FOLDERS, StoreLocation, private_folder};
pub use lock::LockGuard;
pub use manifest::{
    FORMAT_VERSION, MANIFEST_VERSION, Manifest, ManifestLabels, MemoPart, PortArtifact, Preimage,
    RecipeParts,
};
pub use manifest_signatures::{SignatureState, StoredManifest};
pub use output_record::{OutputOrigin, OutputRecord};
pub use parquet_check::{
    MAX_COLUMN_DEPTH, MAX_COLUMNS, check_footer, check_parquet, check_whole_footer, footer_range,
    too_many_columns, two_columns,
};
pub use project_store::default_store;
pub use run_record::{RunRecord, RunSettings, timestamp};
pub use spending::SpendingLedger;
pub use ssh_keygen::{
    AllowedSigners, AllowedSignersError, SIGNATURE_NAMESPACE, Signature, SignatureError,
    SignatureFile, SignatureRefusal, SignerKey, SigningKey, SigningKeyError, SshKeygenError,
};
pub use table_file::TableFile;
pub use table_shape::TableShape;
pub use transfer::{CopyError, Offer};
pub use verify::{Finding, FindingKind, ForgottenResults};
