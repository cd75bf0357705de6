//! The templates, and how they write values: everything is escaped by [`crate::text::escape`]
//! unless it is [`crate::text::Markup`].

use std::sync::LazyLock;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::ValueKind;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value};

use crate::number;
use crate::page::PageError;
use crate::text::{Markup, escape, label};

static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(environment);

/// The templates by name. They are part of the program: whether they parse is a test.
const TEMPLATES: &[(&str, &str)] = &[
    ("asked.html", include_str!("../templates/asked.html")),
    ("attrition.html", include_str!("../templates/attrition.html")),
    ("code.html", include_str!("../templates/code.html")),
    ("diagnostics.html", include_str!("../templates/diagnostics.html")),
    ("diagram.html", include_str!("../templates/diagram.html")),
    ("figure.html", include_str!("../templates/figure.html")),
    ("foldable.html", include_str!("../templates/foldable.html")),
    ("findings.html", include_str!("../templates/findings.html")),
    ("page.html", include_str!("../templates/page.html")),
    ("point.html", include_str!("../templates/point.html")),
    ("points.html", include_str!("../templates/points.html")),
    ("reproduce.html", include_str!("../templates/reproduce.html")),
    ("section.html", include_str!("../templates/section.html")),
    ("step.html", include_str!("../templates/step.html")),
    ("table.html", include_str!("../templates/table.html")),
    ("view_message.html", include_str!("../templates/view_message.html")),
    ("view_review.html", include_str!("../templates/view_review.html")),
    ("view_review_start.html", include_str!("../templates/view_review_start.html")),
    ("view_row.html", include_str!("../templates/view_row.html")),
    ("view_steps.html", include_str!("../templates/view_steps.html")),
    ("view_table.html", include_str!("../templates/view_table.html")),
    ("view_tables.html", include_str!("../templates/view_tables.html")),
];

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    environment.set_syntax(syntax.unwrap_or_default());
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_formatter(|out, _, value| {
        let written = if value.is_safe() {
            value.as_str().map(|html| out.write_str(html))
        } else {
            match value.kind() {
                ValueKind::None | ValueKind::Undefined => None,
                _ => Some(out.write_str(&escape(&value.to_string()))),
            }
        };
        written.unwrap_or(Ok(())).map_err(minijinja::Error::from)
    });
    environment.add_filter("count", number::count);
    environment.add_filter("estimate", number::estimate);
    environment.add_filter("seconds", number::seconds);
    environment.add_filter("label", |text: String, chars: usize| Value::from(label(&text, chars)));
    environment.add_filter("message", |text: String| Value::from(Markup::from_message(&text)));
    for (name, source) in TEMPLATES {
        // A template that does not parse is missing, and rendering it fails.
        let _ = environment.add_template(name, source);
    }
    environment
}

/// The template called `name`, filled with `context`.
pub(crate) fn render(name: &str, context: Value) -> Result<Markup, PageError> {
    let template = ENVIRONMENT.get_template(name)?;
    Ok(Markup(template.render(context)?))
}
