//! The routes of the server, and the rules for every request and answer.

use std::convert::Infallible;
use std::pin::pin;
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
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::answer::{Refusal, Served, html};
use super::guard::{Admission, Guard};
use super::study::Study;
use super::{report, review, row, runs, steps, table};

/// The most bytes of a request's body: an answer with its note.
const MAX_BODY: usize = 64 << 10;

/// The time that open requests get when the server ends.
const GRACE: Duration = Duration::from_secs(2);

/// The most connections at a time; others wait. Each open page has one for its events.
const CONNECTIONS: usize = 200;

/// How long a client may take to send the head of its request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(3);

/// The wait after a connection could not be accepted, as when too many files are open.
const RETRY: Duration = Duration::from_millis(100);

/// Serves requests until it is cancelled. A connection is for one request, so that none is held open
/// by a client that asks for nothing. `axum::serve` has no such limits.
pub async fn serve(
    listener: TcpListener,
    guard: Guard,
    study: Arc<Study>,
    cancel: CancellationToken,
) {
    let served = Served { study, cancel: cancel.clone(), guard: Arc::new(guard) };
    let service = TowerToHyperService::new(routes(served));
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).keep_alive(false);
    let (slots, connections) = (Arc::new(Semaphore::new(CONNECTIONS)), TaskTracker::new());
    loop {
        let next = async {
            let slot = Arc::clone(&slots).acquire_owned().await;
            (slot, listener.accept().await)
        };
        let (slot, accepted) = tokio::select! {
            next = next => next,
            () = cancel.cancelled() => break,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(RETRY).await;
            continue;
        };
        let connection = server.serve_connection(TokioIo::new(stream), service.clone());
        let cancel = cancel.clone();
        connections.spawn(async move {
            let mut connection = pin!(connection);
            // An error is that of a client, which is gone or was too slow.
            tokio::select! {
                _ = connection.as_mut() => {}
                () = cancel.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    let _ = connection.await;
                }
            }
            drop(slot);
        });
    }
    connections.close();
    let _ = tokio::time::timeout(GRACE, connections.wait()).await;
}

fn routes(served: Served) -> Router {
    Router::new()
        .route("/", get(steps::steps))
        .route("/events", get(events))
        .route("/table", get(table::table))
        .route("/row", get(row::row))
        .route("/report", get(report::report))
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
