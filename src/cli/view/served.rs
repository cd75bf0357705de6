//! State shared by all handlers of the server, and the frame of every page.

use std::sync::Arc;

use galeras_pages::PageLink;
use galeras_pages::view::ViewFrame;
use tokio_util::sync::CancellationToken;

use super::guard::Guard;
use super::study::{Snapshot, Study};

/// State shared by all handlers.
#[derive(Clone)]
pub(super) struct Served {
    pub(super) study: Arc<Study>,
    pub(super) cancel: CancellationToken,
    pub(super) guard: Arc<Guard>,
}

impl Served {
    /// The frame of a page; `current` is the address of the page in the list of pages.
    pub(super) fn frame(&self, snapshot: &Snapshot, current: &str) -> ViewFrame {
        let footer = format!(
            "{} in {}, galeras {}",
            self.study.file().display(),
            self.study.store.location(),
            env!("CARGO_PKG_VERSION")
        );
        ViewFrame { study: snapshot.plan.name.clone(), links: links(current), footer }
    }
}

/// The links of every page.
pub(super) fn links(current: &str) -> Vec<PageLink> {
    let pages = [("/", "Steps"), ("/review", "Review"), ("/runs", "Runs")];
    let link = |(address, text): (&str, &str)| PageLink {
        address: address.to_string(),
        text: text.to_string(),
        current: address == current,
    };
    pages.into_iter().map(link).collect()
}
