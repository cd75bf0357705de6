//! HTTP clients, set up in one place.

use std::time::Duration;

/// The `User-Agent` of every request that needs no other: `galeras/VERSION`.
pub const AGENT: &str = concat!("galeras/", env!("CARGO_PKG_VERSION"));

/// How long to wait for a connection: the name lookup, TCP and TLS.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a server may be silent within an answer.
pub const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// A builder of HTTP clients that names itself `agent`, waits at most `connect` for a connection
/// and, if `read` is given, at most as long for each next piece of an answer. Without `read`, the
/// caller has to end requests.
///
/// Proxies are those of the environment (`HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`);
/// certificates are checked against those of the system. The caller adds what its protocol
/// needs (headers, redirects, pools) and builds the client, which fails if TLS cannot be set up.
pub fn http_builder(
    agent: &str,
    connect: Duration,
    read: Option<Duration>,
) -> reqwest::ClientBuilder {
    let builder = reqwest::Client::builder().user_agent(agent).connect_timeout(connect);
    match read {
        Some(read) => builder.read_timeout(read),
        None => builder,
    }
}

/// How many redirects are followed.
const REDIRECTS: usize = 10;

/// Follows redirects that `check` accepts, at most ten in a row. It is given the URL that redirects
/// and the one that it redirects to; the request fails with the error that it returns.
pub fn redirects_to(
    check: impl Fn(&str, &str) -> Result<(), String> + Send + Sync + 'static,
) -> reqwest::redirect::Policy {
    reqwest::redirect::Policy::custom(move |attempt| {
        if attempt.previous().len() > REDIRECTS {
            return attempt.error("it redirects too often");
        }
        let from = attempt.previous().last().map_or("", |url| url.as_str());
        match check(from, attempt.url().as_str()) {
            Ok(()) => attempt.follow(),
            Err(why) => attempt.error(why),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;
    use crate::causes;

    /// A server that answers its first request with half of a body, and is silent then.
    fn silent_server() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 4096];
            let length = stream.read(&mut request).unwrap();
            let request = String::from_utf8_lossy(&request[..length]).to_lowercase();
            let agent = request.contains("user-agent: tests/1");
            let status = if agent { "200 OK" } else { "400 Bad Request" };
            let head = format!("HTTP/1.1 {status}\r\ncontent-length: 10\r\n\r\nhalf!");
            stream.write_all(head.as_bytes()).unwrap();
            // Until the client goes away.
            let _ = stream.read(&mut [0]);
        });
        address
    }

    #[tokio::test]
    async fn a_silent_server_is_given_up() {
        let builder =
            http_builder("tests/1", CONNECT_TIMEOUT, Some(Duration::from_millis(100))).no_proxy();
        let mut response = builder.build().unwrap().get(silent_server()).send().await.unwrap();
        assert_eq!(response.status(), 200, "the agent is sent");
        assert_eq!(response.chunk().await.unwrap().unwrap().as_ref(), b"half!");
        let error = response.chunk().await.unwrap_err();
        assert!(error.is_timeout(), "{}", causes(&error));
    }
}
