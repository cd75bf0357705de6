//! GitHub on the loopback address: the search of its REST API and its Git servers' first
//! answer, with faults at will.
//!
//! It really evaluates queries (`query`), and records what it was asked.

use std::io::BufReader;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

mod query;

pub use crate::http::Request;
use crate::http::{Response, encode, listen, read_request};

/// A repository on the server. Times are `YYYY-MM-DDTHH:MM:SSZ`.
#[derive(Clone, Debug)]
pub struct Repo {
    pub id: u64,
    pub full_name: String,
    pub stars: u64,
    pub forks: u64,
    pub size: u64,
    pub language: Option<String>,
    pub license: Option<String>,
    pub fork: bool,
    pub archived: bool,
    pub created_at: String,
    pub pushed_at: String,
    pub updated_at: String,
    pub default_branch: String,
    /// The commit that `HEAD` names, 40 hexadecimal digits.
    pub head: String,
    /// Where to clone from, instead of this server.
    pub clone_url: Option<String>,
}

impl Repo {
    /// A Python repository that the paper's query finds, if it has more than 1,000 stars.
    pub fn new(id: u64, full_name: &str, stars: u64) -> Self {
        Self {
            id,
            full_name: full_name.into(),
            stars,
            forks: stars / 7,
            size: 50_000,
            language: Some("Python".into()),
            license: Some("MIT".into()),
            fork: false,
            archived: false,
            created_at: "2015-06-01T10:00:00Z".into(),
            pushed_at: "2023-01-05T12:00:00Z".into(),
            updated_at: "2023-02-01T08:00:00Z".into(),
            default_branch: "main".into(),
            head: format!("{id:040x}"),
            clone_url: None,
        }
    }
}

/// A fault of one answer.
#[derive(Clone, Debug)]
pub enum GithubFault {
    /// 403, and nothing remains until so many seconds from now.
    Primary { reset_in: u64 },
    /// The answer is good, but the last one for so many seconds.
    LastOne { reset_in: u64 },
    /// A secondary limit, with status 403 or 429.
    Secondary { status: u16, retry_after: Option<u64> },
    /// A page with half of its items, marked as incomplete.
    Incomplete,
    /// 502 with HTML.
    BadGateway,
    /// The connection ends in the middle of the body.
    CutBody,
    /// 200 with half of the JSON, as if that were all.
    InvalidJson,
    /// 401.
    Unauthorized,
    /// The good answer, so much later.
    Slow(Duration),
    /// A page without its first items, of which this is the number, although they are counted.
    Omit(usize),
    /// Any other answer: status, more headers, body.
    Raw(u16, Vec<(String, String)>, String),
}

type Script = Box<dyn FnMut(usize, &Request) -> Option<GithubFault> + Send>;

struct State {
    repos: Vec<Repo>,
    requests: Vec<Request>,
    searches: usize,
    script: Script,
    address: String,
}

/// The server; its threads end with the process.
#[derive(Clone)]
pub struct GithubApi(Arc<Mutex<State>>);

