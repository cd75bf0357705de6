//! The values of a column in short: numbers, a small histogram, the most frequent values.

use minijinja::{Value, context};
use serde_json::Value as Json;

use crate::model::{ColumnPanel, ColumnStatistics, ValueBin};
use crate::number::{count, number};
use crate::parts::Parts;
use crate::text::{Markup, escape};

/// The size of a histogram, in CSS pixels.
const WIDTH: f64 = 120.0;
const HEIGHT: f64 = 28.0;

/// A column for the template of a step.
pub(crate) fn column(parts: &Parts, column: &ColumnPanel) -> Value {
    context! {
        name => Value::from(parts.label(&column.name)),
        data_type => &column.data_type,
        unit => &column.unit,
        description => Value::from(parts.label(&column.description)),
        statistics => column.statistics.as_ref().map(|statistics| values(parts, column, statistics)),
    }
}

fn values(parts: &Parts, column: &ColumnPanel, of: &ColumnStatistics) -> Value {
    let about = if of.distinct_estimated { "about " } else { "" };
    let quartiles = match (of.q1, of.median, of.q3) {
        (Some(q1), Some(median), Some(q3)) => {
            Some(format!("{}, {}, {}", number(q1), number(median), number(q3)))
        }
        (_, Some(median), _) => Some(number(median)),
        _ => None,
    };
    let spread = of.mean.map(|mean| match of.std {
        Some(std) => format!("{} ± {}", number(mean), number(std)),
        None => number(mean),
    });
    let present = of.count.saturating_sub(of.nulls).max(1);
    let top: Vec<Value> = of
        .top
        .iter()
        .take(5)
        .map(|value| {
            let share = value.count as f64 / present as f64 * 100.0;
            context! {
                value => Value::from(parts.label(&value.value)),
                count => count(value.count),
                width => format!("{:.1}", share.clamp(0.0, 100.0)),
            }
        })
        .collect();
    context! {
        nulls => (of.nulls > 0).then(|| count(of.nulls)),
        distinct => of.distinct.map(|distinct| format!("{about}{}", count(distinct))),
        min => end(parts, &of.min).map(Value::from),
        max => end(parts, &of.max).map(Value::from),
        quartiles => quartiles,
        spread => spread,
        histogram => histogram(&column.name, &of.bins).map(Value::from),
        top => top,
    }
}

fn end(parts: &Parts, value: &Json) -> Option<Markup> {
    match value {
        Json::Null => None,
        Json::Number(_) => value.as_f64().map(|value| Markup::from_text(&number(value))),
        Json::String(text) => Some(parts.label(text)),
        other => Some(parts.label(&other.to_string())),
    }
}

/// Bars over the range of the values. A bar with a value is at least one pixel high.
fn histogram(name: &str, bins: &[ValueBin]) -> Option<Markup> {
    let low = bins.first()?.low;
    let high = bins.last()?.high;
    let most = bins.iter().map(|bin| bin.count).max().filter(|most| *most > 0)?;
    let range = high - low;
    if !range.is_finite() || range < 0.0 {
        return None;
    }
    let mut bars = String::new();
    for (at, bin) in bins.iter().enumerate() {
        if bin.count == 0 {
            continue;
        }
        let (left, right) = if range > 0.0 {
            ((bin.low - low) / range, (bin.high - low) / range)
        } else {
            (at as f64 / bins.len() as f64, (at + 1) as f64 / bins.len() as f64)
        };
        let height = (bin.count as f64 / most as f64 * HEIGHT).max(1.0);
        bars.push_str(&format!(
            "M{:.1} {HEIGHT}v{:.1}h{:.1}V{HEIGHT}z",
            left * WIDTH,
            -height,
            ((right - left) * WIDTH - 0.5).max(0.5)
        ));
    }
    let label = format!(
        "Histogram of {name} from {} to {}; the fullest of {} bars has {}",
        number(low),
        number(high),
        bins.len(),
        count(most)
    );
    Some(Markup::from_html(format!(
        "<svg class=\"histogram\" role=\"img\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" \
         height=\"{HEIGHT}\" aria-label=\"{}\"><path d=\"{bars}\"/></svg>",
        escape(&label)
    )))
}
