//! Files that leave the machine or come from others: bundles, in which a workflow travels with its
//! results, and folders of data sets.
//!
//! A bundle is one zip file that opens without this program (`bundle`, described by `ro_crate` and
//! `bundle_readme`). It reveals any changed byte (`archive`, `listing`), holds exactly what it
//! lists, and its outputs match its tables (`compare`). It reveals nothing about the
//! machine that made it (`privacy`). A data set (`dataset`) has the rows that may be published
//! (`licences`), a card, Croissant metadata and a citation.

mod archive;
mod bundle;
mod bundle_readme;
mod bundle_record;
mod card;
mod compare;
mod croissant;
mod dataset;
mod error;
mod licences;
mod listing;
mod opened;
mod privacy;
mod ro_crate;
mod workflow_files;

pub use bundle::{Bundler, LeftOut};
pub use bundle_readme::REPORT;
pub use bundle_record::{BUNDLE_RECORD, BundleOutput, BundleRecord, BundleStep, BundleTable};
pub use compare::ShownAgain;
pub use dataset::{Attribution, Dataset, PublishedTable, Publisher};
pub use error::ShareError;
pub use licences::{Licences, PERMITTED};
pub use listing::{FileProblem, LISTING};
pub use opened::OpenedBundle;
pub use privacy::Privacy;
pub use workflow_files::copy_workflow;
