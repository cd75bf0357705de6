//! Remotes whose manifests and servers lie about sizes: each lie is told, costs the result that it is
//! about, and nothing else.

use std::fs;
use std::path::Path;

use galeras_test_servers::static_files::{Manners, StaticFiles};
use serde_json::Value;

use crate::harness::{Outcome, Project, files_below};
use crate::remotes::{digests, project, pushed, statuses, steps, warnings};

/// The result of a step in a remote: the file of its manifest, and what is in it.
pub fn manifest_of(remote: &Path, step: &str) -> (String, Value) {
    let manifests = files_below(&remote.join("actions")).into_iter();
    let mut read = manifests.map(|file| {
        let manifest: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        (file.strip_prefix(remote).unwrap().to_str().unwrap().to_string(), manifest)
    });
    read.find(|(_, manifest)| manifest["labels"]["step"] == step).unwrap()
}

/// The same manifest with a digest of its own that fits.
pub fn sealed(manifest: &Value) -> String {
    let mut body = manifest.clone();
    body.as_object_mut().unwrap().remove("integrity");
    let text = serde_json::to_string_pretty(&body).unwrap();
    let text = text.strip_suffix("\n}").unwrap();
    let digest = galeras_base::digest::Digest::of(text.as_bytes());
    format!("{text},\n  \"integrity\": \"{digest}\"\n}}\n")
}

fn pull(other: &Project, remote: &str) -> Outcome {
    other.run(&["pull", "w.yaml", "--remote", remote, "--format", "json"])
}

/// The steps without a result after a pull.
fn missing(pulled: &Outcome) -> Value {
    pulled.json_lines().pop().unwrap()["missing"].clone()
}

#[test]
fn a_size_that_is_not_the_tables_is_told_though_nobody_needs_the_table() {
    let (_project, remote, expected) = pushed();
    let (file, mut manifest) = manifest_of(&remote, "scaled");
    let real = manifest["ports"][0]["bytes"].as_u64().unwrap();
    let server = StaticFiles::start(&remote, Manners::Good);
    for wrong in [0, 1, real - 1, real + 1] {
        manifest["ports"][0]["bytes"] = wrong.into();
        fs::write(remote.join(&file), sealed(&manifest)).unwrap();
        let words = format!("its table `out` has {real} bytes instead of {wrong}");
        for place in [remote.to_str().unwrap(), &server.url] {
            let other = project();
            let done = other.run_ok(&["--remote", place]);
            let told = warnings(&done);
            assert!(told.len() == 1 && told[0].contains(&words), "{wrong}: {done}");
            let lied_about = statuses(&steps(&done));
            assert_eq!(lied_about, ["hit (remote)", "ran", "hit (remote)"], "{wrong}: {done}");
            assert_eq!(digests(&steps(&done)), digests(&expected));
            other.verifies("cache");
        }
    }
}

#[test]
fn a_pull_takes_the_rest_and_says_what_is_missing() {
    let (_project, remote, expected) = pushed();
    let (of_last, last) = manifest_of(&remote, "kept");
    let blob = last["ports"][1]["blob"].as_str().unwrap();
    let of_blob = format!("blobs/{}/{blob}.parquet", &blob[..2]);
    for (file, why) in [(&of_last, "ends before the length"), (&of_blob, "bytes instead of")] {
        let server = StaticFiles::start(&remote, Manners::Good);
        server.overstate(file);
        let other = project();
        let pulled = pull(&other, &server.url).exits(1);
        assert!(pulled.stderr.contains(why), "{pulled}");
        assert!(pulled.stderr.contains("1 of 3 steps have no result here"), "{pulled}");
        assert_eq!(missing(&pulled), serde_json::json!(["kept"]), "{pulled}");
        other.verifies("cache");
        let done = other.run_ok(&[]);
        assert_eq!(statuses(&steps(&done)), ["hit", "hit", "ran"], "{done}");
        assert_eq!(digests(&steps(&done)), digests(&expected));
    }
    // A table that is damaged is noticed when it comes, and is no less missing.
    let path = remote.join(&of_blob);
    let mut content = fs::read(&path).unwrap();
    content[100] ^= 1;
    fs::write(&path, content).unwrap();
    let other = project();
    let pulled = pull(&other, remote.to_str().unwrap()).exits(1);
    assert!(pulled.stderr.contains("its content does not have the digest in its name"), "{pulled}");
    assert_eq!(missing(&pulled), serde_json::json!(["kept"]), "{pulled}");
    // What nobody has sent is no lie.
    fs::remove_file(remote.join(&of_last)).unwrap();
    let pulled = pull(&project(), remote.to_str().unwrap()).exits(0);
    assert!(pulled.stderr.contains("neither store has the results of kept"), "{pulled}");
}
