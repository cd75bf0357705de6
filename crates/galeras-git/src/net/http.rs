//! Git's HTTP on top of the async HTTP client that the rest of the program uses.
//!
//! GET and POST as gix-transport wants them, redirects, and a body that is read piece by piece.

use std::any::Any;
use std::io::{self, BufRead, Cursor, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use galeras_net::CONNECT_TIMEOUT;
use gix_transport::client::blocking_io::http::{GetResponse, Http, PostBodyDataKind, PostResponse};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue, LOCATION, USER_AGENT};
use reqwest::{Client, Method, Response, Url};
use tokio::runtime::Handle;

use super::answer::{accepted, failed};
use super::network::{AGENT, Network, RedirectCheck};
use super::wire::Wire;
use crate::error::{GitError, GitErrorKind};

/// How many redirects are followed.
const REDIRECTS: usize = 10;

/// The slowest upload of a request that is waited for (bytes per second).
const UPLOAD: u64 = 20_000;

/// The HTTP of one connection to a repository.
pub(super) struct Web {
    handle: Handle,
    client: Client,
    redirects: Arc<RedirectCheck>,
    wire: Arc<Wire>,
    base: Option<String>,
}

impl Web {
    pub(super) fn new(net: &Network, wire: &Arc<Wire>) -> Self {
        let (handle, client) = (net.handle.clone(), net.client.clone());
        let (redirects, wire) = (Arc::clone(&net.redirects), Arc::clone(wire));
        Self { handle, client, redirects, wire, base: None }
    }

    /// Sends a GET and follows its redirects. Notes the base of the address it ends at.
    fn fetch(
        &mut self,
        url: &str,
        base: &str,
        mut headers: HeaderMap,
    ) -> Result<Response, GitError> {
        let tail = url.strip_prefix(base).unwrap_or_default();
        let mut at = address(url)?;
        for hop in 0..=REDIRECTS {
            let response = self.send(Method::GET, at.clone(), headers.clone(), None)?;
            if !response.status().is_redirection() {
                if hop > 0 {
                    let base = at.as_str().strip_suffix(tail);
                    let base = base.ok_or_else(|| elsewhere("to something else than git"))?;
                    self.base = Some(base.to_string());
                }
                return accepted(response);
            }
            let target = response.headers().get(LOCATION).and_then(|to| to.to_str().ok());
            let target = target.and_then(|to| at.join(to).ok());
            let target = target.ok_or_else(|| elsewhere("without saying where to"))?;
            let safe =
                target.scheme() == "https" || (target.scheme() == "http" && at.scheme() == "http");
            if !safe {
                return Err(elsewhere("to an address without encryption"));
            }
            let target = bare(target);
            (self.redirects)(at.as_str(), target.as_str())
                .map_err(|why| GitError::new(GitErrorKind::NotAgreed, why))?;
            if target.origin() != at.origin() {
                headers.remove(AUTHORIZATION);
            }
            at = target;
        }
        Err(elsewhere("too often"))
    }

    fn send(
        &self,
        method: Method,
        url: Url,
        headers: HeaderMap,
        body: Option<Vec<u8>>,
    ) -> Result<Response, GitError> {
        self.wire.check()?;
        let mut request = self.client.request(method.clone(), url.clone()).headers(headers);
        let silence = self.wire.silence();
        let mut limit = CONNECT_TIMEOUT.min(silence) + silence;
        if let Some(body) = body {
            limit += Duration::from_secs(body.len() as u64 / UPLOAD);
            request = request.body(body);
        }
        let wait = self.wire.wait(request.send(), limit);
        let response = self.handle.block_on(wait)?.map_err(failed);
        // The path only: user, password and query may hold secrets.
        tracing::debug!(
            %method,
            host = url.host_str(),
            path = url.path(),
            status = response.as_ref().ok().map(|response| response.status().as_u16()),
            "git request"
        );
        response
    }
}

impl Http for Web {
    type Headers = Head;
    type ResponseBody = Body;
    type PostBody = Upload;

    fn get(
        &mut self,
        url: &str,
        base_url: &str,
        headers: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> gix::Result<GetResponse<Head, Body>> {
        let response = self.fetch(url, base_url, header_map(headers));
        let response = response.map_err(|error| {
            let error = self.wire.fail_io(error);
            gix::Error::from_error(error)
        })?;
        let exchange = Exchange::new(self, Stage::Received(response));
        Ok(GetResponse { headers: Head::new(&exchange), body: Body::new(&exchange) })
    }

    fn post(
        &mut self,
        url: &str,
        _base_url: &str,
        headers: impl IntoIterator<Item = impl AsRef<str>>,
        _body: PostBodyDataKind,
    ) -> gix::Result<PostResponse<Head, Body, Upload>> {
        let url = address(url).map_err(|error| gix::Error::from_error(self.wire.fail_io(error)))?;
        let stage = Stage::Writing { url, headers: header_map(headers), body: Vec::new() };
        let exchange = Exchange::new(self, stage);
        Ok(PostResponse {
            post_body: Upload(Arc::clone(&exchange)),
            headers: Head::new(&exchange),
            body: Body::new(&exchange),
        })
    }

    fn configure(&mut self, _config: &dyn Any) -> gix::Result {
        Ok(())
    }

    fn redirected_base_url(&self) -> Option<String> {
        self.base.clone()
    }
}

/// One request and its response, shared by those who write the one and read the other.
pub(super) struct Exchange {
    web: Web,
    stage: Mutex<Stage>,
}

enum Stage {
    /// The request is being written. It is sent when the response is first read, which
    /// is after the writer has been flushed.
    Writing { url: Url, headers: HeaderMap, body: Vec<u8> },
    /// The response, with the rest of its body.
    Received(Response),
    /// The response was read to its end, or there is none.
    Over,
}

impl Exchange {
    fn new(web: &Web, stage: Stage) -> Arc<Self> {
        let (handle, client) = (web.handle.clone(), web.client.clone());
        let (redirects, wire) = (Arc::clone(&web.redirects), Arc::clone(&web.wire));
        let web = Web { handle, client, redirects, wire, base: None };
        Arc::new(Self { web, stage: Mutex::new(stage) })
    }

