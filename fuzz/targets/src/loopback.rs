//! A server on this machine whose answers are set before each request.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// An answer: the status, the lines of the head, and the body.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// `name: value`, without those that give the length of the body.
    pub(crate) head: Vec<String>,
    pub(crate) body: Vec<u8>,
}

/// The server. It ends with the process.
pub(crate) struct Loopback {
    port: u16,
    replies: Arc<Mutex<Vec<Reply>>>,
}

impl Loopback {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let replies = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&replies);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                // A client that goes away is not an error of the server.
                thread::spawn(move || serve(stream, &shared).ok());
            }
        });
        Self { port, replies }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    /// Sets the replies to the next requests; the last one is repeated.
    pub(crate) fn set(&self, replies: Vec<Reply>) {
        *self.replies.lock().unwrap_or_else(PoisonError::into_inner) = replies;
    }
}

fn serve(stream: TcpStream, replies: &Mutex<Vec<Reply>>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    while read_request(&mut reader)? {
        let reply = {
            let mut list = replies.lock().unwrap_or_else(PoisonError::into_inner);
            if list.len() > 1 { list.remove(0) } else { list[0].clone() }
        };
        reader.get_mut().write_all(&encoded(&reply))?;
    }
    Ok(())
}

/// Reads a request; false at the end of the connection.
fn read_request(reader: &mut BufReader<TcpStream>) -> io::Result<bool> {
    let (mut length, mut line) = (0, String::new());
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Ok(false);
        }
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
    io::copy(&mut reader.by_ref().take(length), &mut io::sink())?;
    Ok(true)
}

/// The message of an error, which steers no terminal.
pub(crate) fn harmless(error: &impl ToString) -> String {
    let text = error.to_string();
    assert!(!text.is_empty());
    assert!(!text.chars().any(char::is_control), "it steers a terminal: {text:?}");
    text
}

fn encoded(reply: &Reply) -> Vec<u8> {
    let mut bytes = format!("HTTP/1.1 {} Said\r\n", reply.status).into_bytes();
    for line in &reply.head {
        bytes.extend_from_slice(line.as_bytes());
        bytes.extend_from_slice(b"\r\n");
    }
    // Answers with these have no body, regardless of the header.
    let body = match reply.status {
        204 | 304 => &[][..],
        _ => {
            bytes.extend_from_slice(format!("content-length: {}\r\n", reply.body.len()).as_bytes());
            reply.body.as_slice()
        }
    };
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body);
    bytes
}

/// The first answers of an input, in which lines of `%%` part them: a status, lines of the head, an
/// empty line, a body. `KEY` in them is the client's secret.
pub(crate) fn replies(input: &[u8], most: usize, key: &str) -> Vec<Reply> {
    let (mut all, mut rest) = (Vec::new(), input);
    while all.len() < most && !rest.is_empty() {
        let end = rest.windows(4).position(|part| part == b"\n%%\n");
        all.push(reply(&rest[..end.unwrap_or(rest.len())], key));
        rest = end.map_or(&[], |end| &rest[end + 4..]);
    }
    all
}

fn reply(text: &[u8], key: &str) -> Reply {
    let head_end = text.windows(2).position(|pair| pair == b"\n\n");
    let (head, body) = match head_end {
        Some(end) => (&text[..end], &text[end + 2..]),
        None => (text, &[][..]),
    };
    let head = String::from_utf8_lossy(head).replace("KEY", key);
    let body = String::from_utf8_lossy(body).replace("KEY", key);
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.trim().parse().ok()).unwrap_or(200_u16);
    let head = lines.filter(|line| may_be_sent(line)).map(str::to_owned).collect();
    // Answers below 200 announce another one.
    Reply { status: status.clamp(200, 599), head, body: body.into_bytes() }
}

/// True for a header line that does not change the end of the answer.
fn may_be_sent(line: &str) -> bool {
    let Some((name, value)) = line.split_once(':') else { return false };
    let name_ok = !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    let framing = ["content-length", "transfer-encoding", "connection", "upgrade", "trailer"];
    name_ok
        && !framing.iter().any(|framing| name.eq_ignore_ascii_case(framing))
        && value.chars().all(|c| c == '\t' || (!c.is_control() && c != '\u{7f}'))
}
