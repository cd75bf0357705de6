//! What leaves the machine for strangers, and what comes from them: bundles, in which a workflow
//! travels with its results, and folders of data sets.
//!
//! A bundle is one zip file that opens without this program (`bundle`, described by `ro_crate` and
//! `bundle_readme`), of which one changed byte is found (`archive`, `listing`), which holds what it says
//! (`held`), and whose outputs are those of its tables (`shown_again`). Nothing in it says whose machine it was made on (`privacy`). A data set (`dataset`) has the rows that may be
//! handed on (`licences`), a card, Croissant metadata and a citation.
//!
//! Does not live here: the verbs (`cli`), results and how they are computed (`runner`).

mod archive;
mod bundle;
mod bundle_readme;
mod bundle_record;
mod card;
mod citation;
mod croissant;
mod dataset;
mod dataset_model;
mod error;
mod held;
mod licences;
mod listing;
mod opened;
mod privacy;
mod ro_crate;
mod shown_again;
mod table_texts;
mod workflow_files;

pub use bundle::{Bundler, LeftOut};
pub use bundle_readme::REPORT;
pub use bundle_record::{BUNDLE_RECORD, BundleOutput, BundleRecord, BundleStep, BundleTable};
pub use dataset::Publisher;
pub use dataset_model::{Attribution, Dataset, PublishedTable};
pub use error::ShareError;
pub use licences::{Licences, PERMITTED};
pub use listing::{FileProblem, LISTING};
pub use opened::OpenedBundle;
pub use privacy::Privacy;
pub use shown_again::ShownAgain;
pub use workflow_files::copy_workflow;
