//! Stores and remotes in buckets of Google Cloud Storage, on a server that answers as its reference
//! says; and who asks there: a service account, the machine, no one.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use galeras_test_servers::gcs_api::GcsApi;

use crate::harness::{Outcome, Project, hides, patience};
use crate::remotes::{project, statuses, steps};

const STORE: &str = "gs://lab/p";

#[track_caller]
fn run(api: &GcsApi, project: &Project, args: &[&str]) -> Outcome {
    project.write("account.json", api.service_account());
    let account = project.path("account.json");
    project.run_with(args, &[("GOOGLE_SERVICE_ACCOUNT", account.to_str().unwrap())])
}

#[track_caller]
fn run_ok(api: &GcsApi, project: &Project, more: &[&str]) -> Outcome {
    run(api, project, &[&["run", "w.yaml", "--format", "json"], more].concat()).exits(0)
}

fn verifies(api: &GcsApi) {
    let args = ["cache", "verify", "--cache", STORE, "--format", "json"];
    let found = run(api, &Project::empty(), &args).exits(0);
    assert_eq!(found.json_lines().last().unwrap()["findings"], 0, "{found}");
}

#[test]
fn it_is_a_store_like_a_folder_and_what_was_pushed_are_hits_for_others() {
    let (api, here, there) = (GcsApi::start(), project(), project());
    let expected = here.run_ok(&[]);
    let done = run_ok(&api, &there, &["--cache", STORE]);
    assert_eq!(statuses(&steps(&done)), ["ran"; 3], "{done}");
    assert_eq!(done.digests(), expected.digests());
    assert_eq!(there.read("kept.csv"), here.read("kept.csv"));
    verifies(&api);
    run_ok(&api, &there, &["--cache", STORE]).all_hit();
    run(&api, &there, &LS).exits(0).prints(&["3 results in 6 files"]);
    // Leases are given back.
    assert!(api.keys().iter().all(|key| !key.starts_with("p/locks/")), "{:?}", api.keys());
    let gc = ["cache", "gc", "--max-bytes", "0", "--cache", STORE];
    run(&api, &there, &gc).exits(0);
    assert!(api.keys().iter().all(|key| !key.starts_with("p/blobs/")), "{:?}", api.keys());
    verifies(&api);
    let (api, owner, other) = (GcsApi::start(), project(), project());
    let expected = owner.run_ok(&[]);
    for sent in [5, 0] {
        let push = ["push", "w.yaml", "--remote", STORE, "--format", "json"];
        let told = run(&api, &owner, &push).exits(0).json_lines().pop().unwrap();
        assert_eq!(told["files"], sent, "{told}");
    }
    let mut tables = api.take();
    tables.retain(|r| r.method == "PUT" && r.key.starts_with("p/blobs/") && r.status == 200);
    assert_eq!(tables.len(), 5, "{tables:?}");
    api.read_only(true);
    let done = run_ok(&api, &other, &["--remote", STORE]);
    assert_eq!(statuses(&steps(&done)), ["hit (remote)"; 3], "{done}");
    assert_eq!((done.digests(), done.warnings().len()), (expected.digests(), 0));
    run(&api, &other, &["pull", "w.yaml", "--remote", STORE]).exits(0);
    other.run_ok(&[]).all_hit();
    other.verifies("cache");
    owner.run_ok(&["--set", "most=100"]);
    let push = ["push", "w.yaml", "--set", "most=100", "--remote", STORE];
    let words = ["cannot write gs://lab/p/", "403 Forbidden (AccessDenied)"];
    run(&api, &owner, &push).exits(4).reports(&words);
}

#[test]
fn a_bucket_that_is_not_there_a_bad_account_and_missing_credentials_are_told() {
    let (api, project) = (GcsApi::start(), project());
    let gone = ["cache", "ls", "--cache", "gs://nobody/p"];
    run(&api, &project, &gone).exits(4).reports(&["there is no such bucket"]);
    project.write("wrong.json", "{\"private_key\": [\"hunter2\"], \"client_email\": 7}");
    for file in ["wrong.json", "missing.json"] {
        let account = project.path(file);
        let env = [("GOOGLE_SERVICE_ACCOUNT", account.to_str().unwrap())];
        let told = project.run_with(&LS, &env).exits(4).reports(&["cannot open gs://lab/p"]);
        hides(&told.stderr, &["hunter2"]);
    }
    let (api, project) = (GcsApi::start(), self::project());
    let mute = metadata_server(None);
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = closed.local_addr().unwrap().to_string();
    drop(closed);
    for (machine, cache) in [(mute, "of-mute"), (nobody, "of-nobody")] {
        let env = [("GOOGLE_BASE_URL", api.url()), ("GCE_METADATA_HOST", &machine)];
        let env = [&env[..], &[("GCE_METADATA_IP", &machine)]].concat();
        let words = ["the environment has no credentials", "GOOGLE_APPLICATION_CREDENTIALS"];
        let told = project.run_with(&LS, &env).exits(4).reports(&words);
        assert!(told.took < patience(5), "{:?}", told.took);
        let args = ["run", "w.yaml", "--remote", STORE, "--cache", cache, "--format", "json"];
        let done = project.run_with(&[&args[..], &["--overwrite"]].concat(), &env).exits(0);
        assert_eq!(statuses(&steps(&done)), ["ran"; 3], "{done}");
        let told = done.warnings();
        assert!(told.len() == 1 && told[0].contains("no credentials"), "{told:?}");
    }
    assert_eq!(api.take(), [], "nothing is asked for without a token");
}

const LS: [&str; 4] = ["cache", "ls", "--cache", STORE];

