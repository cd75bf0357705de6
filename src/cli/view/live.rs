//! Server-sent events: notify a page of changes made by this process or another.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::{Query, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use futures::{Stream, stream};
use serde::Deserialize;

use super::served::Served;

/// The interval between checks of the store while a page is open.
const EVERY: Duration = Duration::from_millis(700);

/// The subject of the page that asks.
#[derive(Deserialize)]
pub(super) struct EventsQuery {
    /// The state of the study when the page was made: later changes are sent at once.
    mark: String,
}

/// A stream with an event `change` for every change of the study's pages.
pub(super) async fn events(
    State(served): State<Served>,
    Query(query): Query<EventsQuery>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let events = stream::unfold((served, query.mark), |(served, known)| async move {
        loop {
            tokio::select! {
                () = served.cancel.cancelled() => return None,
                () = tokio::time::sleep(EVERY) => {}
            }
            // A failed read may succeed the next time.
            let Ok(snapshot) = served.study.snapshot().await else { continue };
            let mark = snapshot.mark();
            if mark != known {
                return Some((Ok(Event::default().event("change").data("1")), (served, mark)));
            }
        }
    });
    Sse::new(events).keep_alive(KeepAlive::new())
}
