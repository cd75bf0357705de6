//! `galeras view`: who is answered, the pages of tables, and ratings that a killed server keeps.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Instant;

use serde_json::Value;

use crate::harness::{Project, patience, says};

const WORKFLOW: &str = r#"galeras: 1
steps:
  points: { op: read, with: { path: points.csv } }
  judged:
    op: review
    from: points
    with:
      questions: { code: Is it whole? }
      ratings: ratings
"#;

/// A served project.
struct Server {
    child: Child,
    port: u16,
    token: String,
}

/// A response of the server.
struct Reply {
    status: u16,
    head: String,
    body: String,
}

impl Reply {
    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }
}

impl Server {
    #[track_caller]
    fn start(project: &Project) -> Self {
        let mut command = project.command(&["view", "w.yaml"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (address, token) = line.trim().split_once("/?token=").expect(&line);
        let port = address.strip_prefix("http://127.0.0.1:").unwrap().parse().unwrap();
        Self { child, port, token: token.to_string() }
    }

    fn send(&self, request: &str) -> Reply {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        Reply { status, head: head.to_string(), body: body.to_string() }
    }

    /// A request with these headers, and the connection closed after it.
    fn request(&self, line: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let mut text = format!("{line} HTTP/1.1\r\nConnection: close\r\n");
        headers.iter().for_each(|(name, value)| text.push_str(&format!("{name}: {value}\r\n")));
        text.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
        self.send(&text)
    }

    fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn cookie(&self) -> String {
        format!("galeras_view_{}={}", self.port, self.token)
    }

    fn get(&self, path: &str) -> Reply {
        let (host, cookie) = (self.host(), self.cookie());
        let headers = [("Host", host.as_str()), ("Cookie", &cookie)];
        self.request(&format!("GET {path}"), &headers, "")
    }

    #[track_caller]
    fn page(&self, path: &str) -> String {
        let reply = self.get(path);
        assert_eq!(reply.status, 200, "{path}: {}", reply.body);
        reply.body
    }

    fn post(&self, path: &str, form: &str) -> Reply {
        let (host, cookie) = (self.host(), self.cookie());
        let origin = format!("http://{host}");
        let headers = [
            ("Host", host.as_str()),
            ("Cookie", &cookie),
            ("Origin", &origin),
            ("Content-Type", "application/x-www-form-urlencoded"),
        ];
        self.request(&format!("POST {path}"), &headers, form)
    }

    fn rate(&self, rater: &str, point: &str, answer: &str) -> Reply {
        let form =
            format!("step=judged&rater={rater}&point={point}&question=code&answer={answer}&note=");
        self.post("/review/rate", &form)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn project(points: usize) -> Project {
    let line = |n| format!("p{n:03},\"def f{n}():\n    return {n}\",{},row {}\n", n % 7, n * 3);
    let lines: String = (0..points).map(line).collect();
    let points = format!("id,code,n,label\n{lines}");
    Project::new(WORKFLOW).with("points.csv", points).with("ratings/README.md", "")
}

#[test]
fn only_this_server_s_own_pages_with_the_token_are_answered() {
    let project = project(3).ran();
    let server = Server::start(&project);
    let (host, cookie, token) = (server.host(), server.cookie(), server.token.clone());
    let own = format!("http://{host}");
    let get = |headers: &[(&str, &str)]| server.request("GET /", headers, "").status;
    assert_eq!(get(&[("Host", &host)]), 401);
    assert_eq!(get(&[("Host", &host), ("Cookie", "galeras_view_1=x")]), 401);
    assert_eq!(get(&[("Host", "evil.example"), ("Cookie", &cookie)]), 403);
    let rebound = format!("evil.example:{}", server.port);
    assert_eq!(get(&[("Host", &rebound), ("Cookie", &cookie)]), 403);
    assert_eq!(get(&[("Host", &host), ("Cookie", &cookie)]), 200);
    let first = server.request(&format!("GET /?token={token}"), &[("Host", &host)], "");
    let given = first.header("set-cookie").unwrap().to_string();
    assert_eq!(first.status, 200);
    assert!(given.starts_with(&cookie), "{given}");
    says(&given, &["HttpOnly", "SameSite=Strict"]);
    for (name, value) in [
        ("x-frame-options", "DENY"),
        ("x-content-type-options", "nosniff"),
        ("cache-control", "no-store"),
    ] {
        assert_eq!(first.header(name), Some(value));
    }
    assert!(first.header("access-control-allow-origin").is_none());
    let form = "step=judged&rater=ann&point=p000&question=code&answer=yes";
    let kind = ("Content-Type", "application/x-www-form-urlencoded");
    let post = |headers: &[(&str, &str)]| server.request("POST /review/rate", headers, form).status;
    assert_eq!(post(&[("Host", &host), ("Cookie", &cookie), kind]), 403);
    for origin in ["null", "http://evil.example", "http://127.0.0.1:1"] {
        let headers = [("Host", host.as_str()), ("Cookie", &cookie), ("Origin", origin), kind];
        assert_eq!(post(&headers), 403, "{origin}");
    }
    assert_eq!(post(&[("Host", &host), ("Origin", &own), kind]), 401);
    assert!(!project.path("ratings/ann.jsonl").exists());
    assert_eq!(server.rate("ann", "p000", "yes").status, 303);
    assert!(project.path("ratings/ann.jsonl").exists());
    let addresses = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let listening = format!(":{:04X} 00000000:0000 0A", server.port);
    let lines: Vec<&str> = addresses.lines().filter(|line| line.contains(&listening)).collect();
    assert!(lines.iter().all(|line| line.contains("0100007F:")), "loopback only: {lines:?}");
}

#[test]
fn tables_are_shown_sorted_and_filtered_page_by_page() {
    let project = project(120);
    let server = Server::start(&project);
    says(&server.page("/"), &["galeras run w.yaml"]);
    project.run_ok(&[]);
    // The server looks again.
    std::thread::sleep(std::time::Duration::from_millis(600));
    for (path, words) in [
        ("/", &["/table?name=judged.sheet"][..]),
        ("/table?name=points", &["rows 1 to 50 of 120", "p000"]),
        ("/table?name=points&page=3", &["rows 101 to 120 of 120", "p119"]),
        ("/table?name=points&column=n&op=eq&value=3", &["rows 1 to 17 of 17"]),
        ("/table?name=points&value=RETURN+119", &["rows 1 to 1 of 1", "p119"]),
        ("/row?name=points&at=7", &["hl-keyword", "p007"]),
        ("/report", &["galeras run w.yaml", "judged"]),
    ] {
        says(&server.page(path), words);
    }
    let sorted = server.page("/table?name=points&sort=label&desc=1");
    let (one, two) = (sorted.find("row 99").unwrap(), sorted.find("row 96").unwrap());
    assert!(one < two && !sorted.contains("row 0<"));
    // Sorted and filtered at once, from page to page.
    let mut wanted: Vec<(String, String)> = (0..120)
        .filter(|n| n % 7 != 3)
        .map(|n| (format!("row {}", n * 3), format!("p{n:03}")))
        .collect();
    wanted.sort_by(|a, b| b.cmp(a));
    let both = "/table?name=points&sort=label&desc=1&column=n&op=ne&value=3";
    let mut seen = Vec::new();
    for page in 1..=3 {
        let page = server.page(&format!("{both}&page={page}"));
        let rows = page.split("<tr><th scope=\"row\"").skip(1);
        let id = |row: &str| row[row.find("p").unwrap()..][..4].to_string();
        seen.extend(rows.map(|row| id(row.split_once("\">").unwrap().1)));
    }
    assert_eq!(seen, wanted.into_iter().map(|(_, id)| id).collect::<Vec<_>>());
    let wrong = server.page("/table?name=points&column=n&op=eq&value=%3Cscript%3E");
    assert!(wrong.contains("holds numbers") && !wrong.contains("<script>”"), "{wrong}");
    for path in ["/table?name=pionts", "/nothing", "/row?name=points&at=1200"] {
        assert_eq!(server.get(path).status, 404, "{path}");
    }
}

fn answers(project: &Project, rater: &str) -> Vec<(String, Value)> {
    let text = project.read(&format!("ratings/{rater}.jsonl"));
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.map(|line| (line["id"].as_str().unwrap().to_string(), line["answer"].clone())).collect()
}

#[test]
fn ratings_are_on_disk_before_the_browser_is_told_and_a_killed_server_loses_none() {
    let project = project(6).ran();
    let server = Server::start(&project);
    let page = server.page("/review/rate?step=judged&rater=ann");
    says(&page, &["0 of 6 answers", "data-point=\"p000\""]);
    for (n, answer) in ["yes", "no", "unsure"].into_iter().enumerate() {
        let reply = server.rate("ann", &format!("p{n:03}"), answer);
        assert_eq!(reply.status, 303, "{}", reply.body);
        let next = reply.header("location").unwrap().to_string();
        assert!(next.contains(&format!("point=p{:03}", n + 1)), "{next}");
        assert_eq!(answers(&project, "ann").len(), n + 1);
    }
    drop(server);
    let server = Server::start(&project);
    assert!(server.page("/review/rate?step=judged&rater=ann").contains("3 of 6 answers"));
    // The last decision is taken back, step by step.
    for expected in ["p002", "p001"] {
        let reply = server.post("/review/undo", "step=judged&rater=ann");
        assert!(reply.header("location").unwrap().contains(expected), "{}", reply.head);
    }
    assert_eq!(answers(&project, "ann").len(), 5, "undo is a line, too");
    assert!(server.page("/review/rate?step=judged&rater=ann").contains("1 of 6 answers"));
    // Raters do not see each other's answers, and nothing is decided before all are done.
    assert_eq!(server.rate("ben", "p000", "no").status, 303);
    let early = server.get("/review/rate?step=judged&rater=adjudicated");
    assert_eq!(early.status, 400, "{}", early.body);
    says(&early.body, &["ann has 5 answers left"]);
    for n in 0..6 {
        server.rate("ann", &format!("p{n:03}"), "yes");
        server.rate("ben", &format!("p{n:03}"), if n == 0 { "no" } else { "yes" });
    }
    let page = server.page("/review/rate?step=judged&rater=adjudicated");
    says(&page, &["point 1 of 1", "<b>ben</b>: no"]);
    assert_eq!(server.rate("adjudicated", "p000", "no").status, 303);
    let agreement = server.page("/review/agreement?step=judged");
    assert!(agreement.contains("undecided"), "{agreement}");
    project.run_ok(&[]);
    assert_eq!(project.rows("judged.rejects")[0]["reason"], "code: decided: no");
    for (rater, point, answer) in [
        ("../x", "p000", "yes"),
        ("ANN", "p000", "yes"),
        ("ann", "nobody", "yes"),
        ("ann", "p000", "perhaps"),
    ] {
        assert_eq!(server.rate(rater, point, answer).status, 400, "{rater} {point} {answer}");
    }
}

#[test]
fn half_open_connections_do_not_block_the_pages() {
    let project = project(1);
    let server = Server::start(&project);
    let open = |_| {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: ").unwrap();
        stream
    };
    let mut streams: Vec<TcpStream> = (0..300).map(open).collect();
    let begun = Instant::now();
    assert_eq!(server.get("/").status, 200);
    // They are closed, in two rounds of three seconds.
    for stream in &mut streams {
        let _ = stream.read_to_end(&mut Vec::new());
    }
    assert!(begun.elapsed() < patience(15), "{:?}", begun.elapsed());
    // A connection that has been answered is not kept.
    let (host, cookie) = (server.host(), server.cookie());
    let kept = format!("GET / HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\n\r\n");
    assert_eq!(server.send(&kept).header("connection"), Some("close"));
}

#[test]
fn an_interrupt_ends_the_server_cleanly() {
    let project = project(1);
    let mut server = Server::start(&project);
    crate::harness::signal("INT", server.child.id());
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

/// A workflow names the folder of ratings, which may be elsewhere, or lead there.
#[test]
fn ratings_elsewhere_are_not_written_unasked() {
    let project = project(6);
    project.write("../elsewhere/ann.jsonl", "");
    for (ratings, link, target) in [
        ("../elsewhere", "none", ""),
        ("link", "link", "../elsewhere"),
        ("ratings", "ratings/ann.jsonl", "../../elsewhere/ann.jsonl"),
    ] {
        let named = format!("ratings: {ratings}");
        project.write("w.yaml", WORKFLOW.replace("ratings: ratings", &named));
        if !target.is_empty() {
            std::os::unix::fs::symlink(target, project.path(link)).unwrap();
        }
        project.run(&["run", "w.yaml", "--allow", "read:../elsewhere"]).exits(0);
        let server = Server::start(&project);
        let reply = server.rate("ann", "p000", "yes");
        assert_eq!(reply.status, 400, "{ratings}: {}", reply.body);
        says(&reply.body, &["The answer is not kept", "--allow write:"]);
        assert_eq!(project.read("../elsewhere/ann.jsonl"), "", "{ratings}");
    }
}
