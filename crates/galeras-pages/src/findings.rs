//! Effects in sentences, each with its interval drawn to the scale of those it is compared with.

use minijinja::{Value, context};

use crate::error::PageError;
use crate::markdown::markdown;
use crate::model::{EffectFinding, FindingBlock, FindingStatus};
use crate::number::{count, estimate, p_value};
use crate::parts::Parts;
use crate::templates::render;
use crate::text::Markup;

/// The size of the picture of an interval, in CSS pixels.
const WIDTH: f64 = 220.0;
const HEIGHT: f64 = 22.0;
const MARGIN: f64 = 8.0;

pub(crate) fn findings(parts: &mut Parts, block: &FindingBlock) -> Result<Markup, PageError> {
    let limit = parts.limits.entries;
    let shown = parts.first(&block.findings, limit, &format!("Findings of “{}”", block.title));
    let items: Vec<Value> = shown.iter().map(|finding| item(finding, shown)).collect();
    render(
        "findings.html",
        context! { findings => items, note => Value::from(markdown(&block.note, 2)) },
    )
}

fn item(finding: &EffectFinding, all: &[EffectFinding]) -> Value {
    let interval = match (finding.low, finding.high) {
        (Some(low), Some(high)) => {
            let level = finding.level.map(|level| format!("{} % ", (level * 1e4).round() / 1e2));
            Some(format!(
                "{}interval {} to {}",
                level.unwrap_or_default(),
                estimate(low),
                estimate(high)
            ))
        }
        _ => None,
    };
    let state = match finding.status {
        FindingStatus::Estimated => "",
        FindingStatus::Refused => "refused",
        FindingStatus::NotApplicable => "not applicable",
    };
    context! {
        sentence => &finding.sentence,
        outcome => &finding.outcome,
        contrast => &finding.contrast,
        group => &finding.group,
        state => state,
        reason => &finding.reason,
        measure => finding.measure.replace('_', " "),
        effect => finding.effect.map(estimate),
        interval => interval,
        p => finding.p_adjusted.map(p_value),
        n => finding.n.map(count),
        verdict => &finding.verdict,
        verdict_class => verdict_class(&finding.verdict),
        picture => picture(finding, all).map(Value::from),
    }
}

fn verdict_class(verdict: &str) -> &'static str {
    match verdict {
        "different" | "superior" | "inferior" => "shown",
        "equivalent" | "trivial" | "noninferior" => "small",
        _ => "open",
    }
}

/// The interval as a line, the effect as a point, and a rule where there is no effect. All
/// findings with the same outcome and measure share a scale, ratios a logarithmic one.
fn picture(finding: &EffectFinding, all: &[EffectFinding]) -> Option<Markup> {
    let null = finding.null_value?;
    let is_ratio = null == 1.0 && finding.measure.ends_with("ratio");
    let place = |value: Option<f64>| {
        let value = if is_ratio { value?.ln() } else { value? };
        value.is_finite().then_some(value)
    };
    let (effect, low, high) = (place(finding.effect)?, place(finding.low)?, place(finding.high)?);
    let null = place(Some(null))?;
    let alike = all
        .iter()
        .filter(|other| (&other.outcome, &other.measure) == (&finding.outcome, &finding.measure));
    let (mut least, mut most) = (null, null);
    for other in alike {
        for value in [other.effect, other.low, other.high].into_iter().filter_map(place) {
            least = least.min(value);
            most = most.max(value);
        }
    }
    let range = (most - least).max(f64::MIN_POSITIVE);
    let x = |value: f64| MARGIN + (value - least) / range * (WIDTH - 2.0 * MARGIN);
    let middle = HEIGHT / 2.0;
    Some(Markup::from_html(format!(
        "<svg class=\"interval\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" \
         height=\"{HEIGHT}\" aria-hidden=\"true\" focusable=\"false\">\
         <line class=\"null\" x1=\"{null:.1}\" x2=\"{null:.1}\" y1=\"1\" y2=\"{bottom}\"/>\
         <line class=\"range\" x1=\"{low:.1}\" x2=\"{high:.1}\" y1=\"{middle}\" y2=\"{middle}\"/>\
         <circle class=\"effect\" cx=\"{effect:.1}\" cy=\"{middle}\" r=\"4\"/></svg>",
        null = x(null),
        low = x(low),
        high = x(high),
        effect = x(effect),
        bottom = HEIGHT - 1.0,
    )))
}
