//! The card of a data set for the Hugging Face Hub: YAML for programs, then the text for people.
//! Also the attribution of every repository, and the citation: `CITATION.cff`, version 1.2.0 of the
//! Citation File Format.

use std::fmt::Write as _;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Fields, TimeUnit};
use serde_json::{Value, json};

use super::bundle_readme::{code_cell, line};
use super::dataset::{CROISSANT, Dataset, PublishedTable, SPLIT};
use crate::report::text_of;
use galeras_display::{ColumnSummary, bytes, count, number};
use galeras_operator::table_digest::type_name;

/// The licences that the Hub knows, by SPDX id; its names are the ids in lower case.
const HUB: &str = "AFL-3.0 Apache-2.0 Artistic-2.0 BSD-2-Clause BSD-3-Clause BSD-3-Clause-Clear \
    BSL-1.0 CC-BY-4.0 CC0-1.0 ISC MIT NCSA Unlicense Zlib";

/// Repositories that the card lists; ATTRIBUTION.md has all.
const LISTED: usize = 20;

/// The card.
pub(super) fn card(dataset: &Dataset) -> String {
    let mut text =
        format!("---\n{}---\n\n# {}\n\n", yaml(&front_matter(dataset), 0), line(&dataset.name));
    if let Some(description) = &dataset.description {
        let _ = writeln!(text, "{}\n", line(description));
    }
    let _ = write!(
        text,
        "{} rows in {}, made by a Galeras workflow (version {} of the program; the last result is \
         of {}). `{CROISSANT}` says the same in [Croissant](https://mlcommons.org/croissant), \
         `CITATION.cff` how to cite it, `ATTRIBUTION.md` whose code it is.\n\n",
        count(dataset.rows()),
        tables(dataset.tables.len()),
        env!("CARGO_PKG_VERSION"),
        dataset.computed
    );
    let _ = write!(
        text,
        "```python\nimport datasets\n\n\
         rows = datasets.load_dataset(\"PATH\", {}, split=\"{SPLIT}\")\n```\n\n",
        json!(dataset.tables.first().map_or("", |table| table.name.as_str()))
    );
    text.push_str("| configuration | from | rows | left out | size | logical digest |\n|---|---|--:|--:|--:|---|\n");
    for table in &dataset.tables {
        let left: u64 = table.left_out.values().sum();
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {} | {} | `{}` |",
            table.name,
            cell(&table.table),
            count(table.rows),
            count(left),
            bytes(table.bytes),
            table.digest
        );
    }
    text.push('\n');
    licences(&mut text, dataset);
    text.push_str("## Columns\n\n");
    dataset.tables.iter().for_each(|table| columns(&mut text, table));
    text.push_str("## How it was made\n\n```mermaid\n");
    text.push_str(dataset.graph.trim_end());
    text.push_str("\n```\n\n| step | rows |\n|---|---|\n");
    for (step, ports) in &dataset.attrition {
        let ports = ports.iter().map(|(port, rows)| format!("{port}: {}", count(*rows)));
        let _ = writeln!(text, "| {} | {} |", cell(step), ports.collect::<Vec<_>>().join(", "));
    }
    text.push('\n');
    if !dataset.locked.is_empty() {
        text.push_str("`galeras.lock` pins what the workflow takes from the world:\n\n");
        for fact in &dataset.locked {
            let _ = writeln!(text, "- {}", plain(fact));
        }
        text.push('\n');
    }
    let _ = write!(
        text,
        "### Reproduce it\n\n```sh\n{}\n```\n\n\
         The workflow, its lock and what it reads are in `workflow/`. The digests above are of the \
         rows, not of files: they are the same on every machine.\n\n",
        dataset.command
    );
    text.push_str(
        "## Terms\n\nThe rows are pieces of the repositories in `ATTRIBUTION.md`, under the licences \
         of those. Owners who do not want theirs in it are left out by `--exclude` when it is \
         exported.\n",
    );
    text
}

/// Every repository, with its licence and how many rows come from it.
pub(super) fn attribution(dataset: &Dataset) -> String {
    let mut text = format!(
        "# Attribution\n\nThe rows of {} come from {}.\n\n",
        line(&dataset.name),
        match dataset.repositories.len() {
            0 => "no repository that they name".to_string(),
            1 => "one repository".to_string(),
            n => format!("{} repositories", count(n as u64)),
        }
    );
    repositories(&mut text, dataset, usize::MAX);
    text
}

