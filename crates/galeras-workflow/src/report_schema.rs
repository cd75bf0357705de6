//! The JSON Schema of `report`.

use serde_json::{Value, json};
use strum::VariantNames as _;

use super::spec::KnownPart;

pub(super) fn report_schema() -> Value {
    let part = |name: &str, description: &str| {
        let property = match name {
            "text" => json!({ "type": "string", "description": description }),
            _ => json!({ "$ref": "#/$defs/reference", "description": description }),
        };
        (name.to_string(), property)
    };
    let parts = [
        part("text", "Markdown."),
        part(
            "findings",
            "The sentences of a table of findings, such as the port `findings` of `regress`.",
        ),
        part("figure", "The pictures of a step with `op: figure`."),
        part("table", "A table to read."),
        part("rows", "Rows one by one: what was asked, what was answered, what was right."),
    ];
    let alone: Vec<Value> = parts.iter().map(|(name, _)| json!({ "required": [name] })).collect();
    let mut section = json!({
        "type": "object",
        "additionalProperties": false,
        "oneOf": alone,
        "properties": {
            "heading": { "type": "string", "description": "The text above it." },
            "caption": { "type": "string", "description": "The text below a figure or a table." },
            "columns": {
                "type": "array",
                "items": { "type": "string" },
                "description": "The columns of a table or of rows; all without.",
            },
            "limit": { "type": "integer", "minimum": 1, "description": "The most rows." },
        },
    });
    if let Some(properties) = section["properties"].as_object_mut() {
        properties.extend(parts);
    }
    json!({
        "description": "The page of the study, which `galeras report` writes.",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "path": {
                "type": "string",
                "pattern": r"\.html$",
                "description": "Where `run` writes it, below `--out`; only `galeras report` does without.",
            },
            "title": { "type": "string", "description": "The title; the workflow's name without." },
            "sections": {
                "type": "array",
                "description": "The sections, in this order; those that suit the results if absent.",
                "items": { "anyOf": [{ "enum": KnownPart::VARIANTS }, section] },
            },
        },
    })
}
