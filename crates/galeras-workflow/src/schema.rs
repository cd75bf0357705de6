//! The JSON Schema (draft 2020-12) of a workflow file, for editors.
//!
//! The top level is hand-written next to the readers; the caller provides the arguments of
//! operators, so that the registry stays the only list of operators. Workflows are not validated
//! with it: the readers are stricter and give better messages.

use serde_json::{Value, json};
use strum::VariantNames as _;

use super::columns::ScalarType;
use super::read::REPORT_PARTS;
use super::spec::{AssertKind, KnownPart, ParamType};

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
        if needs_with {
            then["required"] = json!(["with"]);
        }
        rules.push(json!({
            "if": { "properties": { "op": { "const": name } }, "required": ["op"] },
            "then": then,
        }));
        defs[slot] = arguments;
    }
    let op = if names.is_empty() { json!({ "type": "string" }) } else { json!({ "oneOf": names }) };
    defs["step"] = step(op, rules);
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
            "params": named("Typed parameters, overridden by `--set name=value`.", 0, "param"),
            "steps": named("The steps by name; `from` gives their order.", 1, "step"),
            "outputs": named("The tables to write, below `--out`.", 0, "output"),
            "report": { "$ref": "#/$defs/report" },
        },
        "$defs": defs,
    })
}

/// A mapping of at least `least` names to values of a definition.
fn named(description: &str, least: u32, definition: &str) -> Value {
    let mut schema = json!({ "description": description, "type": "object" });
    if least > 0 {
        schema["minProperties"] = json!(least);
    }
    schema["propertyNames"] = json!({ "pattern": NAME });
    schema["additionalProperties"] = json!({ "$ref": format!("#/$defs/{definition}") });
    schema
}

fn step(op: Value, rules: Vec<Value>) -> Value {
    let reference = json!({ "$ref": "#/$defs/reference" });
    let expression = json!({ "$ref": "#/$defs/expression" });
    let axis = json!({
        "type": "array",
        "minItems": 1,
        "items": { "type": ["string", "number", "boolean", "object"] },
    });
    let mapping =
        json!({ "type": "object", "minProperties": 1, "propertyNames": { "pattern": NAME } });
    let mapping_to = |values: Value| {
        let mut mapping = mapping.clone();
        mapping["additionalProperties"] = values;
        mapping
    };
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
                "anyOf": [reference, mapping_to(reference.clone())],
            },
            "with": { "description": "The arguments.", "type": ["object", "null"] },
            "matrix": {
                "description": "Runs the step once per combination of these values, or per mapping of a list.",
                "anyOf": [
                    mapping_to(json!({ "anyOf": [axis, expression] })),
                    {
                        "description": "Values that vary together; all mappings have the same keys.",
                        "type": "array",
                        "minItems": 1,
                        "items": { "anyOf": [mapping, expression] },
                    },
                    expression,
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
    if !rules.is_empty() {
        step["allOf"] = Value::Array(rules);
    }
    step
}

fn frame_definitions() -> Value {
    let scalars = ScalarType::VARIANTS;
    let column = format!(r"^\s*(({})\s*!?\s*$|(list|struct)\s*<)", scalars.join("|"));
    let types = ParamType::VARIANTS;
    let checks: Vec<Value> =
        AssertKind::VARIANTS.iter().map(|name| json!({ "required": [name] })).collect();
    let columns = |doc: &str| {
        let name = json!({ "type": "string" });
        json!({ "type": "array", "minItems": 1, "items": name, "description": doc })
    };
    let least_0 =
        |kind: &str| json!([{ "type": kind, "minimum": 0 }, { "$ref": "#/$defs/expression" }]);
    let count = json!({ "anyOf": least_0("integer") });
    let rows = |doc: &str| {
        json!({
            "description": doc,
            "type": "object",
            "minProperties": 1,
            "additionalProperties": false,
            "properties": { "min": count, "max": count },
        })
    };
    let limit = |kind: &str, doc: &str| json!({ "description": doc, "anyOf": least_0(kind) });
    json!({
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
                    "description": "A relative path that ends in .parquet, .jsonl, .json or .csv, or, for a paper, in .tex or .md (with `column` in .txt, .json, .svg or .html; of a figure in .svg, .png or .pdf).",
                    "type": "string",
                    "pattern": r"(\.(parquet|jsonl|json|csv|tex|md|txt|svg|png|pdf|html)|\}\}\s*)$",
                },
                "column": {
                    "description": "The text column of a table of one row whose value is the file, as it is.",
                    "type": "string",
                },
                "shape": {
                    "description": "The rows as in other files: `galeras` as in the published Galeras dataset (.parquet, .jsonl, .json).",
                    "enum": ["galeras"],
                },
                "rows": rows("How many rows the table must have; at least 1 unless written otherwise."),
                "columns": {
                    "description": "Of a .tex or .md file: the columns, in this order.",
                    "type": "array",
                    "items": { "type": "string" },
                },
                "digits": {
                    "description": "Of a .tex or .md file: the decimals of its numbers; else those of standard errors.",
                    "type": "integer",
                    "minimum": 0,
                    "maximum": 12,
                },
                "caption": {
                    "description": "The caption of a .tex or .md file.",
                    "type": "string",
                },
                "label": {
                    "description": "The label of a .tex file.",
                    "type": "string",
                },
                "bold": {
                    "description": "Of a .tex or .md file: columns whose largest or smallest number is bold; with `pivot` that of each row.",
                    "type": "object",
                    "additionalProperties": { "enum": ["max", "min"] },
                },
                "pivot": {
                    "description": "Of a .tex or .md file: a column for each value of one column, with the values of another.",
                    "type": "object",
                    "required": ["columns", "values"],
                    "additionalProperties": false,
                    "properties": {
                        "columns": { "type": "string" },
                        "values": { "type": "string" },
                    },
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
                "unique": columns("No two rows agree in all of these columns."),
                "not_null": columns("None of these columns holds a null."),
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
                "rows": rows("How many rows there are."),
                "severity": { "enum": ["error", "warn"], "default": "error" },
                "port": { "type": "string", "description": "The output port to look at." },
            },
        },
    })
}

