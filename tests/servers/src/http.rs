//! As much HTTP as the servers need: requests, answers, addresses.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

/// Names and values. Those of requests have their names in lower case.
pub type Headers = Vec<(String, String)>;

/// A request as it came in.
#[derive(Clone, Debug, Default)]
pub struct Request {
    pub method: String,
    /// With the query, as it came.
    pub target: String,
    /// Without the query.
    pub path: String,
    /// Decoded.
    pub query: Vec<(String, String)>,
    pub headers: Headers,
    pub body: Vec<u8>,
}

impl Request {
    /// A parameter of the query; empty if it is missing.
    pub fn param(&self, name: &str) -> &str {
        self.query.iter().find(|(n, _)| n == name).map_or("", |(_, value)| value)
    }

    /// All values of a header.
    pub fn header(&self, name: &str) -> Vec<&str> {
        self.headers.iter().filter(|(n, _)| n == name).map(|(_, value)| value.as_str()).collect()
    }
}

/// Listens on a free port, and answers each connection in a thread, with its number from 0.
/// Returns the address. The threads end with the process.
pub fn listen(answer: impl Fn(usize, TcpStream) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for (number, stream) in listener.incoming().flatten().enumerate() {
            let answer = Arc::clone(&answer);
            thread::spawn(move || answer(number, stream));
        }
    });
    address
}

/// The first value of a header.
pub(crate) fn header<'a>(headers: &'a Headers, name: &str) -> Option<&'a str> {
    headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
}

/// The next request of a connection; none at its end. A client that waits is asked for the body.
pub(crate) fn read_request<S: Read + Write>(reader: &mut BufReader<S>) -> Option<Request> {
    let line = read_line(reader)?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_string(), words.next()?.to_string());
    let headers = read_headers(reader)?;
    if header(&headers, "expect").is_some() {
        reader.get_mut().write_all(b"HTTP/1.1 100 Continue\r\n\r\n").ok()?;
    }
    let mut body = Vec::new();
    if header(&headers, "transfer-encoding").is_some_and(|coding| coding.contains("chunked")) {
        read_chunks(reader, &mut body)?;
    } else if let Some(length) = header(&headers, "content-length") {
        body.resize(length.parse().ok()?, 0);
        reader.read_exact(&mut body).ok()?;
    }
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let query = pairs.map(|(name, value)| (decode(name), decode(value))).collect();
    Some(Request { method, path: path.to_string(), query, headers, body, target })
}

fn read_line(reader: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
    Some(line)
}

/// Headers up to the empty line.
pub(crate) fn read_headers(reader: &mut impl BufRead) -> Option<Headers> {
    let mut headers = Vec::new();
    loop {
        let line = read_line(reader)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { return Some(headers) };
        headers.push((name.trim().to_lowercase(), value.trim().to_string()));
    }
}

fn read_chunks(reader: &mut impl BufRead, body: &mut Vec<u8>) -> Option<()> {
    loop {
        let line = read_line(reader)?;
        let size = line.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(size, 16).ok()?;
        reader.by_ref().take(size).read_to_end(body).ok()?;
        read_line(reader)?;
        if size == 0 {
            return Some(());
        }
    }
}

/// The head of an answer up to the empty line, with the length of the body.
pub(crate) fn head(status: u16, headers: &[(String, String)], length: usize) -> String {
    let mut head = format!("HTTP/1.1 {status} Status\r\ncontent-length: {length}\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head + "\r\n"
}

pub(crate) struct Response {
    pub status: u16,
    pub headers: Headers,
    pub body: Vec<u8>,
}

impl Response {
    pub(crate) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: body.into() }
    }

    pub(crate) fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.headers.retain(|(n, _)| n != name);
        self.headers.push((name.into(), value.to_string()));
        self
    }

    /// Sends at most `limit` bytes of the body; none if the connection has to end.
    pub(crate) fn send(&self, mut stream: &TcpStream, limit: usize) -> Option<()> {
        // In one piece: otherwise the kernel holds the second one back for a while.
        let mut whole = head(self.status, &self.headers, self.body.len()).into_bytes();
        whole.extend_from_slice(&self.body[..limit.min(self.body.len())]);
        stream.write_all(&whole).ok()?;
        (limit >= self.body.len()).then_some(())
    }
}

/// Decodes a part of an address.
pub(crate) fn decode(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, more @ ..] = rest {
        let hex = more.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let code = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        let (left, byte) = match (first, code) {
            (b'%', Some(code)) => (&more[2..], code),
            (b'+', _) => (more, b' '),
            (other, _) => (more, *other),
        };
        bytes.push(byte);
        rest = left;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A value for an address.
pub(crate) fn encode(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    text.bytes()
        .map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") })
        .collect()
}
