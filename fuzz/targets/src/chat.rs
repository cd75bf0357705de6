//! A chat client whose server answers with the input.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use galeras_chat::{
    Accounts, Ask, Budget, ChatClient, ChatSettings, Endpoint, Price, Protocol, SpendingLimit,
};
use galeras_net::{Clock, Secret, Sleep};
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

use crate::loopback::{Loopback, Replies, Reply};

/// No text of the client may show it, whatever the server says.
const KEY: &str = "sk-fuzz-Zq3vN8wLr5Ty7Kp2";

/// Sleeping moves it, at once.
struct FastClock(Mutex<Duration>);

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
    let mut post: Vec<Reply> = Vec::new();
    let mut rest = input;
    while post.len() < 4 && !rest.is_empty() {
        let end = rest.windows(4).position(|part| part == b"\n%%\n");
        post.push(reply(&rest[..end.unwrap_or(rest.len())]));
        rest = end.map_or(&[], |end| &rest[end + 4..]);
    }
    if post.is_empty() {
        return;
    }
    // Completions are read as chats are.
    for protocol in [Protocol::Chat, Protocol::Messages] {
        world.server.set(Replies { get: Vec::new(), post: post.clone() });
        answer(&world, protocol);
    }
}

/// One request to a server that speaks so.
fn answer(world: &World, protocol: Protocol) {
    let key = Secret::new("FUZZ_KEY", KEY).unwrap();
    let endpoint = Endpoint::new(protocol, &world.server.url("v1"), Some(key)).unwrap();
    let price = Price::per_million("1.5".parse().unwrap(), "2".parse().unwrap()).unwrap();
    let limit = SpendingLimit {
        account: "fuzz".into(),
        owner: "the step `fuzz`".into(),
        max_usd: Some("0.1".parse().unwrap()),
        max_requests: None,
    };
    let settings = ChatSettings {
        concurrency: 1,
        timeout: Duration::from_secs(20),
        tries: 3,
        max_answer_bytes: 2048,
        budget: Some(Budget::new(Accounts::new(vec![limit], None), vec![0])),
        price: Some(price),
        ..ChatSettings::default()
    };
    let clock = Arc::new(FastClock(Mutex::new(Duration::from_secs(1_795_262_011))));
    let client = ChatClient::with_clock(endpoint, settings, clock).unwrap();
    let said = Mutex::new(String::new());
    let result = world.runtime.block_on(client.ask(
        &world.ask,
        &|notice| said.lock().unwrap().push_str(&format!("{notice:?}\n")),
        &CancellationToken::new(),
    ));
    let mut said = said.into_inner().unwrap();
    match result {
        Ok(answer) => said.push_str(&format!("{answer:?}")),
        Err(error) => {
            let text = error.to_string();
            assert!(!text.is_empty());
            assert!(!text.chars().any(char::is_control), "it steers a terminal: {text:?}");
            said.push_str(&text);
        }
    }
    assert!(!said.contains(KEY), "the key is shown: {said}");
}

fn reply(text: &[u8]) -> Reply {
    let head_end = text.windows(2).position(|pair| pair == b"\n\n");
    let (head, body) = match head_end {
        Some(end) => (&text[..end], &text[end + 2..]),
        None => (text, &[][..]),
    };
    let head = String::from_utf8_lossy(head).replace("KEY", KEY);
    let body = String::from_utf8_lossy(body).replace("KEY", KEY);
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.trim().parse().ok()).unwrap_or(200_u16);
    let head = lines.filter(|line| may_be_sent(line)).map(str::to_owned).collect();
    // Answers below 200 announce another one.
    Reply { status: status.clamp(200, 599), head, body: body.into_bytes() }
}

/// Whether a line is a header that does not change where the answer ends.
fn may_be_sent(line: &str) -> bool {
    let Some((name, value)) = line.split_once(':') else { return false };
    let name_ok = !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    let framing = ["content-length", "transfer-encoding", "connection", "upgrade", "trailer"];
    name_ok
        && !framing.iter().any(|framing| name.eq_ignore_ascii_case(framing))
        && value.chars().all(|c| c == '\t' || (!c.is_control() && c != '\u{7f}'))
}
