//! Tests of the propensity estimators against the reference files, and helpers for the files below.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod cases;
mod coverage;
mod properties;
mod reference;
mod sandwich;
mod small_samples;

use std::fs::File;
use std::path::PathBuf;

use serde_json::Value;

pub(super) fn reference_dir() -> PathBuf {
    PathBuf::from("../../tests/reference/causal")
}

/// Columns of a data set, with its expected numbers.
pub(super) struct Data {
    pub(super) columns: Vec<Vec<f64>>,
    pub(super) treated: Vec<bool>,
    pub(super) outcome: Vec<f64>,
    pub(super) expected: Value,
}

impl Data {
    /// Reads the CSV and the JSON of that name.
    pub(super) fn read(name: &str) -> Self {
        let json = File::open(reference_dir().join(format!("{name}.json"))).unwrap();
        let expected: Value = serde_json::from_reader(json).unwrap();
        let mut csv = csv::Reader::from_path(reference_dir().join(format!("{name}.csv"))).unwrap();
        let header = csv.headers().unwrap().clone();
        let records: Vec<csv::StringRecord> = csv.records().map(Result::unwrap).collect();
        let column = |title: &Value| -> Vec<f64> {
            let place = header.iter().position(|h| Some(h) == title.as_str()).unwrap();
            records.iter().map(|record| record[place].parse().unwrap()).collect()
        };
        let meta = &expected["meta"];
        let columns = meta["covariates"].as_array().unwrap().iter().map(column).collect();
        let treated = column(&meta["treatment"]).iter().map(|t| *t > 0.5).collect();
        let outcome = column(&meta["outcome"]);
        Self { columns, treated, outcome, expected }
    }

    pub(super) fn covariates(&self) -> Vec<&[f64]> {
        slices(&self.columns)
    }
}

pub(super) fn slices(columns: &[Vec<f64>]) -> Vec<&[f64]> {
    columns.iter().map(Vec::as_slice).collect()
}

/// Asserts a relative difference; absolute differences below the tolerance also pass.
#[track_caller]
pub(super) fn close(what: &str, found: f64, expected: f64, tolerance: f64) {
    let bound = tolerance * expected.abs().max(1e-3);
    assert!((found - expected).abs() <= bound, "{what}: {found} instead of {expected}");
}

/// Numbers in the unit interval from a seed (SplitMix64).
pub(super) struct Uniform(pub(super) u64);

impl Uniform {
    pub(super) fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A standard normal number (Box & Muller).
    pub(super) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.next()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.next()).cos()
    }
}
