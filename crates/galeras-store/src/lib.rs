//! The store of results: content-addressed tables, the manifests that say what they are,
//! the records of runs, and the locks between those who share it.
//!
//! A result is found by its key, the digest of everything that can change it. Blobs are
//! written to a temporary file, made durable and renamed; the manifest comes last, so that
//! whatever a manifest names is there. What is missing or damaged is a miss, not an error, and
//! nothing is used before it was compared with its digest.
//! A folder, however often its writers were killed, is always in a state to go on from.
//!
//! Does not live here: what a key is made of and when a result is reused (`runner`), what is
//! in the tables (`operators`).

mod answer;
mod backend;
mod blob;
mod bucket;
mod content_store;
mod contents;
mod descendants;
mod error;
mod exchange;
mod gc;
mod journal;
mod lease;
mod links;
mod local;
mod location;
mod lock;
#[cfg(any(feature = "gcs", feature = "s3"))]
mod machine_account;
mod manifest;
mod object;
mod output_record;
mod own_name;
mod parquet_check;
mod record;
mod sealed;
mod server;
mod shape;
mod signed;
mod soundness;
mod spending;
mod ssh_keygen;
mod table_file;
mod tables;
#[cfg(test)]
mod tests;
mod time;
mod verified;
mod verify;
mod work;

pub use blob::BlobWriter;
pub use content_store::Store;
pub use contents::StoreUsage;
pub use descendants::Forgotten;
pub use error::{StoreError, StoreErrorKind};
pub use exchange::{CopyError, Offer};
pub use gc::{GcPolicy, GcReport};
pub use journal::{AnswerJournal, JournalEntry};
pub use links::{refuse_link, refuse_links};
pub use location::{STORE_FOLDERS, StoreLocation, private_folder};
pub use lock::LockGuard;
pub use manifest::{
    FORMAT_VERSION, MANIFEST_VERSION, Manifest, ManifestLabels, MemoPart, PortArtifact, Preimage,
    RecipeParts,
};
pub use output_record::{OutputOrigin, OutputRecord};
pub use parquet_check::{
    MAX_COLUMN_DEPTH, MAX_COLUMNS, check_footer, check_parquet, too_many_columns, two_columns,
};
pub use parquet_check::{check_whole_footer, footer_range};
pub use record::{RunRecord, RunSettings};
pub use shape::TableShape;
pub use signed::{SignatureState, StoredManifest};
pub use soundness::{BlobState, VerifyLevel};
pub use spending::SpendingLedger;
pub use ssh_keygen::{
    AllowedSigners, AllowedSignersError, SIGNATURE_NAMESPACE, Signature, SignatureError,
    SignatureFile, SignatureRefusal, SignerKey, SigningKey, SigningKeyError, SshKeygenError,
};
pub use table_file::TableFile;
pub use time::timestamp;
pub use verify::{Finding, FindingKind};
