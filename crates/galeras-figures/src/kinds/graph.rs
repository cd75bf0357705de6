//! Directed graphs: structural causal models, pipelines.

use std::collections::BTreeMap;

use super::{twice, without_room};
use crate::error::FigureError;
use crate::node_link::{Flow, NodeLink};
use crate::scale::count;
use crate::sheet::{MARGIN, Sheet};
use crate::spec::{Kind, Role, Takes, Theme, may, needs};
use crate::svg::{Anchor, Area, CM, Fill, Stroke, Svg};
use crate::text::{Label, SIZE, SMALL};
use crate::theme::Look;

impl Kind {
    /// Graph: see [`Kind::about`].
    pub const GRAPH: Kind = Kind {
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
        names: 100,
        marks: 400,
        draw,
        ..Kind::BASE
    };
}

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
        let table = sheet.table;
        let mut nodes: Vec<String> = Vec::new();
        let mut place = BTreeMap::new();
        let mut at = |name: &String| {
            *place.entry(name.clone()).or_insert_with(|| {
                nodes.push(name.clone());
                nodes.len() - 1
            })
        };
        let (mut edges, mut roles, mut seen) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        for row in &table.rows {
            let from = at(&table.xs[row.x_name]);
            let Some(to) = row.y_name.map(|y| at(&table.ys[y])) else {
                if let Some(first) = roles.insert(from, row) {
                    return Err(twice(sheet, first, row, &[Role::X]));
                }
                continue;
            };
            if let Some(first) = seen.insert((from, to, row.color), row) {
                return Err(twice(sheet, first, row, &[Role::X, Role::Y, Role::Color]));
            }
            let label = row.label.clone().filter(|l| !l.trim().is_empty());
            edges.push(Edge { from, to, color: row.color, label });
        }
        let role = |i| roles.get(&i).and_then(|row| row.color);
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

fn draw(sheet: &mut Sheet<'_>) -> Result<(), FigureError> {
    let graph = Graph::of(sheet)?;
    let mut top = sheet.head(None);
    top = legend(sheet, &graph, top);
    let room = sheet.width - 2.0 * MARGIN;
    let labelled = graph.edges.iter().any(|e| e.label.is_some());
    let (labels, mut placed) = place(sheet, &graph, room, labelled)?;
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
    let mut taken = placed.boxes.clone();
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
    sheet.notes.extend(without_room(no_room));
    let (nodes, edges) = (count(graph.nodes.len()), count(graph.edges.len()));
    sheet.notes.push(format!("{nodes} nodes, {edges} arrows."));
    let arrow = |e: &Edge| format!("{} to {}.", graph.nodes[e.from], graph.nodes[e.to]);
    sheet.facts.extend(graph.edges.iter().take(60).map(arrow));
    Ok(())
}

/// The arrangement that fits the width; nodes become narrower before it is turned.
fn place(
    sheet: &Sheet<'_>,
    graph: &Graph,
    room: f64,
    labelled: bool,
) -> Result<(Vec<Label>, NodeLink), FigureError> {
    let pairs: Vec<(usize, usize)> = graph.edges.iter().map(|e| (e.from, e.to)).collect();
    let (across, down) = if labelled { (84.0, 54.0) } else { (46.0, 40.0) };
    let mut least = f64::INFINITY;
    for (level, between) in [(true, across), (true, across * 0.7), (false, down)] {
        for widest in [170.0, 130.0, 100.0, 78.0] {
            let fit = |name: &String| Label::fit(name, SIZE, widest - 16.0, 3);
            let labels: Vec<Label> = graph.nodes.iter().map(fit).collect();
            let size = |l: &Label| ((l.width + 16.0).max(30.0), l.height() + 10.0);
            let sizes: Vec<(f64, f64)> = labels.iter().map(size).collect();
            let flow = Flow { level, gap: 16.0, between, most: usize::MAX };
            let placed = NodeLink::place(&sizes, &pairs, flow);
            if placed.width <= room {
                return Ok((labels, placed));
            }
            least = least.min(placed.width);
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
    outline(&mut sheet.svg, sheet.look, area, role.map(|group| graph.looks[group]));
    sheet.svg.label_beside(label, area.middle(), Anchor::Middle, sheet.look.ink);
    sheet.svg.close();
}

/// A node's box: the colour of its role, its dashes, and corners that differ too.
fn outline(svg: &mut Svg, look: &Look, area: Area, role: Option<usize>) {
    svg.rounded(area, 6.0, Fill::solid(look.ground), None);
    match role {
        None => {
            let stroke = Stroke::solid(look.soft, 1.0);
            svg.rounded(area, 6.0, Fill::solid(look.panel), Some(stroke));
        }
        Some(group) => {
            let radius = [area.height / 2.0, 0.0, 6.0][group % 3];
            let opacity = if look.theme == Theme::Print { 0.06 } else { 0.2 };
            let fill = Fill { color: look.color(group), opacity };
            let width = if look.theme == Theme::Print && group % 4 == 0 { 2.2 } else { 1.6 };
            svg.rounded(area, radius, fill, Some(look.stroke(group, width)));
        }
    }
}

/// Draws the looks of roles and arrows; returns where the rest begins.
fn legend(sheet: &mut Sheet<'_>, graph: &Graph, top: f64) -> f64 {
    if sheet.table.colors.is_empty() {
        return top;
    }
    let most = (sheet.width - MARGIN - MARGIN) * 0.45;
    let look = sheet.look;
    sheet.svg.open("legend");
    let y = sheet.keys((MARGIN, top), SIZE * 1.6, most, [26.0, 27.0], |svg, (x, middle), group| {
        if graph.roles.contains(&Some(group)) {
            let area = Area { x, y: middle - 5.5, width: 20.0, height: 11.0 };
            outline(svg, look, area, Some(graph.looks[group]));
        } else {
            let stroke = look.stroke(graph.looks[group], 1.6);
            svg.line((x, middle), (x + 20.0, middle), stroke);
        }
    });
    sheet.svg.close();
    y + 4.0
}
