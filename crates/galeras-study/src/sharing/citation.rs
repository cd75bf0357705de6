//! The citation of a data set: `CITATION.cff`, version 1.2.0 of the Citation File Format.

use std::fmt::Write as _;

use serde_json::json;

use super::dataset::Dataset;

pub(super) fn citation(dataset: &Dataset) -> String {
    let mut text = String::from(
        "cff-version: 1.2.0\nmessage: If you use this data set, please cite it as below.\ntype: dataset\n",
    );
    // JSON texts are valid YAML.
    let _ = writeln!(text, "title: {}", json!(dataset.name));
    if let Some(description) = &dataset.description {
        let _ = writeln!(text, "abstract: {}", json!(description));
    }
    if let Some(day) = dataset.computed.get(..10) {
        let _ = writeln!(text, "date-released: {day}");
    }
    text.push_str("authors:\n");
    if dataset.authors.is_empty() {
        let _ = writeln!(text, "  - name: {}", json!(dataset.makers()));
    }
    for author in &dataset.authors {
        let _ = match author.rsplit_once(' ') {
            Some((given, family)) => writeln!(
                text,
                "  - given-names: {}\n    family-names: {}",
                json!(given),
                json!(family)
            ),
            None => writeln!(text, "  - name: {}", json!(author)),
        };
    }
    text.push_str("keywords:\n  - benchmark\n  - code\n  - galeras\n");
    text.push_str("identifiers:\n");
    for table in &dataset.tables {
        let _ = writeln!(
            text,
            "  - type: other\n    value: \"blake3:{}\"\n    description: {}",
            table.digest,
            json!(format!("The rows of {}.", table.name))
        );
    }
    text
}
