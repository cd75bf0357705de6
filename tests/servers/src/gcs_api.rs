//! A server of Google Cloud Storage's XML API, as its reference documents it: objects with generations,
//! puts that depend on them, ranges, listings in pages, uploads in parts. Objects are in memory.
//!
//! A client is led here by `gcs_base_url` in the file of a service account with `disable_oauth`, as
//! emulators are used; it says nothing of who asks then, and is not asked. Or by `GOOGLE_BASE_URL`, and
//! [`GcsApi::admit`] says whom to answer.

use std::collections::BTreeMap;
use std::io::BufReader;
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use crate::http::{self, Request, Response};

/// Objects in a page of a listing.
const PAGE: usize = 3;

/// A request that was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GcsRequest {
    pub method: String,
    /// The object's name; empty for a listing.
    pub key: String,
    pub query: String,
    pub status: u16,
    /// Bytes of an answer's body.
    pub went: u64,
}

/// A running server with one bucket, `lab`; it ends with the process.
pub struct GcsApi {
    url: String,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<String, StoredObject>,
    /// Parts by upload and number.
    uploads: BTreeMap<u64, BTreeMap<u64, Vec<u8>>>,
    /// The last number that was given out: of generations, and of uploads.
    last: u64,
    requests: Vec<GcsRequest>,
    read_only: bool,
    /// True if a client with this token is answered.
    admits: Option<Admission>,
}

type Admission = Box<dyn Fn(Option<&str>) -> bool + Send>;

struct StoredObject {
    content: Vec<u8>,
    generation: u64,
}

/// A request about an object.
struct Asked {
    request: Request,
    bucket: String,
    key: String,
}

impl Asked {
    fn header(&self, name: &str) -> Option<&str> {
        http::header(&self.request.headers, name)
    }
}

fn xml(status: u16, body: &str) -> Response {
    let body = format!("<?xml version='1.0' encoding='UTF-8'?>{body}");
    Response::new(status, body).with("Content-Type", "application/xml")
}

fn result(name: &str, body: &str) -> Response {
    xml(200, &format!("<{name}>{body}</{name}>"))
}

fn error(status: u16, code: &str) -> Response {
    xml(status, &format!("<Error><Code>{code}</Code><Message>no</Message></Error>"))
}

/// An answer about an object, with this much of it.
fn about(object: &StoredObject, status: u16, body: Vec<u8>) -> Response {
    Response::new(status, body)
        .with("ETag", format!("\"{:x}\"", object.generation))
        .with("x-goog-generation", object.generation)
        .with("Last-Modified", "Wed, 01 Jan 2020 12:00:00 GMT")
}

impl GcsApi {
    pub fn start() -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        let served = Arc::clone(&state);
        let url = http::listen(move |_, stream| {
            converse(stream, &served);
        });
        Self { url, state }
    }

    /// The file of a service account that leads here.
    pub fn service_account(&self) -> String {
        format!(
            "{{\"gcs_base_url\": \"{}\", \"disable_oauth\": true, \"client_email\": \"\", \
             \"private_key\": \"\", \"private_key_id\": \"\"}}",
            self.url
        )
    }

    /// Where it is.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// From now on only those are answered whose token (`Authorization: Bearer …`) is one of those.
    pub fn admit(&self, admits: impl Fn(Option<&str>) -> bool + Send + 'static) {
        self.state.lock().unwrap().admits = Some(Box::new(admits));
    }

    /// From now on nothing may be written or removed, or all may.
    pub fn read_only(&self, read_only: bool) {
        self.state.lock().unwrap().read_only = read_only;
    }

    /// The requests since they were last taken.
    pub fn take(&self) -> Vec<GcsRequest> {
        std::mem::take(&mut self.state.lock().unwrap().requests)
    }

    /// The names of all objects.
    pub fn keys(&self) -> Vec<String> {
        self.state.lock().unwrap().objects.keys().cloned().collect()
    }
}

/// Answers one request.
fn converse(stream: TcpStream, state: &Mutex<State>) -> Option<()> {
    let request = http::read_request(&mut BufReader::new(stream.try_clone().ok()?))?;
    let path = request.path.trim_start_matches('/');
    let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
    let (bucket, key) = (http::decode(bucket), http::decode(key));
    let asked = Asked { request, bucket, key };
    let (method, head) = (asked.request.method.clone(), asked.request.method == "HEAD");
    let query = asked.request.target.split_once('?').map_or("", |(_, query)| query).to_owned();
    let answer = {
        let mut state = state.lock().unwrap();
        let answer = state.answer(&asked);
        let went = if head { 0 } else { answer.body.len() as u64 };
        let status = answer.status;
        state.requests.push(GcsRequest { method, key: asked.key.clone(), query, status, went });
        answer
    };
    answer.with("Connection", "close").send(&stream, if head { 0 } else { usize::MAX })
}

