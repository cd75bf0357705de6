//! The rows that a figure draws: typed, grouped, and what was left out and why.

use crate::data::{Column, Data, Values};
use crate::error::FigureError;
use crate::scale::{count, number};
use crate::spec::{Kind, Role, Scale, Spec, Takes};
use crate::text::visible;
use crate::theme::GROUPS;

/// The most panels of a figure.
const PANELS: usize = 24;

/// A row. What the kind does not take is 0 or `None`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    /// Its number among all rows, from 1.
    pub(crate) at: usize,
    /// The numbers, or the places among [`Table::xs`] and [`Table::ys`].
    pub(crate) x: f64,
    pub(crate) y: f64,
    /// The number of `color`, where that is one.
    pub(crate) value: f64,
    pub(crate) interval: Option<(f64, f64)>,
    /// The places among the categories; 0 without such a column.
    pub(crate) x_name: usize,
    /// Absent only where a kind can do without.
    pub(crate) y_name: Option<usize>,
    pub(crate) color: Option<usize>,
    pub(crate) facet: usize,
    pub(crate) label: Option<String>,
}

/// The rows of a figure.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) rows: Vec<Row>,
    /// The categories of each role, empty without such a column.
    pub(crate) xs: Vec<String>,
    pub(crate) ys: Vec<String>,
    pub(crate) colors: Vec<String>,
    pub(crate) facets: Vec<String>,
    /// What was left out: why, and how many rows.
    pub(crate) left: Vec<(String, usize)>,
    /// Rows with one end of an interval or an end that is not a number.
    pub(crate) half: usize,
    /// Whether there are columns of intervals.
    pub(crate) intervals: bool,
}

impl Table {
    /// The rows of the data that the spec's kind can draw.
    pub(crate) fn read(spec: &Spec, data: &Data) -> Result<Table, FigureError> {
        check_roles(spec)?;
        check_options(spec)?;
        let mut source = Source { spec, columns: Vec::new() };
        for usage in spec.kind.columns() {
            if let Some(name) = spec.column(usage.role) {
                let column = data.column(name).ok_or_else(|| FigureError::NoColumn {
                    role: usage.role,
                    column: visible(name).into_owned(),
                    columns: list(data.columns().iter().map(|c| &*c.name)),
                })?;
                let numbers = matches!(column.values, Values::Numbers(_));
                if usage.takes == Takes::Number && !numbers {
                    return Err(FigureError::NotNumbers {
                        kind: spec.kind,
                        role: usage.role,
                        column: visible(name).into_owned(),
                    });
                }
                source.columns.push((usage.role, usage.takes, usage.needed, column));
            }
        }
        let mut table = Table {
            rows: Vec::new(),
            xs: source.categories(Role::X),
            ys: source.categories(Role::Y),
            colors: source.categories(Role::Color),
            facets: source.categories(Role::Facet),
            left: Vec::new(),
            half: 0,
            intervals: spec.low.is_some(),
        };
        let finders = [&table.xs, &table.ys, &table.colors, &table.facets].map(|names| {
            names.iter().cloned().zip(0..).collect::<std::collections::BTreeMap<String, usize>>()
        });
        for at in 0..data.rows() {
            match source.row(at, &finders)? {
                Ok((row, half)) => {
                    table.half += usize::from(half);
                    table.rows.push(row);
                }
                Err(why) => match table.left.iter_mut().find(|(w, _)| *w == why) {
                    Some((_, n)) => *n += 1,
                    None => table.left.push((why, 1)),
                },
            }
        }
        if table.rows.is_empty() {
            let left_out = if data.rows() == 0 {
                "there are no rows".to_string()
            } else {
                table.left_out().unwrap_or_default()
            };
            return Err(FigureError::NoRows { kind: spec.kind, left_out });
        }
        table.drop_unused();
        table.check_counts(spec)?;
        Ok(table)
    }

    /// What was left out, as the end of a sentence.
    pub(crate) fn left_out(&self) -> Option<String> {
        let parts: Vec<String> = self
            .left
            .iter()
            .map(|(why, n)| format!("{} {} {why}", count(*n), if *n == 1 { "row" } else { "rows" }))
            .collect();
        (!parts.is_empty()).then(|| format!("{} left out", parts.join(", ")))
    }

    /// The number of panels, at least one.
    pub(crate) fn panels(&self) -> usize {
        self.facets.len().max(1)
    }

    /// The number of groups by colour, at least one.
    pub(crate) fn groups(&self) -> usize {
        self.colors.len().max(1)
    }

