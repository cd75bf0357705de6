//! A server of chat completions, completions and Anthropic's messages on the loopback address:
//! answers that depend on what is asked only, with faults at will; it records what it was asked.

pub mod dialects;

use std::io::{BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use self::dialects::Dialect;
pub use self::dialects::{code, content, error};
pub use crate::http::Headers;
use crate::http::{self, Request, Response};

/// The model that is served, and how the server calls it.
pub const MODEL: &str = "tiny";
pub const VERSION: &str = "tiny-2026-01-01";
/// The tokens of every prompt and answer, unless set otherwise.
pub const TOKENS: (u64, u64) = (11, 7);

/// A request as it came in.
#[derive(Clone, Debug)]
pub struct ChatRequest {
    /// Its number, from 0.
    pub number: usize,
    /// The connection that it came over, from 0.
    pub connection: usize,
    pub path: String,
    /// Names are in lower case.
    pub headers: Headers,
    /// The body as it came, and as JSON.
    pub text: String,
    pub body: Value,
    /// When it was read.
    pub at: Instant,
    /// True if an answer was sent to its last byte.
    pub answered: Arc<AtomicBool>,
}

impl ChatRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        http::header(&self.headers, name)
    }

    /// The contents of the messages, in order; or the prompt.
    pub fn said(&self) -> Vec<String> {
        if let Some(prompt) = self.body["prompt"].as_str() {
            return vec![prompt.to_owned()];
        }
        let messages = self.body["messages"].as_array().unwrap();
        messages.iter().map(|m| m["content"].as_str().unwrap().to_owned()).collect()
    }

    /// The content of the last message.
    pub fn last(&self) -> String {
        self.said().pop().unwrap()
    }
}

