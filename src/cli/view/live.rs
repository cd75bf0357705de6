//! Server-sent events: a page is told when something happened, in this process or another.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures::{Stream, stream};

use super::served::Served;

/// How often the store is looked at while a page is open.
const EVERY: Duration = Duration::from_millis(700);

/// A stream with an event `change` whenever a page of the study would be another one.
pub(super) async fn events(
    State(served): State<Served>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let first: Option<String> = None;
    let events = stream::unfold((served, first), |(served, mut known)| async move {
        loop {
            tokio::select! {
                () = served.cancel.cancelled() => return None,
                () = tokio::time::sleep(EVERY) => {}
            }
            // What cannot be read now may be readable the next time.
            let Ok(snapshot) = served.study.snapshot().await else { continue };
            let mark = snapshot.mark();
            let changed = known.as_ref().is_some_and(|known| *known != mark);
            known = Some(mark);
            if changed {
                return Some((Ok(Event::default().event("change").data("1")), (served, known)));
            }
        }
    });
    Sse::new(events).keep_alive(KeepAlive::new())
}