impl State {
    fn answer(&mut self, asked: &Asked) -> Response {
        let token = asked.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        if self.admits.as_ref().is_some_and(|admits| !admits(token)) {
            return error(401, "AuthenticationRequired");
        }
        if asked.bucket != "lab" {
            return error(404, "NoSuchBucket");
        }
        let reads = matches!(asked.request.method.as_str(), "GET" | "HEAD");
        if self.read_only && !reads {
            return error(403, "AccessDenied");
        }
        let upload = asked.request.param("uploadId").parse::<u64>().ok();
        match (asked.request.method.as_str(), upload) {
            ("GET", _) if asked.key.is_empty() => self.listing(asked),
            ("GET" | "HEAD", _) => self.object(asked),
            ("PUT", Some(upload)) => self.part(asked, upload),
            ("PUT", None) => self.put(asked, asked.request.body.clone()),
            ("POST", Some(upload)) => self.complete(asked, upload),
            ("POST", None) => self.begin(),
            ("DELETE", Some(upload)) => {
                self.uploads.remove(&upload);
                Response::new(204, "")
            }
            ("DELETE", None) => match self.objects.remove(&asked.key) {
                Some(_) => Response::new(204, ""),
                None => error(404, "NoSuchKey"),
            },
            _ => error(405, "MethodNotAllowed"),
        }
    }

    fn object(&self, asked: &Asked) -> Response {
        let Some(object) = self.objects.get(&asked.key) else {
            return error(404, "NoSuchKey");
        };
        let range = asked.header("range").and_then(|range| range.strip_prefix("bytes="));
        let Some((from, to)) = range.and_then(|range| range.split_once('-')) else {
            return about(object, 200, object.content.clone());
        };
        let length = object.content.len();
        let last = length - 1;
        let (from, to) = match (from.parse::<usize>(), to.parse::<usize>()) {
            (Ok(from), Ok(to)) => (from, to.min(last)),
            (Ok(from), Err(_)) => (from, last),
            (Err(_), Ok(suffix)) => (length - suffix.min(length), last),
            (Err(_), Err(_)) => return error(400, "InvalidArgument"),
        };
        about(object, 206, object.content[from..=to].to_vec())
            .with("Content-Range", format!("bytes {from}-{to}/{length}"))
    }

    fn put(&mut self, asked: &Asked, content: Vec<u8>) -> Response {
        // 0 stands for an object that is not there.
        let there = self.objects.get(&asked.key).map_or(0, |object| object.generation);
        let wanted = asked.header("x-goog-if-generation-match");
        if wanted.is_some_and(|wanted| wanted != there.to_string()) {
            return error(412, "PreconditionFailed");
        }
        self.last += 1;
        let object = StoredObject { content, generation: self.last };
        let answer = about(&object, 200, Vec::new());
        self.objects.insert(asked.key.clone(), object);
        answer
    }

    fn begin(&mut self) -> Response {
        self.last += 1;
        self.uploads.insert(self.last, BTreeMap::new());
        let id = format!("<UploadId>{}</UploadId>", self.last);
        result("InitiateMultipartUploadResult", &id)
    }

    fn part(&mut self, asked: &Asked, upload: u64) -> Response {
        let number = asked.request.param("partNumber").parse().ok();
        let (Some(parts), Some(number)) = (self.uploads.get_mut(&upload), number) else {
            return error(404, "NoSuchUpload");
        };
        parts.insert(number, asked.request.body.clone());
        Response::new(200, "").with("ETag", format!("\"{upload}-{number}\""))
    }

    fn complete(&mut self, asked: &Asked, upload: u64) -> Response {
        let Some(parts) = self.uploads.remove(&upload) else {
            return error(404, "NoSuchUpload");
        };
        let content = parts.into_values().flatten().collect();
        let put = self.put(asked, content);
        let tag = format!("<ETag>{}</ETag>", put.headers[0].1);
        result("CompleteMultipartUploadResult", &tag)
    }

    fn listing(&self, asked: &Asked) -> Response {
        let prefix = asked.request.param("prefix");
        let after = asked.request.param("continuation-token");
        let found = self.objects.iter().filter(|(key, _)| key.starts_with(prefix));
        let rest: Vec<_> = found.filter(|(key, _)| key.as_str() > after).collect();
        let page = &rest[..rest.len().min(PAGE)];
        let next = (rest.len() > PAGE).then(|| page[PAGE - 1].0);
        let mut found = String::new();
        for (key, object) in page {
            let (tag, size) = (object.generation, object.content.len());
            found +=
                &format!("<Contents><Key>{key}</Key><ETag>\"{tag:x}\"</ETag><Size>{size}</Size>");
            found += "<LastModified>2020-01-01T12:00:00.000Z</LastModified></Contents>";
        }
        if let Some(key) = next {
            found += &format!("<NextContinuationToken>{key}</NextContinuationToken>");
        }
        result("ListBucketResult", &found)
    }
}
