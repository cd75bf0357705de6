//! Results with the right key and other tables than the workflow declares, here and in a remote, and
//! remotes that lie about sizes: a lie is reported, and costs only the result that it is about.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use serde_json::{Value, json};

use crate::harness::{Outcome, Project, files_below, says};
use crate::remotes::{digests, project, pushed, statuses, steps};
use galeras_base::digest::{Digest, table_digest};
use galeras_operator::table_digest::TableHasher;
use galeras_test_servers::static_files::{Manners, StaticFiles};

const WORKFLOW: &str = "galeras: 1
steps:
  table:
    op: exec
    with:
      command: 'printf ''{\"id\":\"a\",\"y\":1}\\n{\"id\":\"b\",\"y\":2}\\n'''
      output: { id: utf8!, y: int64! }
  more: { op: sql, from: table, with: { query: 'SELECT id, y + 1 AS z FROM input' } }
outputs:
  more: { from: more, path: more.csv }
  table: { from: table, path: table.csv }
";

fn texts(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

fn numbers(values: &[Option<i64>]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

fn table(columns: &[(&str, ArrayRef)]) -> RecordBatch {
    RecordBatch::try_from_iter(columns.iter().map(|(name, array)| (*name, array.clone()))).unwrap()
}

/// Makes `stored` the table of the step `table` of a store, whose manifest describes `said`.
fn forge(store: &Path, stored: &RecordBatch, said: &RecordBatch, key: &str) {
    let mut file = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut file, stored.schema(), None).unwrap();
    writer.write(stored).unwrap();
    writer.close().unwrap();
    let blob = Digest::of(&file);
    let folder = store.join("blobs").join(blob.shard());
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(format!("{blob}.parquet")), &file).unwrap();
    let (path, mut manifest) = manifest_of(store, "table");
    let mut hasher = TableHasher::new(&said.schema());
    hasher.update(said).unwrap();
    let (columns, rows) = hasher.finish();
    let digest = table_digest(&columns, rows);
    let said = json!({
        "blob": blob, "bytes": file.len(), "rows": rows, "digest": digest, "columns": columns,
        "key": [key],
    });
    let port = manifest["ports"][0].as_object_mut().unwrap();
    port.extend(said.as_object().unwrap().clone());
    fs::write(store.join(path), sealed(&manifest)).unwrap();
}

#[track_caller]
fn warned_once(done: &Outcome, words: &str) {
    let told = done.warnings();
    assert!(told.len() == 1 && told[0].contains(words), "{words}: {done}");
}

fn copied(from: &Path, to: &Path) {
    for file in files_below(from) {
        let name = file.strip_prefix(from).unwrap();
        if name.starts_with("actions") || name.starts_with("blobs") {
            fs::create_dir_all(to.join(name).parent().unwrap()).unwrap();
            fs::copy(&file, to.join(name)).unwrap();
        }
    }
}

#[test]
fn a_result_with_other_tables_than_the_workflow_says_is_computed() {
    let honest = Project::new(WORKFLOW);
    let expected = honest.run_ok(&[]);
    let (ab, two) = (texts(&["a", "b"]), numbers(&[Some(1), Some(2)]));
    let good = table(&[("id", ab.clone()), ("y", two.clone())]);
    let floats: ArrayRef = Arc::new(Float64Array::from(vec![1.5, 2.5]));
    let float = table(&[("id", ab.clone()), ("y", floats)]);
    let lacks = table(&[("id", ab.clone())]);
    let extra = table(&[("id", ab.clone()), ("y", two.clone()), ("x", two.clone())]);
    let twice = table(&[("id", texts(&["a", "a"])), ("y", two.clone())]);
    let turned = table(&[("id", texts(&["b", "a"])), ("y", two)]);
    let nulls = table(&[("id", ab), ("y", numbers(&[Some(1), None]))]);
    // The table, the one in its manifest, and the warnings here and elsewhere.
    let other_type = "column `y` of its table is float64";
    let cases = [
        (&float, &float, "id", "column `y` of its table `out` is float64, not int64", None),
        (&lacks, &lacks, "id", "its table `out` lacks the column `y`", None),
        (&extra, &extra, "id", "its table `out` has another column `x`", None),
        (&good, &good, "y", "the key of its table `out` is (y), not (id)", None),
        (&twice, &twice, "id", "two rows of its table have one key", None),
        (&turned, &turned, "id", "its rows are not in the order of their key", None),
        (&nulls, &nulls, "id", "column `y` of its table has nulls", None),
        (&float, &good, "id", other_type, Some("is not what its manifest")),
        (&lacks, &good, "id", "its table lacks the column `y`", Some("lacks the column y of its")),
    ];
    for (stored, said, key, here, elsewhere) in cases {
        for remote in [true, false] {
            let project = Project::new(WORKFLOW);
            let store = project.path(if remote { "remote" } else { "cache" });
            copied(&honest.path("cache"), &store);
            forge(&store, stored, said, key);
            let more: &[&str] = if remote { &["--remote", "remote"] } else { &[] };
            let words = if remote { elsewhere.unwrap_or(here) } else { here };

            let done = project.run_ok(more);
            warned_once(&done, words);
            let hit = if remote { "hit (remote)" } else { "hit" };
            assert_eq!(statuses(&steps(&done)), ["ran", hit], "{words}: {done}");
            assert_eq!(digests(&steps(&done)), digests(&steps(&expected)), "{words}");
            for output in ["more.csv", "table.csv"] {
                assert_eq!(project.read(output), honest.read(output), "{words}");
            }
            project.verifies("cache");
            let again = project.run_ok(&[]);
            assert_eq!(statuses(&steps(&again)), ["hit"; 2], "{words}: {again}");
            assert_eq!(again.warnings(), [""; 0], "{words}: {again}");
        }
    }
}

