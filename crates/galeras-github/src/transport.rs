//! Octocrab over HTTP/1 and TLS, with the headers of every request.
//!
//! Made from octocrab's parts rather than by its own builder, which sends `User-Agent: octocrab`
//! beside any other.

use std::sync::Arc;

use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use octocrab::service::middleware::auth_header::AuthHeaderLayer;
use octocrab::service::middleware::extra_headers::ExtraHeadersLayer;
use octocrab::{AuthState, Octocrab, OctocrabBuilder};
use rustls::crypto::CryptoProvider;
use url::Url;

use super::error::GithubError;
use galeras_net::{AGENT, CONNECT_TIMEOUT, Secret, causes};

/// Sent with every request, besides `X-GitHub-Api-Version`, which octocrab adds.
const HEADERS: &[(&str, &str)] =
    &[("accept", "application/vnd.github+json"), ("user-agent", AGENT)];

/// A client that sends `token` to the host and port of `base` only. Needs a tokio runtime.
///
/// # Errors
/// If the system has no certificates to trust.
pub(super) fn octocrab(base: &Url, token: Option<&Secret>) -> Result<Octocrab, GithubError> {
    let failed = |why: &str| GithubError::other(format!("cannot set up HTTPS: {why}"));
    // Named, because rustls panics if it has to choose among several.
    let provider = CryptoProvider::get_default()
        .cloned()
        .unwrap_or_else(|| Arc::new(rustls::crypto::ring::default_provider()));
    let mut tcp = HttpConnector::new();
    tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
    // The connector around it decides about schemes.
    tcp.enforce_http(false);
    let connector = HttpsConnectorBuilder::new()
        .with_provider_and_native_roots(provider)
        .map_err(|e| failed(&causes(&e)))?
        .https_or_http()
        .enable_http1()
        .wrap_connector(tcp);
    let client = Client::builder(TokioExecutor::new()).build(connector);
    let mut headers = Vec::new();
    for (name, value) in HEADERS {
        let name = name.parse().map_err(|_| failed("a header's name is invalid"))?;
        headers.push((name, value.parse().map_err(|_| failed("a header is invalid"))?));
    }
    let authorization = match token {
        // The error of a failed parse is left out: it might quote.
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
        .with_layer(&ExtraHeadersLayer::new(Arc::new(headers)))
        // The second address is that of uploads.
        .with_layer(&AuthHeaderLayer::new(authorization, home()?, home()?))
        .with_auth(AuthState::None)
        .build();
    match built {
        Ok(octocrab) => Ok(octocrab),
        Err(never) => match never {},
    }
}
