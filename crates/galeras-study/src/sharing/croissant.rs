//! The metadata of a data set in Croissant 1.1, for programs that load data sets.
//! <http://mlcommons.org/croissant/1.1>

use arrow::datatypes::{DataType, FieldRef};
use serde_json::{Map, Value, json};

use super::dataset::{Dataset, PublishedTable, SPLIT};

const VERSION: &str = "http://mlcommons.org/croissant/1.1";

/// The metadata as JSON-LD.
pub(super) fn croissant(dataset: &Dataset) -> String {
    let licences: Vec<&str> =
        dataset.licences().into_keys().filter(|licence| !licence.is_empty()).collect();
    let addresses: Vec<String> =
        licences.iter().map(|licence| format!("https://spdx.org/licenses/{licence}")).collect();
    let mut metadata = json!({
        "@context": context(),
        "@type": "sc:Dataset",
        "name": dataset.name,
        "description": dataset.description.clone().unwrap_or_else(|| format!("Tables of the workflow {}.", dataset.name)),
        "conformsTo": VERSION,
        "version": version(&dataset.computed),
        "datePublished": dataset.computed,
        "citeAs": format!("{}: {}", dataset.makers(), dataset.name),
        "isLiveDataset": false,
    });
    if !dataset.authors.is_empty() {
        let person = |name: &String| json!({"@type": "sc:Person", "name": name});
        metadata["creator"] = dataset.authors.iter().map(person).collect();
    }
    match addresses.as_slice() {
        [] => {}
        [only] => metadata["license"] = json!(only),
        several => metadata["license"] = json!(several),
    }
    metadata["distribution"] = dataset.tables.iter().map(distribution).collect();
    metadata["recordSet"] = dataset.tables.iter().map(record_set).collect();
    serde_json::to_string_pretty(&metadata).unwrap_or_default() + "\n"
}

/// The day of the results as a version: `2026.11.22`.
fn version(computed: &str) -> String {
    let day = computed.get(..10).unwrap_or("1.0.0");
    let parts = day.split('-').map(|part| part.trim_start_matches('0'));
    parts.collect::<Vec<_>>().join(".")
}

/// The context that Croissant requires.
fn context() -> Value {
    const NAMES: &str = "@language @vocab arrayShape citeAs column conformsTo containedIn cr dct \
        equivalentProperty extract field fileObject fileProperty fileSet format includes isArray \
        isLiveDataset jsonPath key md5 parentField path rai recordSet references regex repeated \
        replace samplingRate sc separator source subField transform";
    let meaning = |name: &str| match name {
        "@language" => json!("en"),
        "@vocab" | "sc" => json!("https://schema.org/"),
        "conformsTo" => json!("dct:conformsTo"),
        "cr" => json!("http://mlcommons.org/croissant/"),
        "dct" => json!("http://purl.org/dc/terms/"),
        "rai" => json!("http://mlcommons.org/croissant/RAI/"),
        name => json!(format!("cr:{name}")),
    };
    let mut context: Map<String, Value> =
        NAMES.split_whitespace().map(|name| (name.to_string(), meaning(name))).collect();
    context.insert("data".into(), json!({"@id": "cr:data", "@type": "@json"}));
    context.insert("dataType".into(), json!({"@id": "cr:dataType", "@type": "@vocab"}));
    context.insert("examples".into(), json!({"@id": "cr:examples", "@type": "@json"}));
    Value::Object(context)
}

fn file_id(table: &PublishedTable) -> String {
    format!("{}-{SPLIT}", table.name)
}

fn distribution(table: &PublishedTable) -> Value {
    json!({"@type": "cr:FileObject", "@id": file_id(table), "name": file_id(table),
        "description": format!("The {} rows of {} as Parquet.", table.rows, table.table),
        "contentUrl": table.file, "contentSize": format!("{} B", table.bytes),
        "encodingFormat": "application/x-parquet", "sha256": table.sha256})
}

fn record_set(table: &PublishedTable) -> Value {
    let key: Vec<Value> =
        table.key.iter().map(|name| json!({"@id": format!("{}/{name}", table.name)})).collect();
    let fields: Vec<Value> = table
        .schema
        .fields()
        .iter()
        .map(|column| {
            let mut field = field(column, &format!("{}/{}", table.name, column.name()));
            field["source"] = json!({"fileObject": {"@id": file_id(table)},
                "extract": {"column": column.name()}});
            field
        })
        .collect();
    let mut set = json!({"@type": "cr:RecordSet", "@id": table.name, "name": table.name,
        "description": format!("Rows of the table {}.", table.table)});
    match key.as_slice() {
        [] => {}
        [only] => set["key"] = only.clone(),
        several => set["key"] = json!(several),
    }
    set["field"] = Value::Array(fields);
    set
}

fn field(column: &FieldRef, id: &str) -> Value {
    let described = column.metadata().get("description").cloned();
    let unit = column.metadata().get("unit").map(|unit| format!(" ({unit})")).unwrap_or_default();
    let about = described.unwrap_or_else(|| format!("The column {}.", column.name()));
    let mut field = json!({"@type": "cr:Field", "@id": id, "name": column.name(),
        "description": format!("{about}{unit}")});
    let mut data_type = column.data_type();
    let mut depth = 0;
    while let DataType::List(item) | DataType::LargeList(item) = data_type {
        data_type = item.data_type();
        depth += 1;
    }
    if depth > 0 {
        field["isArray"] = json!(true);
        field["arrayShape"] = json!(vec!["-1"; depth].join(","));
    }
    match data_type {
        DataType::Struct(fields) => {
            field["subField"] = fields
                .iter()
                .map(|inner| self::field(inner, &format!("{id}/{}", inner.name())))
                .collect();
        }
        other => field["dataType"] = json!(word(other)),
    }
    field
}

fn word(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Boolean => "sc:Boolean",
        DataType::Date32 | DataType::Date64 => "sc:Date",
        DataType::Timestamp(..) => "sc:DateTime",
        other if other.is_integer() => "sc:Integer",
        other if other.is_numeric() => "sc:Float",
        _ => "sc:Text",
    }
}