#[test]
fn a_plan_says_why_a_result_is_not_used_and_a_column_that_is_required_now_is_no_reason() {
    let project = Project::new(WORKFLOW).ran();
    let twice = table(&[("id", texts(&["a", "a"])), ("y", numbers(&[Some(1), Some(2)]))]);
    forge(&project.path("cache"), &twice, &twice, "id");
    project.run(&["plan", "w.yaml"]).exits(0).prints(&["two rows of its table have one key"]);
    // `show` does not get it either.
    assert_ne!(project.run(&["show", "w.yaml", "table"]).code, Some(0));
    // Columns that are required or not are the same values: an edit of that alone computes nothing
    // downstream, and a reader of old results gets them.
    let project = Project::new(&WORKFLOW.replace("y: int64!", "y: int64"));
    let first = project.run_ok(&[]);
    let second = project.rerun("y: int64", "y: int64!");
    assert_eq!(statuses(&steps(&second)), ["ran", "hit"], "{second}");
    assert_eq!(digests(&steps(&second)), digests(&steps(&first)));
    assert_eq!(second.warnings(), [""; 0], "{second}");
}

/// The result of a step in a remote: the file of its manifest, and its content.
pub fn manifest_of(remote: &Path, step: &str) -> (String, Value) {
    let manifests = files_below(&remote.join("actions")).into_iter();
    let mut read = manifests.map(|file| {
        let manifest: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        (file.strip_prefix(remote).unwrap().to_str().unwrap().to_string(), manifest)
    });
    read.find(|(_, manifest)| manifest["labels"]["step"] == step).unwrap()
}

/// The same manifest with its own digest.
pub fn sealed(manifest: &Value) -> String {
    let mut body = manifest.clone();
    body.as_object_mut().unwrap().remove("integrity");
    let text = serde_json::to_string_pretty(&body).unwrap();
    let text = text.strip_suffix("\n}").unwrap();
    let digest = Digest::of(text.as_bytes());
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
fn a_size_that_is_not_the_tables_is_told_and_a_pull_takes_the_rest() {
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
            warned_once(&done, &words);
            let lied_about = statuses(&steps(&done));
            assert_eq!(lied_about, ["hit (remote)", "ran", "hit (remote)"], "{wrong}: {done}");
            assert_eq!(digests(&steps(&done)), digests(&expected));
            other.verifies("cache");
        }
    }
    let (_project, remote, expected) = pushed();
    let (of_last, last) = manifest_of(&remote, "kept");
    let blob = last["ports"][1]["blob"].as_str().unwrap();
    let of_blob = format!("blobs/{}/{blob}.parquet", &blob[..2]);
    for (file, why) in [(&of_last, "ends before the length"), (&of_blob, "bytes instead of")] {
        let server = StaticFiles::start(&remote, Manners::Good);
        server.overstate(file);
        let other = project();
        let pulled = pull(&other, &server.url).exits(1);
        says(&pulled.stderr, &[why, "1 of 3 steps have no result here"]);
        assert_eq!(missing(&pulled), json!(["kept"]), "{pulled}");
        other.verifies("cache");
        let done = other.run_ok(&[]);
        assert_eq!(statuses(&steps(&done)), ["hit", "hit", "ran"], "{done}");
        assert_eq!(digests(&steps(&done)), digests(&expected));
    }
    // A table that is damaged is noticed when it comes, and is missing as well.
    let path = remote.join(&of_blob);
    let mut content = fs::read(&path).unwrap();
    content[100] ^= 1;
    fs::write(&path, content).unwrap();
    let other = project();
    let pulled = pull(&other, remote.to_str().unwrap()).exits(1);
    assert_eq!(missing(&pulled), json!(["kept"]), "{pulled}");
    pulled.reports(&["its content does not have the digest in its name"]);
    // A result that was never sent is not a lie.
    fs::remove_file(remote.join(&of_last)).unwrap();
    let pulled = pull(&project(), remote.to_str().unwrap()).exits(0);
    pulled.reports(&["neither store has the results of kept"]);
}