fn report_schema() -> Value {
    let part = |doc: &str| json!({ "$ref": "#/$defs/reference", "description": doc });
    let section = json!({
        "type": "object",
        "additionalProperties": false,
        "oneOf": REPORT_PARTS.map(|name| json!({ "required": [name] })),
        "properties": {
            "heading": { "type": "string", "description": "The text above it." },
            "caption": { "type": "string", "description": "The text below a figure or a table." },
            "columns": {
                "type": "array",
                "items": { "type": "string" },
                "description": "The columns of a table or of rows; all without.",
            },
            "limit": { "type": "integer", "minimum": 1, "description": "The most rows." },
            "text": { "type": "string", "description": "Markdown." },
            "findings": part("The sentences of a table of findings, such as the port `findings` of `regress`."),
            "figure": part("The pictures of a step with `op: figure`."),
            "table": part("A table to read."),
            "rows": part("Rows one by one: what was asked, what was answered, what was right."),
        },
    });
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
    let Some(map) = schema.as_object_mut() else { return };
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
        if !is_within(schema, &["array", "object", "null"]) {
            return;
        }
    } else if is_free_string(schema) {
        return;
    }
    let original = schema.take();
    *schema = json!({});
    // Editors show these only from the outermost schema.
    for key in ["description", "title", "default"] {
        if let Some(value) = original.get(key) {
            schema[key] = value.clone();
        }
    }
    schema["anyOf"] = json!([original, { "type": "string", "pattern": EXPRESSION }]);
}

/// The values of `type`; none without it.
fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::Array(types)) => types.iter().filter_map(Value::as_str).collect(),
        Some(one) => one.as_str().into_iter().collect(),
        None => Vec::new(),
    }
}

/// True if `type` allows only some of these.
fn is_within(schema: &Value, allowed: &[&str]) -> bool {
    let types = types(schema);
    !types.is_empty() && types.iter().all(|t| allowed.contains(t))
}

fn is_scalar(schema: &Value) -> bool {
    if schema.get("const").is_some() || schema.get("enum").is_some() {
        return true;
    }
    if schema.get("type").is_some() {
        return is_within(schema, &["string", "integer", "number", "boolean", "null"]);
    }
    let choices = schema.get("oneOf").or_else(|| schema.get("anyOf")).and_then(Value::as_array);
    choices.is_some_and(|all| !all.is_empty() && all.iter().all(is_scalar))
}

/// A string without conditions already accepts an expression.
fn is_free_string(schema: &Value) -> bool {
    let conditions = ["enum", "const", "pattern", "format", "minLength", "maxLength"];
    types(schema).contains(&"string") && conditions.iter().all(|key| schema.get(key).is_none())
}

#[cfg(test)]
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
        for (pointer, expected) in [
            ("/properties/seed/anyOf/0/type", "integer"),
            ("/properties/seed/anyOf/1/pattern", EXPRESSION),
            ("/properties/seed/description", "the seed"),
            ("/properties/column/type", "string"),
            ("/$defs/At/anyOf/1/pattern", EXPRESSION),
            ("/properties/rules/anyOf/0/type", "array"),
            ("/properties/rules/anyOf/1/pattern", EXPRESSION),
            ("/$defs/Rule/anyOf/0/properties/n/anyOf/1/pattern", EXPRESSION),
        ] {
            assert_eq!(with.pointer(pointer), Some(&json!(expected)), "{pointer}");
        }
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