fn repositories(text: &mut String, dataset: &Dataset, most: usize) {
    if dataset.repositories.is_empty() {
        return;
    }
    text.push_str("| repository | licence | rows | address |\n|---|---|--:|---|\n");
    let mut all: Vec<_> = dataset.repositories.iter().collect();
    if all.len() > most {
        all.sort_by(|a, b| b.1.rows.cmp(&a.1.rows).then(a.0.cmp(b.0)));
    }
    for (name, known) in all.iter().take(most) {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} |",
            cell(name),
            known.licence.as_deref().map_or("not known".into(), cell),
            count(known.rows),
            known.address.as_deref().map(address_cell).unwrap_or_default()
        );
    }
    if all.len() > most {
        let _ =
            writeln!(text, "\n{} more are in `ATTRIBUTION.md`.", count((all.len() - most) as u64));
    }
    text.push('\n');
}

fn licences(text: &mut String, dataset: &Dataset) {
    text.push_str("## Licences\n\n");
    if dataset.any_licence {
        text.push_str(
            "Rows were exported whatever their licence is (`--any-license`): whoever hands them on \
             answers for it.\n\n",
        );
    } else {
        text.push_str(
            "Only rows of repositories with a known, permissive licence are in it. The others are \
             counted.\n\n",
        );
    }
    text.push_str("| licence | rows |\n|---|--:|\n");
    for (licence, rows) in dataset.licences() {
        let licence = if licence.is_empty() { "not known".into() } else { cell(licence) };
        let _ = writeln!(text, "| {licence} | {} |", count(rows));
    }
    text.push('\n');
    if dataset.left_out() > 0 {
        text.push_str("| configuration | left out because | rows |\n|---|---|--:|\n");
        for table in &dataset.tables {
            for (reason, rows) in &table.left_out {
                let _ =
                    writeln!(text, "| `{}` | {} | {} |", table.name, cell(reason), count(*rows));
            }
        }
        text.push('\n');
    }
    repositories(text, dataset, LISTED);
}

fn columns(text: &mut String, table: &PublishedTable) {
    let _ = writeln!(text, "### {}\n", table.name);
    if !table.key.is_empty() {
        let _ = writeln!(text, "Key: {}.\n", cell(&table.key.join(", ")));
    }
    text.push_str("| column | type | description | nulls | distinct | min | mean | max |\n");
    text.push_str("|---|---|---|--:|--:|--:|--:|--:|\n");
    for field in table.schema.fields() {
        let known = table.columns.iter().find(|column| column.name == *field.name());
        let about = field.metadata().get("description").map(|text| cell(text)).unwrap_or_default();
        let unit = field.metadata().get("unit").map(|unit| format!(" ({})", cell(unit)));
        let _ = writeln!(
            text,
            "| `{}` | {} | {about}{} | {} |",
            code_cell(field.name()),
            cell(&type_name(field.data_type())),
            unit.unwrap_or_default(),
            known.map(numbers).unwrap_or_else(|| " | | | | ".into())
        );
    }
    text.push('\n');
}

/// Nulls, distinct values, minimum, mean and maximum; of texts and lists, those of their lengths.
fn numbers(column: &ColumnSummary) -> String {
    let distinct = column.distinct.map(|distinct| {
        let about = if distinct.exact { "" } else { "~" };
        format!("{about}{}", count(distinct.values))
    });
    let shown = |array: &ArrayRef| cell(&text_of(array));
    let extremes = column.extremes.as_ref().map(|(least, most)| (shown(least), shown(most)));
    let (least, most) = extremes.unzip();
    let words = match column.measured.word() {
        "lengths" => " long",
        _ => "",
    };
    let with_word =
        |text: Option<String>| text.map(|text| format!("{text}{words}")).unwrap_or_default();
    format!(
        "{} | {} | {} | {} | {}",
        count(column.nulls),
        distinct.unwrap_or_default(),
        with_word(least),
        with_word(column.mean.map(number)),
        with_word(most)
    )
}

