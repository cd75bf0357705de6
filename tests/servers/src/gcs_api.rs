//! A server of Google Cloud Storage's XML API, as its reference documents it: objects with generations,
//! puts that depend on them, ranges, listings in pages, uploads in parts. Objects are in memory.
//!
//! A client is led here by `gcs_base_url` in the file of a service account with `disable_oauth`, as
//! emulators are used; it says nothing of who asks then, and is not asked. Or by `GOOGLE_BASE_URL`, and
//! [`GcsApi::admit`] says whom to answer.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

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
    /// Whether whoever has this token is answered.
    admits: Option<Admission>,
}

type Admission = Box<dyn Fn(Option<&str>) -> bool + Send>;

struct StoredObject {
    content: Vec<u8>,
    generation: u64,
}

struct Asked {
    method: String,
    bucket: String,
    key: String,
    query: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Asked {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn parameter(&self, name: &str) -> Option<String> {
        let mut pairs =
            self.query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        pairs.find(|(known, _)| *known == name).map(|(_, value)| decoded(value))
    }
}

struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Answer {
    fn xml(status: u16, body: &str) -> Self {
        let body = format!("<?xml version='1.0' encoding='UTF-8'?>{body}").into_bytes();
        Self { status, headers: vec![("Content-Type".into(), "application/xml".into())], body }
    }

    fn error(status: u16, code: &str) -> Self {
        Self::xml(status, &format!("<Error><Code>{code}</Code><Message>no</Message></Error>"))
    }

    fn of(object: &StoredObject, status: u16, body: Vec<u8>) -> Self {
        let headers = vec![
            ("ETag".into(), format!("\"{:x}\"", object.generation)),
            ("x-goog-generation".into(), object.generation.to_string()),
            ("Last-Modified".into(), "Wed, 01 Jan 2020 12:00:00 GMT".into()),
        ];
        Self { status, headers, body }
    }
}

impl GcsApi {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(State::default()));
        let served = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, state) = (stream.unwrap(), Arc::clone(&served));
                std::thread::spawn(move || converse(stream, &state));
            }
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

    /// Whether nothing may be written or removed.
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
fn converse(mut stream: TcpStream, state: &Mutex<State>) -> Option<()> {
    let asked = read(&stream)?;
    let answer = {
        let mut state = state.lock().unwrap();
        let answer = state.answer(&asked);
        state.requests.push(GcsRequest {
            method: asked.method.clone(),
            key: asked.key.clone(),
            query: asked.query.clone(),
            status: answer.status,
            went: if asked.method == "HEAD" { 0 } else { answer.body.len() as u64 },
        });
        answer
    };
    let mut head = format!("HTTP/1.1 {} x\r\nConnection: close\r\n", answer.status);
    for (name, value) in &answer.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("Content-Length: {}\r\n\r\n", answer.body.len()));
    stream.write_all(head.as_bytes()).ok()?;
    if asked.method != "HEAD" {
        stream.write_all(&answer.body).ok()?;
    }
    stream.flush().ok()
}

fn read(stream: &TcpStream) -> Option<Asked> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split(' ');
    let (method, target) = (words.next()?.to_string(), words.next()?.to_string());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_lowercase(), value.trim().to_string()));
    }
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let path = path.trim_start_matches('/');
    let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
    let (bucket, key, query) = (decoded(bucket), decoded(key), query.to_string());
    let mut asked = Asked { method, bucket, key, query, headers, body: Vec::new() };
    let length = asked.header("content-length").and_then(|value| value.parse().ok()).unwrap_or(0);
    asked.body.resize(length, 0);
    reader.read_exact(&mut asked.body).ok()?;
    Some(asked)
}

fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, more @ ..] = rest {
        let digits = (*first == b'%').then(|| std::str::from_utf8(&more[..2]).unwrap());
        match digits {
            Some(digits) => {
                bytes.push(u8::from_str_radix(digits, 16).unwrap());
                rest = &more[2..];
            }
            None => {
                bytes.push(if *first == b'+' { b' ' } else { *first });
                rest = more;
            }
        }
    }
    String::from_utf8(bytes).unwrap()
}

impl State {
    fn answer(&mut self, asked: &Asked) -> Answer {
        let token = asked.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        if self.admits.as_ref().is_some_and(|admits| !admits(token)) {
            return Answer::error(401, "AuthenticationRequired");
        }
        if asked.bucket != "lab" {
            return Answer::error(404, "NoSuchBucket");
        }
        let reads = matches!(asked.method.as_str(), "GET" | "HEAD");
        if self.read_only && !reads {
            return Answer::error(403, "AccessDenied");
        }
        let upload = asked.parameter("uploadId").and_then(|id| id.parse::<u64>().ok());
        match (asked.method.as_str(), upload) {
            ("GET", _) if asked.key.is_empty() => self.listing(asked),
            ("GET" | "HEAD", _) => self.object(asked),
            ("PUT", Some(upload)) => self.part(asked, upload),
            ("PUT", None) => self.put(asked, asked.body.clone()),
            ("POST", Some(upload)) => self.complete(asked, upload),
            ("POST", None) => self.begin(),
            ("DELETE", Some(upload)) => {
                self.uploads.remove(&upload);
                Answer { status: 204, headers: Vec::new(), body: Vec::new() }
            }
            ("DELETE", None) => match self.objects.remove(&asked.key) {
                Some(_) => Answer { status: 204, headers: Vec::new(), body: Vec::new() },
                None => Answer::error(404, "NoSuchKey"),
            },
            _ => Answer::error(405, "MethodNotAllowed"),
        }
    }