    /// The rows of a panel.
    pub(crate) fn in_panel(&self, panel: usize) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |r| r.facet == panel)
    }

    /// Categories whose rows were all left out are no categories of the picture.
    fn drop_unused(&mut self) {
        fn keep(names: &mut Vec<String>, used: impl Iterator<Item = usize>) -> Vec<usize> {
            let mut seen = vec![false; names.len().max(1)];
            used.for_each(|i| seen[i] = true);
            let mut next = 0;
            let place = |s: &bool| {
                next += usize::from(*s);
                next.saturating_sub(1)
            };
            let places = seen.iter().map(place).collect();
            let mut each = seen.into_iter();
            names.retain(|_| each.next().unwrap_or(true));
            places
        }
        // In a graph one list of names serves nodes that have arrows and those that have none.
        let xs = keep(&mut self.xs, self.rows.iter().map(|r| r.x_name));
        let ys = keep(&mut self.ys, self.rows.iter().filter_map(|r| r.y_name));
        let colors = keep(&mut self.colors, self.rows.iter().filter_map(|r| r.color));
        let facets = keep(&mut self.facets, self.rows.iter().map(|r| r.facet));
        for row in &mut self.rows {
            row.x_name = xs[row.x_name];
            row.y_name = row.y_name.map(|y| ys[y]);
            row.color = row.color.map(|c| colors[c]);
            row.facet = facets[row.facet];
        }
    }

    fn check_counts(&self, spec: &Spec) -> Result<(), FigureError> {
        let (names, tiles) = match spec.kind {
            Kind::Heatmap => (200, 10_000),
            Kind::Forest | Kind::Love | Kind::Bar => (200, 2000),
            Kind::Box | Kind::Violin => (100, 100_000_000),
            Kind::Treemap => (2000, 1000),
            Kind::Graph => (100, 400),
            Kind::Funnel => (100, 400),
            Kind::Line => (0, 200_000),
            Kind::Scatter | Kind::Contour => (0, 50_000),
            Kind::Histogram | Kind::Ecdf => (0, 100_000_000),
        };
        let groups = if spec.kind == Kind::Treemap { 40 } else { GROUPS };
        let checks = [
            (Role::Facet, self.facets.len(), PANELS, "panels"),
            (Role::Color, self.colors.len(), groups, "groups"),
            (Role::X, self.xs.len(), names, "names"),
            (Role::Y, self.ys.len(), names, "names"),
            (if spec.x.is_some() { Role::X } else { Role::Y }, self.rows.len(), tiles, "marks"),
        ];
        for (role, found, limit, what) in checks {
            if found > limit {
                let column = visible(spec.column(role).unwrap_or_default()).into_owned();
                return Err(FigureError::TooMany {
                    kind: spec.kind,
                    column,
                    what,
                    count: found,
                    limit,
                });
            }
        }
        Ok(())
    }
}

/// The columns of a spec as they are read.
struct Source<'a> {
    spec: &'a Spec,
    columns: Vec<(Role, Takes, bool, &'a Column)>,
}

type Finders = [std::collections::BTreeMap<String, usize>; 4];

impl Source<'_> {
    /// The categories of a role: texts as they come, numbers from the least on.
    fn categories(&self, role: Role) -> Vec<String> {
        let of = |(r, takes, _, column): &(Role, Takes, bool, &Column)| {
            (*r == role && *takes == Takes::Category).then_some(column.values.clone())
        };
        match self.columns.iter().find_map(of) {
            None => Vec::new(),
            Some(Values::Texts(texts)) => {
                let mut seen = std::collections::BTreeSet::new();
                texts.into_iter().flatten().filter(|t| seen.insert(t.clone())).collect()
            }
            Some(Values::Numbers(numbers)) => {
                let mut all: Vec<f64> =
                    numbers.into_iter().flatten().filter(|v| v.is_finite()).collect();
                all.sort_by(f64::total_cmp);
                let mut names: Vec<String> = all.into_iter().map(name).collect();
                names.dedup();
                names
            }
        }
    }

    /// A row with whether its interval is not whole, or why it is left out.
    fn row(
        &self,
        at: usize,
        finders: &Finders,
    ) -> Result<Result<(Row, bool), String>, FigureError> {
        let mut row = Row { at: at + 1, ..Row::default() };
        let (mut low, mut high) = (None, None);
        for (role, takes, needed, column) in &self.columns {
            let shown = visible(&column.name);
            if *takes == Takes::Number {
                let Values::Numbers(values) = &column.values else { continue };
                let why = match values[at] {
                    None => format!("without `{shown}`"),
                    Some(v) if !v.is_finite() => format!("where `{shown}` is not finite"),
                    Some(v) if v <= 0.0 && self.is_log(*role) => {
                        format!("where `{shown}` is not above 0, which a logarithmic axis needs")
                    }
                    Some(v) => {
                        match role {
                            Role::X => row.x = v,
                            Role::Y => row.y = v,
                            Role::Low => low = Some(v),
                            Role::High => high = Some(v),
                            _ => row.value = v,
                        }
                        continue;
                    }
                };
                if *needed {
                    return Ok(Err(why));
                }
                continue;
            }
            let cell = match &column.values {
                Values::Texts(values) => values[at].clone(),
                Values::Numbers(values) => values[at].filter(|v| v.is_finite()).map(name),
            };
            let Some(cell) = cell else {
                // A graph's nodes may have no arrow, and texts beside marks are not needed.
                let optional =
                    *role == Role::Label || self.spec.kind == Kind::Graph && *role != Role::X;
                if optional {
                    continue;
                }
                return Ok(Err(format!("without `{shown}`")));
            };
            let find = |finder: usize| finders[finder].get(&cell).copied();
            match role {
                Role::X => row.x_name = find(0).unwrap_or_default(),
                Role::Y => row.y_name = find(1),
                Role::Color => row.color = find(2),
                Role::Facet => row.facet = find(3).unwrap_or_default(),
                _ => row.label = Some(cell),
            }
        }
        if let (Some(low_value), Some(high_value)) = (low, high) {
            if low_value > high_value {
                let column =
                    |role| visible(self.spec.column(role).unwrap_or_default()).into_owned();
                return Err(FigureError::LowAboveHigh {
                    row: at + 1,
                    low: column(Role::Low),
                    low_value,
                    high: column(Role::High),
                    high_value,
                });
            }
            row.interval = Some((low_value, high_value));
        }
        let half = self.spec.low.is_some() && row.interval.is_none();
        Ok(Ok((row, half)))
    }

    fn is_log(&self, role: Role) -> bool {
        let across = matches!(self.spec.kind, Kind::Forest | Kind::Love);
        let scale = match role {
            Role::X => self.spec.x_scale,
            Role::Y => self.spec.y_scale,
            Role::Low | Role::High if across => self.spec.x_scale,
            Role::Low | Role::High => self.spec.y_scale,
            _ => None,
        };
        scale == Some(Scale::Log)
    }
}

