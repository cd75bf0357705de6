//! A git server over HTTP for tests: `git http-backend` behind a small server on loopback.
//!
//! It has switches for faults and records its requests. It needs the `git` program.

use std::io::{BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use crate::http;

/// A fault instead of an answer.
#[derive(Clone, Debug)]
pub enum GitFault {
    /// Answers with this status and no body.
    Status(u16),
    /// The same, with further headers.
    StatusWith(u16, Vec<(String, String)>),
    /// Redirects to this base, to which path and query of the request are added.
    Redirect(String),
    /// Answers, but closes the connection after so many bytes of the body.
    Cut(usize),
    /// Answers, but ends the body properly after so many bytes.
    Short(usize),
    /// Answers with so many bytes of the body a second.
    Slow(usize),
    /// Says nothing for so long, and then closes the connection.
    Silent(Duration),
}

/// A request that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub method: String,
    /// With the query.
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// Bytes of the body after decoding of chunks.
    pub body: usize,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        http::header(&self.headers, name)
    }
}

#[derive(Default)]
struct State {
    root: PathBuf,
    faults: Vec<(String, usize, GitFault)>,
    seen: Vec<Seen>,
    old_protocol: bool,
    /// The `Authorization` that requests must have.
    login: Option<String>,
    stopped: bool,
}

/// The server. It ends when it is dropped.
pub struct HttpGit {
    scheme: &'static str,
    port: u16,
    state: Arc<Mutex<State>>,
}

impl HttpGit {
    /// Serves all repositories below `root`, with any settings.
    pub fn start(root: &Path) -> Self {
        Self::start_at(root, 0)
    }

    /// The same at a port.
    pub fn start_at(root: &Path, port: u16) -> Self {
        Self::listen(root, port, "http")
    }

    /// The same through TLS, with the certificate [`CERTIFICATE`].
    pub fn start_tls(root: &Path) -> Self {
        Self::listen(root, 0, "https")
    }

    fn listen(root: &Path, port: u16, scheme: &'static str) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = State { root: root.to_path_buf(), ..State::default() };
        let state = Arc::new(Mutex::new(state));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if shared.lock().unwrap().stopped {
                    break;
                }
                let Ok(stream) = stream else { continue };
                let shared = Arc::clone(&shared);
                // A client that goes away is not an error of the server.
                std::thread::spawn(move || match scheme {
                    "https" => serve(encrypted(stream), &shared).ok(),
                    _ => serve(stream, &shared).ok(),
                });
            }
        });
        Self { scheme, port, state }
    }

    /// The URL of a repository by its path below the root.
    pub fn url(&self, path: &str) -> String {
        format!("{}/{path}", self.base())
    }

    /// The address without a path and without a `/` at its end.
    pub fn base(&self) -> String {
        format!("{}://127.0.0.1:{}", self.scheme, self.port)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Lets the next `times` requests with `part` in their path or query fail. An empty `part`
    /// fits all.
    pub fn fail(&self, part: &str, times: usize, fault: GitFault) {
        self.state().faults.push((part.to_string(), times, fault));
    }

    /// Ends all faults.
    pub fn heal(&self) {
        self.state().faults.clear();
    }

    /// Answers in the oldest protocol from now on, whatever is asked for.
    pub fn use_old_protocol(&self) {
        self.state().old_protocol = true;
    }

    /// Answers only requests with this user and password.
    pub fn require_login(&self, user: &str, password: &str) {
        let login = BASE64_STANDARD.encode(format!("{user}:{password}"));
        self.state().login = Some(format!("Basic {login}"));
    }

    /// All requests since the last call.
    pub fn take_seen(&self) -> Vec<Seen> {
        std::mem::take(&mut self.state().seen)
    }

    /// How many requests had `part` in their path or query.
    pub fn count(&self, part: &str) -> usize {
        self.state().seen.iter().filter(|seen| seen.path.contains(part)).count()
    }
}

impl Drop for HttpGit {
    fn drop(&mut self) {
        self.state().stopped = true;
        // Wakes the thread that listens.
        TcpStream::connect(("127.0.0.1", self.port)).ok();
    }
}

/// The certificate of 127.0.0.1 and localhost, in PEM.
pub const CERTIFICATE: &str = include_str!("../tls/certificate.pem");

/// The key of that certificate, which protects nothing.
const KEY: &[u8] = include_bytes!("../tls/key.der");

fn encrypted(stream: TcpStream) -> impl Read + Write {
    use rustls::pki_types::pem::PemObject as _;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
    let certificate = CertificateDer::from_pem_slice(CERTIFICATE.as_bytes()).unwrap();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(KEY));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let connection = rustls::ServerConnection::new(Arc::new(config)).unwrap();
    rustls::StreamOwned::new(connection, stream)
}

