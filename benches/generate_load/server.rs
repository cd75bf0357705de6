//! The loopback server of `benches/generate_load.py`:
//! chat completions as fast as one can answer them.
//!
//! One thread per connection, no dependencies: `rustc -O server.rs`. Started as
//! `server MILLISECONDS` it prints its port; every answer takes so long.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

const ANSWER: &str = concat!(
    r#"{"id":"chatcmpl-0123456789","object":"chat.completion","created":1795262011,"#,
    r#""model":"tiny-2026-01-01","choices":[{"index":0,"message":{"role":"assistant","content":"#,
    r#""Here it is:\n\n```python\ndef method(self, a, b):\n    total = a + b\n    for item in "#,
    r#"self.items:\n        total += item.value\n    return total\n```\nThat is all."},"#,
    r#""logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":57,"#,
    r#""completion_tokens":43,"total_tokens":100},"system_fingerprint":"fp_0"}"#,
);

fn main() -> io::Result<()> {
    let latency = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(0.0);
    let latency = Duration::from_secs_f64(latency / 1000.0);
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?.port());
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{ANSWER}",
        ANSWER.len()
    );
    for stream in listener.incoming().flatten() {
        let answer = answer.clone();
        // A small stack: there are many connections.
        let thread = thread::Builder::new().stack_size(64 << 10);
        thread.spawn(move || serve(stream, answer.as_bytes(), latency))?;
    }
    Ok(())
}

/// Answers until the client goes away.
fn serve(mut stream: TcpStream, answer: &[u8], latency: Duration) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut buffer = vec![0; 16 << 10];
    let mut filled = 0;
    loop {
        let end = loop {
            if let Some(end) = request(&buffer[..filled]) {
                break end;
            }
            if filled == buffer.len() {
                buffer.resize(2 * filled, 0);
            }
            match stream.read(&mut buffer[filled..]).ok()? {
                0 => return None,
                read => filled += read,
            }
        };
        buffer.copy_within(end..filled, 0);
        filled -= end;
        if !latency.is_zero() {
            thread::sleep(latency);
        }
        stream.write_all(answer).ok()?;
    }
}

/// Where the first request ends, if it is all there.
fn request(bytes: &[u8]) -> Option<usize> {
    let head = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let name = b"content-length:";
    let at = bytes[..head].windows(name.len()).position(|w| w.eq_ignore_ascii_case(name))?;
    let digits = bytes[at + name.len()..].iter().skip_while(|byte| **byte == b' ');
    let digits = digits.take_while(|byte| byte.is_ascii_digit());
    let length = digits.fold(0, |sum, digit| sum * 10 + usize::from(digit - b'0'));
    (bytes.len() >= head + length).then_some(head + length)
}
