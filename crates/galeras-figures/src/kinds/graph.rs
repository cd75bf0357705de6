//! Directed graphs: structural causal models, pipelines.

use crate::error::FigureError;
use crate::kind::{Kind, KindSpec};
use crate::node_link::{Flow, NodeLink, Taken};
use crate::scale::count;
use crate::sheet::Sheet;
use crate::spec::{Role, Takes, Theme, may, needs};
use crate::svg::{Anchor, Area, CM, Fill, Stroke};
use crate::text::{Label, SIZE, SMALL};
use crate::theme;

impl Kind {
    /// Graph: see [`Kind::about`].
    pub const GRAPH: Kind = Kind(&KindSpec {
        name: "graph",
        title: "Graph",
        about: "Nodes and arrows.",
        columns: &[
            needs(Role::X, Takes::Category, "the node where an arrow begins"),
            needs(
                Role::Y,
                Takes::Category,
                "the node where it ends; a row without one describes the node `x`",
            )
            .sparse(),
            may(
                Role::Color,
                Takes::Category,
                "the kind of the arrow, or the role of the node in a row without `y`",
            )
            .sparse(),
            may(Role::Label, Takes::Category, "a text next to the arrow"),
        ],
        options: &[],
        along: Role::Y,
        names: 100,
        groups: theme::GROUPS,
        marks: 400,
        draw,
        draw_text: None,
    });
}

const MARGIN: f64 = 9.0;

struct Edge {
    from: usize,
    to: usize,
    color: Option<usize>,
    label: Option<String>,
}

/// The graph of a table's rows.
struct Graph {
    nodes: Vec<String>,
    roles: Vec<Option<usize>>,
    edges: Vec<Edge>,
    /// The look of each group. Roles and kinds of arrows both start at 0, so the first arrows have
    /// the colour of the first nodes.
    looks: Vec<usize>,
}

impl Graph {
    fn of(sheet: &Sheet<'_>) -> Result<Graph, FigureError> {
        let table = &sheet.table;
        let mut nodes: Vec<String> = Vec::new();
        let mut place = std::collections::BTreeMap::new();
        let mut at = |name: &String| {
            *place.entry(name.clone()).or_insert_with(|| {
                nodes.push(name.clone());
                nodes.len() - 1
            })
        };
        let (mut edges, mut roles) = (Vec::new(), std::collections::BTreeMap::new());
        let mut seen = std::collections::BTreeMap::new();
        for row in &table.rows {
            let from = at(&table.xs[row.x_name]);
            let Some(to) = row.y_name.map(|y| at(&table.ys[y])) else {
                if let Some((first, _)) = roles.insert(from, (row, row.color)) {
                    return Err(super::twice(sheet, first, row, &[Role::X]));
                }
                continue;
            };
            if let Some(first) = seen.insert((from, to, row.color), row) {
                return Err(super::twice(sheet, first, row, &[Role::X, Role::Y, Role::Color]));
            }
            edges.push(Edge {
                from,
                to,
                color: row.color,
                label: row.label.clone().filter(|l| !l.trim().is_empty()),
            });
        }
        let role = |i| roles.get(&i).and_then(|(_, color)| *color);
        let roles: Vec<Option<usize>> = (0..nodes.len()).map(role).collect();
        let mut next = [0, 0];
        let look = |group: usize| {
            let next = &mut next[usize::from(roles.contains(&Some(group)))];
            *next += 1;
            *next - 1
        };
        let looks = (0..table.colors.len()).map(look).collect();
        Ok(Graph { nodes, roles, edges, looks })
    }
}

/// The graph with its labels and places.
struct Lay {
    labels: Vec<Label>,
    placed: NodeLink,
}

impl Lay {
    fn of(graph: &Graph, level: bool, widest: f64, between: f64) -> Lay {
        let fit = |name: &String| Label::fit(name, SIZE, widest - 16.0, 3);
        let labels: Vec<Label> = graph.nodes.iter().map(fit).collect();
        let size = |l: &Label| ((l.width + 16.0).max(30.0), l.height() + 10.0);
        let sizes: Vec<(f64, f64)> = labels.iter().map(size).collect();
        let pairs: Vec<(usize, usize)> = graph.edges.iter().map(|e| (e.from, e.to)).collect();
        let flow = Flow { level, gap: 16.0, between, most: usize::MAX };
        Lay { labels, placed: NodeLink::place(&sizes, &pairs, flow) }
    }
}

fn draw(sheet: &mut Sheet<'_>) -> Result<(), FigureError> {
    let graph = Graph::of(sheet)?;
    let mut top = sheet.head(None);
    top = legend(sheet, &graph, top);
    let room = sheet.width - 2.0 * MARGIN;
    let labelled = graph.edges.iter().any(|e| e.label.is_some());
    let Lay { labels, mut placed } = lay(sheet, &graph, room, if labelled { 84.0 } else { 46.0 })?;
    // Loops pass outside of the nodes.
    let spare = 16.0;
    let needed = top + placed.height + 2.0 * spare + MARGIN;
    sheet.height = sheet.spec.height.map_or(needed, |cm| cm * CM);
    if sheet.height + 0.5 < needed {
        return Err(sheet.too_small(needed, "height", "the nodes"));
    }
    let left = MARGIN + (room - placed.width) / 2.0;
    placed.shift(left, top + spare + (sheet.height - needed) / 2.0);
    for edge in 0..graph.edges.len() {
        draw_edge(sheet, &graph, &placed, edge);
    }
    let mut taken = Taken::of(&placed.boxes);
    let mut no_room = 0;
    for (at, edge) in graph.edges.iter().enumerate() {
        let Some(text) = &edge.label else { continue };
        let label = Label::fit(text, SMALL, 76.0, 2);
        let size = (label.width + 4.0, label.height());
        match placed.label_place(at, size, (2.0, sheet.width - 2.0), &mut taken) {
            Some(area) => sheet.svg.edge_label(&label, area, sheet.look),
            None => no_room += 1,
        }
    }
    for (node, area) in placed.boxes.iter().enumerate() {
        draw_node(sheet, &graph, &labels[node], node, *area);
    }
    if no_room > 0 {
        let words = if no_room == 1 { "label has" } else { "labels have" };
        sheet.notes.push(format!("{no_room} {words} no room."));
    }
    let (nodes, edges) = (count(graph.nodes.len()), count(graph.edges.len()));
    sheet.notes.push(format!("{nodes} nodes, {edges} arrows."));
    let arrow = |e: &Edge| format!("{} to {}.", graph.nodes[e.from], graph.nodes[e.to]);
    sheet.facts.extend(graph.edges.iter().take(60).map(arrow));
    Ok(())
}