/// Answers one request; the connection ends with the answer.
fn serve(stream: impl Read + Write, state: &Mutex<State>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let Some(request) = http::read_request(&mut reader) else { return Ok(()) };
    let http::Request { method, target: path, headers, body, .. } = request;
    let header = |name: &str| http::header(&headers, name).map(str::to_owned);
    let mut out = reader.into_inner();
    let (root, fault, old, login) = {
        let mut state = state.lock().unwrap();
        state.seen.push(Seen {
            method: method.clone(),
            path: path.clone(),
            headers: headers.clone(),
            body: body.len(),
        });
        let fits = |part: &str| path.contains(part);
        let next = state.faults.iter_mut().find(|(part, times, _)| *times > 0 && fits(part));
        let fault = next.map(|(_, times, fault)| {
            *times -= 1;
            fault.clone()
        });
        (state.root.clone(), fault, state.old_protocol, state.login.clone())
    };
    if login.is_some() && header("authorization") != login {
        let realm = ("WWW-Authenticate".to_string(), "Basic realm=\"test\"".to_string());
        return refuse(out, 401, &[realm]);
    }
    match &fault {
        Some(GitFault::Status(status)) => return refuse(out, *status, &[]),
        Some(GitFault::StatusWith(status, headers)) => return refuse(out, *status, headers),
        Some(GitFault::Redirect(base)) => {
            return refuse(out, 302, &[("Location".to_string(), format!("{base}{path}"))]);
        }
        Some(GitFault::Silent(time)) => {
            std::thread::sleep(*time);
            return Ok(());
        }
        _ => {}
    }

    // A proxy is given the whole address.
    let path = match path.strip_prefix("http://").and_then(|rest| rest.find('/')) {
        Some(at) => &path["http://".len() + at..],
        None => &path,
    };
    let (file, query) = path.split_once('?').unwrap_or((path, ""));
    let mut command = Command::new("git");
    command
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("PATH_INFO", file)
        .env("QUERY_STRING", query)
        .env("REQUEST_METHOD", method)
        .env("CONTENT_TYPE", header("content-type").unwrap_or_default())
        .env("CONTENT_LENGTH", body.len().to_string())
        .env("REMOTE_ADDR", "127.0.0.1")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    if let Some(protocol) = header("git-protocol").filter(|_| !old) {
        command.env("GIT_PROTOCOL", protocol);
    }
    // The backend unpacks the body itself.
    if let Some(coding) = header("content-encoding") {
        command.env("HTTP_CONTENT_ENCODING", coding);
    }
    let mut child = command.spawn()?;
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(&body));
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let answer = http::read_headers(&mut stdout).unwrap_or_default();
    let status = http::header(&answer, "status").unwrap_or("200 OK");
    let mut head = format!("HTTP/1.1 {status}\r\n");
    for (name, value) in answer.iter().filter(|(name, _)| name != "status") {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n");
    out.write_all(head.as_bytes())?;
    let result = send(&mut stdout, &mut out, fault.as_ref());
    child.kill().ok();
    child.wait()?;
    writer.join().unwrap().ok();
    result
}

/// Sends the body in chunks, as far as the fault lets it.
fn send(
    from: &mut impl Read,
    out: &mut impl Write,
    fault: Option<&GitFault>,
) -> std::io::Result<()> {
    let limit = match fault {
        Some(GitFault::Cut(bytes) | GitFault::Short(bytes)) => *bytes,
        _ => usize::MAX,
    };
    // However much the backend has ready, no more than a tenth of a second's bytes go at once.
    let most = match fault {
        Some(GitFault::Slow(rate)) => (rate / 10).clamp(1, 65536),
        _ => 65536,
    };
    let mut buffer = vec![0; most];
    let mut sent = 0;
    while sent < limit {
        let most = buffer.len().min(limit - sent);
        let read = from.read(&mut buffer[..most])?;
        if read == 0 {
            break;
        }
        out.write_all(format!("{read:x}\r\n").as_bytes())?;
        out.write_all(&buffer[..read])?;
        out.write_all(b"\r\n")?;
        sent += read;
        if let Some(GitFault::Slow(rate)) = fault {
            std::thread::sleep(Duration::from_secs_f64(read as f64 / *rate as f64));
        }
    }
    if matches!(fault, Some(GitFault::Cut(_))) {
        return Ok(());
    }
    out.write_all(b"0\r\n\r\n")?;
    out.flush()
}

fn refuse(mut out: impl Write, status: u16, headers: &[(String, String)]) -> std::io::Result<()> {
    let close = [("connection".to_string(), "close".to_string())];
    out.write_all(http::head(status, &[headers, &close].concat(), 0).as_bytes())?;
    out.flush()
}
