//! The rows that a figure draws, typed and grouped, and the reasons why others are left out.

use std::collections::{BTreeMap, BTreeSet};

use strum::VariantArray as _;

use crate::data::{Column, Data, Values};
use crate::decimals::{decimals_by_interval, fixed};
use crate::error::FigureError;
use crate::scale::{count, grouped, number};
use crate::spec::{Kind, Role, Scale, Spec, Takes, Use};
use crate::text::visible;

/// The most panels of a figure.
const PANELS: usize = 24;

/// Columns whose values are names of columns, in the tables of the operators.
const NAMES_OF_COLUMNS: [&str; 7] =
    ["column", "covariate", "feature", "metric", "outcome", "score", "variable"];

/// A row. Fields that the kind does not take are 0 or `None`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    /// Its number among all rows, from 1.
    pub(crate) at: usize,
    pub(crate) x: f64,
    pub(crate) y: f64,
    /// The number of `color`, where that is one.
    pub(crate) value: f64,
    pub(crate) interval: Option<(f64, f64)>,
    /// The place among [`Table::xs`]; 0 without such a column.
    pub(crate) x_name: usize,
    /// Absent only where a kind can do without.
    pub(crate) y_name: Option<usize>,
    pub(crate) color: Option<usize>,
    pub(crate) facet: usize,
    pub(crate) label: Option<String>,
}

impl Row {
    /// A number of the row and the ends of its interval, which an axis has to hold.
    pub(crate) fn with_interval(&self, number: f64) -> [f64; 3] {
        let (low, high) = self.interval.unwrap_or((number, number));
        [number, low, high]
    }

    /// A number of the row with its interval, as text.
    pub(crate) fn words(&self, value: f64) -> String {
        match self.interval {
            Some((low, high)) => {
                let shown = |x| match decimals_by_interval((low, high)) {
                    Some(decimals) => grouped(&fixed(x, decimals)),
                    None => number(x),
                };
                format!("{} [{}, {}]", shown(value), shown(low), shown(high))
            }
            None => number(value),
        }
    }
}

