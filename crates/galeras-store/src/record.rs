//! The record of a run: what ran, when, and which results it refers to.

use std::hash::{BuildHasher, RandomState};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::time::{compact, rfc3339};
use galeras_operator::event::{RunStatus, StepSummary};

/// One run of a workflow. Stored when the run starts, and again when it ends.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunRecord {
    /// The run's identity: its start and eight random digits, so that ids sort by time.
    pub id: String,
    /// The workflow's name.
    pub workflow: String,
    /// The workflow's file, as it was given.
    pub file: String,
    /// The workflow's file behind all links; empty if later commands do not go by this run.
    #[serde(default)]
    pub path: String,
    /// The settings of the command line, as they were given: `name=value`.
    #[serde(default)]
    pub set: Vec<String>,
    /// The folder from which relative paths in `set` start.
    #[serde(default)]
    pub set_folder: String,
    /// When it started, RFC 3339 in UTC.
    pub started: String,
    /// How it ended; absent while it runs, and for good if it was killed.
    pub status: Option<RunStatus>,
    /// Wall time in seconds.
    pub seconds: f64,
    /// The steps that ended.
    pub steps: Vec<StepSummary>,
    /// The resolved parameters of the workflow.
    pub params: serde_json::Value,
}

/// The settings with which a workflow was run, for later commands about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSettings {
    /// The workflow's file behind all links.
    pub path: String,
    /// The settings of the command line, as they were given: `name=value`.
    pub set: Vec<String>,
    /// The folder from which relative paths in `set` start.
    pub set_folder: String,
}

impl RunRecord {
    /// The record of a run that starts now.
    pub fn new(workflow: impl Into<String>, file: impl Into<String>) -> Self {
        let now = SystemTime::now();
        Self {
            id: format!("{}-{:08x}", compact(now), random() >> 32),
            workflow: workflow.into(),
            file: file.into(),
            path: String::new(),
            set: Vec::new(),
            set_folder: String::new(),
            started: rfc3339(now),
            status: None,
            seconds: 0.0,
            steps: Vec::new(),
            params: serde_json::Value::Object(serde_json::Map::new()),
        }
    }

    /// Makes it a run that later commands go by, if there are settings.
    pub fn remember(&mut self, settings: Option<&RunSettings>) {
        if let Some(RunSettings { path, set, set_folder }) = settings.cloned() {
            (self.path, self.set, self.set_folder) = (path, set, set_folder);
        }
    }

    /// The settings of the run, if later commands go by it.
    pub fn settings(&self) -> Option<RunSettings> {
        (!self.path.is_empty()).then(|| RunSettings {
            path: self.path.clone(),
            set: self.set.clone(),
            set_folder: self.set_folder.clone(),
        })
    }
}

/// A number that no other process and no other call gets. For names only, never for results.
pub(super) fn random() -> u64 {
    RandomState::new().hash_one((std::process::id(), SystemTime::now()))
}