/// The machine-readable part of the card.
fn front_matter(dataset: &Dataset) -> Value {
    let licences: Vec<&str> = dataset.licences().into_keys().collect();
    let name = match licences.as_slice() {
        [only] if !only.is_empty() => (*only).to_lowercase(),
        _ => "licences-of-the-repositories".to_string(),
    };
    let mut card = json!({"pretty_name": dataset.name, "language": ["code"]});
    match licences.as_slice() {
        [only] if HUB.split(' ').any(|known| known == *only) => card["license"] = json!(name),
        _ => {
            card["license"] = json!("other");
            card["license_name"] = json!(name);
            card["license_link"] = json!("ATTRIBUTION.md");
        }
    }
    card["size_categories"] = json!([size_category(dataset.rows())]);
    card["task_categories"] = json!(["text-generation"]);
    card["tags"] = json!(["benchmark", "code", "galeras", "python"]);
    let configs = dataset.tables.iter().enumerate().map(|(at, table)| {
        let mut config = json!({"config_name": table.name});
        if at == 0 {
            config["default"] = json!(true);
        }
        config["data_files"] = json!([{"split": SPLIT, "path": table.file}]);
        config
    });
    card["configs"] = Value::Array(configs.collect());
    let infos = dataset.tables.iter().map(|table| {
        json!({"config_name": table.name, "features": features(table.schema.fields()),
            "splits": [{"name": SPLIT, "num_bytes": table.memory, "num_examples": table.rows}],
            "download_size": table.bytes, "dataset_size": table.memory})
    });
    card["dataset_info"] = Value::Array(infos.collect());
    card
}

/// The Hub's category for this number of rows.
fn size_category(rows: u64) -> &'static str {
    match rows {
        0..1_000 => "n<1K",
        1_000..10_000 => "1K<n<10K",
        10_000..100_000 => "10K<n<100K",
        100_000..1_000_000 => "100K<n<1M",
        1_000_000..10_000_000 => "1M<n<10M",
        10_000_000..100_000_000 => "10M<n<100M",
        _ => "n>100M",
    }
}

/// Columns as `datasets` describes them.
fn features(fields: &Fields) -> Value {
    let feature = |field: &arrow::datatypes::FieldRef| {
        let mut feature = json!({"name": field.name()});
        let (key, value) = feature_type(field.data_type());
        feature[key] = value;
        feature
    };
    Value::Array(fields.iter().map(feature).collect())
}

/// A type in the notation of `datasets`, and its key.
fn feature_type(data_type: &DataType) -> (&'static str, Value) {
    match data_type {
        DataType::List(item) | DataType::LargeList(item) => {
            let (key, value) = feature_type(item.data_type());
            let nested = match key {
                "list" => json!({"list": value}),
                _ => value,
            };
            ("list", nested)
        }
        DataType::Struct(fields) => ("struct", features(fields)),
        other => ("dtype", json!(dtype(other))),
    }
}

fn dtype(data_type: &DataType) -> String {
    match data_type {
        DataType::Boolean => "bool".into(),
        DataType::Float16 => "float16".into(),
        DataType::Float32 => "float32".into(),
        DataType::Float64 => "float64".into(),
        DataType::Binary | DataType::LargeBinary => "binary".into(),
        DataType::Date32 => "date32".into(),
        DataType::Date64 => "date64".into(),
        DataType::Timestamp(unit, zone) => {
            let unit = match unit {
                TimeUnit::Second => "s",
                TimeUnit::Millisecond => "ms",
                TimeUnit::Microsecond => "us",
                TimeUnit::Nanosecond => "ns",
            };
            match zone {
                Some(zone) => format!("timestamp[{unit}, tz={zone}]"),
                None => format!("timestamp[{unit}]"),
            }
        }
        DataType::Decimal128(precision, scale) => format!("decimal128({precision}, {scale})"),
        other if other.is_integer() => other.to_string().to_lowercase(),
        _ => "string".into(),
    }
}

/// A value as YAML, of mappings, lists and scalars; texts are written as JSON writes them.
fn yaml(value: &Value, depth: usize) -> String {
    let indent = "  ".repeat(depth);
    let mut text = String::new();
    let nested = |value: &Value| {
        matches!(value, Value::Object(map) if !map.is_empty())
            || matches!(value, Value::Array(list) if !list.is_empty())
    };
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let _ = match nested(value) {
                    true => write!(text, "{indent}{key}:\n{}", yaml(value, depth + 1)),
                    false => writeln!(text, "{indent}{key}: {value}"),
                };
            }
        }
        Value::Array(list) => {
            for value in list {
                let inner = yaml(value, depth + 1);
                let inner = match nested(value) {
                    true => inner.trim_start().to_string(),
                    false => format!("{value}\n"),
                };
                let _ = write!(text, "{indent}- {inner}");
            }
        }
        scalar => {
            let _ = writeln!(text, "{indent}{scalar}");
        }
    }
    text
}

