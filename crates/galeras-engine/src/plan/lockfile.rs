//! `galeras.lock`: the external facts that the workflows of a folder were run with.
//!
//! The file is JSON with one fact per line, sorted, so that a changed repository is one changed
//! line.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::registration::LockedAnalysis;
use galeras_base::digest::Digest;
use galeras_base::small_file::{self, MAX_LOCK_BYTES};
use galeras_operator::{Pins, Snapshot, answer_digest, question};

/// The version of the file format.
const VERSION: u32 = 1;
const PROGRAM: &str = env!("CARGO_PKG_VERSION");
const NAME: &str = "galeras.lock";

/// The pinned facts of the workflows in a folder.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockFile {
    galeras_lock: u32,
    /// Answers to questions.
    pub snapshots: Vec<LockedSnapshot>,
    /// Files at URLs.
    pub files: Vec<LockedFile>,
    /// Versions of models.
    #[serde(default)]
    pub versions: Vec<LockedVersion>,
    /// The version of the program that locked each workflow.
    #[serde(default)]
    pub programs: Vec<LockedProgram>,
    /// Registered analyses, those of a step in the order of their times. They remain when a
    /// workflow is locked again: a registration is a fact of the past.
    #[serde(default)]
    pub registrations: Vec<LockedAnalysis>,
}

/// The version of the program that locked a workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedProgram {
    /// The file of the workflow.
    pub workflow: String,
    /// The version.
    pub version: String,
}

/// A pinned answer, and its users.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedSnapshot {
    /// The operator that asked.
    pub operator: String,
    /// The arguments that asked.
    pub of: Value,
    /// The time of the request, RFC 3339 in UTC.
    pub asked: String,
    /// The files of the workflows that ask.
    pub workflows: Vec<String>,
    /// The digest of the answer.
    pub digest: Digest,
    /// The answer: the rows of the main port.
    pub rows: Vec<Value>,
    /// The rows of the port `rejects`.
    pub rejects: Vec<Value>,
}

/// The content of a file at a URL, and its users.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedFile {
    /// The URL.
    pub url: String,
    /// The digest of its content.
    pub blake3: Digest,
    /// The files of the workflows that read it.
    pub workflows: Vec<String>,
}

/// The version of something, and its users.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedVersion {
    /// The operator that uses it.
    pub operator: String,
    /// The arguments that name it.
    pub of: Value,
    /// The version that it reported.
    pub version: String,
    /// The files of the workflows that use it.
    pub workflows: Vec<String>,
}

/// The lock file of the workflow in `file`.
pub fn lock_path(file: &Path) -> PathBuf {
    file.with_file_name(NAME)
}

