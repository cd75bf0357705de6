//! The case study from a remote of every kind: somebody with an empty store, without a key and without
//! the repositories gets all hits, the same digests and the same files, asks no model, and moves no more
//! than the tables that the outputs are written from.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use galeras_test_servers::chat_api::{ChatApi, MODEL};
use galeras_test_servers::gcs_api::GcsApi;
use galeras_test_servers::http_git::HttpGit;
use galeras_test_servers::static_files::{Manners, StaticFiles};
use serde_json::Value;

use crate::buckets::Lab;
use crate::casestudy::{CASESTUDY, Study};
use crate::harness::{Outcome, Project, Running, files_below};
use crate::paper::history;
use crate::remotes::{fetched, statuses, steps};

const KEY: &str = "sk-case-5b1d";
const PREFIX: &str = "p/blobs/";

type Variables = Vec<(&'static str, String)>;

/// The person who computed it all: the repository and the model are behind servers.
struct Owner {
    project: Project,
    api: ChatApi,
    git: HttpGit,
    truth: Outcome,
}

impl Owner {
    fn new() -> Self {
        let project = Study::files();
        history(&project, "served/a", 0).git(&["config", "uploadpack.allowFilter", "true"]);
        let (git, api) = (HttpGit::start(&project.path("served")), ChatApi::start());
        let owner = |verb: &[&str]| {
            let mut command = project.command(&[verb, &sets(&git, &api)].concat());
            command.env("CASE_KEY", KEY);
            Running::start(command).finish()
        };
        owner(&["lock", "casestudy.yaml"]).exits(0);
        let truth = owner(&["run", "casestudy.yaml", "--format", "json"]).exits(0);
        Self { truth, project, api, git }
    }

    /// The program as this person starts it.
    #[track_caller]
    fn call(&self, who: &Project, verb: &[&str], more: &[&str], env: &Variables) -> Outcome {
        let mut command = who.command(&[verb, more, &sets(&self.git, &self.api)].concat());
        command.envs(env.iter().map(|(name, value)| (name, value)));
        Running::start(command).finish()
    }

    #[track_caller]
    fn push(&self, place: &str, env: &Variables) {
        self.call(&self.project, &["push", "casestudy.yaml", "--remote", place], &[], env).exits(0);
    }

    /// The sizes of the tables that outputs are written from, by their logical digests.
    fn needed(&self) -> BTreeMap<String, u64> {
        let digests = self.truth.digests();
        let (_, outputs) = CASESTUDY.split_once("\noutputs:").unwrap();
        let names = outputs.lines().filter_map(|line| line.split_once("from: "));
        let digest = |(_, rest): (&str, &str)| {
            let name = rest.split([',', ' ', '}']).next().unwrap();
            // An output of the workflow that is embedded.
            let name = if name == "testbeds.checks" { "testbeds/verified.summary" } else { name };
            let (step, port) = name.split_once('.').unwrap_or((name, "out"));
            let found = digests.iter().find(|d| d.0 == step && d.1 == port);
            found.unwrap().2.as_str()
        };
        let wanted: BTreeSet<&str> = names.map(digest).collect();
        assert!(wanted.len() > 20, "{wanted:?}");
        let mut sizes = BTreeMap::new();
        for file in files_below(&self.project.path("cache/actions")) {
            let manifest: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
            for port in manifest["ports"].as_array().unwrap() {
                let digest = port["digest"].as_str().unwrap();
                if wanted.contains(digest) {
                    // The file of the table, and those that hold columns of it.
                    for file in port["layers"].as_array().into_iter().flatten().chain([port]) {
                        let blob = file["blob"].as_str().unwrap().to_string();
                        sizes.insert(blob, file["bytes"].as_u64().unwrap());
                    }
                }
            }
        }
        sizes
    }
}

/// The arguments for the repository and the model.
fn sets(git: &HttpGit, api: &ChatApi) -> Vec<&'static str> {
    let values = [
        format!("repos={}", git.url("a")),
        "n=12".into(),
        format!("model={MODEL}"),
        format!("base_url={}", api.url()),
        "api_key_env=CASE_KEY".into(),
    ];
    let sets = values.into_iter().flat_map(|value| ["--set".to_string(), value]);
    sets.map(|text| &*text.leak()).collect()
}