/// The rows of a figure.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(crate) rows: Vec<Row>,
    /// The categories of each role, empty without such a column.
    pub(crate) xs: Vec<String>,
    pub(crate) ys: Vec<String>,
    pub(crate) colors: Vec<String>,
    pub(crate) facets: Vec<String>,
    /// The reasons why rows were left out, with their numbers.
    left: Vec<(String, usize)>,
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
        for usage in spec.kind.columns {
            let (role, Some(name)) = (usage.role, spec.column(usage.role)) else { continue };
            let shown = visible(name);
            let column = data.column(name).ok_or_else(|| {
                let columns = list(data.columns.iter().map(|c| c.name.as_str()));
                FigureError::Data(format!(
                    "`{role}` is `{shown}`, and there is no such column; there are {columns}"
                ))
            })?;
            if usage.takes == Takes::Number && matches!(column.values, Values::Texts(_)) {
                return Err(FigureError::Data(format!(
                    "`{role}` of {} must be a column of numbers, and `{shown}` holds texts",
                    spec.kind.with_article()
                )));
            }
            source.columns.push((usage, column));
        }
        let mut table = Table {
            xs: source.categories(Role::X),
            ys: source.categories(Role::Y),
            colors: source.categories(Role::Color),
            facets: source.categories(Role::Facet),
            intervals: spec.low.is_some(),
            ..Table::default()
        };
        let finders = [&table.xs, &table.ys, &table.colors, &table.facets]
            .map(|names| names.iter().cloned().zip(0..).collect());
        for at in 0..data.rows() {
            match source.row(at, &finders) {
                Ok(Row { interval: Some((low_value, high_value)), .. })
                    if low_value > high_value =>
                {
                    let (low, high) = (spec.shown(Role::Low), spec.shown(Role::High));
                    return Err(FigureError::Data(format!(
                        "in row {} `{low}` is {low_value} and above `{high}`, which is {high_value}",
                        at + 1
                    )));
                }
                Ok(row) => {
                    table.half += usize::from(table.intervals && row.interval.is_none());
                    table.rows.push(row);
                }
                Err(why) => match table.left.iter_mut().find(|(w, _)| *w == why) {
                    Some((_, n)) => *n += 1,
                    None => table.left.push((why, 1)),
                },
            }
        }
        if table.rows.is_empty() {
            let left_out = table.left_out();
            return Err(FigureError::NoRows(
                left_out.unwrap_or_else(|| "there are no rows".to_string()),
            ));
        }
        table.drop_unused();
        table.check_counts(spec)?;
        Ok(table)
    }

    /// Writes names of columns as words, as the labels of axes are.
    pub(crate) fn write_columns_as_words(&mut self, spec: &Spec) {
        for (role, names) in [
            (Role::X, &mut self.xs),
            (Role::Y, &mut self.ys),
            (Role::Color, &mut self.colors),
            (Role::Facet, &mut self.facets),
        ] {
            if !spec.column(role).is_some_and(|column| NAMES_OF_COLUMNS.contains(&column)) {
                continue;
            }
            let words: Vec<String> = names.iter().map(|name| name.replace('_', " ")).collect();
            // `a_b` and `a b` stay two names.
            if words.iter().collect::<BTreeSet<_>>().len() == names.len() {
                *names = words;
            }
        }
    }

    /// The rows left out, as the end of a sentence.
    fn left_out(&self) -> Option<String> {
        let words = |(why, n): &(String, usize)| {
            format!("{} {} {why}", count(*n), if *n == 1 { "row" } else { "rows" })
        };
        let parts: Vec<String> = self.left.iter().map(words).collect();
        (!parts.is_empty()).then(|| format!("{} left out", parts.join(", ")))
    }

    /// The number of rows, with the numbers of groups in words, and the rows left out.
    pub(crate) fn counted(&self, kind: Kind, groups: &str) -> String {
        let left = self.left_out().map(|left| format!("; {left}")).unwrap_or_default();
        let n = count(self.rows.len());
        match kind.rows {
            None => format!("n = {n}{groups}{left}"),
            Some((one, _)) if self.rows.len() == 1 => format!("{n} {one}{groups}{left}"),
            Some((_, many)) => format!("{n} {many}{groups}{left}"),
        }
    }

    /// The number of panels, at least one.
    pub(crate) fn panels(&self) -> usize {
        self.facets.len().max(1)
    }

    /// The number of groups by colour, at least one.
    pub(crate) fn groups(&self) -> usize {
        self.colors.len().max(1)
    }

    pub(crate) fn in_panel(&self, panel: usize) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |r| r.facet == panel)
    }

    /// Drops the categories whose rows were all left out.
    fn drop_unused(&mut self) {
        fn keep(
            names: &mut Vec<String>,
            used: impl Iterator<Item = usize>,
        ) -> BTreeMap<usize, usize> {
            let places = BTreeSet::from_iter(used).into_iter().zip(0..).collect::<BTreeMap<_, _>>();
            let mut at = 0..;
            names.retain(|_| at.next().is_some_and(|at| places.contains_key(&at)));
            places
        }
        let xs = keep(&mut self.xs, self.rows.iter().map(|r| r.x_name));
        let ys = keep(&mut self.ys, self.rows.iter().filter_map(|r| r.y_name));
        let colors = keep(&mut self.colors, self.rows.iter().filter_map(|r| r.color));
        let facets = keep(&mut self.facets, self.rows.iter().map(|r| r.facet));
        for row in &mut self.rows {
            row.x_name = xs[&row.x_name];
            row.y_name = row.y_name.map(|y| ys[&y]);
            row.color = row.color.map(|c| colors[&c]);
            row.facet = facets[&row.facet];
        }
    }

    fn check_counts(&self, spec: &Spec) -> Result<(), FigureError> {
        let Kind { names, groups, marks, .. } = spec.kind;
        let checks = [
            (Role::Facet, self.facets.len(), PANELS, "panels"),
            (Role::Color, self.colors.len(), groups, "groups"),
            (Role::X, self.xs.len(), names, "names"),
            (Role::Y, self.ys.len(), names, "names"),
            (if spec.x.is_some() { Role::X } else { Role::Y }, self.rows.len(), marks, "marks"),
        ];
        for (role, count, limit, what) in checks {
            if count > limit {
                return Err(too_many(spec, role, count, what, limit));
            }
        }
        Ok(())
    }
}

/// The error for a column that gives more than the kind of figure can show.
pub(crate) fn too_many(
    spec: &Spec,
    role: Role,
    count: usize,
    what: &str,
    limit: usize,
) -> FigureError {
    let (column, a_kind) = (spec.shown(role), spec.kind.with_article());
    FigureError::Data(format!(
        "column `{column}` gives {count} {what}, and {a_kind} shows at most {limit}; filter or \
         group the rows first"
    ))
}

/// The columns of a spec as they are read.
struct Source<'a> {
    spec: &'a Spec,
    columns: Vec<(&'static Use, &'a Column)>,
}