impl LockFile {
    /// Reads the lock file next to the workflow in `file`; a missing file is an empty lock.
    ///
    /// # Errors
    /// A sentence, if the file exists and cannot be used.
    pub fn beside(file: &Path) -> Result<Self, String> {
        let path = lock_path(file);
        let failed = |cause: &dyn std::fmt::Display| format!("{}: {cause}", path.display());
        let text = match small_file::read(&path, MAX_LOCK_BYTES) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::empty()),
            Err(error) => return Err(failed(&error)),
        };
        let version = serde_json::from_slice::<Value>(&text).map_err(|e| failed(&e))?;
        let version = version.get("galeras_lock").and_then(Value::as_u64);
        if version.is_some_and(|version| version > u64::from(VERSION)) {
            return Err(failed(&"a newer version of galeras wrote it; use that version"));
        }
        let lock: Self = serde_json::from_slice(&text).map_err(|e| failed(&e))?;
        for snapshot in &lock.snapshots {
            if answer_digest(&snapshot.rows, &snapshot.rejects) != snapshot.digest {
                let cause =
                    format!("the rows of `{}` do not match their digest", snapshot.operator);
                return Err(failed(&cause));
            }
        }
        Ok(lock)
    }

    fn empty() -> Self {
        Self { galeras_lock: VERSION, ..Self::default() }
    }

    /// The version of the program that locked a workflow, if it is not this one.
    pub fn other_program(&self, workflow: &str) -> Option<&str> {
        let locked = self.programs.iter().find(|locked| locked.workflow == workflow);
        locked.map(|locked| locked.version.as_str()).filter(|version| *version != PROGRAM)
    }

    /// The pinned facts.
    pub fn pins(&self) -> Pins {
        let snapshots = self.snapshots.iter().map(|locked| {
            let answer = Snapshot {
                digest: locked.digest,
                rows: locked.rows.clone(),
                rejects: locked.rejects.clone(),
            };
            (question(&locked.operator, &locked.of), answer)
        });
        let files = self.files.iter().map(|locked| (locked.url.clone(), locked.blake3));
        let versions = self
            .versions
            .iter()
            .map(|locked| (question(&locked.operator, &locked.of), locked.version.clone()));
        Pins {
            snapshots: snapshots.collect(),
            files: files.collect(),
            versions: versions.collect(),
        }
    }

    /// The registered analyses of a workflow.
    pub fn analyses_of(&self, workflow: &str) -> Vec<LockedAnalysis> {
        let own = self.registrations.iter().filter(|analysis| analysis.workflow == workflow);
        own.cloned().collect()
    }

    /// Adds a registered analysis after the earlier ones of the step.
    pub fn register(&mut self, analysis: LockedAnalysis) {
        self.registrations.push(analysis);
        // Stable: a step's registrations keep their order.
        self.registrations.sort_by(|a, b| (&a.workflow, &a.step).cmp(&(&b.workflow, &b.step)));
    }

    /// Records that this program has locked `workflow`, and replaces its facts. A fact is pinned
    /// once, so a change also applies to other workflows of the folder that share it.
    pub fn update(
        &mut self,
        workflow: &str,
        snapshots: Vec<LockedSnapshot>,
        files: Vec<LockedFile>,
        versions: Vec<LockedVersion>,
    ) {
        let lists = self.workflow_lists();
        lists.for_each(|names| names.retain(|name| name != workflow));
        for mut new in snapshots {
            let asks = |old: &LockedSnapshot| old.operator == new.operator && old.of == new.of;
            if let Some(at) = self.snapshots.iter().position(asks) {
                let old = self.snapshots.swap_remove(at);
                new.workflows.extend(old.workflows);
                if old.digest == new.digest {
                    new.asked = old.asked;
                }
            }
            self.snapshots.push(new);
        }
        for mut new in files {
            if let Some(at) = self.files.iter().position(|old| old.url == new.url) {
                new.workflows.extend(self.files.swap_remove(at).workflows);
            }
            self.files.push(new);
        }
        for mut new in versions {
            let names = |old: &LockedVersion| old.operator == new.operator && old.of == new.of;
            if let Some(at) = self.versions.iter().position(names) {
                new.workflows.extend(self.versions.swap_remove(at).workflows);
            }
            self.versions.push(new);
        }
        self.snapshots.retain(|snapshot| !snapshot.workflows.is_empty());
        self.files.retain(|file| !file.workflows.is_empty());
        self.versions.retain(|version| !version.workflows.is_empty());
        self.workflow_lists().for_each(|names| {
            names.sort_unstable();
            names.dedup();
        });
        self.snapshots.sort_by_cached_key(|s| (s.operator.clone(), s.of.to_string()));
        self.files.sort_by(|a, b| a.url.cmp(&b.url));
        self.versions.sort_by_cached_key(|v| (v.operator.clone(), v.of.to_string()));
        self.programs.retain(|locked| locked.workflow != workflow);
        let (workflow, version) = (workflow.to_string(), PROGRAM.to_string());
        self.programs.push(LockedProgram { workflow, version });
        self.programs.sort_by(|a, b| a.workflow.cmp(&b.workflow));
    }

    fn workflow_lists(&mut self) -> impl Iterator<Item = &mut Vec<String>> {
        let snapshots = self.snapshots.iter_mut().map(|snapshot| &mut snapshot.workflows);
        let files = self.files.iter_mut().map(|file| &mut file.workflows);
        let versions = self.versions.iter_mut().map(|version| &mut version.workflows);
        snapshots.chain(files).chain(versions)
    }

    /// The text of the file.
    pub fn render(&self) -> String {
        let mut text = format!("{{\"galeras_lock\": {VERSION},\n \"snapshots\": [");
        for (at, snapshot) in self.snapshots.iter().enumerate() {
            let LockedSnapshot { operator, of, asked, workflows, digest, rows, rejects } = snapshot;
            let comma = if at == 0 { "" } else { "," };
            let (operator, asked) = (Value::from(operator.as_str()), Value::from(asked.as_str()));
            let workflows = Value::from(workflows.as_slice());
            let _ = write!(
                text,
                "{comma}\n  {{\"operator\": {operator},\n   \"of\": {of},\n   \"asked\": {asked},\n   \
                 \"workflows\": {workflows},\n   \"digest\": \"{digest}\",\n   \"rows\": ["
            );
            list(&mut text, "    ", rows);
            text.push_str("],\n   \"rejects\": [");
            list(&mut text, "    ", rejects);
            text.push_str("]}");
        }
        text.push_str("],\n \"files\": [");
        list(&mut text, "  ", &self.files);
        text.push_str("],\n \"versions\": [");
        list(&mut text, "  ", &self.versions);
        text.push_str("],\n \"programs\": [");
        list(&mut text, "  ", &self.programs);
        if !self.registrations.is_empty() {
            text.push_str("],\n \"registrations\": [");
            registrations(&mut text, &self.registrations);
        }
        text.push_str("]}\n");
        text
    }
}