/// A number as the name of a category: all its digits.
fn name(value: f64) -> String {
    if value.fract() == 0.0 { number(value) } else { value.to_string().replace('-', "−") }
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.map(|n| format!("`{}`", visible(n))).collect();
    if names.is_empty() { "none".to_string() } else { names.join(", ") }
}

const ROLES: [Role; 7] =
    [Role::X, Role::Y, Role::Low, Role::High, Role::Color, Role::Facet, Role::Label];

/// Whether the spec names the columns that its kind needs, and no others.
fn check_roles(spec: &Spec) -> Result<(), FigureError> {
    let kind = spec.kind;
    for usage in kind.columns().iter().filter(|u| u.needed) {
        if spec.column(usage.role).is_none() {
            return Err(FigureError::Needed { kind, role: usage.role, meaning: usage.meaning });
        }
    }
    for role in ROLES {
        if let (Some(column), None) = (spec.column(role), kind.usage(role)) {
            let takes: Vec<String> =
                kind.columns().iter().map(|u| format!("`{}`", u.role)).collect();
            let column = visible(column).into_owned();
            return Err(FigureError::NotTaken { kind, role, column, takes: takes.join(", ") });
        }
    }
    match (&spec.low, &spec.high) {
        (Some(column), None) => Err(FigureError::HalfInterval {
            given: Role::Low,
            column: visible(column).into_owned(),
            missing: Role::High,
        }),
        (None, Some(column)) => Err(FigureError::HalfInterval {
            given: Role::High,
            column: visible(column).into_owned(),
            missing: Role::Low,
        }),
        _ => Ok(()),
    }
}

/// Whether the other options of the spec fit its kind and are in their ranges.
fn check_options(spec: &Spec) -> Result<(), FigureError> {
    use Kind::{
        Box, Ecdf, Forest, Funnel, Graph, Heatmap, Histogram, Line, Scatter, Treemap, Violin,
    };
    let kind = spec.kind;
    let axes = !matches!(kind, Treemap | Graph | Funnel);
    let options = [
        ("bins", spec.bins.is_some(), kind == Histogram),
        ("reference", spec.reference.is_some(), axes),
        ("x_label", spec.x_label.is_some(), axes),
        ("y_label", spec.y_label.is_some(), axes),
        (
            "x_scale",
            spec.x_scale.is_some(),
            matches!(kind, Histogram | Ecdf | Line | Scatter | Forest),
        ),
        ("y_scale", spec.y_scale.is_some(), matches!(kind, Box | Violin | Line | Scatter)),
    ];
    for (option, given, taken) in options {
        if given && !taken {
            return Err(FigureError::NoOption { kind, option });
        }
    }
    let log_reference = match kind {
        Box | Violin | Kind::Bar | Line | Scatter => spec.y_scale,
        _ => spec.x_scale,
    } == Some(Scale::Log);
    let ranges = [
        ("width", spec.width, 4.0, 100.0, "4 to 100 cm"),
        ("height", spec.height, 2.0, 200.0, "2 to 200 cm"),
        ("bins", spec.bins.map(|b| b as f64), 1.0, 500.0, "1 to 500"),
        ("reference", spec.reference, -f64::MAX, f64::MAX, "a finite number"),
        (
            "reference",
            spec.reference.filter(|_| log_reference && kind != Heatmap),
            f64::MIN_POSITIVE,
            f64::MAX,
            "above 0 on a logarithmic axis",
        ),
    ];
    for (option, value, low, high, range) in ranges {
        if let Some(value) = value.filter(|v| !(low..=high).contains(v)) {
            return Err(FigureError::Range { option, value, range });
        }
    }
    Ok(())
}
