//! A server for tests: it answers each request by a script, and keeps the requests.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

/// The reply to a request.
#[derive(Clone)]
pub(super) enum Reply {
    /// Answers properly.
    Full(u16, Vec<(&'static str, String)>, String),
    /// Sends these bytes and closes the connection.
    Cut(Vec<u8>),
    /// Answers properly, and closes the connection a little later without notice.
    Close(String),
    /// Does not answer.
    Hang,
    /// Sends these bytes, and from then on one more now and then.
    Drip(Vec<u8>),
    /// Sends a head and so many bytes of text, in chunks on request.
    Huge { bytes: u64, chunked: bool },
    /// Answers after a while.
    Late(Duration, Box<Reply>),
}

pub(super) struct Request {
    pub(super) head: String,
    pub(super) body: String,
    pub(super) connection: usize,
}

type Script = dyn Fn(usize, &Request) -> Reply + Send + Sync;

/// Clones are the same server.
#[derive(Clone)]
pub(super) struct Server {
    pub(super) port: u16,
    requests: Arc<Mutex<Vec<Request>>>,
    written: Arc<AtomicUsize>,
    tasks: Arc<Mutex<Vec<AbortHandle>>>,
}

impl Server {
    /// Starts a server at a port, or at a free one for 0. `script` gets each request with its number,
    /// from 0 on.
    pub(super) async fn start(
        port: u16,
        script: impl Fn(usize, &Request) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (requests, written) = (Arc::new(Mutex::new(Vec::new())), Arc::default());
        let tasks = Arc::new(Mutex::new(Vec::new()));
        let script: Arc<Script> = Arc::new(script);
        let server = Self { port, requests, written, tasks };
        let shared = server.clone();
        let accept = tokio::spawn(async move {
            for connection in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                let (script, server) = (Arc::clone(&script), shared.clone());
                let task = tokio::spawn(async move {
                    let _ = server.serve(stream, connection, &*script).await;
                });
                shared.tasks.lock().unwrap().push(task.abort_handle());
            }
        });
        server.tasks.lock().unwrap().push(accept.abort_handle());
        server
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    pub(super) fn count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }

    pub(super) fn with<T>(&self, look: impl FnOnce(&[Request]) -> T) -> T {
        look(&self.requests.lock().unwrap())
    }

    /// Bytes of huge answers that went out.
    pub(super) fn written(&self) -> usize {
        self.written.load(Ordering::Relaxed)
    }

    /// Ends the server, as if it had died.
    pub(super) fn stop(&self) {
        self.tasks.lock().unwrap().drain(..).for_each(|task| task.abort());
    }

    async fn serve(
        &self,
        mut stream: TcpStream,
        connection: usize,
        script: &Script,
    ) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let mut buffer = Vec::new();
        loop {
            let end = loop {
                if let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                    break end + 4;
                }
                if stream.read_buf(&mut buffer).await? == 0 {
                    return Ok(());
                }
            };
            let head = String::from_utf8_lossy(&buffer[..end]).to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.map_or(0, |length| length.parse().unwrap());
            while buffer.len() < end + length {
                if stream.read_buf(&mut buffer).await? == 0 {
                    return Ok(());
                }
            }
            let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
            let body = String::from_utf8_lossy(&buffer[end..end + length]).into_owned();
            buffer.drain(..end + length);
            let reply = {
                let mut log = self.requests.lock().unwrap();
                log.push(Request { head, body, connection });
                let number = log.len() - 1;
                script(number, &log[number])
            };
            let reply = match reply {
                Reply::Late(wait, reply) => {
                    tokio::time::sleep(wait).await;
                    *reply
                }
                reply => reply,
            };
            match reply {
                Reply::Full(status, headers, body) => {
                    stream.write_all(&full(status, &headers, &body)).await?;
                }
                Reply::Cut(bytes) => {
                    stream.write_all(&bytes).await?;
                    return stream.shutdown().await;
                }
                Reply::Close(body) => {
                    stream.write_all(&full(200, &[], &body)).await?;
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    return Ok(());
                }
                Reply::Late(..) | Reply::Hang => std::future::pending().await,
                Reply::Drip(bytes) => {
                    stream.write_all(&bytes).await?;
                    loop {
                        tokio::time::sleep(Duration::from_millis(10)).await;
                        stream.write_all(b" ").await?;
                    }
                }
                Reply::Huge { bytes, chunked } => {
                    let length = match chunked {
                        true => "transfer-encoding: chunked".to_string(),
                        false => format!("content-length: {bytes}"),
                    };
                    let head = format!("HTTP/1.1 200 OK\r\n{length}\r\n\r\n");
                    stream.write_all(head.as_bytes()).await?;
                    let piece = [b'a'; 64 << 10];
                    for _ in 0..bytes / piece.len() as u64 {
                        if chunked {
                            stream.write_all(format!("{:x}\r\n", piece.len()).as_bytes()).await?;
                        }
                        stream.write_all(&piece).await?;
                        self.written.fetch_add(piece.len(), Ordering::Relaxed);
                        if chunked {
                            stream.write_all(b"\r\n").await?;
                        }
                    }
                }
            }
        }
    }
}

/// The bytes of an answer.
fn full(status: u16, headers: &[(&'static str, String)], body: &str) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 {status} Status\r\ncontent-length: {}\r\n", body.len());
    if !headers.iter().any(|(name, _)| *name == "content-type") {
        text.push_str("content-type: application/json\r\n");
    }
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    format!("{text}\r\n{body}").into_bytes()
}
