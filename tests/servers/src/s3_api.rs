//! An S3 server: `s3s-fs`, which checks signatures and keeps objects as files, behind a layer that
//! records requests and answers as S3 is documented to where `s3s-fs` does not. Puts with conditions are
//! atomic, a bucket that is not there is an error, and it can refuse, be slow, or be down.

use std::fs;
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::http::request::Parts;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use s3s::Body;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s_fs::FileSystem;

/// The only user.
pub const KEY_ID: &str = "GALERASTESTKEY";
pub const SECRET: &str = "galeras-tests-9d0c6f1b";

/// How the server treats its clients.
#[derive(Clone, Debug, Default)]
pub struct S3Manners {
    /// Nothing may be written or removed.
    pub read_only: bool,
    /// Nothing may be listed.
    pub unlisted: bool,
    /// The token of the session is no longer valid, and is quoted as S3 does.
    pub expired: bool,
    /// It knows no puts with conditions.
    pub unconditional: bool,
    /// It ends connections instead of answering.
    pub down: bool,
    /// How long it thinks before it does what a put asks for.
    pub put_delay: Duration,
}

/// A request that was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct S3Request {
    pub method: String,
    /// The path without the bucket.
    pub key: String,
    pub query: String,
    pub status: u16,
    /// Bytes of the answer.
    pub went: u64,
}

/// A running server; it ends with the process.
pub struct S3Api {
    url: String,
    state: Arc<State>,
}

struct State {
    root: PathBuf,
    service: S3Service,
    manners: Mutex<S3Manners>,
    requests: Mutex<Vec<S3Request>>,
    /// One at a time looks whether a condition holds, and writes.
    conditions: tokio::sync::Mutex<()>,
}

