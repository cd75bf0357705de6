//! The numbers of tests/reference/generalised_models.json, for the tests of several modules.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::Value;

use crate::Covariance;

/// The file, with its table by column.
pub(crate) struct GeneralisedReference {
    pub(crate) json: Value,
    columns: Vec<(String, Vec<f64>)>,
    nhefs: Vec<(String, Vec<f64>)>,
}

impl GeneralisedReference {
    pub(crate) fn read() -> Self {
        let folder = "../../tests/reference";
        let text = std::fs::read_to_string(format!("{folder}/generalised_models.json")).unwrap();
        let json: Value = serde_json::from_str(&text).unwrap();
        let columns = table(json["csv"].as_str().unwrap());
        let nhefs = table(&std::fs::read_to_string(format!("{folder}/causal/nhefs.csv")).unwrap());
        Self { json, columns, nhefs }
    }

    pub(crate) fn column(&self, name: &str) -> &[f64] {
        &self.columns.iter().find(|column| column.0 == name).unwrap().1
    }

    pub(crate) fn nhefs(&self, name: &str) -> &[f64] {
        &self.nhefs.iter().find(|column| column.0 == name).unwrap().1
    }

    pub(crate) fn treated(&self) -> Vec<bool> {
        self.column("arm").iter().map(|arm| *arm == 1.0).collect()
    }

    pub(crate) fn codes(&self, name: &str) -> Vec<u32> {
        self.column(name).iter().map(|code| *code as u32).collect()
    }

    pub(crate) fn covariates(&self) -> Vec<&[f64]> {
        vec![self.column("size"), self.column("depth")]
    }
}

fn table(text: &str) -> Vec<(String, Vec<f64>)> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let mut columns: Vec<(String, Vec<f64>)> =
        reader.headers().unwrap().iter().map(|name| (name.to_owned(), Vec::new())).collect();
    for record in reader.records() {
        for (cell, column) in record.unwrap().iter().zip(&mut columns) {
            column.1.push(cell.parse().unwrap());
        }
    }
    columns
}

/// The kinds with numbers in the file, by their names there.
pub(crate) const KINDS: [(&str, Covariance); 8] = [
    ("classic", Covariance::Classic),
    ("HC0", Covariance::Hc0),
    ("HC1", Covariance::Hc1),
    ("HC2", Covariance::Hc2),
    ("HC3", Covariance::Hc3),
    ("CR1", Covariance::Cr1),
    ("CR2", Covariance::Cr2),
    ("CR3", Covariance::Cr3),
];

/// Fails unless two numbers agree to a relative tolerance.
#[track_caller]
pub(crate) fn near(found: f64, expected: &Value, tolerance: f64) {
    let expected = expected.as_f64().unwrap_or_else(|| panic!("{expected} is not a number"));
    let distance = (found - expected).abs();
    assert!(distance <= tolerance * expected.abs().max(1e-12), "{found} is not {expected}");
}
