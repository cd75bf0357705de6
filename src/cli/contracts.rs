//! The contracts of the published tables: their columns as the shipped workflows give them.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::registry::REGISTRY;
use galeras_base::scratch::ScratchFolder;
use galeras_engine::plan::{Locking, PlanSettings, plan};
use galeras_operator::table_digest::type_name;
use galeras_operator::{column_description, column_unit};

/// The workflow that ships with the program: `galeras init` writes it, and the contracts of
/// the tables derive from it.
pub(super) const QUICKSTART: &str = include_str!("../../workflows/quickstart.yaml");

/// A published table: name, the step that gives it, what it is.
const TABLES: &[(&str, &str, &str)] = &[
    ("raw_data", "features", "Methods with their features, before any rule."),
    ("random_cut", "testbed", "Methods cut at a random place, for code completion."),
    ("table_1", "table_1", "Mean and deviation of the features of a testbed."),
];

pub(super) fn names() -> impl Iterator<Item = &'static str> {
    TABLES.iter().map(|t| t.0)
}

pub(super) async fn contract(name: &str) -> Option<Result<Value, String>> {
    let (_, step, description) = TABLES.iter().find(|t| t.0 == name)?;
    Some(derive(name, step, description).await)
}

async fn derive(name: &str, step: &str, description: &str) -> Result<Value, String> {
    let folder = ScratchFolder::create().map_err(|e| e.to_string())?;
    let file = folder.path().join("quickstart.yaml");
    std::fs::write(&file, QUICKSTART).map_err(|e| e.to_string())?;
    let settings = PlanSettings {
        set: Vec::new(),
        working_dir: PathBuf::from("."),
        downloads: folder.path().to_path_buf(),
        out: folder.path().to_path_buf(),
        guarded: Vec::new(),
        lock: Locking::Ignored,
        ..PlanSettings::default()
    };
    let (plan, diagnostics) = plan(&file, REGISTRY, &settings).await;
    let plan = plan.ok_or_else(|| {
        diagnostics.iter().map(galeras_workflow::plain).collect::<Vec<_>>().join("\n")
    })?;
    let step = plan.step(step).ok_or("the shipped workflow has no such step")?;
    let table = &step.step.ports()[0].table;
    let mut columns = Map::new();
    let mut descriptions = Map::new();
    for field in table.schema.fields() {
        let mark = if field.is_nullable() { "" } else { "!" };
        columns
            .insert(field.name().clone(), json!(format!("{}{mark}", type_name(field.data_type()))));
        if let Some(text) = column_description(field) {
            let unit = column_unit(field).map(|u| format!(" [{u}]")).unwrap_or_default();
            descriptions.insert(field.name().clone(), json!(format!("{text}{unit}")));
        }
    }
    Ok(json!({
        "name": name, "description": description, "key": table.key, "columns": columns,
        "descriptions": descriptions,
    }))
}
