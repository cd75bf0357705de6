//! Octocrab over HTTP/1 and TLS, with the headers of every request.
//!
//! Built from octocrab's parts, because its builder sends `User-Agent: octocrab` in addition to ours.

use std::sync::Arc;

use http::header::{ACCEPT, HeaderValue, USER_AGENT};
use http_body_util::Limited;
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use octocrab::service::middleware::auth_header::AuthHeaderLayer;
use octocrab::service::middleware::extra_headers::ExtraHeadersLayer;
use octocrab::{AuthState, Octocrab, OctocrabBuilder};
use rustls::crypto::CryptoProvider;
use tower::util::MapResponseLayer;
use url::Url;

use super::error::GithubError;
use galeras_net::{AGENT, CONNECT_TIMEOUT, Secret, causes};

/// Returns a client that sends `token` to the host and port of `base` only, and reads at most
/// `max_answer` bytes of an answer. Needs a tokio runtime.
pub(super) fn octocrab(
    base: &Url,
    token: Option<&Secret>,
    max_answer: usize,
) -> Result<Octocrab, GithubError> {
    let failed = |why: &str| GithubError::other(format!("cannot set up HTTPS: {why}"));
    // rustls panics if it has to choose among several.
    let provider = CryptoProvider::get_default()
        .cloned()
        .unwrap_or_else(|| Arc::new(rustls::crypto::ring::default_provider()));
    let mut tcp = HttpConnector::new();
    tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
    // The connector around it checks the scheme.
    tcp.enforce_http(false);
    let connector = HttpsConnectorBuilder::new()
        .with_provider_and_native_roots(provider)
        .map_err(|e| failed(&causes(&e)))?
        .https_or_http()
        .enable_http1()
        .wrap_connector(tcp);
    let client = Client::builder(TokioExecutor::new()).build(connector);
    // Octocrab adds `X-GitHub-Api-Version`.
    let headers = vec![
        (ACCEPT, HeaderValue::from_static("application/vnd.github+json")),
        (USER_AGENT, HeaderValue::from_static(AGENT)),
    ];
    let authorization = match token {
        // Without the error of the parse, which might quote the token.
        Some(token) => Some(
            format!("Bearer {}", token.expose())
                .parse()
                .map_err(|_| failed("the token cannot be sent"))?,
        ),
        None => None,
    };
    let home = || {
        let origin = base.origin().ascii_serialization();
        origin.parse().map_err(|_| failed("the address of the API is invalid"))
    };
    let built = OctocrabBuilder::new_empty()
        .with_service(client)
        .with_layer(&MapResponseLayer::new(move |answer: http::Response<_>| {
            answer.map(|body| Limited::new(body, max_answer))
        }))
        .with_layer(&ExtraHeadersLayer::new(Arc::new(headers)))
        // The second address is for uploads.
        .with_layer(&AuthHeaderLayer::new(authorization, home()?, home()?))
        .with_auth(AuthState::None)
        .build();
    match built {
        Ok(octocrab) => Ok(octocrab),
        Err(never) => match never {},
    }
}
