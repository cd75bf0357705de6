//! The JSON Schema (draft 2020-12) of a workflow file, for editors.
//!
//! The top level is hand-written next to the readers; the caller provides the arguments of
//! operators, so that the registry stays the only list of operators. Workflows are not validated
//! with it: the readers are stricter and give better messages.

use serde_json::{Map, Value, json};
use strum::VariantNames as _;

use super::columns::ScalarType;
use super::report_schema::report_schema;
use super::spec::{AssertKind, ParamType};

const NAME: &str = "^[A-Za-z_][A-Za-z0-9_-]*$";
const EXPRESSION: &str = r"^\$\{\{.*\}\}$";
const REFERENCE: &str = r"^[A-Za-z_][A-Za-z0-9_-]*(\[(\*|[^\[\]=,]+=[^\[\]=,]+(,[^\[\]=,]+=[^\[\]=,]+)*)\])?(\.[A-Za-z_][A-Za-z0-9_-]*)?$";

/// Builds the schema of a workflow file. `operators` are name, one-line doc and the schema of the
/// arguments (from schemars, with its own `$defs`), in the order for an editor. Every scalar, list
/// and mapping in an argument may also be a `${{ … }}`.
pub fn json_schema(operators: &[(&str, &str, Value)]) -> Value {
    let mut defs = frame_definitions();
    let mut names = Vec::new();
    let mut rules = Vec::new();
    for (name, doc, arguments) in operators {
        names.push(json!({ "const": name, "description": doc }));
        let slot = format!("with_{name}");
        let mut arguments = arguments.clone();
        if let Some(root) = arguments.as_object_mut() {
            root.remove("$schema");
            root.remove("$id");
        }
        rebase(&mut arguments, &slot);
        relax(&mut arguments);
        let required = arguments.get("required").and_then(Value::as_array);
        let needs_with = required.is_some_and(|keys| !keys.is_empty());
        let mut then = json!({ "properties": { "with": { "$ref": format!("#/$defs/{slot}") } } });
        if needs_with && let Some(then) = then.as_object_mut() {
            then.insert("required".to_owned(), json!(["with"]));
        }
        rules.push(json!({
            "if": { "properties": { "op": { "const": name } }, "required": ["op"] },
            "then": then,
        }));
        defs.insert(slot, arguments);
    }
    let op = if names.is_empty() { json!({ "type": "string" }) } else { json!({ "oneOf": names }) };
    defs.insert("step".to_owned(), step(op, rules));
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Galeras workflow",
        "description": "A directed acyclic graph of typed operators over tables.",
        "type": "object",
        "required": ["galeras", "steps"],
        "additionalProperties": false,
        "properties": {
            "galeras": { "const": 1, "description": "The version of the format." },
            "name": { "type": "string", "description": "The name of the workflow." },
            "description": { "type": "string", "description": "The purpose of the workflow." },
            "remote": {
                "description": "A store elsewhere whose results are as good as computed: a folder, or a URL.",
                "anyOf": [
                    { "type": "string" },
                    {
                        "type": "object",
                        "required": ["url"],
                        "additionalProperties": false,
                        "properties": {
                            "url": { "type": "string", "description": "A folder, or a URL." },
                            "allowed_signers": {
                                "description": "A file of allowed signers, as `ssh-keygen -Y verify` reads it, relative to this file: only results that one of them signed are taken.",
                                "type": "string",
                            },
                        },
                    },
                ],
            },
            "prereg": {
                "description": "The `regress` steps whose analysis `galeras lock` registers before there are answers.",
                "anyOf": [
                    { "type": "string" },
                    { "type": "array", "items": { "type": "string" }, "uniqueItems": true },
                ],
            },
            "budget": { "$ref": "#/$defs/budget" },
            "params": {
                "description": "Typed parameters, overridden by `--set name=value`.",
                "type": "object",
                "propertyNames": { "pattern": NAME },
                "additionalProperties": { "$ref": "#/$defs/param" },
            },
            "steps": {
                "description": "The steps by name; `from` gives their order.",
                "type": "object",
                "minProperties": 1,
                "propertyNames": { "pattern": NAME },
                "additionalProperties": { "$ref": "#/$defs/step" },
            },
            "outputs": {
                "description": "The tables to write, below `--out`.",
                "type": "object",
                "propertyNames": { "pattern": NAME },
                "additionalProperties": { "$ref": "#/$defs/output" },
            },
            "report": { "$ref": "#/$defs/report" },
        },
        "$defs": defs,
    })
}