/// The arrangement that fits the width; nodes become narrower before it is turned.
fn lay(sheet: &Sheet<'_>, graph: &Graph, room: f64, between: f64) -> Result<Lay, FigureError> {
    let mut least = f64::INFINITY;
    let down_between = if between > 50.0 { 54.0 } else { 40.0 };
    for (level, between) in [(true, between), (true, between * 0.7), (false, down_between)] {
        for widest in [170.0, 130.0, 100.0, 78.0] {
            let lay = Lay::of(graph, level, widest, between);
            if lay.placed.width <= room {
                return Ok(lay);
            }
            least = least.min(lay.placed.width);
        }
    }
    Err(sheet.too_small(least + 2.0 * MARGIN, "width", "the nodes"))
}

fn draw_edge(sheet: &mut Sheet<'_>, graph: &Graph, placed: &NodeLink, at: usize) {
    let edge = &graph.edges[at];
    let stroke = match edge.color {
        Some(group) => sheet.look.stroke(graph.looks[group], 1.4),
        None => Stroke::solid(sheet.look.soft, 1.2),
    };
    let mut words = format!("{} → {}", graph.nodes[edge.from], graph.nodes[edge.to]);
    if let Some(name) = edge.color.map(|c| &sheet.table.colors[c]) {
        words.push_str(&format!(" ({name})"));
    }
    if let Some(label) = &edge.label {
        words.push_str(&format!(": {label}"));
    }
    sheet.svg.open_titled("edge", &words);
    placed.draw_arrow(&mut sheet.svg, at, stroke);
    sheet.svg.close();
}

fn draw_node(sheet: &mut Sheet<'_>, graph: &Graph, label: &Label, node: usize, area: Area) {
    let role = graph.roles[node];
    let name = &graph.nodes[node];
    let title = match role.map(|r| &sheet.table.colors[r]) {
        Some(role) => format!("{name} ({role})"),
        None => name.clone(),
    };
    sheet.svg.open_titled("node", &title);
    outline(sheet, area, role.map(|group| graph.looks[group]));
    let (x, y) = (area.x + area.width / 2.0, area.y + area.height / 2.0);
    sheet.svg.label_beside(label, x, y, Anchor::Middle, sheet.look.ink);
    sheet.svg.close();
}

/// A node's box: the colour of its role, its dashes, and corners that differ too.
fn outline(sheet: &mut Sheet<'_>, area: Area, role: Option<usize>) {
    let look = sheet.look;
    sheet.svg.rounded(area, 6.0, Fill::solid(look.ground), None);
    match role {
        None => sheet.svg.rounded(
            area,
            6.0,
            Fill::solid(look.panel),
            Some(Stroke::solid(look.soft, 1.0)),
        ),
        Some(group) => {
            let radius = [area.height / 2.0, 0.0, 6.0][group % 3];
            let opacity = if look.theme == Theme::Print { 0.06 } else { 0.2 };
            let fill = Fill { color: look.color(group), opacity };
            let width = if look.theme == Theme::Print && group % 4 == 0 { 2.2 } else { 1.6 };
            sheet.svg.rounded(area, radius, fill, Some(look.stroke(group, width)));
        }
    }
}

/// Draws the looks of roles and arrows; returns where the rest begins.
fn legend(sheet: &mut Sheet<'_>, graph: &Graph, top: f64) -> f64 {
    if sheet.table.colors.is_empty() {
        return top;
    }
    let line = SIZE * 1.6;
    let right = sheet.width - MARGIN;
    let (mut x, mut y) = (MARGIN, top);
    sheet.svg.open("legend");
    for (group, name) in sheet.table.colors.clone().iter().enumerate() {
        let label = Label::fit(name, SIZE, (right - MARGIN) * 0.45, 1);
        let width = 27.0 + label.width;
        if x + width > right && x > MARGIN {
            (x, y) = (MARGIN, y + line);
        }
        let middle = y + line / 2.0;
        sheet.svg.open("key");
        if graph.roles.contains(&Some(group)) {
            let height = 11.0;
            let area = Area { x, y: middle - height / 2.0, width: 20.0, height };
            outline(sheet, area, Some(graph.looks[group]));
        } else {
            let stroke = sheet.look.stroke(graph.looks[group], 1.6);
            sheet.svg.line((x, middle), (x + 20.0, middle), stroke);
        }
        sheet.svg.label_beside(&label, x + 26.0, middle, Anchor::Start, sheet.look.ink);
        sheet.svg.close();
        x += width + 14.0;
    }
    sheet.svg.close();
    y + line + 4.0
}