/// A server of a machine's account; one without a token does not answer.
fn metadata_server(token: Option<&'static str>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let Some(token) = token else {
                kept.push(stream);
                continue;
            };
            let (mut asked, mut part) = (Vec::new(), [0; 1024]);
            while !asked.ends_with(b"\r\n\r\n") {
                let read = stream.read(&mut part).unwrap();
                asked.extend_from_slice(&part[..read]);
            }
            let asked = String::from_utf8_lossy(&asked).to_lowercase();
            let body = format!("{{\"access_token\": \"{token}\", \"expires_in\": 3600}}");
            let status = if asked.contains("metadata-flavor: google") { 200 } else { 403 };
            let length = body.len();
            let head = format!("HTTP/1.1 {status} x\r\nContent-Length: {length}\r\n");
            let _ = stream.write_all(format!("{head}Connection: close\r\n\r\n{body}").as_bytes());
        }
    });
    address
}

#[test]
fn a_public_bucket_is_read_by_nobody_and_others_with_the_account_of_the_machine() {
    let (api, owner, other) = (GcsApi::start(), project(), project());
    let expected = owner.run_ok(&[]);
    run(&api, &owner, &["push", "w.yaml", "--remote", STORE]).exits(0);
    api.admit(|token| token.is_none());
    let env = [("GOOGLE_BASE_URL", api.url()), ("GOOGLE_SKIP_SIGNATURE", "true")];
    let args = ["run", "w.yaml", "--format", "json", "--remote", STORE];
    let done = other.run_with(&args, &env).exits(0);
    assert_eq!(statuses(&steps(&done)), ["hit (remote)"; 3], "{done}");
    assert_eq!(done.digests(), expected.digests());
    let (api, project) = (GcsApi::start(), project());
    api.admit(|token| token == Some("hunter2-machine"));
    let machine = metadata_server(Some("hunter2-machine"));
    let env = [("GOOGLE_BASE_URL", api.url()), ("GCE_METADATA_HOST", &machine)];
    let run = ["run", "w.yaml", "--format", "json", "--cache", STORE];
    assert_eq!(statuses(&steps(&project.run_with(&run, &env).exits(0))), ["ran"; 3]);
    project.run_with(&run, &env).all_hit();
    let other = metadata_server(Some("hunter2-other"));
    let env = [("GOOGLE_BASE_URL", api.url()), ("GCE_METADATA_HOST", &other)];
    let told = project.run_with(&LS, &env).exits(4);
    let told = told.reports(&["401 Unauthorized (AuthenticationRequired)"]);
    hides(&told.stderr, &["hunter2"]);
}

fn pem(text: &str) -> Vec<u8> {
    let body: String = text.lines().filter(|line| !line.starts_with('-')).collect();
    BASE64_STANDARD.decode(body).unwrap()
}

fn claims_of(part: &str) -> serde_json::Value {
    serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

#[test]
fn a_service_account_signs_what_it_asks_with() {
    if Command::new("ssh-keygen").arg("-?").stderr(Stdio::null()).status().is_err() {
        return;
    }
    let (api, project) = (GcsApi::start(), project());
    let key = project.path("account");
    let keygen = |args: &[&str]| {
        let done = Command::new("ssh-keygen").args(args).arg("-f").arg(&key).output().unwrap();
        assert!(done.status.success(), "{done:?}");
        done.stdout
    };
    keygen(&["-q", "-t", "rsa", "-b", "2048", "-m", "PEM", "-N", ""]);
    let public = pem(&String::from_utf8(keygen(&["-e", "-m", "PEM"])).unwrap());
    let account = serde_json::json!({
        "type": "service_account",
        "private_key": project.read("account"),
        "private_key_id": "key-7",
        "client_email": "lab@example.iam.gserviceaccount.com",
    });
    project.write("account.json", account.to_string());
    api.admit(move |token| {
        let Some((signed, signature)) = token.and_then(|token| token.rsplit_once('.')) else {
            return false;
        };
        let algorithm = &ring::signature::RSA_PKCS1_2048_8192_SHA256;
        let key = ring::signature::UnparsedPublicKey::new(algorithm, &public);
        let signature = BASE64_URL_SAFE_NO_PAD.decode(signature).unwrap();
        let (head, claims) = signed.split_once('.').unwrap();
        let (head, claims) = (claims_of(head), claims_of(claims));
        let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        key.verify(signed.as_bytes(), &signature).is_ok()
            && (&head["alg"], &head["kid"]) == (&"RS256".into(), &"key-7".into())
            && claims["iss"] == "lab@example.iam.gserviceaccount.com"
            && claims["exp"].as_u64().is_some_and(|end| end > time.as_secs())
    });
    let file = project.path("account.json");
    let file = file.to_str().unwrap();
    for name in ["GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT"] {
        let env = [("GOOGLE_BASE_URL", api.url()), (name, file)];
        let run = ["run", "w.yaml", "--format", "json", "--cache", STORE];
        project.run_with(&run, &env).exits(0);
        project.run_with(&run, &env).all_hit();
    }
    // The key of another account.
    fs::remove_file(&key).unwrap();
    keygen(&["-q", "-t", "rsa", "-b", "2048", "-m", "PEM", "-N", ""]);
    let mut other = account;
    other["private_key"] = project.read("account").into();
    project.write("account.json", other.to_string());
    let env = [("GOOGLE_BASE_URL", api.url()), ("GOOGLE_APPLICATION_CREDENTIALS", file)];
    let told = project.run_with(&LS, &env).exits(4);
    told.reports(&["401 Unauthorized (AuthenticationRequired)"]);
}
