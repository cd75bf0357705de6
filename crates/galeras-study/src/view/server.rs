//! The routes of the server, and the rules for every request and answer.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Query, Request, State};
use axum::http::{HeaderValue, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures::{Stream, stream};
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::answer::{Refusal, Served, html};
use super::guard::{Admission, Guard};
use super::study::Study;
use super::{review, row, runs, steps, table};

/// The most bytes of a request's body: an answer with its note.
const MAX_BODY: usize = 64 << 10;

/// The time that open requests get when the server ends.
const GRACE: Duration = Duration::from_secs(2);

/// Serves requests until it is cancelled.
///
/// # Errors
/// If connections cannot be accepted any more.
pub async fn serve(
    listener: TcpListener,
    guard: Guard,
    study: Arc<Study>,
    cancel: CancellationToken,
) -> io::Result<()> {
    let served = Served { study, cancel: cancel.clone(), guard: Arc::new(guard) };
    let served = axum::serve(listener, routes(served))
        .with_graceful_shutdown(cancel.clone().cancelled_owned())
        .into_future();
    tokio::select! {
        ended = served => ended,
        () = async { cancel.cancelled().await; tokio::time::sleep(GRACE).await } => Ok(()),
    }
}

fn routes(served: Served) -> Router {
    Router::new()
        .route("/", get(steps::steps))
        .route("/events", get(events))
        .route("/table", get(table::table))
        .route("/row", get(row::row))
        .route("/runs", get(runs::runs))
        .route("/diff", get(runs::diff))
        .route("/review", get(review::start))
        .route("/review/rate", get(review::point).post(review::rate))
        .route("/review/undo", post(review::undo))
        .route("/review/agreement", get(review::agreement))
        .fallback(nothing)
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(from_fn_with_state(served.clone(), guarded))
        .with_state(served)
}

async fn nothing() -> Response {
    Refusal::missing("There is no such page.").into_response()
}

/// Lets permitted requests through, and adds the headers that restrict browsers to every answer.
async fn guarded(State(served): State<Served>, request: Request, next: Next) -> Response {
    let query = request.uri().query().unwrap_or_default();
    let admission = served.guard.admit(request.method(), query, request.headers());
    let mut response = match admission {
        Admission::Admitted => next.run(request).await,
        Admission::Welcome => welcome(&served.guard),
        Admission::Refused(status, why) => (status, format!("{why}\n")).into_response(),
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "same-origin"),
        // The hash in the page names the script that may run.
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'self' 'unsafe-inline' data:; frame-ancestors 'none'; base-uri 'none'; \
             object-src 'none'; form-action 'self'",
        ),
        (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Sets the cookie, and sends the browser to the first page from a page: a
/// `Strict` cookie would not be sent after a redirect that began on another site.
fn welcome(guard: &Guard) -> Response {
    let page = "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
                <link rel=\"icon\" href=\"data:,\">\
                <meta http-equiv=\"refresh\" content=\"0; url=/\"><title>Galeras</title></head>\
                <body><p><a href=\"/\">Go on</a></p></body></html>";
    ([(header::SET_COOKIE, guard.cookie())], html(page.to_string())).into_response()
}

/// The interval between checks of the store while a page is open.
const EVERY: Duration = Duration::from_millis(700);

/// The subject of the page that asks.
#[derive(Deserialize)]
struct EventsQuery {
    /// The state of the study when the page was made: later changes are sent at once.
    mark: String,
}

/// A stream with an event `change` for every change of the study's pages.
async fn events(
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