/// Writes one item per line.
fn list(text: &mut String, indent: &str, items: &[impl Serialize]) {
    for (at, item) in items.iter().enumerate() {
        let line = serde_json::to_string(item).unwrap_or_default();
        let _ = write!(text, "{}\n{indent}{line}", if at == 0 { "" } else { "," });
    }
}

/// Writes one argument of an analysis, and one step that it depends on, per line.
fn registrations(text: &mut String, registrations: &[LockedAnalysis]) {
    for (at, analysis) in registrations.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        let LockedAnalysis { workflow, step, at, before_results, with, rests_on } = analysis;
        let [workflow, step, at] =
            [workflow, step, at].map(|value| Value::from(value.as_str()).to_string());
        let _ = write!(
            text,
            "{comma}\n  {{\"workflow\": {workflow},\n   \"step\": {step},\n   \"at\": {at},\n   \
             \"before_results\": {before_results},\n   \"with\": {{"
        );
        let arguments = with.as_object().into_iter().flatten();
        for (at, (key, value)) in arguments.enumerate() {
            let comma = if at == 0 { "" } else { "," };
            let _ = write!(text, "{comma}\n    {}: {value}", Value::from(key.as_str()));
        }
        text.push_str("},\n   \"rests_on\": [");
        list(text, "  ", rests_on);
        text.push_str("]}");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn snapshot(of: &str, rows: &[&str], workflow: &str) -> LockedSnapshot {
        let rows: Vec<Value> = rows.iter().map(|repo| json!({"repo": repo})).collect();
        LockedSnapshot {
            operator: "query".into(),
            of: json!({"github": of}),
            asked: "2026-01-01T00:00:00Z".into(),
            workflows: vec![workflow.into()],
            digest: answer_digest(&rows, &[]),
            rows,
            rejects: Vec::new(),
        }
    }

    fn version(workflow: &str) -> LockedVersion {
        LockedVersion {
            operator: "generate".into(),
            of: json!({"model": "m"}),
            version: "m-0801".into(),
            workflows: vec![workflow.into()],
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let workflow = dir.path().join("w.yaml");
        assert_eq!(LockFile::beside(&workflow).unwrap(), LockFile::empty());
        let mut lock = LockFile::empty();
        let file = LockedFile {
            url: "https://a/\"b\"".into(),
            blake3: Digest::of(b"1"),
            workflows: vec!["w.yaml".into()],
        };
        lock.update(
            "w.yaml",
            vec![snapshot("x", &["a/b", "c/d"], "w.yaml")],
            vec![file],
            vec![version("w.yaml")],
        );
        std::fs::write(lock_path(&workflow), lock.render()).unwrap();
        assert_eq!(LockFile::beside(&workflow).unwrap(), lock);
        let pins = lock.pins();
        assert_eq!(pins.snapshot("query", &json!({"github": "x"})).unwrap().rows.len(), 2);
        assert!(pins.snapshot("query", &json!({"github": "y"})).is_none());
        assert_eq!(pins.version("generate", &json!({"model": "m"})), Some("m-0801"));
        assert_eq!(pins.version("generate", &json!({"model": "n"})), None);
        let edited = lock.render().replace("a/b", "a/x");
        std::fs::write(lock_path(&workflow), edited).unwrap();
        assert!(LockFile::beside(&workflow).unwrap_err().contains("do not match their digest"));
    }

    #[test]
    fn every_text_of_a_fact_is_written_as_json() {
        let dir = tempfile::tempdir().unwrap();
        let workflow = dir.path().join("w.yaml");
        let mut lock = LockFile::empty();
        let odd =
            LockedSnapshot { asked: "\"then\"\n".into(), ..snapshot("x", &["a/b"], "w.yaml") };
        lock.update("w.yaml", vec![odd], Vec::new(), Vec::new());
        std::fs::write(lock_path(&workflow), lock.render()).unwrap();
        assert_eq!(LockFile::beside(&workflow).unwrap(), lock);
    }

    #[test]
    fn another_program_is_noticed() {
        let mut lock = LockFile::empty();
        lock.update("a.yaml", Vec::new(), Vec::new(), Vec::new());
        assert_eq!(lock.other_program("a.yaml"), None);
        lock.programs[0].version = "0.0.1".into();
        assert_eq!(lock.other_program("a.yaml"), Some("0.0.1"));
        assert_eq!(lock.other_program("b.yaml"), None);
        lock.update("a.yaml", Vec::new(), Vec::new(), Vec::new());
        assert_eq!(lock.other_program("a.yaml"), None);
        assert_eq!(lock.programs.len(), 1);
    }

    #[test]
    fn facts_go_when_no_workflow_asks_for_them() {
        let mut lock = LockFile::empty();
        lock.update(
            "a.yaml",
            vec![snapshot("x", &["a/b"], "a.yaml")],
            Vec::new(),
            vec![version("a.yaml")],
        );
        lock.update(
            "b.yaml",
            vec![snapshot("x", &["a/c"], "b.yaml")],
            Vec::new(),
            vec![version("b.yaml")],
        );
        assert_eq!(lock.snapshots.len(), 1);
        assert_eq!(lock.snapshots[0].workflows, ["a.yaml", "b.yaml"]);
        assert_eq!(lock.snapshots[0].rows[0], json!({"repo": "a/c"}));
        assert_eq!(lock.versions[0].workflows, ["a.yaml", "b.yaml"]);
        let programs = lock.programs.iter().map(|locked| locked.workflow.as_str());
        assert_eq!(programs.collect::<Vec<_>>(), ["a.yaml", "b.yaml"]);
        lock.update("a.yaml", Vec::new(), Vec::new(), Vec::new());
        lock.update("b.yaml", vec![snapshot("y", &["a/c"], "b.yaml")], Vec::new(), Vec::new());
        assert!(lock.versions.is_empty());
        assert_eq!(lock.snapshots.len(), 1);
        assert_eq!(lock.snapshots[0].of, json!({"github": "y"}));
    }
}
