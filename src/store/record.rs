//! The record of a run: what ran, when, and which results it refers to.

use std::hash::{BuildHasher, RandomState};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::time::{compact, rfc3339};
use crate::event::{RunStatus, StepSummary};

/// One run of a workflow. Stored when the run starts, and again when it ends.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunRecord {
    /// The run's identity: its start and eight random digits, so that ids sort by time.
    pub id: String,
    /// The workflow's name.
    pub workflow: String,
    /// The workflow's file, as it was given.
    pub file: String,
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

impl RunRecord {
    /// The record of a run that starts now.
    pub fn new(workflow: impl Into<String>, file: impl Into<String>) -> Self {
        let now = SystemTime::now();
        Self {
            id: format!("{}-{:08x}", compact(now), random() >> 32),
            workflow: workflow.into(),
            file: file.into(),
            started: rfc3339(now),
            status: None,
            seconds: 0.0,
            steps: Vec::new(),
            params: serde_json::Value::Object(serde_json::Map::new()),
        }
    }
}

/// A number that no other process and no other call gets. For names only, never for results.
pub(super) fn random() -> u64 {
    RandomState::new().hash_one((std::process::id(), SystemTime::now()))
}