fn tables(n: usize) -> String {
    if n == 1 { "one table".into() } else { format!("{} tables", count(n as u64)) }
}

fn cell(text: &str) -> String {
    plain(text).replace('|', "\\|").replace('`', "'")
}

/// A text on one line without images and links, so that a repository's name cannot make the reader
/// of the card load or follow an address. Words in backquotes stay code.
fn plain(text: &str) -> String {
    let text = line(text);
    let mut out = String::with_capacity(text.len() + 8);
    for (at, c) in text.char_indices() {
        let (before, after) = text.split_at(at);
        match c {
            '\\' | '[' | ']' => out.extend(['\\', c]),
            // Addresses become links even without brackets.
            ':' if after.starts_with("://") => out.push_str("\\:"),
            '.' if ends_in_www(before) => out.push_str("\\."),
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            c => out.push(c),
        }
    }
    out
}

fn ends_in_www(text: &str) -> bool {
    let at = text.len().saturating_sub(3);
    text.get(at..).is_some_and(|end| end.eq_ignore_ascii_case("www"))
}

/// A repository's address in a table cell: a link, if the text is only an address.
fn address_cell(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._~:/%@?=+#".contains(c);
    let is_link = text.starts_with("https://") || text.starts_with("http://");
    if is_link && text.chars().all(plain) { text.to_string() } else { cell(text) }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_and_lists_are_yaml() {
        let value =
            json!({"a": ["x: y"], "b": [{"c": 1, "d": [{"e": true}]}], "f": [], "g": {"h": null}});
        let expected =
            "a:\n  - \"x: y\"\nb:\n  - c: 1\n    d:\n      - e: true\nf: []\ng:\n  h: null\n";
        assert_eq!(yaml(&value, 0), expected);
    }

    #[test]
    fn names_in_tables_are_text_and_load_nothing() {
        for (name, shown) in [
            ("o/r", "o/r"),
            ("![x](http://evil/x.png)", r"!\[x\](http\://evil/x.png)"),
            (r"\[x](//evil)", r"\\\[x\](//evil)"),
            ("[x]: https://evil", r"\[x\]: https\://evil"),
            ("<img src=x> &#91;", "&lt;img src=x> &amp;#91;"),
            ("WWW.evil.example", r"WWW\.evil.example"),
            ("a|b\n`c`", r"a\|b 'c'"),
        ] {
            assert_eq!(cell(name), shown);
        }
        assert_eq!(code_cell("a<b>|[c]`"), r"a<b>\|[c]'");
        let address = "https://github.com/o/some_repo.git";
        assert_eq!(address_cell(address), address);
        assert_eq!(address_cell("https://x/![a](y)"), r"https\://x/!\[a\](y)");
    }

    #[test]
    fn sizes_have_the_words_of_the_hub() {
        assert_eq!(size_category(0), "n<1K");
        assert_eq!(size_category(1_000), "1K<n<10K");
        assert_eq!(size_category(999_999), "100K<n<1M");
    }

    #[test]
    fn nested_types_are_those_of_datasets() {
        use arrow::datatypes::Field;
        let text = std::sync::Arc::new(Field::new("item", DataType::Utf8, true));
        let list = DataType::List(text.clone());
        assert_eq!(feature_type(&list), ("list", json!("string")));
        let lists = DataType::List(std::sync::Arc::new(Field::new("item", list, true)));
        assert_eq!(feature_type(&lists), ("list", json!({"list": "string"})));
        let fields: Fields = vec![Field::new("role", DataType::Utf8, true)].into();
        let structs =
            DataType::List(std::sync::Arc::new(Field::new("item", DataType::Struct(fields), true)));
        assert_eq!(feature_type(&structs), ("list", json!([{"name": "role", "dtype": "string"}])));
        assert_eq!(dtype(&DataType::UInt32), "uint32");
    }
}
