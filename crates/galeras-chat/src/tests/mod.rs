//! Tests of the whole client against a server on this machine, with a clock that does not wait.

mod faults;
mod limits;
mod protocols;
mod secrets;
mod server;
mod spending;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use self::server::{Reply, Request, Server};
use super::*;
use galeras_net::{Clock, Secret};

/// Sleeping moves it, at once.
struct FakeClock {
    now: Mutex<Duration>,
    waits: Mutex<Vec<Duration>>,
    /// How long a sleep really takes: what is under way meanwhile arrives at the time before it.
    pause: Mutex<Duration>,
}

impl FakeClock {
    fn new() -> Arc<Self> {
        let now = Mutex::new(Duration::from_secs(1_795_262_011));
        Arc::new(Self { now, waits: Mutex::default(), pause: Mutex::default() })
    }

    fn waits(&self) -> Vec<Duration> {
        self.waits.lock().unwrap().clone()
    }
}

impl Clock for FakeClock {
    fn now(&self) -> Duration {
        *self.now.lock().unwrap()
    }

    fn sleep(&self, duration: Duration) -> galeras_net::Sleep<'_> {
        let until = self.now() + duration;
        self.waits.lock().unwrap().push(duration);
        Box::pin(async move {
            let pause = *self.pause.lock().unwrap();
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            // Others may do what they do at this time.
            for _ in 0..3 {
                tokio::task::yield_now().await;
            }
            let mut now = self.now.lock().unwrap();
            *now = until.max(*now);
        })
    }
}

fn body(text: &str) -> serde_json::Map<String, serde_json::Value> {
    let body = json!({
        "model": "m",
        "messages": [{"role": "user", "content": text}],
        "max_tokens": 100,
    });
    body.as_object().unwrap().clone()
}

fn ask(text: &str) -> Ask {
    Ask::new(body(text)).unwrap()
}

fn good(text: &str) -> String {
    json!({
        "id": "1",
        "model": "m-1",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text},
            "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25},
    })
    .to_string()
}

fn ok() -> Reply {
    Reply::Full(200, vec![], good("hi"))
}

fn status(status: u16, headers: &[(&'static str, &str)], body: &str) -> Reply {
    let headers = headers.iter().map(|(name, value)| (*name, value.to_string())).collect();
    Reply::Full(status, headers, body.to_string())
}

/// A server, and a client of it with a clock that does not wait.
struct TestClient {
    server: Server,
    client: ChatClient,
    clock: Arc<FakeClock>,
    notices: Mutex<Vec<String>>,
    cancel: CancellationToken,
}

impl TestClient {
    async fn start(
        settings: ChatSettings,
        script: impl Fn(usize, &Request) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::new(Server::start(0, script).await, Protocol::Chat, None, settings)
    }

    /// A client whose tries are answered by `replies`, and then well.
    async fn after(replies: Vec<Reply>, settings: ChatSettings) -> Self {
        let script = move |n: usize, _: &Request| replies.get(n).cloned().unwrap_or_else(ok);
        Self::start(settings, script).await
    }

    fn new(server: Server, protocol: Protocol, key: Option<&str>, settings: ChatSettings) -> Self {
        let clock = FakeClock::new();
        let key = key.map(|key| Secret::new("KEY", key).unwrap());
        let endpoint = Endpoint::new(protocol, &server.url(), key).unwrap();
        let waits = Arc::<FakeClock>::clone(&clock);
        let client = ChatClient::with_clock(endpoint, settings, waits).unwrap();
        let (notices, cancel) = (Mutex::default(), CancellationToken::new());
        Self { server, client, clock, notices, cancel }
    }

    async fn ask(&self, text: &str) -> Result<Answer, ChatError> {
        self.send(&ask(text)).await
    }

    async fn send(&self, ask: &Ask) -> Result<Answer, ChatError> {
        let notify = |ChatNotice::Waiting(text)| self.notices.lock().unwrap().push(text);
        self.client.ask(ask, &notify, &self.cancel).await
    }

    fn notices(&self) -> Vec<String> {
        self.notices.lock().unwrap().clone()
    }

    /// The sum of all waits, in milliseconds.
    fn waited(&self) -> u128 {
        self.clock.waits().iter().sum::<Duration>().as_millis()
    }
}

/// A client with the clock of the system.
fn unhurried(server: &Server, settings: ChatSettings) -> ChatClient {
    let endpoint = Endpoint::new(Protocol::Chat, &server.url(), None).unwrap();
    ChatClient::new(endpoint, settings).unwrap()
}

fn usd(text: &str) -> Usd {
    text.parse().unwrap()
}

fn failed(result: Result<Answer, ChatError>) -> (&'static str, String) {
    match result {
        Err(ChatError::Failed { rule, reason, .. }) => (rule, reason),
        other => panic!("{other:?}"),
    }
}

fn fatal(result: Result<Answer, ChatError>) -> String {
    match result {
        Err(ChatError::Fatal(reason)) => reason,
        other => panic!("{other:?}"),
    }
}
