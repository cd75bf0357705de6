//! Where rows were lost: a bar for each stage, the reasons under it.

use minijinja::{Value, context};

use crate::error::PageError;
use crate::markdown::markdown;
use crate::model::{AttritionBlock, AttritionStage};
use crate::number::count;
use crate::parts::Parts;
use crate::templates::render;
use crate::text::Markup;

pub(crate) fn attrition(parts: &mut Parts, block: &AttritionBlock) -> Result<Markup, PageError> {
    let limit = parts.limits.entries;
    let stages = parts.first(&block.stages, limit, &format!("Stages of “{}”", block.title));
    let most = stages.iter().map(|s| s.rows + s.lost.unwrap_or(0)).max().unwrap_or(0).max(1);
    let stages: Vec<Value> = stages.iter().map(|item| stage(parts, item, most)).collect();
    render(
        "attrition.html",
        context! {
            unit => if block.unit.is_empty() { "rows" } else { &block.unit },
            stages => stages,
            note => Value::from(markdown(&block.note, 2)),
        },
    )
}

fn stage(parts: &mut Parts, stage: &AttritionStage, most: u64) -> Value {
    let percent = |rows: u64| format!("{:.2}", rows as f64 / most as f64 * 100.0);
    let before = stage.rows + stage.lost.unwrap_or(0);
    let share = stage.lost.filter(|lost| *lost > 0).map(|lost| share(lost, before));
    let limit = parts.limits.entries;
    let what = format!("Reasons at step {}", stage.step);
    let reasons: Vec<Value> = parts
        .first(&stage.reasons, limit, &what)
        .iter()
        .map(|reason| {
            let examples: Vec<Value> = reason
                .examples
                .iter()
                .take(parts.limits.first_rows)
                .map(|example| {
                    context! {
                        name => &example.name,
                        value => Value::from(parts.label(&example.value)),
                    }
                })
                .collect();
            context! {
                reason => Value::from(parts.label(&reason.reason)),
                rows => count(reason.rows),
                examples => examples,
            }
        })
        .collect();
    context! {
        step => Value::from(parts.step_name(&stage.step)),
        operator => &stage.operator,
        rows => count(stage.rows),
        kept => percent(stage.rows),
        lost_width => percent(stage.lost.unwrap_or(0)),
        lost => stage.lost.filter(|lost| *lost > 0).map(count),
        share => share,
        reasons => reasons,
    }
}

/// A share in per cent that is never rounded to none or all.
fn share(part: u64, whole: u64) -> String {
    let percent = part as f64 / whole.max(1) as f64 * 100.0;
    match percent {
        p if p < 0.1 => "< 0.1 %".to_string(),
        p if p > 99.9 && part < whole => "> 99.9 %".to_string(),
        p => format!("{p:.1} %"),
    }
}