/// A fault instead of a good answer.
#[derive(Clone, Debug)]
pub enum ChatFault {
    /// Any answer: status, more headers, body.
    Raw(u16, Headers, String),
    /// An error as the protocol words it: status, code, message.
    Error(u16, &'static str, String),
    /// 429 with this header.
    Limited(&'static str, String),
    /// Nothing at all, until the client goes away.
    Hang,
    /// The connection ends before any answer, or within the body.
    CutBefore,
    CutBody,
    /// 200 with half of the JSON, as if that were all.
    Malformed,
    /// 200 without a choice.
    NoChoices,
    /// An answer of so many bytes, and whether its header has its length.
    Huge(usize, bool),
    /// The answer as a stream of events.
    Stream,
    /// 401 that quotes the key.
    EchoKey,
    /// The good answer with this message in it.
    Message(Value),
    /// The good answer with these fields in its place; null removes one.
    With(Value),
    /// The good answer, so much later.
    Slow(Duration),
}

type Script = Box<dyn FnMut(&ChatRequest) -> Option<ChatFault> + Send>;
type Meter = Box<dyn FnMut(&ChatRequest) -> (u64, u64) + Send>;

/// The bill so far: tokens of prompts and of answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bill {
    pub requests: u64,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
}

struct State {
    asked: Vec<ChatRequest>,
    script: Script,
    version: Option<String>,
    tokens: (u64, u64),
    meter: Option<Meter>,
    bill: Bill,
    latency: Duration,
}

/// The server; its threads end with the process.
#[derive(Clone)]
pub struct ChatApi {
    state: Arc<Mutex<State>>,
    address: String,
    under_way: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl ChatApi {
    /// Serves on a free port.
    pub fn start() -> Self {
        let state = State {
            asked: Vec::new(),
            script: Box::new(|_| None),
            version: Some(VERSION.into()),
            tokens: TOKENS,
            meter: None,
            bill: Bill::default(),
            latency: Duration::ZERO,
        };
        let (state, address) = (Arc::new(Mutex::new(state)), String::new());
        let api = Self { state, address, under_way: Arc::default(), most: Arc::default() };
        let served = api.clone();
        let address = http::listen(move |connection, stream| served.serve(connection, stream));
        Self { address, ..api }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// The `base_url`: `http://127.0.0.1:PORT/v1`.
    pub fn url(&self) -> String {
        format!("{}/v1", self.address)
    }

    /// Decides on the fault of each request.
    pub fn script(
        &self,
        script: impl FnMut(&ChatRequest) -> Option<ChatFault> + Send + 'static,
    ) -> &Self {
        self.state().script = Box::new(script);
        self
    }

    /// Each of these faults for one request, from now on; then good answers.
    pub fn faults(&self, faults: Vec<ChatFault>) -> &Self {
        let mut faults = faults.into_iter();
        self.script(move |_| faults.next())
    }

    /// This fault for whoever asks for `text`, always.
    pub fn spoil(&self, text: &'static str, fault: ChatFault) -> &Self {
        self.script(move |asked| asked.last().contains(text).then(|| fault.clone()))
    }

    /// From now on all is answered well.
    pub fn heal(&self) -> &Self {
        self.script(|_| None)
    }

    /// How the server calls its model from now on.
    pub fn set_version(&self, version: Option<&str>) -> &Self {
        self.state().version = version.map(str::to_owned);
        self
    }

    /// The tokens of prompts and of answers that are reported from now on.
    pub fn set_tokens(&self, prompt: u64, answer: u64) -> &Self {
        self.state().tokens = (prompt, answer);
        self
    }

    /// Every request takes this many tokens from now on, of the prompt and of the answer.
    pub fn set_meter(
        &self,
        meter: impl FnMut(&ChatRequest) -> (u64, u64) + Send + 'static,
    ) -> &Self {
        self.state().meter = Some(Box::new(meter));
        self
    }

    /// The cost of all requests so far. Each is billed when it arrives, as a model begins to write
    /// then, even if the client is gone.
    pub fn bill(&self) -> Bill {
        self.state().bill
    }

    /// Every answer takes so long.
    pub fn set_latency(&self, latency: Duration) -> &Self {
        self.state().latency = latency;
        self
    }

    /// Every request so far.
    pub fn asked(&self) -> Vec<ChatRequest> {
        self.state().asked.clone()
    }

    pub fn count(&self) -> usize {
        self.state().asked.len()
    }

    /// The requests so far; they are counted from 0 again.
    pub fn take(&self) -> Vec<ChatRequest> {
        self.most.store(0, Ordering::SeqCst);
        std::mem::take(&mut self.state().asked)
    }

    /// The most requests that were under way at a time.
    pub fn most_under_way(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }

    fn serve(&self, connection: usize, stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        let Ok(writer) = stream.try_clone() else { return };
        let mut reader = BufReader::new(stream);
        while let Some(request) = http::read_request(&mut reader) {
            let under_way = self.under_way.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(under_way, Ordering::SeqCst);
            let goes_on = self.answer(connection, request, &writer, &mut reader);
            self.under_way.fetch_sub(1, Ordering::SeqCst);
            if goes_on.is_none() {
                let _ = writer.shutdown(Shutdown::Both);
                return;
            }
        }
    }

    /// None if the connection has to end.
    fn answer(
        &self,
        connection: usize,
        request: Request,
        stream: &TcpStream,
        reader: &mut BufReader<TcpStream>,
    ) -> Option<()> {
        let text = String::from_utf8(request.body).ok()?;
        let mut state = self.state();
        let asked = ChatRequest {
            number: state.asked.len(),
            connection,
            path: format!("{} {}", request.method, request.target),
            headers: request.headers,
            body: serde_json::from_str(&text).unwrap_or(Value::Null),
            text,
            at: Instant::now(),
            answered: Arc::default(),
        };
        state.asked.push(asked.clone());
        let dialect = Dialect::of(&asked.path);
        let wrong = ChatFault::Error(404, "not_found", "Not Found".into());
        let fault = if dialect.is_none() { Some(wrong) } else { (state.script)(&asked) };
        let dialect = dialect.unwrap_or(Dialect::Chat);
        if let Some(meter) = &mut state.meter {
            state.tokens = meter(&asked);
        }
        let (prompt, answer) = state.tokens;
        state.bill.requests += 1;
        state.bill.prompt_tokens += prompt;
        state.bill.completion_tokens += answer;
        let (model, tokens) = (state.version.as_deref(), state.tokens);
        let good = dialect.good(&asked.body, asked.number, model, tokens);
        let latency = state.latency;
        drop(state);
        thread::sleep(latency);
        let whole = good.to_string();
        let (status, headers, body): (u16, Headers, String) = match fault {
            None => (200, vec![], whole),
            Some(ChatFault::Slow(time)) => {
                thread::sleep(time);
                (200, vec![], whole)
            }
            Some(ChatFault::Hang) => {
                let _ = reader.read(&mut [0]);
                return None;
            }
            Some(ChatFault::CutBefore) => return None,
            Some(ChatFault::CutBody) => {
                let half = whole.len() / 2;
                return response(200, vec![], whole).send(stream, half);
            }
            Some(ChatFault::Huge(bytes, told)) => return huge(stream, bytes, told),
            Some(ChatFault::Raw(status, headers, body)) => (status, headers, body),
            Some(ChatFault::Error(status, code, message)) => {
                (status, vec![], dialect.error(code, &message))
            }
            Some(ChatFault::Limited(name, value)) => {
                let body = dialect.error("rate_limit_error", "Rate limit reached");
                (429, vec![(name.into(), value)], body)
            }
            Some(ChatFault::Malformed) => (200, vec![], whole[..whole.len() / 2].to_owned()),
            Some(ChatFault::NoChoices) => (200, vec![], with(good, &dialect.nothing())),
            Some(ChatFault::Stream) => {
                let kind = ("content-type".to_owned(), "text/event-stream".to_owned());
                (200, vec![kind], format!("data: {whole}\n\ndata: [DONE]\n\n"))
            }
            Some(ChatFault::EchoKey) => {
                let key = asked.header("authorization").or(asked.header("x-api-key"));
                let key = key.unwrap_or_default().trim_start_matches("Bearer ");
                let message = format!("Incorrect API key provided: {key}. Sent as {key:?}.");
                (401, vec![], dialect.error("invalid_api_key", &message))
            }
            Some(ChatFault::Message(message)) => {
                (200, vec![], with(good, &dialect.message(message)))
            }
            Some(ChatFault::With(fields)) => (200, vec![], with(good, &fields)),
        };
        let sent = response(status, headers, body).send(stream, usize::MAX);
        asked.answered.store(sent.is_some(), Ordering::SeqCst);
        sent
    }
}

/// An answer in JSON, unless its headers have another type.
fn response(status: u16, headers: Headers, body: String) -> Response {
    let plain = http::header(&headers, "content-type").is_none();
    let response = Response { status, headers, body: body.into() };
    if plain { response.with("content-type", "application/json") } else { response }
}

fn with(mut good: Value, fields: &Value) -> String {
    for (name, value) in fields.as_object().unwrap() {
        let object = good.as_object_mut().unwrap();
        match value {
            Value::Null => drop(object.shift_remove(name)),
            value => drop(object.insert(name.clone(), value.clone())),
        }
    }
    good.to_string()
}

/// An answer of so many bytes, made while it is sent.
fn huge(mut stream: &TcpStream, bytes: usize, told: bool) -> Option<()> {
    let length = if told { format!("content-length: {bytes}") } else { "connection: close".into() };
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{length}\r\n\r\n");
    let (begin, block) = (r#"{"choices":[{"message":{"content":""#, [b'x'; 65_536]);
    stream.write_all(&[head.as_bytes(), begin.as_bytes()].concat()).ok()?;
    let mut sent = begin.len();
    while sent < bytes {
        stream.write_all(&block).ok()?;
        sent += block.len();
    }
    None
}