    fn object(&self, asked: &Asked) -> Answer {
        let Some(object) = self.objects.get(&asked.key) else {
            return Answer::error(404, "NoSuchKey");
        };
        let range = asked.header("range").and_then(|range| range.strip_prefix("bytes="));
        let Some((from, to)) = range.and_then(|range| range.split_once('-')) else {
            return Answer::of(object, 200, object.content.clone());
        };
        let length = object.content.len();
        let last = length - 1;
        let (from, to) = match (from.parse::<usize>(), to.parse::<usize>()) {
            (Ok(from), Ok(to)) => (from, to.min(last)),
            (Ok(from), Err(_)) => (from, last),
            (Err(_), Ok(suffix)) => (length - suffix.min(length), last),
            (Err(_), Err(_)) => return Answer::error(400, "InvalidArgument"),
        };
        let mut answer = Answer::of(object, 206, object.content[from..=to].to_vec());
        answer.headers.push(("Content-Range".into(), format!("bytes {from}-{to}/{length}")));
        answer
    }

    fn put(&mut self, asked: &Asked, content: Vec<u8>) -> Answer {
        // 0 stands for an object that is not there.
        let there = self.objects.get(&asked.key).map_or(0, |object| object.generation);
        let wanted = asked.header("x-goog-if-generation-match");
        if wanted.is_some_and(|wanted| wanted != there.to_string()) {
            return Answer::error(412, "PreconditionFailed");
        }
        self.last += 1;
        let object = StoredObject { content, generation: self.last };
        let answer = Answer::of(&object, 200, Vec::new());
        self.objects.insert(asked.key.clone(), object);
        answer
    }

    fn begin(&mut self) -> Answer {
        self.last += 1;
        self.uploads.insert(self.last, BTreeMap::new());
        let id = self.last;
        Answer::xml(
            200,
            &format!(
                "<InitiateMultipartUploadResult><UploadId>{id}</UploadId>\
                 </InitiateMultipartUploadResult>"
            ),
        )
    }

    fn part(&mut self, asked: &Asked, upload: u64) -> Answer {
        let number = asked.parameter("partNumber").and_then(|number| number.parse().ok());
        let (Some(parts), Some(number)) = (self.uploads.get_mut(&upload), number) else {
            return Answer::error(404, "NoSuchUpload");
        };
        parts.insert(number, asked.body.clone());
        let tag = ("ETag".to_string(), format!("\"{upload}-{number}\""));
        Answer { status: 200, headers: vec![tag], body: Vec::new() }
    }

    fn complete(&mut self, asked: &Asked, upload: u64) -> Answer {
        let Some(parts) = self.uploads.remove(&upload) else {
            return Answer::error(404, "NoSuchUpload");
        };
        let content = parts.into_values().flatten().collect();
        let put = self.put(asked, content);
        let tag = &put.headers[0].1;
        Answer::xml(
            200,
            &format!(
                "<CompleteMultipartUploadResult><ETag>{tag}</ETag></CompleteMultipartUploadResult>"
            ),
        )
    }

    fn listing(&self, asked: &Asked) -> Answer {
        let prefix = asked.parameter("prefix").unwrap_or_default();
        let after = asked.parameter("continuation-token").unwrap_or_default();
        let found = self.objects.iter().filter(|(key, _)| key.starts_with(&prefix));
        let rest: Vec<_> = found.filter(|(key, _)| **key > after).collect();
        let page = &rest[..rest.len().min(PAGE)];
        let next = (rest.len() > PAGE).then(|| page[PAGE - 1].0);
        let contents: String = page
            .iter()
            .map(|(key, object)| {
                format!(
                    "<Contents><Key>{key}</Key><LastModified>2020-01-01T12:00:00.000Z\
                     </LastModified><ETag>\"{:x}\"</ETag><Size>{}</Size></Contents>",
                    object.generation,
                    object.content.len()
                )
            })
            .collect();
        let next = next.map_or(String::new(), |key| {
            format!("<NextContinuationToken>{key}</NextContinuationToken>")
        });
        Answer::xml(200, &format!("<ListBucketResult>{contents}{next}</ListBucketResult>"))
    }
}