impl S3Api {
    /// Serves the buckets in a folder.
    pub fn start(root: &Path) -> Self {
        let mut builder = S3ServiceBuilder::new(FileSystem::new(root).unwrap());
        builder.set_auth(SimpleAuth::from_single(KEY_ID, SECRET));
        let state = Arc::new(State {
            root: root.to_path_buf(),
            service: builder.build(),
            manners: Mutex::default(),
            requests: Mutex::default(),
            conditions: tokio::sync::Mutex::default(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let served = Arc::clone(&state);
        std::thread::spawn(move || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            runtime.enable_all().build().unwrap().block_on(serve(listener, served));
        });
        Self { url, state }
    }

    /// Makes a bucket.
    pub fn bucket(&self, name: &str) {
        fs::create_dir(self.state.root.join(name)).unwrap();
    }

    /// The environment of a client of the only user.
    pub fn env(&self) -> [(&'static str, String); 5] {
        [
            ("AWS_ACCESS_KEY_ID", KEY_ID.into()),
            ("AWS_SECRET_ACCESS_KEY", SECRET.into()),
            ("AWS_ENDPOINT_URL", self.url.clone()),
            ("AWS_REGION", "us-east-1".into()),
            ("AWS_ALLOW_HTTP", "true".into()),
        ]
    }

    /// Changes its manners.
    pub fn behave(&self, change: impl FnOnce(&mut S3Manners)) {
        change(&mut self.state.manners.lock().unwrap());
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<S3Request> {
        self.state.requests.lock().unwrap().clone()
    }

    /// The requests since they were last taken.
    pub fn take(&self) -> Vec<S3Request> {
        std::mem::take(&mut self.state.requests.lock().unwrap())
    }

    /// The keys below `prefix` that were written, once for each time.
    pub fn puts(&self, prefix: &str) -> Vec<String> {
        let mut requests = self.requests();
        requests.retain(|r| r.method == "PUT" && r.status == 200 && r.key.starts_with(prefix));
        requests.into_iter().map(|request| request.key).collect()
    }
}

async fn serve(listener: TcpListener, state: Arc<State>) {
    listener.set_nonblocking(true).unwrap();
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            let service = service_fn(|request| answer(request, &state));
            // A client that goes away is none of our business.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

/// Answers a request, and records it. An error ends the connection.
async fn answer(
    request: Request<Incoming>,
    state: &Arc<State>,
) -> Result<Response<Full<Bytes>>, io::Error> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let manners = state.manners.lock().unwrap().clone();
    if manners.down {
        return Err(io::ErrorKind::ConnectionAborted.into());
    }
    let path = parts.uri.path().trim_start_matches('/').to_string();
    let (bucket, _) = path.split_once('/').unwrap_or((&path, ""));
    let refused = refusal(&parts, bucket, &manners, state);
    if refused.is_none() && parts.method == Method::PUT {
        tokio::time::sleep(manners.put_delay).await;
    }
    // What has begun is done and recorded, also if the client is gone meanwhile.
    let state = Arc::clone(state);
    let answered = tokio::spawn(async move { performed(parts, body, refused, &state).await });
    answered.await.map_err(io::Error::other)?
}

/// Does what a request asks for, unless it was refused, and records it.
async fn performed(
    parts: Parts,
    body: Bytes,
    refused: Option<Response<Full<Bytes>>>,
    state: &State,
) -> Result<Response<Full<Bytes>>, io::Error> {
    let path = parts.uri.path().trim_start_matches('/').to_string();
    let key = path.split_once('/').map_or("", |(_, key)| key);
    let (method, query) = (parts.method.clone(), parts.uri.query().unwrap_or("").to_string());
    let response = match refused {
        Some(response) => response,
        None => {
            let conditional = has_condition(&parts);
            let _turn = if conditional { Some(state.conditions.lock().await) } else { None };
            let answer = state.service.call(Request::from_parts(parts, Body::from(body))).await;
            let (parts, body) =
                answer.map_err(|e| io::Error::other(format!("{e:?}")))?.into_parts();
            let body = body.collect().await.map_err(|e| io::Error::other(e.to_string()))?;
            Response::from_parts(parts, Full::new(body.to_bytes()))
        }
    };
    let went = hyper::body::Body::size_hint(response.body()).exact().unwrap_or(0);
    state.requests.lock().unwrap().push(S3Request {
        method: method.to_string(),
        key: key.to_string(),
        query,
        status: response.status().as_u16(),
        went,
    });
    Ok(response)
}

fn has_condition(parts: &Parts) -> bool {
    ["if-match", "if-none-match"].iter().any(|name| parts.headers.contains_key(*name))
}

/// The answer to what is not done at all.
fn refusal(
    parts: &Parts,
    bucket: &str,
    manners: &S3Manners,
    state: &State,
) -> Option<Response<Full<Bytes>>> {
    let writes = [Method::PUT, Method::POST, Method::DELETE].contains(&parts.method);
    let lists = parts.uri.query().is_some_and(|query| query.contains("list-type"));
    let header = |name| parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("");
    let (status, code, more) = match () {
        () if manners.expired => {
            let token = header("x-amz-security-token");
            (400, "ExpiredToken", format!("<Token-0>{token}</Token-0>"))
        }
        () if !state.root.join(bucket).is_dir() => (404, "NoSuchBucket", String::new()),
        () if (manners.read_only && writes) || (manners.unlisted && lists) => {
            (403, "AccessDenied", format!("<AWSAccessKeyId>{KEY_ID}</AWSAccessKeyId>"))
        }
        () if manners.unconditional && writes && has_condition(parts) => {
            (501, "NotImplemented", String::new())
        }
        () => return None,
    };
    let body = match parts.method {
        Method::HEAD => String::new(),
        _ => format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code>\
             <Message>no</Message>{more}</Error>"
        ),
    };
    let status = StatusCode::from_u16(status).unwrap();
    let response = Response::builder().status(status).header("content-type", "application/xml");
    Some(response.body(Full::new(Bytes::from(body))).unwrap())
}
