//! As much HTTP as the test server needs: requests, answers, addresses.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// A request as it came in. Names of headers are in lower case.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    pub path: String,
    /// Decoded.
    pub query: Vec<(String, String)>,
    pub headers: Vec<(String, String)>,
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

pub(crate) struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
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
        let mut head = format!("HTTP/1.1 {} Status\r\n", self.status);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("content-length: {}\r\n\r\n", self.body.len()));
        // In one piece: otherwise the kernel holds the second one back for a while.
        let mut whole = head.into_bytes();
        whole.extend_from_slice(&self.body[..limit.min(self.body.len())]);
        stream.write_all(&whole).ok()?;
        (limit >= self.body.len()).then_some(())
    }
}

/// The next request of a connection; none at its end.
pub(crate) fn read_request(reader: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_string(), words.next()?.to_string());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
        let Some((name, value)) = line.trim().split_once(':') else { break };
        headers.push((name.to_lowercase(), value.trim().to_string()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
    reader.read_exact(&mut vec![0; length]).ok()?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let query = pairs.map(|(name, value)| (decode(name), decode(value))).collect();
    Some(Request { method, path: path.to_string(), query, headers })
}

fn decode(text: &str) -> String {
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
