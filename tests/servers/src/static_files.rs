//! A web server of the files of a folder, as any static host is one, with the manners of bad ones.

use std::fs;
use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::http;

/// How the server treats its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manners {
    /// It answers every request, also for a range.
    Good,
    /// It ignores `Range`.
    WithoutRanges,
    /// It ends the connection in the middle of every large answer.
    Cuts,
    /// It accepts connections and does not answer.
    Mute,
    /// It answers 503.
    Overloaded,
}

/// A request, and how many bytes of a file it was answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub bytes: u64,
}

/// A running server; it ends with the process.
pub struct StaticFiles {
    pub url: String,
    requests: Arc<Mutex<Vec<Request>>>,
    overstated: Arc<Mutex<Option<String>>>,
}

/// A length beyond all memory.
const BEYOND: u64 = 1 << 50;

impl StaticFiles {
    /// Serves the files below `folder`.
    pub fn start(folder: &Path, manners: Manners) -> Self {
        let requests = Arc::new(Mutex::new(Vec::new()));
        let overstated = Arc::new(Mutex::new(None));
        let (folder, told) = (folder.to_path_buf(), Arc::clone(&requests));
        let about = Arc::clone(&overstated);
        let url = http::listen(move |_, stream| {
            if manners == Manners::Mute {
                // The connection stays open.
                loop {
                    std::thread::park();
                }
            }
            answer(stream, &folder, manners, &told, &about);
        });
        Self { url, requests, overstated }
    }

    /// From now on more is declared of this file (`actions/…`) than ever comes.
    pub fn overstate(&self, file: &str) {
        *self.overstated.lock().unwrap() = Some(format!("/{file}"));
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

fn answer(
    mut stream: TcpStream,
    folder: &Path,
    manners: Manners,
    told: &Mutex<Vec<Request>>,
    overstated: &Mutex<Option<String>>,
) -> Option<()> {
    let http::Request { method, target: path, headers, .. } =
        http::read_request(&mut BufReader::new(stream.try_clone().ok()?))?;
    let asked = http::header(&headers, "range").filter(|_| manners != Manners::WithoutRanges);
    let range = match asked {
        Some(value) => {
            let (from, to) = value.strip_prefix("bytes=")?.split_once('-')?;
            Some((from.parse::<usize>().ok()?, to.parse::<usize>().ok()))
        }
        None => None,
    };
    let file: PathBuf = folder.join(path.trim_start_matches('/'));
    let (status, content) = match fs::read(&file) {
        _ if manners == Manners::Overloaded => ("503 Service Unavailable", Vec::new()),
        _ if !matches!(method.as_str(), "GET" | "HEAD") => ("405 Method Not Allowed", Vec::new()),
        Err(_) => ("404 Not Found", Vec::new()),
        Ok(content) => ("200 OK", content),
    };
    let length = content.len();
    let (status, about, part) = match range.filter(|_| status == "200 OK") {
        Some((from, to)) => {
            let to = to.map_or(length, |to| (to + 1).min(length));
            let about = format!("Content-Range: bytes {from}-{}/{length}\r\n", to - 1);
            ("206 Partial Content", about, content[from..to].to_vec())
        }
        None => (status, String::new(), content),
    };
    let body = if method == "HEAD" { &[][..] } else { &part };
    let sent = if manners == Manners::Cuts && body.len() > 1000 { &body[..500] } else { body };
    let declared = match overstated.lock().unwrap().as_ref() {
        Some(file) if *file == path => BEYOND,
        Some(_) | None => part.len() as u64,
    };
    told.lock().unwrap().push(Request { method, path, bytes: sent.len() as u64 });
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {declared}\r\n\
         Last-Modified: Sun, 01 Nov 2026 12:00:00 GMT\r\n{about}Connection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(sent).ok()?;
    stream.flush().ok()
}
