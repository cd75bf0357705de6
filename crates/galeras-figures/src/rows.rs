//! The rows that a figure draws, typed and grouped, and the reasons why others are left out.

use crate::data::{Column, Data, Values};
use crate::error::FigureError;
use crate::kind::KindSpec;
use crate::scale::{count, number};
use crate::spec::{Role, Scale, Spec, Takes};
use crate::text::visible;

/// The most panels of a figure.
const PANELS: usize = 24;

/// A row. Fields that the kind does not take are 0 or `None`.
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
    /// The reasons why rows were left out, with their numbers.
    pub(crate) left: Vec<(String, usize)>,
    /// Rows with one end of an interval or an end that is not a number.
    pub(crate) half: usize,
    /// True if there are columns of intervals.
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

    /// The rows left out, as the end of a sentence.
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

    /// Drops the categories whose rows were all left out.
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
        let &KindSpec { names, groups, marks, .. } = spec.kind.0;
        let checks = [
            (Role::Facet, self.facets.len(), PANELS, "panels"),
            (Role::Color, self.colors.len(), groups, "groups"),
            (Role::X, self.xs.len(), names, "names"),
            (Role::Y, self.ys.len(), names, "names"),
            (if spec.x.is_some() { Role::X } else { Role::Y }, self.rows.len(), marks, "marks"),
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
                if self.spec.kind.usage(*role).is_some_and(|usage| usage.sparse) {
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
        match role {
            Role::Low | Role::High => is_log(self.spec, self.spec.kind.0.along),
            role => is_log(self.spec, role),
        }
    }
}

fn is_log(spec: &Spec, axis: Role) -> bool {
    let scale = match axis {
        Role::X => spec.x_scale,
        Role::Y => spec.y_scale,
        _ => None,
    };
    scale == Some(Scale::Log)
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

/// Checks that the spec names the columns that its kind needs, and no others.
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

/// Checks that the other options of the spec fit its kind and are in their ranges.
fn check_options(spec: &Spec) -> Result<(), FigureError> {
    let kind = spec.kind;
    let options = [
        ("bins", spec.bins.is_some()),
        ("reference", spec.reference.is_some()),
        ("x_label", spec.x_label.is_some()),
        ("y_label", spec.y_label.is_some()),
        ("x_scale", spec.x_scale.is_some()),
        ("y_scale", spec.y_scale.is_some()),
    ];
    let KindSpec { options: taken, along, .. } = kind.0;
    for (option, given) in options {
        if given && !taken.contains(&option) {
            return Err(FigureError::NoOption { kind, option });
        }
    }
    let ranges = [
        ("width", spec.width, 4.0, 100.0, "4 to 100 cm"),
        ("height", spec.height, 2.0, 200.0, "2 to 200 cm"),
        ("bins", spec.bins.map(|b| b as f64), 1.0, 500.0, "1 to 500"),
        ("reference", spec.reference, -f64::MAX, f64::MAX, "a finite number"),
        (
            "reference",
            spec.reference.filter(|_| is_log(spec, *along)),
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