fn step(op: Value, rules: Vec<Value>) -> Value {
    let mut step = json!({
        "type": "object",
        "additionalProperties": false,
        "oneOf": [{ "required": ["op"] }, { "required": ["uses"] }],
        "properties": {
            "op": op,
            "uses": {
                "description": "Another workflow to embed: a path relative to this file.",
                "type": "string",
                "pattern": r"\.ya?ml$",
            },
            "from": {
                "description": "Where the input comes from: a step, one of its ports, or a mapping from input ports to them.",
                "anyOf": [
                    { "$ref": "#/$defs/reference" },
                    {
                        "type": "object",
                        "minProperties": 1,
                        "propertyNames": { "pattern": NAME },
                        "additionalProperties": { "$ref": "#/$defs/reference" },
                    },
                ],
            },
            "with": { "description": "The arguments.", "type": ["object", "null"] },
            "matrix": {
                "description": "Runs the step once per combination of these values, or per mapping of a list.",
                "anyOf": [
                    {
                        "type": "object",
                        "minProperties": 1,
                        "propertyNames": { "pattern": NAME },
                        "additionalProperties": {
                            "anyOf": [
                                {
                                    "type": "array",
                                    "minItems": 1,
                                    "items": { "type": ["string", "number", "boolean", "object"] },
                                },
                                { "$ref": "#/$defs/expression" },
                            ],
                        },
                    },
                    {
                        "description": "Values that vary together; all mappings have the same keys.",
                        "type": "array",
                        "minItems": 1,
                        "items": {
                            "anyOf": [
                                {
                                    "type": "object",
                                    "minProperties": 1,
                                    "propertyNames": { "pattern": NAME },
                                },
                                { "$ref": "#/$defs/expression" },
                            ],
                        },
                    },
                    { "$ref": "#/$defs/expression" },
                ],
            },
            "schema": {
                "description": "The columns that the result must have, checked before anything runs.",
                "anyOf": [
                    {
                        "type": "object",
                        "minProperties": 1,
                        "additionalProperties": { "$ref": "#/$defs/column_type" },
                    },
                    { "type": "string", "description": "The path of a contract file." },
                ],
            },
            "assert": {
                "description": "Data tests; they gate what is downstream.",
                "type": "array",
                "items": { "$ref": "#/$defs/assertion" },
            },
            "description": { "type": "string" },
        },
    });
    if !rules.is_empty()
        && let Some(step) = step.as_object_mut()
    {
        step.insert("allOf".to_owned(), Value::Array(rules));
    }
    step
}

