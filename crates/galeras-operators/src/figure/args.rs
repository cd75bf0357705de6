//! The arguments of `figure`, and the checks that need no rows.

use std::borrow::Cow;
use std::str::FromStr as _;
use std::sync::LazyLock;

use arrow::datatypes::DataType;
use galeras_figures::{Kind, Role, Scale, Spec, Takes, Theme};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Serialize};

use galeras_base::terminal_escape::escape;
use galeras_operator::columns::{is_number, require_column};
use galeras_operator::{ArgError, BindContext};
use galeras_workflow::code::Code;

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The picture.
    pub(super) kind: KindName,
    /// The column of the horizontal axis.
    #[serde(default)]
    pub(super) x: Option<String>,
    /// The column of the vertical axis.
    #[serde(default)]
    pub(super) y: Option<String>,
    /// The column with the lower ends of intervals.
    #[serde(default)]
    pub(super) low: Option<String>,
    /// The column with the upper ends of intervals.
    #[serde(default)]
    pub(super) high: Option<String>,
    /// The column that decides colour and shape; for heatmaps and contours, their numbers.
    #[serde(default)]
    pub(super) color: Option<String>,
    /// The column whose values each get a panel.
    #[serde(default)]
    pub(super) facet: Option<String>,
    /// The column with texts next to the marks.
    #[serde(default)]
    pub(super) label: Option<String>,
    /// The columns that order the rows, such as the stages of a funnel or the lines of a forest plot.
    /// If absent, the key, with a category `control` first. A `-` in front of a name puts the largest
    /// first.
    #[serde(default)]
    pub(super) order_by: Vec<String>,
    /// The position of a reference line: no effect, a target.
    #[serde(default)]
    pub(super) reference: Option<f64>,
    /// The number of bins of a histogram.
    #[serde(default)]
    #[schemars(range(min = 1, max = 500))]
    pub(super) bins: Option<usize>,
    /// The scale of the horizontal axis.
    #[serde(default)]
    pub(super) x_scale: Option<ScaleName>,
    /// The scale of the vertical axis.
    #[serde(default)]
    pub(super) y_scale: Option<ScaleName>,
    /// The title.
    #[serde(default)]
    pub(super) title: Option<String>,
    /// The first words of the caption; the numbers of rows follow.
    #[serde(default)]
    pub(super) caption: Option<String>,
    /// The label of the horizontal axis; the column's name and unit if absent.
    #[serde(default)]
    pub(super) x_label: Option<String>,
    /// The label of the vertical axis; the column's name and unit if absent.
    #[serde(default)]
    pub(super) y_label: Option<String>,
    /// The width in centimetres; 16 if absent.
    #[serde(default)]
    #[schemars(range(min = 4.0, max = 100.0))]
    pub(super) width: Option<f64>,
    /// The height in centimetres; if absent, as much as the figure needs.
    #[serde(default)]
    #[schemars(range(min = 2.0, max = 200.0))]
    pub(super) height: Option<f64>,
    /// The colours.
    #[serde(default)]
    pub(super) theme: ThemeName,
}

/// A kind of figure by its name.
#[derive(Clone, Copy, Debug)]
pub(super) struct KindName(Kind);

impl Serialize for KindName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.name)
    }
}

impl<'de> Deserialize<'de> for KindName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        static NAMES: LazyLock<Vec<&str>> =
            LazyLock::new(|| Kind::all().iter().map(|kind| kind.name).collect());
        let name = String::deserialize(deserializer)?;
        let unknown = || D::Error::unknown_variant(&name, &NAMES);
        Kind::named(&name).map(Self).ok_or_else(unknown)
    }
}