    /// Does `act` with the response, which is fetched if the request was not sent yet.
    fn with<T>(
        &self,
        act: impl FnOnce(&mut Response) -> Result<T, GitError>,
    ) -> io::Result<Option<T>> {
        let mut stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        let result = match std::mem::replace(&mut *stage, Stage::Over) {
            Stage::Writing { url, headers, body } => {
                let response = self.web.send(Method::POST, url, headers, Some(body));
                response.and_then(accepted)
            }
            Stage::Received(response) => Ok(response),
            Stage::Over => return Ok(None),
        };
        let result = result.and_then(|mut response| {
            let value = act(&mut response)?;
            *stage = Stage::Received(response);
            Ok(value)
        });
        result.map(Some).map_err(|error| self.web.wire.fail_io(error))
    }

    /// The next piece of the body; `None` at its end.
    fn piece(&self) -> io::Result<Option<impl AsRef<[u8]> + Send + Sync + use<>>> {
        let wire = &self.web.wire;
        let piece = self.with(|response| {
            let wait = wire.wait(response.chunk(), wire.silence());
            self.web.handle.block_on(wait)?.map_err(failed)
        })?;
        let piece = piece.flatten();
        match &piece {
            Some(piece) => wire.count_bytes(piece.len())?,
            None => {
                *self.stage.lock().unwrap_or_else(PoisonError::into_inner) = Stage::Over;
                wire.end();
            }
        }
        Ok(piece)
    }
}

/// Takes the body of a request.
pub(super) struct Upload(Arc<Exchange>);

impl Write for Upload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut stage = self.0.stage.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *stage {
            Stage::Writing { body, .. } => {
                body.extend_from_slice(bytes);
                Ok(bytes.len())
            }
            _ => Err(io::Error::other("the request was already sent")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The headers of a response, line by line.
pub(super) struct Head {
    exchange: Arc<Exchange>,
    lines: Option<Cursor<Vec<u8>>>,
}

impl Head {
    fn new(exchange: &Arc<Exchange>) -> Self {
        Self { exchange: Arc::clone(exchange), lines: None }
    }

    fn lines(&mut self) -> io::Result<&mut Cursor<Vec<u8>>> {
        let mut lines = Vec::new();
        if self.lines.is_none() {
            self.exchange.with(|response| {
                for (name, value) in response.headers() {
                    lines.extend_from_slice(name.as_str().as_bytes());
                    lines.push(b':');
                    lines.extend_from_slice(value.as_bytes());
                    lines.push(b'\n');
                }
                Ok(())
            })?;
        }
        Ok(self.lines.get_or_insert(Cursor::new(lines)))
    }
}

impl Read for Head {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.lines()?.read(into)
    }
}

impl BufRead for Head {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.lines()?.fill_buf()
    }

    fn consume(&mut self, read: usize) {
        if let Some(lines) = &mut self.lines {
            lines.consume(read);
        }
    }
}

/// The body of a response. One piece of it at a time is in memory.
pub(super) struct Body {
    exchange: Arc<Exchange>,
    piece: Option<Box<dyn AsRef<[u8]> + Send + Sync>>,
    read: usize,
}

impl Body {
    fn new(exchange: &Arc<Exchange>) -> Self {
        Self { exchange: Arc::clone(exchange), piece: None, read: 0 }
    }

    fn rest(&self) -> &[u8] {
        let piece = self.piece.as_ref().map(|piece| (**piece).as_ref());
        piece.and_then(|piece| piece.get(self.read..)).unwrap_or_default()
    }
}

impl Read for Body {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(into)?;
        self.consume(read);
        Ok(read)
    }
}

impl BufRead for Body {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.rest().is_empty() {
            let Some(piece) = self.exchange.piece()? else { break };
            self.piece = Some(Box::new(piece));
            self.read = 0;
        }
        Ok(self.rest())
    }

    fn consume(&mut self, read: usize) {
        self.read += read;
    }
}

fn header_map(lines: impl IntoIterator<Item = impl AsRef<str>>) -> HeaderMap {
    let mut map = HeaderMap::new();
    for line in lines {
        let Some((name, value)) = line.as_ref().split_once(':') else { continue };
        let name = HeaderName::try_from(name).ok();
        if let Some((name, value)) = name.zip(HeaderValue::try_from(value.trim()).ok()) {
            map.append(name, value);
        }
    }
    map.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    map
}

fn address(url: &str) -> Result<Url, GitError> {
    Url::parse(url).map(bare).map_err(|error| GitError::other(format!("the URL is wrong: {error}")))
}

/// `url` without user and password: gix puts them into a header, and only where it is safe.
fn bare(mut url: Url) -> Url {
    // These fail only for URLs that cannot have them.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url
}

fn elsewhere(how: &str) -> GitError {
    GitError::other(format!("the server redirects {how}"))
}