fn frame_definitions() -> Map<String, Value> {
    let scalars = ScalarType::VARIANTS;
    let column = format!(r"^\s*(({})\s*!?\s*$|(list|struct)\s*<)", scalars.join("|"));
    let types = ParamType::VARIANTS;
    let checks: Vec<Value> =
        AssertKind::VARIANTS.iter().map(|name| json!({ "required": [name] })).collect();
    let columns = json!({ "type": "array", "minItems": 1, "items": { "type": "string" } });
    let count = json!({
        "anyOf": [{ "type": "integer", "minimum": 0 }, { "$ref": "#/$defs/expression" }],
    });
    let limit = |kind: &str, doc: &str| {
        json!({
            "description": doc,
            "anyOf": [{ "type": kind, "minimum": 0 }, { "$ref": "#/$defs/expression" }],
        })
    };
    let defs = json!({
        "report": report_schema(),
        "budget": {
            "description": "The spending limit of all steps together, over all runs until everything is answered.",
            "type": "object",
            "minProperties": 1,
            "additionalProperties": false,
            "properties": {
                "max_usd": limit("number", "The most US dollars. Every paid step then needs `price` and `max_tokens`."),
                "max_requests": limit("integer", "The most requests to models."),
            },
        },
        "expression": {
            "description": "A parameter or matrix value: `${{ params.name }}`.",
            "type": "string",
            "pattern": EXPRESSION,
        },
        "reference": {
            "description": "`step`, `step.port`, `step[*]` or `step[key=value].port`; it may contain params.",
            "type": "string",
            "anyOf": [{ "pattern": REFERENCE }, { "pattern": r"\$\{\{.*\}\}" }],
        },
        "column_type": {
            "description": "A type such as `utf8!`, `list<float64>` or `struct<a: int64>`; `!` excludes nulls.",
            "type": "string",
            "pattern": column,
        },
        "param": {
            "type": "object",
            "required": ["type"],
            "additionalProperties": false,
            "properties": {
                "type": { "enum": types, "description": "The type; a path is relative to this file, in `--set` to the current folder. `repos` are repositories: `owner/name`, URLs and paths with commas, or a .csv file." },
                "default": { "type": ["string", "number", "boolean", "array", "object"], "description": "The value unless `--set` gives one." },
                "min": { "type": "number", "description": "The least value, inclusive." },
                "max": { "type": "number", "description": "The greatest value, inclusive." },
                "choices": { "type": "array", "minItems": 1, "items": { "type": ["string", "number", "boolean"] }, "description": "The only values allowed; of a list, for each of its entries." },
                "help": { "type": "string", "description": "The purpose of the param." },
            },
        },
        "output": {
            "type": "object",
            "required": ["from", "path"],
            "additionalProperties": false,
            "properties": {
                "from": { "$ref": "#/$defs/reference" },
                "path": {
                    "description": "A relative path that ends in .parquet, .jsonl, .json or .csv (with `column` in .txt, .json, .svg or .html; of a figure in .svg, .png or .pdf).",
                    "type": "string",
                    "pattern": r"(\.(parquet|jsonl|json|csv|txt|svg|png|pdf|html)|\}\}\s*)$",
                },
                "column": {
                    "description": "The text column of a table of one row whose value is the file, as it is.",
                    "type": "string",
                },
                "shape": {
                    "description": "The rows as in other files: `galeras` as in the published Galeras dataset (.parquet, .jsonl, .json).",
                    "enum": ["galeras"],
                },
                "show": {
                    "description": "Print the table on standard output at the end of a run.",
                    "type": "boolean",
                },
            },
        },
        "assertion": {
            "type": "object",
            "additionalProperties": false,
            "oneOf": checks,
            "properties": {
                "unique": with_doc(&columns, "No two rows agree in all of these columns."),
                "not_null": with_doc(&columns, "None of these columns holds a null."),
                "accepted_values": {
                    "description": "A column holds only these values.",
                    "type": "object",
                    "required": ["column", "values"],
                    "additionalProperties": false,
                    "properties": {
                        "column": { "type": "string" },
                        "values": { "type": "array", "minItems": 1, "items": { "type": ["string", "number", "boolean", "null"] } },
                    },
                },
                "expr": { "type": "string", "description": "SQL that is true for every row." },
                "rows": {
                    "description": "How many rows there are.",
                    "type": "object",
                    "minProperties": 1,
                    "additionalProperties": false,
                    "properties": { "min": count, "max": count },
                },
                "severity": { "enum": ["error", "warn"], "default": "error" },
                "port": { "type": "string", "description": "The output port to look at." },
            },
        },
    });
    match defs {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

fn with_doc(schema: &Value, doc: &str) -> Value {
    let mut out = schema.clone();
    if let Some(map) = out.as_object_mut() {
        map.insert("description".to_owned(), json!(doc));
    }
    out
}

/// Adjusts the references of an operator's schema to its new place. The schemas are our own, so
/// recursion is as deep as our types.
fn rebase(schema: &mut Value, slot: &str) {
    match schema {
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                if key == "$ref"
                    && let Some(rest) = value.as_str().and_then(|r| r.strip_prefix('#'))
                {
                    *value = json!(format!("#/$defs/{slot}{rest}"));
                } else {
                    rebase(value, slot);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rebase(item, slot)),
        _ => {}
    }
}

/// Allows an expression for every scalar, list and mapping below a schema.
fn relax(schema: &mut Value) {
    let Some(map) = schema.as_object_mut() else {
        return;
    };
    for (key, value) in map.iter_mut() {
        match (key.as_str(), value) {
            ("properties" | "patternProperties" | "$defs", Value::Object(children)) => {
                children.values_mut().for_each(relax_child);
            }
            ("additionalProperties" | "items", value) => relax_child(value),
            ("prefixItems", Value::Array(items)) => items.iter_mut().for_each(relax_child),
            ("anyOf" | "oneOf" | "allOf", Value::Array(items)) => items.iter_mut().for_each(relax),
            _ => {}
        }
    }
}

fn relax_child(schema: &mut Value) {
    if !is_scalar(schema) {
        relax(schema);
        if !is_collection(schema) {
            return;
        }
    } else if is_free_string(schema) {
        return;
    }
    let original = schema.take();
    let mut out = Map::new();
    // Editors show these only from the outermost schema.
    for key in ["description", "title", "default"] {
        if let Some(value) = original.get(key) {
            out.insert(key.to_owned(), value.clone());
        }
    }
    let expression = json!({ "type": "string", "pattern": EXPRESSION });
    out.insert("anyOf".to_owned(), json!([original, expression]));
    *schema = Value::Object(out);
}

fn is_scalar(schema: &Value) -> bool {
    let simple = |t: &Value| {
        matches!(t.as_str(), Some("string" | "integer" | "number" | "boolean" | "null"))
    };
    if schema.get("const").is_some() || schema.get("enum").is_some() {
        return true;
    }
    match schema.get("type") {
        Some(Value::Array(types)) => return types.iter().all(simple),
        Some(one) => return simple(one),
        None => {}
    }
    let choices = schema.get("oneOf").or_else(|| schema.get("anyOf"));
    choices
        .and_then(Value::as_array)
        .is_some_and(|all| !all.is_empty() && all.iter().all(is_scalar))
}

/// A list or a mapping, or nothing.
fn is_collection(schema: &Value) -> bool {
    let fits = |t: &Value| matches!(t.as_str(), Some("array" | "object" | "null"));
    match schema.get("type") {
        Some(Value::Array(types)) => types.iter().all(fits),
        Some(one) => fits(one),
        None => false,
    }
}

/// A string without conditions already accepts an expression.
fn is_free_string(schema: &Value) -> bool {
    let accepts = |t: &Value| t.as_str() == Some("string");
    let string = match schema.get("type") {
        Some(Value::Array(types)) => types.iter().any(accepts),
        Some(one) => accepts(one),
        None => false,
    };
    let conditions = ["enum", "const", "pattern", "format", "minLength", "maxLength"];
    string && conditions.iter().all(|key| schema.get(key).is_none())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    fn example() -> Value {
        json_schema(&[(
            "cut",
            "Cuts methods.",
            json!({
                "$schema": "x",
                "type": "object",
                "required": ["seed"],
                "properties": {
                    "seed": { "type": "integer", "description": "the seed" },
                    "column": { "type": "string", "default": "code" },
                    "at": { "$ref": "#/$defs/At" },
                    "rules": { "type": "array", "items": { "$ref": "#/$defs/Rule" } },
                },
                "$defs": {
                    "At": { "oneOf": [{ "const": "space" }, { "const": "line" }] },
                    "Rule": { "type": "object", "properties": { "n": { "type": ["number", "null"] } } },
                },
            }),
        )])
    }

    #[test]
    fn arguments_accept_expressions() {
        let schema = example();
        let with = &schema["$defs"]["with_cut"];
        assert_eq!(with["properties"]["seed"]["anyOf"][0]["type"], "integer");
        assert_eq!(with["properties"]["seed"]["anyOf"][1]["pattern"], EXPRESSION);
        assert_eq!(with["properties"]["seed"]["description"], "the seed");
        assert_eq!(with["properties"]["column"]["type"], "string");
        assert_eq!(with["$defs"]["At"]["anyOf"][1]["pattern"], EXPRESSION);
        assert_eq!(with["properties"]["rules"]["anyOf"][0]["type"], "array");
        assert_eq!(with["properties"]["rules"]["anyOf"][1]["pattern"], EXPRESSION);
        let n = &with["$defs"]["Rule"]["anyOf"][0]["properties"]["n"];
        assert_eq!(n["anyOf"][1]["pattern"], EXPRESSION);
        assert!(with.get("$schema").is_none());
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let schema = example();
        let mut open = vec![&schema];
        let mut seen = 0;
        while let Some(value) = open.pop() {
            if let Some(target) = value.get("$ref").and_then(Value::as_str) {
                let pointer = target.strip_prefix('#').unwrap();
                assert!(schema.pointer(pointer).is_some(), "{target}");
                seen += 1;
            }
            match value {
                Value::Object(map) => open.extend(map.values()),
                Value::Array(items) => open.extend(items),
                _ => {}
            }
        }
        assert!(seen > 5);
    }

    #[test]
    fn arguments_are_chosen_by_the_operator() {
        let schema = example();
        let rule = &schema["$defs"]["step"]["allOf"][0];
        assert_eq!(rule["if"]["properties"]["op"]["const"], "cut");
        assert_eq!(rule["then"]["required"], json!(["with"]));
        assert_eq!(schema["$defs"]["step"]["properties"]["op"]["oneOf"][0]["const"], "cut");
        assert!(json_schema(&[])["$defs"]["step"].get("allOf").is_none());
    }
}
