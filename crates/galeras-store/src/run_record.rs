//! The record of a run: its workflow, its time, and the results that it refers to. Times are texts
//! in UTC with milliseconds and a fixed width, so that texts sort as the times do.

use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::time::SystemTime;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use galeras_operator::event::{RunStatus, StepSummary};

/// The format of a time in a file name: `20261121T093000.123Z`.
const COMPACT: &str = "%Y%m%dT%H%M%S.%3fZ";

/// One run of a workflow. Stored when the run starts, and again when it ends.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunRecord {
    /// Its start and eight random digits, so that ids sort by time.
    pub id: String,
    /// The workflow's name.
    pub workflow: String,
    /// The workflow's file, as it was given.
    pub file: String,
    /// Its settings; without a path if later commands do not use them.
    #[serde(flatten)]
    pub settings: RunSettings,
    /// The start, RFC 3339 in UTC.
    pub started: String,
    /// Absent while it runs, and forever if it was killed.
    pub status: Option<RunStatus>,
    /// Wall time in seconds.
    pub seconds: f64,
    /// The steps that ended.
    pub steps: Vec<StepSummary>,
    /// The resolved parameters of the workflow.
    pub params: serde_json::Value,
}

/// The settings with which a workflow was run, for later commands about it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunSettings {
    /// The workflow's file behind all links.
    pub path: String,
    /// The settings of the command line, as they were given: `name=value`.
    pub set: Vec<String>,
    /// The folder from which relative paths in `set` start.
    pub set_folder: String,
}

impl RunRecord {
    /// True if it is a run of the workflow in `file`, and not of a copy. If the file was moved since,
    /// its name decides.
    pub fn is_of(&self, file: &Path) -> bool {
        let real = |path: &Path| path.canonicalize().ok();
        let recorded = [&self.settings.path, &self.file].map(Path::new);
        match (recorded.into_iter().find_map(real), real(file)) {
            (Some(then), Some(now)) => then == now,
            _ => recorded[1].file_name().is_some() && recorded[1].file_name() == file.file_name(),
        }
    }

    /// The record of a run that starts now.
    pub fn new(workflow: impl Into<String>, file: impl Into<String>) -> Self {
        let now = SystemTime::now();
        Self {
            id: format!("{}-{:08x}", formatted(now, COMPACT), random() >> 32),
            workflow: workflow.into(),
            file: file.into(),
            settings: RunSettings::default(),
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

/// The current time, as RFC 3339 in UTC: `2026-11-21T09:30:00.123Z`.
pub fn timestamp() -> String {
    rfc3339(SystemTime::now())
}

pub(super) fn rfc3339(time: SystemTime) -> String {
    formatted(time, "%Y-%m-%dT%H:%M:%S.%3fZ")
}

/// A time in UTC; one before 1970 becomes 1970.
fn formatted(time: SystemTime, format: &str) -> String {
    let time = Timestamp::try_from(time).unwrap_or_default();
    time.max(Timestamp::UNIX_EPOCH).strftime(format).to_string()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn times_are_in_utc() {
        for (seconds, millis, expected) in [
            (0, 0, "1970-01-01T00:00:00.000Z"),
            (951_782_400, 7, "2000-02-29T00:00:00.007Z"),
            (1_709_251_199, 999, "2024-02-29T23:59:59.999Z"),
            (4_107_542_400, 0, "2100-03-01T00:00:00.000Z"),
        ] {
            let time = UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_millis(millis);
            assert_eq!(rfc3339(time + Duration::from_micros(999)), expected);
        }
        assert_eq!(rfc3339(UNIX_EPOCH - Duration::from_secs(1)), "1970-01-01T00:00:00.000Z");
        let time = UNIX_EPOCH + Duration::from_millis(1_795_253_400_123);
        assert_eq!(formatted(time, COMPACT), "20261121T093000.123Z");
    }
}
