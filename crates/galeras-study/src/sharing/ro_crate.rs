//! The metadata of a bundle as an RO-Crate 1.2 that follows the profiles Process Run Crate,
//! Workflow Run Crate (0.5) and Workflow RO-Crate (1.0): the workflow, its inputs and its results.
//! <https://w3id.org/ro/crate/1.2>, <https://w3id.org/ro/wfrun/workflow/0.5>

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::bundle_record::{BUNDLE_RECORD, BundleRecord};
use super::listing::LISTING;
use crate::runs::value_text;

/// The name of the file with the metadata.
pub(super) const METADATA: &str = "ro-crate-metadata.json";

const SPECIFICATION: &str = "https://w3id.org/ro/crate/1.2";
const PROCESS_RUN: &str = "https://w3id.org/ro/wfrun/process/0.5";
const WORKFLOW_RUN: &str = "https://w3id.org/ro/wfrun/workflow/0.5";
const WORKFLOW: &str = "https://w3id.org/workflowhub/workflow-ro-crate/1.0";
const FORMAL_PARAMETER: &str = "https://bioschemas.org/profiles/FormalParameter/1.0-RELEASE";
/// Where the program is.
const HOME: &str = "https://crates.io/crates/galeras";
const LANGUAGE: &str = "#galeras";
const PROGRAM: &str = "#galeras-program";
const RUN: &str = "#run";
const TERMS: &str = "#terms";

/// The metadata as JSON-LD; `sizes` has the bytes of every file but this one.
pub(super) fn metadata(record: &BundleRecord, sizes: &BTreeMap<String, u64>) -> String {
    let mut graph = vec![
        json!({"@id": METADATA, "@type": "CreativeWork", "about": reference("./"),
            "conformsTo": [reference(SPECIFICATION), reference(WORKFLOW)]}),
        root(record, sizes),
        workflow(record, sizes),
        json!({"@id": LANGUAGE, "@type": "ComputerLanguage", "name": "Galeras workflow",
            "alternateName": "Galeras", "version": "1", "url": HOME}),
        json!({"@id": PROGRAM, "@type": "SoftwareApplication", "name": "galeras",
            "description": "The program that computed the results.",
            "version": record.program, "softwareVersion": record.program, "url": HOME}),
        json!({"@id": TERMS, "@type": "CreativeWork", "name": "Terms of use",
            "description": "The licences of the data are those of the repositories and files that \
             they come from; the column `license` names them where the workflow asked for them. \
             README.md says more."}),
        run(record),
    ];
    graph.extend(
        [(PROCESS_RUN, "Process Run Crate", "0.5"), (WORKFLOW_RUN, "Workflow Run Crate", "0.5"),
         (WORKFLOW, "Workflow RO-Crate", "1.0")]
            .map(|(id, name, version)| {
                json!({"@id": id, "@type": ["CreativeWork", "Profile"], "name": name, "version": version})
            }),
    );
    for (name, value) in &record.params {
        let id = formal("param", name);
        graph.push(json!({"@id": id, "@type": "FormalParameter", "name": name,
            "additionalType": kind(value), "conformsTo": reference(FORMAL_PARAMETER),
            "valueRequired": false, "description": format!("The param `{name}` of the workflow.")}));
        graph.push(json!({"@id": given(name), "@type": "PropertyValue", "name": name,
            "value": value_text(value), "exampleOfWork": reference(&id)}));
    }
    for output in &record.outputs {
        let file = output.file.as_deref().unwrap_or("");
        let mut entity = json!({"@id": formal("output", &output.name), "@type": "FormalParameter",
            "name": output.name, "additionalType": "File",
            "conformsTo": reference(FORMAL_PARAMETER),
            "description": format!("What comes from {}.", output.from)});
        if output.file.is_some() {
            entity["encodingFormat"] = json!(media_type(file));
        }
        graph.push(entity);
    }
    graph.extend(files(record, sizes));
    let crate_ = json!({
        "@context": "https://w3id.org/ro/crate/1.2/context",
        "@graph": graph,
    });
    serde_json::to_string_pretty(&crate_).unwrap_or_default() + "\n"
}

fn reference(id: &str) -> Value {
    json!({"@id": id})
}

/// The value of a property: not in a list if it is the only one, as the specification asks.
fn values(values: impl Iterator<Item = Value>) -> Value {
    let mut values: Vec<Value> = values.collect();
    if values.len() == 1 { values.remove(0) } else { Value::Array(values) }
}

/// Files are named by paths, percent-encoded as URIs are.
fn uri(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

fn formal(kind: &str, name: &str) -> String {
    format!("#{kind}-{}", uri(name).replace('/', "%2F"))
}

fn given(name: &str) -> String {
    formal("value", name)
}

/// The schema.org type of a value.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "Boolean",
        Value::Number(number) if number.is_f64() => "Float",
        Value::Number(_) => "Integer",
        Value::Null | Value::String(_) => "Text",
        Value::Array(_) | Value::Object(_) => "StructuredValue",
    }
}

fn media_type(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default() {
        "parquet" => "application/vnd.apache.parquet",
        "csv" => "text/csv",
        "json" => "application/json",
        "jsonl" => "application/jsonl",
        "yaml" | "yml" => "application/yaml",
        "md" => "text/markdown",
        "html" => "text/html",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "pdf" => "application/pdf",
        "lock" => "application/json",
        _ => "text/plain",
    }
}