impl JsonSchema for KindName {
    fn schema_name() -> Cow<'static, str> {
        "KindName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let kind = |kind: &Kind| json_schema!({ "type": "string", "const": kind.name, "description": kind.about });
        json_schema!({ "oneOf": Kind::all().iter().map(kind).collect::<Vec<_>>() })
    }
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub(super) enum ScaleName {
    /// Equal differences are equally long.
    Linear,
    /// Equal ratios are equally long.
    Log,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub(super) enum ThemeName {
    /// Dark on white.
    #[default]
    Light,
    /// Light on dark.
    Dark,
    /// Told apart without colours.
    Print,
}

/// The roles, with the names of their arguments.
pub(super) const ROLES: [Role; 7] =
    [Role::X, Role::Y, Role::Low, Role::High, Role::Color, Role::Facet, Role::Label];

impl Args {
    /// The picture in the types of the plotting crate.
    pub(super) fn spec(&self) -> Spec {
        let scale = |name: Option<ScaleName>| {
            name.and_then(|name| Scale::from_str(<&str>::from(name)).ok())
        };
        Spec {
            x: self.x.clone(),
            y: self.y.clone(),
            low: self.low.clone(),
            high: self.high.clone(),
            color: self.color.clone(),
            facet: self.facet.clone(),
            label: self.label.clone(),
            reference: self.reference,
            bins: self.bins,
            x_scale: scale(self.x_scale),
            y_scale: scale(self.y_scale),
            title: self.title.clone(),
            caption: self.caption.clone(),
            x_label: self.x_label.clone(),
            y_label: self.y_label.clone(),
            width: self.width,
            height: self.height,
            theme: Theme::from_str(<&str>::from(self.theme)).ok(),
            control_first: self.order_by.is_empty(),
            ..Spec::new(self.kind())
        }
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind.0
    }

    /// The drawn columns without repeats, with true for those that must be numeric.
    pub(super) fn columns(&self) -> Vec<(String, bool)> {
        let (spec, kind) = (self.spec(), self.kind());
        let mut columns: Vec<(String, bool)> = Vec::new();
        for role in ROLES {
            let (Some(name), Some(usage)) = (spec.column(role), kind.usage(role)) else { continue };
            let number = usage.takes == Takes::Number;
            match columns.iter_mut().find(|(known, _)| known == name) {
                Some((_, known)) => *known |= number,
                None => columns.push((name.to_string(), number)),
            }
        }
        columns
    }

    /// The columns of `order_by`, with true for descending ones.
    pub(super) fn order(&self) -> impl Iterator<Item = (&str, bool)> {
        self.order_by.iter().map(|name| match name.strip_prefix('-') {
            Some(name) => (name, true),
            None => (name.as_str(), false),
        })
    }

    pub(super) fn check(&self, cx: &BindContext) -> Vec<ArgError> {
        let mut errors = Vec::new();
        let (spec, kind) = (self.spec(), self.kind());
        let takes: Vec<String> =
            kind.columns.iter().map(|usage| format!("`{}`", usage.role)).collect();
        let takes = format!("it takes {}", takes.join(", "));
        for role in ROLES {
            let path = <&str>::from(role);
            match (spec.column(role), kind.usage(role)) {
                (None, Some(usage)) if usage.needed => {
                    let message = format!("a {kind} needs `{path}`: {}", usage.meaning);
                    let names: Vec<_> = cx.input().names().map(escape).collect();
                    errors.push(
                        ArgError::new("", Code::MissingArgument, message)
                            .help(format!("{takes}; the columns are {}", names.join(", "))),
                    );
                }
                (Some(_), None) => {
                    let message = format!("a {kind} does not take `{path}`");
                    errors.push(
                        ArgError::new(path, Code::ConflictingArguments, message)
                            .help(takes.clone()),
                    );
                }
                (Some(name), Some(usage)) => {
                    let (wanted, fits): (_, fn(&DataType) -> bool) = match usage.takes {
                        Takes::Number => ("a number", is_number),
                        Takes::Category => ("a plain value", |data_type| !data_type.is_nested()),
                    };
                    require_column(cx, path, name, wanted, fits, &mut errors);
                }
                (None, _) => {}
            }
        }
        for (given, missing) in [(Role::Low, Role::High), (Role::High, Role::Low)] {
            if spec.column(given).is_some() && spec.column(missing).is_none() {
                let path = <&str>::from(given);
                let message = format!("`{given}` without `{missing}`: an interval has two ends");
                errors.push(ArgError::new(path, Code::MissingArgument, message));
            }
        }
        for (at, (name, _)) in self.order().enumerate() {
            if cx.input().field(name).is_none() {
                let path = format!("order_by[{at}]");
                errors.push(ArgError::unknown_column(&path, name, cx.input().names()));
            }
        }
        errors
    }
}
