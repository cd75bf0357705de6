//! A chat client whose server answers with the input.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use galeras_chat::{
    Accounts, Ask, Budget, ChatClient, ChatSettings, Endpoint, Price, Protocol, SpendingLimit,
};
use galeras_net::{Clock, Secret, Sleep};
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

use crate::loopback::{Loopback, Reply, harmless, replies};

/// No text of the client may contain it, for any answer of the server.
const KEY: &str = "sk-fuzz-Zq3vN8wLr5Ty7Kp2";

/// Sleeping moves it, at once.
pub(crate) struct FastClock(Mutex<Duration>);

impl FastClock {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Duration::from_secs(1_795_262_011)))
    }
}

impl Clock for FastClock {
    fn now(&self) -> Duration {
        *self.0.lock().unwrap()
    }

    fn sleep(&self, duration: Duration) -> Sleep<'_> {
        *self.0.lock().unwrap() += duration;
        Box::pin(tokio::task::yield_now())
    }
}

struct World {
    server: Loopback,
    runtime: Runtime,
    ask: Ask,
}

static WORLD: LazyLock<Mutex<World>> = LazyLock::new(|| {
    let request = serde_json::json!({
        "model": "m",
        "messages": [{"role": "user", "content": "Complete this."}],
        "max_tokens": 100,
    });
    Mutex::new(World {
        server: Loopback::start(),
        runtime: Builder::new_current_thread().enable_all().build().unwrap(),
        ask: Ask::new(request.as_object().unwrap().clone()).unwrap(),
    })
});

/// The answers of a server, parted by lines of `%%`: a status, lines of the head, an empty line,
/// a body.
pub(crate) fn answers(input: &[u8]) {
    let world = WORLD.lock().unwrap_or_else(PoisonError::into_inner);
    let post: Vec<Reply> = replies(input, 4, KEY);
    if post.is_empty() {
        return;
    }
    // Completions are read as chats are.
    for protocol in [Protocol::Chat, Protocol::Messages] {
        world.server.set(post.clone());
        answer(&world, protocol);
    }
    world.server.set(post);
    pace(&world);
}

/// The client of a server that speaks so.
fn client(
    world: &World,
    protocol: Protocol,
    clock: &Arc<FastClock>,
    more: ChatSettings,
) -> ChatClient {
    let key = Secret::new("FUZZ_KEY", KEY).unwrap();
    let endpoint = Endpoint::new(protocol, &world.server.url("v1"), Some(key)).unwrap();
    let settings = ChatSettings {
        concurrency: 1,
        timeout: Duration::from_secs(20),
        tries: 3,
        max_answer_bytes: 2048,
        ..more
    };
    ChatClient::with_clock(endpoint, settings, Arc::<FastClock>::clone(clock)).unwrap()
}

/// For any usage that an answer claims, requests after it wait for at most one window of the limit.
fn pace(world: &World) {
    let settings = ChatSettings { tokens_per_minute: Some(100_000), ..ChatSettings::default() };
    let clock = Arc::new(FastClock::new());
    let client = client(world, Protocol::Chat, &clock, settings);
    let cancel = CancellationToken::new();
    let ask = || world.runtime.block_on(client.ask(&world.ask, &|_| (), &cancel));
    if ask().is_err() {
        return;
    }
    let body = serde_json::json!({
        "choices": [{"message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 20, "completion_tokens": 5},
    });
    let head = vec!["content-type: application/json".to_string()];
    let good = Reply { status: 200, head, body: body.to_string().into_bytes() };
    world.server.set(vec![good]);
    let start = clock.now();
    for _ in 0..3 {
        ask().unwrap();
    }
    let took = clock.now() - start;
    assert!(took < Duration::from_secs(90), "three requests of 125 tokens took {took:?}");
}

/// One request to a server that speaks so.
fn answer(world: &World, protocol: Protocol) {
    let price = Price::per_million("1.5".parse().unwrap(), "2".parse().unwrap()).unwrap();
    let limit = SpendingLimit {
        account: "fuzz".into(),
        owner: "the step `fuzz`".into(),
        max_usd: Some("0.1".parse().unwrap()),
        max_requests: None,
    };
    let settings = ChatSettings {
        budget: Some(Budget::new(Accounts::new(vec![limit], None), vec![0])),
        price: Some(price),
        ..ChatSettings::default()
    };
    let client = client(world, protocol, &Arc::new(FastClock::new()), settings);
    let said = Mutex::new(String::new());
    let result = world.runtime.block_on(client.ask(
        &world.ask,
        &|notice| said.lock().unwrap().push_str(&format!("{notice:?}\n")),
        &CancellationToken::new(),
    ));
    let mut said = said.into_inner().unwrap();
    match result {
        Ok(answer) => said.push_str(&format!("{answer:?}")),
        Err(error) => said.push_str(&harmless(&error)),
    }
    assert!(!said.contains(KEY), "the key is shown: {said}");
}
