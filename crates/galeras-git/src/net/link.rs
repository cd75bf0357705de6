//! A connection to a repository on a server.
//!
//! How it is made for each kind of URL, and the handshake.

use std::io::{self, BufReader, BufWriter, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

use galeras_net::CONNECT_TIMEOUT;
use gix::url::Scheme;
use gix_protocol::Handshake;
use gix_transport::Protocol;
use gix_transport::client::blocking_io::{Transport, http};
use gix_transport::client::git::{ConnectMode, blocking_io::Connection};

use super::explain::{at, explain, explain_gix};
use super::http::Web;
use super::meter::Meter;
use super::network::{AGENT, Network};
use super::ssh;
use super::symref::handshake;
use super::wire::{POLL, Wire, silent};
use crate::error::GitError;
use crate::limits::ADVERTISED_BYTES;

/// For how long an unused connection is used again.
const FRESH: Duration = Duration::from_secs(15);

/// Buffers of TCP connections (bytes).
const BUFFER: usize = 64 * 1024;

/// A connection after its handshake.
pub(super) struct Link {
    pub(super) transport: Box<dyn Transport + Send>,
    pub(super) handshake: Handshake,
    used: Instant,
}

impl Link {
    /// Connects and shakes hands.
    ///
    /// # Errors
    /// Those of the network and the server; `Other` for repositories of another hash.
    pub(super) fn open(url: &str, net: &Network, wire: &Arc<Wire>) -> Result<Self, GitError> {
        let (transport, handshake) = shake_hands(url, net, wire)?;
        let hash = handshake.capabilities.capability("object-format");
        let hash = hash.and_then(|hash| hash.value().map(ToString::to_string));
        match hash.as_deref() {
            None | Some("sha1") => Ok(Self { transport, handshake, used: Instant::now() }),
            Some(hash) => {
                let message = format!("its objects have {hash} names, which are not supported");
                Err(at(url, GitError::other(message)))
            }
        }
    }

    pub(super) fn version(&self) -> Protocol {
        self.handshake.server_protocol_version
    }

    /// The server sends parts of a repository on demand: protocol 2 with filters.
    pub(super) fn has_filters(&self) -> bool {
        let fetch = self.handshake.capabilities.capability("fetch");
        self.version() == Protocol::V2
            && fetch.and_then(|fetch| fetch.supports("filter")).unwrap_or(false)
    }

    /// Notes that the connection was just used.
    pub(super) fn touch(&mut self) {
        self.used = Instant::now();
    }

    /// Another request can be made over the connection.
    pub(super) fn is_usable(&self) -> bool {
        let lasts = self.transport.connection_persists_across_multiple_requests();
        self.version() == Protocol::V2 && (!lasts || self.used.elapsed() < FRESH)
    }
}

fn shake_hands(
    url: &str,
    net: &Network,
    wire: &Arc<Wire>,
) -> Result<(Box<dyn Transport + Send>, Handshake), GitError> {
    wire.attempt();
    wire.check()?;
    wire.allow(ADVERTISED_BYTES);
    let mut transport = connect(url, net, wire)?;
    let mut meter = Meter::new(Arc::clone(wire));
    match handshake(&mut *transport, &mut meter) {
        Ok(handshake) => Ok((transport, handshake)),
        Err(error) => match wire.words().filter(|_| is_end(&error)) {
            Some(words) if !wire.interrupted() => Err(at(url, words.ended())),
            _ => Err(explain_gix(wire, url, &error)),
        },
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // Says goodbye where the server waits for more. It does not matter if that fails.
        gix_protocol::indicate_end_of_interaction(&mut self.transport, false).ok();
    }
}

/// The other side has ended the connection.
fn is_end(error: &gix::Error) -> bool {
    let mut io = error.iter_errors().filter_map(|error| error.downcast_ref::<io::Error>());
    io.any(|error| error.kind() == io::ErrorKind::UnexpectedEof)
}

/// The `agent` of git's own requests.
pub(super) fn agent() -> gix_protocol::command::Feature {
    ("agent", Some(gix_protocol::agent(AGENT)))
}

fn connect(
    url: &str,
    net: &Network,
    wire: &Arc<Wire>,
) -> Result<Box<dyn Transport + Send>, GitError> {
    let parsed = gix::url::parse(url).map_err(|error| explain(wire, url, error))?;
    let wrong = |why: &str| at(url, GitError::other(why));
    match parsed.scheme {
        Scheme::Http | Scheme::Https => {
            let web = Web::new(net, wire);
            let transport = http::Transport::new_http(web, parsed, Protocol::V2, false);
            Ok(Box::new(transport))
        }
        Scheme::Git => {
            let host = parsed.host().ok_or_else(|| wrong("the URL names no host"))?.to_string();
            let stream = reach(&host, parsed.port.unwrap_or(9418), net, wire)
                .map_err(|error| at(url, error))?;
            let (read, write) = Line::pair(stream, wire)
                .map_err(|error| at(url, GitError::transient(error.to_string())))?;
            let virtual_host = Some((host, parsed.port));
            let (version, mode) = (Protocol::V2, ConnectMode::Daemon);
            let transport =
                Connection::new(read, write, version, parsed.path, virtual_host, mode, false);
            Ok(Box::new(transport))
        }
        Scheme::Ssh => {
            let session = ssh::start(parsed, net, wire).map_err(|error| at(url, error))?;
            Ok(Box::new(session))
        }
        _ => Err(wrong("only http, https, git and ssh URLs are supported")),
    }
}

/// Connects on another thread, since neither looking up a name nor connecting can be interrupted.
fn reach(host: &str, port: u16, net: &Network, wire: &Wire) -> Result<TcpStream, GitError> {
    let name = host.trim_matches(['[', ']']).to_string();
    let attempt = net.handle.spawn_blocking(move || {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
        for address in (name.as_str(), port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(last)
    });
    let stream = net.handle.block_on(wire.wait(attempt, CONNECT_TIMEOUT * 2))?;
    let stream = stream.map_err(|error| GitError::other(error.to_string()))?;
    stream.map_err(|error| GitError::transient(error.to_string()))
}

/// One direction of a TCP connection, which ends when it is silent or interrupted.
struct Line {
    stream: TcpStream,
    wire: Arc<Wire>,
}

impl Line {
    fn pair(stream: TcpStream, wire: &Arc<Wire>) -> io::Result<(BufReader<Self>, BufWriter<Self>)> {
        stream.set_read_timeout(Some(POLL))?;
        stream.set_write_timeout(Some(POLL))?;
        let read = Self { stream: stream.try_clone()?, wire: Arc::clone(wire) };
        let write = Self { stream, wire: Arc::clone(wire) };
        Ok((BufReader::with_capacity(BUFFER, read), BufWriter::with_capacity(BUFFER, write)))
    }

    /// Repeats `act` until it does something.
    fn patiently(
        &mut self,
        mut act: impl FnMut(&mut TcpStream) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let start = Instant::now();
        loop {
            if self.wire.interrupted() {
                return Err(self.wire.fail_io(GitError::interrupted()));
            }
            match act(&mut self.stream) {
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock
                            | io::ErrorKind::TimedOut
                            | io::ErrorKind::Interrupted
                    ) =>
                {
                    if start.elapsed() >= self.wire.silence() {
                        let error = silent(self.wire.silence());
                        return Err(self.wire.fail_io(error));
                    }
                }
                result => return result,
            }
        }
    }
}

impl Read for Line {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.patiently(|stream| stream.read(into))?;
        if read == 0 && !into.is_empty() {
            self.wire.end();
        }
        self.wire.count_bytes(read)?;
        Ok(read)
    }
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.patiently(|stream| stream.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