/// Files described individually; the manifests of results are described as one folder.
fn is_described(name: &str) -> bool {
    !FOLDERS.iter().any(|(folder, _)| name.starts_with(folder))
}

const FOLDERS: [(&str, &str); 2] = [
    ("cache/actions/", "What each result was computed from, by its key."),
    ("cache/checks/", "The outcomes of data tests."),
];

fn folders(sizes: &BTreeMap<String, u64>) -> impl Iterator<Item = (&'static str, &'static str)> {
    let there = move |folder: &str| sizes.keys().any(|name| name.starts_with(folder));
    FOLDERS.into_iter().filter(move |(folder, _)| there(folder))
}

fn root(record: &BundleRecord, sizes: &BTreeMap<String, u64>) -> Value {
    let files = sizes.keys().filter(|name| is_described(name)).map(|name| uri(name));
    let parts = files.chain(folders(sizes).map(|(folder, _)| folder.to_string()));
    let about = match &record.description {
        Some(description) => description.clone(),
        None => format!("The workflow {} with its results.", record.name),
    };
    json!({"@id": "./", "@type": "Dataset", "name": record.name, "description": about,
        "datePublished": record.computed, "license": reference(TERMS),
        "conformsTo": [reference(PROCESS_RUN), reference(WORKFLOW_RUN), reference(WORKFLOW)],
        "mainEntity": reference(&uri(&record.workflow)),
        "mentions": reference(RUN),
        "hasPart": values(parts.map(|part| reference(&part)))})
}

fn workflow(record: &BundleRecord, sizes: &BTreeMap<String, u64>) -> Value {
    let inputs = record.params.keys().map(|name| reference(&formal("param", name)));
    let outputs = record.outputs.iter().map(|output| reference(&formal("output", &output.name)));
    json!({"@id": uri(&record.workflow),
        "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow"],
        "name": record.name, "programmingLanguage": reference(LANGUAGE),
        "encodingFormat": "application/yaml",
        "contentSize": sizes.get(&record.workflow).unwrap_or(&0).to_string(),
        "description": record.description.clone().unwrap_or_else(|| "The workflow.".into()),
        "input": values(inputs), "output": values(outputs)})
}

fn run(record: &BundleRecord) -> Value {
    let first = record.steps.iter().map(|step| step.computed.as_str()).min().unwrap_or_default();
    let written: BTreeSet<&str> =
        record.outputs.iter().filter_map(|output| output.file.as_deref()).collect();
    let tables = record.steps.iter().flat_map(|step| &step.tables);
    let stored: BTreeSet<&str> = tables.filter_map(|table| table.file.as_deref()).collect();
    let results = written.into_iter().chain(stored).map(|file| reference(&uri(file)));
    json!({"@id": RUN, "@type": "CreateAction", "name": format!("Run of {}", record.name),
        "description": "All results of the workflow. They may have been computed in several runs, \
         as equal results are used again.",
        "instrument": reference(&uri(&record.workflow)),
        "startTime": first, "endTime": record.computed,
        "actionStatus": "http://schema.org/CompletedActionStatus",
        "object": values(record.params.keys().map(|name| reference(&given(name)))),
        "result": values(results)})
}

fn files(record: &BundleRecord, sizes: &BTreeMap<String, u64>) -> Vec<Value> {
    let mut said: BTreeMap<&str, (String, String)> = BTreeMap::new();
    let mut formal_of: BTreeMap<&str, String> = BTreeMap::new();
    for step in &record.steps {
        for table in &step.tables {
            let name = format!("{}.{}", step.step, table.port);
            let about = format!(
                "{} rows that the operator `{}` gave; logical digest {}.",
                table.rows, step.operator, table.digest
            );
            for file in [&table.file, &table.csv].into_iter().flatten() {
                said.entry(file).or_insert_with(|| (name.clone(), about.clone()));
            }
        }
    }
    for output in &record.outputs {
        if let Some(file) = &output.file {
            let about = format!("The output `{}`, from {}.", output.name, output.from);
            said.insert(file, (output.name.clone(), about));
            formal_of.insert(file, formal("output", &output.name));
        }
    }
    let known = [
        ("README.md", "What this is, and how to use it."),
        (BUNDLE_RECORD, "What the bundle holds, for programs."),
        (LISTING, "The BLAKE3 digests of all other files, as b3sum --check reads them."),
    ];
    let mut entities: Vec<Value> = folders(sizes)
        .map(|(folder, about)| json!({"@id": folder, "@type": "Dataset", "name": folder, "description": about}))
        .collect();
    for (name, bytes) in sizes.iter().filter(|(name, _)| is_described(name)) {
        if *name == record.workflow {
            continue;
        }
        let own = name.rsplit('/').next().unwrap_or(name).to_string();
        let about =
            known.iter().find(|(known, _)| *known == name.as_str()).map(|(_, about)| *about);
        let (title, about) = said.get(name.as_str()).cloned().unwrap_or_else(|| {
            let about = about.unwrap_or("A file that the workflow is written in or reads.");
            (own, about.to_string())
        });
        let mut entity = json!({"@id": uri(name), "@type": "File", "name": title,
            "description": about, "encodingFormat": media_type(name),
            "contentSize": bytes.to_string()});
        if let Some(formal) = formal_of.get(name.as_str()) {
            entity["exampleOfWork"] = reference(formal);
        }
        entities.push(entity);
    }
    entities
}