impl Source<'_> {
    /// The categories of a role: texts as they come, numbers from the least on.
    fn categories(&self, role: Role) -> Vec<String> {
        let is_it =
            |(usage, _): &&(&Use, &Column)| usage.role == role && usage.takes == Takes::Category;
        let mut seen = BTreeSet::new();
        match self.columns.iter().find(is_it).map(|(_, column)| &column.values) {
            None => Vec::new(),
            Some(Values::Texts(texts)) => {
                let texts = texts.iter().flatten().filter(|t| seen.insert(*t)).cloned();
                let mut names: Vec<String> = texts.collect();
                let is_control = |name: &String| name.eq_ignore_ascii_case("control");
                let control = names.iter().position(is_control);
                if let Some(at) = control.filter(|_| self.spec.control_first) {
                    names[..=at].rotate_right(1);
                }
                names
            }
            Some(Values::Numbers(numbers)) => {
                let mut all: Vec<f64> =
                    numbers.iter().flatten().copied().filter(|v| v.is_finite()).collect();
                all.sort_by(f64::total_cmp);
                let mut names: Vec<String> = all.into_iter().map(name).collect();
                names.dedup();
                names
            }
        }
    }

    /// A row, or why it is left out. `finders` have the places of the categories of `x`, `y`,
    /// `color` and `facet`.
    fn row(&self, at: usize, finders: &[BTreeMap<String, usize>; 4]) -> Result<Row, String> {
        let mut row = Row { at: at + 1, ..Row::default() };
        let (mut low, mut high) = (None, None);
        for (Use { role, takes, needed, sparse, .. }, column) in &self.columns {
            let shown = visible(&column.name);
            if let (Takes::Number, Values::Numbers(values)) = (takes, &column.values) {
                let why = match values[at] {
                    None => format!("without `{shown}`"),
                    Some(v) if !v.is_finite() => format!("where `{shown}` is not finite"),
                    Some(v) if v <= 0.0 && is_log(self.spec, *role) => {
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
                    return Err(why);
                }
                continue;
            }
            let cell = match &column.values {
                Values::Texts(values) => values[at].clone(),
                Values::Numbers(values) => values[at].filter(|v| v.is_finite()).map(name),
            };
            let Some(cell) = cell else {
                if *sparse {
                    continue;
                }
                return Err(format!("without `{shown}`"));
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
        row.interval = low.zip(high);
        Ok(row)
    }
}

/// True if the numbers of a role are on a logarithmic axis.
fn is_log(spec: &Spec, role: Role) -> bool {
    let scale = match role {
        Role::X => spec.x_scale,
        Role::Y => spec.y_scale,
        Role::Low | Role::High => return is_log(spec, spec.kind.along),
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

/// Checks that the spec names the columns that its kind needs, and no others.
fn check_roles(spec: &Spec) -> Result<(), FigureError> {
    let (kind, a_kind) = (spec.kind, spec.kind.with_article());
    for Use { role, meaning, .. } in kind.columns.iter().filter(|u| u.needed) {
        if spec.column(*role).is_none() {
            return Err(FigureError::Spec(format!("{a_kind} needs `{role}`: {meaning}")));
        }
    }
    for role in Role::VARIANTS {
        if let (Some(column), None) = (spec.column(*role), kind.usage(*role)) {
            let takes = list(kind.columns.iter().map(|u| u.role.into()));
            let column = visible(column);
            return Err(FigureError::Spec(format!(
                "{a_kind} does not take `{role}` (here column `{column}`); it takes {takes}"
            )));
        }
    }
    for (given, missing) in [(Role::Low, Role::High), (Role::High, Role::Low)] {
        if let (Some(column), None) = (spec.column(given), spec.column(missing)) {
            let column = visible(column);
            return Err(FigureError::Spec(format!(
                "`{given}` is column `{column}` and `{missing}` is not given: an interval needs both"
            )));
        }
    }
    Ok(())
}

/// Checks that the other options of the spec fit its kind and are in their ranges.
fn check_options(spec: &Spec) -> Result<(), FigureError> {
    let options = [
        ("bins", spec.bins.is_some()),
        ("reference", spec.reference.is_some()),
        ("x_label", spec.x_label.is_some()),
        ("y_label", spec.y_label.is_some()),
        ("x_scale", spec.x_scale.is_some()),
        ("y_scale", spec.y_scale.is_some()),
    ];
    let Kind { options: taken, along, .. } = spec.kind;
    for (option, given) in options {
        if given && !taken.contains(&option) {
            let a_kind = spec.kind.with_article();
            return Err(FigureError::Spec(format!("{a_kind} does not take `{option}`")));
        }
    }
    let on_log = spec.reference.filter(|_| is_log(spec, along));
    let above_0 = "above 0 on a logarithmic axis";
    let ranges = [
        ("width", spec.width, 4.0, 100.0, "4 to 100 cm"),
        ("height", spec.height, 2.0, 200.0, "2 to 200 cm"),
        ("bins", spec.bins.map(|b| b as f64), 1.0, 500.0, "1 to 500"),
        ("reference", spec.reference, -f64::MAX, f64::MAX, "a finite number"),
        ("reference", on_log, f64::MIN_POSITIVE, f64::MAX, above_0),
    ];
    for (option, value, low, high, range) in ranges {
        if let Some(value) = value.filter(|v| !(low..=high).contains(v)) {
            return Err(FigureError::Spec(format!("`{option}` is {value}; it must be {range}")));
        }
    }
    Ok(())
}