#[test]
fn a_stranger_takes_it_from_remotes_of_every_kind() {
    let owner = Owner::new();
    let (asked, needed) = (owner.api.take().len(), owner.needed());
    let wanted: u64 = needed.values().sum();
    assert!(asked > 30 && wanted > 100_000, "{asked} {wanted}");

    let (lab, gcs, folder) = (Lab::new(), GcsApi::start(), owner.project.path("remote"));
    owner.project.write("account.json", gcs.service_account());
    let account = owner.project.path("account.json").to_str().unwrap().to_string();
    let google: Variables = vec![("GOOGLE_SERVICE_ACCOUNT", account)];
    let amazon: Variables = lab.api.env().to_vec();
    let folder = folder.to_str().unwrap();
    owner.push(folder, &Vec::new());
    owner.push("s3://lab/p", &amazon);
    owner.push("gs://lab/p", &google);
    let web = StaticFiles::start(folder.as_ref(), Manners::Good);
    lab.api.behave(|manners| manners.read_only = true);
    gcs.read_only(true);
    lab.api.take();
    gcs.take();
    owner.git.take_seen();

    for (place, env) in [
        (folder, Vec::new()),
        (web.url.as_str(), Vec::new()),
        ("s3://lab/p", amazon),
        ("gs://lab/p", google),
    ] {
        let other = Study::files();
        other.write("galeras.lock", owner.project.read("galeras.lock"));
        let run = ["run", "casestudy.yaml", "--format", "json", "--remote", place];
        let done = owner.call(&other, &run, &[], &env).exits(0);
        let all = statuses(&steps(&done));
        assert!(all.iter().all(|status| status == "hit (remote)"), "{place}: {done}");
        assert_eq!(done.digests(), owner.truth.digests(), "{place}");
        assert_eq!(done.warnings(), [""; 0], "{place}");
        for file in files_below(&owner.project.path("casestudy")) {
            let name = file.strip_prefix(owner.project.path("")).unwrap().to_str().unwrap();
            assert!(fs::read(&file).unwrap() == fs::read(other.path(name)).unwrap(), "{name}");
        }
        assert_eq!((owner.api.take().len(), owner.git.take_seen().len()), (0, 0), "{place}");
        // The bytes on the wire, and those in the store afterwards.
        let (moved, all_bytes) = match place {
            "s3://lab/p" => {
                of_all(lab.api.take().iter().map(|r| (r.key.starts_with(PREFIX), r.went)))
            }
            "gs://lab/p" => of_all(gcs.take().iter().map(|r| (r.key.starts_with(PREFIX), r.went))),
            _ if place == web.url => {
                let requests = web.requests();
                of_all(requests.iter().map(|r| (r.path.starts_with("/blobs/"), r.bytes)))
            }
            _ => (fetched(&done)["bytes"].as_u64().unwrap(), 0),
        };
        let blobs = files_below(&other.path("cache/blobs"));
        let stored: u64 = blobs.iter().map(|file| fs::metadata(file).unwrap().len()).sum();
        let names = blobs.iter().map(|file| file.file_stem().unwrap().to_str().unwrap());
        let more: Vec<&str> = names.filter(|name| !needed.contains_key(*name)).collect();
        assert_eq!(more, [""; 0], "{place}");
        println!("{place}: {moved} bytes of tables, {all_bytes} in all, needed {wanted}");
        assert!(moved * 100 <= wanted * 105, "{place}: {moved} of {wanted}");
        assert_eq!((stored, fetched(&done)["bytes"].as_u64().unwrap()), (moved, moved), "{place}");
    }
}

/// The bytes of tables, and all bytes.
fn of_all(answers: impl Iterator<Item = (bool, u64)>) -> (u64, u64) {
    answers.fold((0, 0), |(tables, all), (is_table, bytes)| {
        (tables + if is_table { bytes } else { 0 }, all + bytes)
    })
}