impl GithubApi {
    /// Serves these repositories on a free port.
    pub fn start(repos: Vec<Repo>) -> Self {
        let script: Script = Box::new(|_, _| None);
        let (requests, address) = (Vec::new(), String::new());
        let state = State { repos, requests, searches: 0, script, address };
        let api = Self(Arc::new(Mutex::new(state)));
        let served = api.clone();
        let address = listen(move |_, stream| served.serve(stream));
        api.state().address = address;
        api
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// `http://127.0.0.1:PORT`, the address of the API; with `/api/v3` after it, it is the
    /// address of a GitHub Enterprise server's API.
    pub fn url(&self) -> String {
        self.state().address.clone()
    }

    /// Decides on the fault of each search: its number from 0, and the request.
    pub fn script(
        &self,
        script: impl FnMut(usize, &Request) -> Option<GithubFault> + Send + 'static,
    ) -> &Self {
        self.state().script = Box::new(script);
        self
    }

    /// These faults, by the number of the search from 0.
    pub fn faults(&self, faults: Vec<(usize, GithubFault)>) -> &Self {
        self.script(move |n, _| faults.iter().find(|(at, _)| *at == n).map(|(_, f)| f.clone()))
    }

    /// Replaces the repositories.
    pub fn set_repos(&self, repos: Vec<Repo>) {
        self.state().repos = repos;
    }

    /// Every request so far.
    pub fn requests(&self) -> Vec<Request> {
        self.state().requests.clone()
    }

    /// The searches so far: query and page.
    pub fn searches(&self) -> Vec<(String, String)> {
        let searches = self.requests().into_iter().filter(|r| r.path.ends_with("/repositories"));
        searches.map(|r| (r.param("q").to_string(), r.param("page").to_string())).collect()
    }

    /// Forgets the requests, and counts searches from 0 again.
    pub fn forget(&self) {
        let mut state = self.state();
        state.requests.clear();
        state.searches = 0;
    }

    fn serve(&self, stream: TcpStream) {
        let Ok(writer) = stream.try_clone() else { return };
        let mut reader = BufReader::new(stream);
        while let Some(request) = read_request(&mut reader) {
            if self.answer(&request, &writer).is_none() {
                let _ = writer.shutdown(Shutdown::Both);
                return;
            }
        }
    }

    /// None if the connection has to end.
    fn answer(&self, request: &Request, stream: &TcpStream) -> Option<()> {
        let mut state = self.state();
        state.requests.push(request.clone());
        let path = request.path.strip_prefix("/api/v3").unwrap_or(&request.path);
        if let Some(repo) = path.strip_suffix(".git/info/refs") {
            let repo = state.repos.iter().find(|r| repo.strip_prefix('/') == Some(&r.full_name));
            let answer = match repo {
                Some(repo) if request.param("service") == "git-upload-pack" => advertise(repo),
                _ => Response::new(404, "Repository not found."),
            };
            drop(state);
            return answer.send(stream, usize::MAX);
        }
        if path != "/search/repositories" {
            return error(404, "Not Found").send(stream, usize::MAX);
        }
        let number = state.searches;
        state.searches += 1;
        let fault = (state.script)(number, request);
        let mut answer = search(&state, request, fault.as_ref());
        drop(state);
        match fault {
            Some(GithubFault::Slow(time)) => thread::sleep(time),
            Some(GithubFault::CutBody) => {
                let half = answer.body.len() / 2;
                return answer.send(stream, half);
            }
            Some(GithubFault::InvalidJson) => answer.body.truncate(answer.body.len() / 2),
            _ => {}
        }
        answer.send(stream, usize::MAX)
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn error(status: u16, message: &str) -> Response {
    let body = json!({ "message": message, "documentation_url": "https://docs.github.com/rest" });
    Response::new(status, body.to_string())
}

fn limits(answer: Response, remaining: u64, reset_in: u64) -> Response {
    answer
        .with("x-ratelimit-limit", 30)
        .with("x-ratelimit-remaining", remaining)
        .with("x-ratelimit-reset", now() + reset_in)
        .with("x-ratelimit-resource", "search")
}

fn search(state: &State, request: &Request, fault: Option<&GithubFault>) -> Response {
    let answer = match fault {
        Some(GithubFault::Primary { reset_in }) => {
            return limits(error(403, "API rate limit exceeded for 127.0.0.1."), 0, *reset_in);
        }
        Some(GithubFault::Secondary { status, retry_after }) => {
            let text = "You have exceeded a secondary rate limit. Please wait a few minutes.";
            let answer = limits(error(*status, text), 29, 60);
            return match retry_after {
                Some(seconds) => answer.with("retry-after", seconds),
                None => answer,
            };
        }
        Some(GithubFault::BadGateway) => Response::new(502, "<html>Server Error</html>"),
        Some(GithubFault::Unauthorized) => error(401, "Bad credentials"),
        Some(GithubFault::Raw(status, headers, body)) => {
            let answer = Response::new(*status, body.clone());
            headers.iter().fold(answer, |answer, (name, value)| answer.with(name, value))
        }
        _ => found(state, request, fault),
    };
    let answer = answer.with("content-type", "application/json; charset=utf-8");
    match fault {
        Some(GithubFault::LastOne { reset_in }) => limits(answer, 0, *reset_in),
        _ => limits(answer, 29, 60),
    }
}

fn found(state: &State, request: &Request, fault: Option<&GithubFault>) -> Response {
    let number = |name, default: usize| request.param(name).parse().unwrap_or(default);
    let (size, page) = (number("per_page", 30).clamp(1, 100), number("page", 1).max(1));
    if size * page > 1_000 {
        return error(422, "Only the first 1000 search results are available");
    }
    let matches = match query::Query::parse(request.param("q")) {
        Ok(query) => state.repos.iter().filter(move |repo| query.matches(repo)),
        Err(message) => {
            let body = json!({
                "message": "Validation Failed",
                "errors": [{ "message": message, "resource": "Search", "field": "q",
                             "code": "invalid" }],
            });
            return Response::new(422, body.to_string());
        }
    };
    let mut matches: Vec<&Repo> = matches.collect();
    // The best match is as good as any order, if it stays the same.
    matches.sort_by_key(|repo| repo.id.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    match request.param("sort") {
        "stars" => matches.sort_by_key(|repo| repo.stars),
        "forks" => matches.sort_by_key(|repo| repo.forks),
        "updated" => matches.sort_by_key(|repo| &repo.updated_at),
        _ => {}
    }
    if request.param("order") != "asc" {
        matches.reverse();
    }
    let items = matches.iter().skip((page - 1) * size).take(size);
    let mut items: Vec<Value> = items.map(|repo| item(repo, &state.address)).collect();
    let incomplete = matches!(fault, Some(GithubFault::Incomplete));
    match fault {
        Some(GithubFault::Incomplete) => items.truncate(items.len() / 2),
        Some(GithubFault::Omit(count)) => drop(items.drain(..items.len().min(*count))),
        _ => {}
    }
    let body = json!({
        "total_count": matches.len(), "incomplete_results": incomplete, "items": items,
    });
    let answer = Response::new(200, body.to_string());
    let last = matches.len().min(1_000).div_ceil(size).min(1_000 / size);
    let mut links = Vec::new();
    for (there, to, rel) in
        [(page > 1, page - 1, "prev"), (page < last, page + 1, "next"), (page < last, last, "last")]
    {
        if there {
            let mut pairs = request.query.clone();
            pairs.retain(|(name, _)| name != "page");
            pairs.push(("page".into(), to.to_string()));
            let text: Vec<String> =
                pairs.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
            let address = format!("{}{}?{}", state.address, request.path, text.join("&"));
            links.push(format!("<{address}>; rel=\"{rel}\""));
        }
    }
    if links.is_empty() { answer } else { answer.with("link", links.join(", ")) }
}

fn item(repo: &Repo, address: &str) -> Value {
    let (owner, name) = repo.full_name.split_once('/').unwrap();
    let home = format!("{address}/{}.git", repo.full_name);
    let license = repo.license.as_ref();
    json!({
        "id": repo.id,
        "name": name,
        "full_name": repo.full_name,
        "private": false,
        "owner": { "login": owner },
        "fork": repo.fork,
        "archived": repo.archived,
        "clone_url": repo.clone_url.as_ref().unwrap_or(&home),
        "default_branch": repo.default_branch,
        "stargazers_count": repo.stars,
        "forks_count": repo.forks,
        "open_issues_count": 3,
        "size": repo.size,
        "language": repo.language,
        "license": license.map(|id| json!({ "key": id.to_lowercase(), "spdx_id": id })),
        "created_at": repo.created_at,
        "updated_at": repo.updated_at,
        "pushed_at": repo.pushed_at,
        "score": 1.0,
    })
}

/// The references of a repository in version 0 of Git's protocol, over smart HTTP.
fn advertise(repo: &Repo) -> Response {
    let line = |text: &str| format!("{:04x}{text}", text.len() + 4);
    let (head, branch) = (&repo.head, format!("refs/heads/{}", repo.default_branch));
    let abilities = format!("multi_ack side-band-64k ofs-delta symref=HEAD:{branch} agent=git/2");
    let body = [
        line("# service=git-upload-pack\n"),
        "0000".into(),
        line(&format!("{head} HEAD\0{abilities}\n")),
        line(&format!("{head} {branch}\n")),
        "0000".into(),
    ];
    Response::new(200, body.concat())
        .with("content-type", "application/x-git-upload-pack-advertisement")
        .with("cache-control", "no-cache")
}
