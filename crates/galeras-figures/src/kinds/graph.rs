//! Directed graphs: structural causal models, pipelines.

use crate::error::FigureError;
use crate::layout::{Layers, layers};
use crate::scale::count;
use crate::sheet::Sheet;
use crate::spec::{Role, Theme};
use crate::svg::{Anchor, Area, CM, Fill, Short, Stroke};
use crate::text::{Label, SIZE, SMALL};

const MARGIN: f64 = 9.0;
/// Between nodes of a layer.
const GAP: f64 = 16.0;

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
    /// The look of each group: roles and kinds of arrows begin anew, so that the first arrows have
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

/// How the graph lies in the picture: layers side by side, or below each other.
struct Lay {
    side_by_side: bool,
    labels: Vec<Label>,
    /// The width and the height of each node.
    sizes: Vec<(f64, f64)>,
    layers: Layers,
    /// Where each layer begins, how long it is, and the room between layers.
    starts: Vec<(f64, f64)>,
    length: f64,
}

impl Lay {
    fn of(graph: &Graph, side_by_side: bool, widest: f64, between: f64) -> Lay {
        let fit = |name: &String| Label::fit(name, SIZE, widest - 16.0, 3);
        let labels: Vec<Label> = graph.nodes.iter().map(fit).collect();
        let sizes: Vec<(f64, f64)> =
            labels.iter().map(|l| ((l.width + 16.0).max(30.0), l.height() + 10.0)).collect();
        let across: Vec<f64> =
            sizes.iter().map(|(w, h)| if side_by_side { *h } else { *w }).collect();
        let pairs: Vec<(usize, usize)> = graph.edges.iter().map(|e| (e.from, e.to)).collect();
        let layers = layers(&across, &pairs, GAP);
        let mut starts = Vec::new();
        let mut at = 0.0;
        for layer in 0..layers.count {
            let of = sizes.iter().zip(&layers.layer).filter(|(_, l)| **l == layer);
            let long = of.map(|((w, h), _)| if side_by_side { *w } else { *h }).fold(0.0, f64::max);
            starts.push((at, long));
            at += long + between;
        }
        Lay { side_by_side, labels, sizes, layers, starts, length: at - between }
    }

    fn across(&self) -> f64 {
        self.layers.extent.1 - self.layers.extent.0
    }

    /// The width and the height of all.
    fn size(&self) -> (f64, f64) {
        match self.side_by_side {
            true => (self.length, self.across()),
            false => (self.across(), self.length),
        }
    }

    /// The point at a place across, and along.
    fn point(&self, along: f64, across: f64) -> (f64, f64) {
        let across = across - self.layers.extent.0;
        if self.side_by_side { (along, across) } else { (across, along) }
    }

    fn middle(&self, node: usize) -> (f64, f64) {
        let (start, long) = self.starts[self.layers.layer[node]];
        self.point(start + long / 2.0, self.layers.across[node])
    }
}

pub(super) fn draw(sheet: &mut Sheet<'_>) -> Result<(), FigureError> {
    let graph = Graph::of(sheet)?;
    let mut top = sheet.head(None);
    top = legend(sheet, &graph, top);
    let room = sheet.width - 2.0 * MARGIN;
    let labelled = graph.edges.iter().any(|e| e.label.is_some());
    let lay = lay(sheet, &graph, room, if labelled { 84.0 } else { 46.0 })?;
    let (width, height) = lay.size();
    // Edges that leave their layer backwards, and loops, pass outside of the nodes.
    let spare = 16.0;
    let needed = top + height + 2.0 * spare + MARGIN;
    sheet.height = sheet.spec.height.map_or(needed, |cm| cm * CM);
    if sheet.height + 0.5 < needed {
        return Err(sheet.too_small(needed, "height", "the nodes"));
    }
    let left = MARGIN + (room - width) / 2.0;
    let down = top + spare + (sheet.height - needed) / 2.0;
    let shift = |(x, y): (f64, f64)| (left + x, down + y);
    let mut taken: Vec<Area> = Vec::new();
    for node in 0..graph.nodes.len() {
        let ((x, y), (w, h)) = (shift(lay.middle(node)), lay.sizes[node]);
        taken.push(Area { x: x - w / 2.0, y: y - h / 2.0, width: w, height: h });
    }
    let boxes = taken.clone();
    let mut texts = Vec::new();
    for (i, edge) in graph.edges.iter().enumerate() {
        let points = route(&lay, edge, i, &shift, &boxes);
        draw_edge(sheet, &graph, edge, &points, lay.side_by_side);
        if let Some(label) = &edge.label {
            texts.push((points, label.clone()));
        }
    }
    let mut no_room = 0;
    for (points, label) in texts {
        no_room += usize::from(!edge_label(sheet, &points, &label, &mut taken));
    }
    for (node, area) in boxes.iter().enumerate() {
        draw_node(sheet, &graph, &lay, node, *area);
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
    for (side_by_side, between) in [(true, between), (true, between * 0.7), (false, down_between)] {
        for widest in [170.0, 130.0, 100.0, 78.0] {
            let lay = Lay::of(graph, side_by_side, widest, between);
            if lay.size().0 <= room {
                return Ok(lay);
            }
            least = least.min(lay.size().0);
        }
    }
    Err(sheet.too_small(least + 2.0 * MARGIN, "width", "the nodes"))
}

/// The points an edge passes: from the side of a node through its lanes to the side of another.
fn route(
    lay: &Lay,
    edge: &Edge,
    index: usize,
    shift: &impl Fn((f64, f64)) -> (f64, f64),
    boxes: &[Area],
) -> Vec<(f64, f64)> {
    let (a, b) = (boxes[edge.from], boxes[edge.to]);
    let onwards = lay.layers.layer[edge.to] > lay.layers.layer[edge.from];
    let side = |area: Area, behind: bool| match (lay.side_by_side, behind) {
        (true, true) => (area.right(), area.y + area.height / 2.0),
        (true, false) => (area.x, area.y + area.height / 2.0),
        (false, true) => (area.x + area.width / 2.0, area.bottom()),
        (false, false) => (area.x + area.width / 2.0, area.y),
    };
    if edge.from == edge.to {
        let (x, y) = (a.right(), a.y + a.height / 2.0);
        return vec![(x - 8.0, a.y), (x + 8.0, a.y - 10.0), (x + 12.0, y - 4.0), (x, y)];
    }
    let mut points = vec![side(a, onwards)];
    for (layer, across) in &lay.layers.lanes[index] {
        let (start, long) = lay.starts[*layer];
        let (near, far) = (lay.point(start, *across), lay.point(start + long, *across));
        let (near, far) = (shift(near), shift(far));
        points.extend(if onwards { [near, far] } else { [far, near] });
    }
    points.push(side(b, !onwards));
    points
}

/// A curve through points that enters and leaves each in the layers' direction.
fn draw_edge(
    sheet: &mut Sheet<'_>,
    graph: &Graph,
    edge: &Edge,
    points: &[(f64, f64)],
    level: bool,
) {
    use std::fmt::Write as _;
    let ink = sheet.look.soft;
    let stroke = match edge.color {
        Some(group) => sheet.look.stroke(graph.looks[group], 1.4),
        None => Stroke::solid(ink, 1.2),
    };
    let mut words = format!("{} → {}", graph.nodes[edge.from], graph.nodes[edge.to]);
    if let Some(name) = edge.color.map(|c| &sheet.table.colors[c]) {
        words.push_str(&format!(" ({name})"));
    }
    if let Some(label) = &edge.label {
        words.push_str(&format!(": {label}"));
    }
    sheet.svg.open_titled("edge", &words);
    let looped = edge.from == edge.to;
    let n = points.len();
    let (tip, before) = (points[n - 1], points[n - 2]);
    let direction = match (looped, level) {
        (true, _) => (-1.0, 0.0),
        (false, true) => ((tip.0 - before.0).signum(), 0.0),
        (false, false) => (0.0, (tip.1 - before.1).signum()),
    };
    let head = 7.0;
    let end = (tip.0 - direction.0 * head * 0.8, tip.1 - direction.1 * head * 0.8);
    let mut d = format!("M{} {}", Short(points[0].0), Short(points[0].1));
    let mut curve = |a: (f64, f64), b: (f64, f64), c: (f64, f64)| {
        let s = Short;
        let _ = write!(d, "C{} {} {} {} {} {}", s(a.0), s(a.1), s(b.0), s(b.1), s(c.0), s(c.1));
    };
    if looped {
        curve(points[1], points[2], end);
    } else {
        for (i, pair) in points.windows(2).enumerate() {
            let (from, to) = (pair[0], if i + 2 == n { end } else { pair[1] });
            let middle = ((from.0 + to.0) / 2.0, (from.1 + to.1) / 2.0);
            match direction.0 != 0.0 {
                true => curve((middle.0, from.1), (middle.0, to.1), to),
                false => curve((from.0, middle.1), (to.0, middle.1), to),
            }
        }
    }
    sheet.svg.raw_path(&d, Fill::NONE, Some(stroke));
    let wing = head * 0.45;
    let back = (tip.0 - direction.0 * head, tip.1 - direction.1 * head);
    let (dx, dy) = (direction.1 * wing, direction.0 * wing);
    let arrow = [tip, (back.0 + dx, back.1 + dy), (back.0 - dx, back.1 - dy)];
    sheet.svg.path(&arrow, true, Fill::solid(stroke.color), None);
    sheet.svg.close();
}

fn edge_label(
    sheet: &mut Sheet<'_>,
    points: &[(f64, f64)],
    text: &str,
    taken: &mut Vec<Area>,
) -> bool {
    let label = Label::fit(text, SMALL, 76.0, 2);
    let (width, height) = (label.width + 4.0, label.height());
    for pair in points.windows(2) {
        for share in [0.5, 0.4, 0.6, 0.3, 0.7] {
            let x = pair[0].0 + (pair[1].0 - pair[0].0) * share;
            // The curve is an S, steeper in its middle.
            let eased = share * share * (3.0 - 2.0 * share);
            let y = pair[0].1 + (pair[1].1 - pair[0].1) * eased;
            let area = Area { x: x - width / 2.0, y: y - height / 2.0, width, height };
            let meets = |t: &Area| {
                area.x < t.right()
                    && t.x < area.right()
                    && area.y < t.bottom()
                    && t.y < area.bottom()
            };
            let outside = area.x < 2.0 || area.right() > sheet.width - 2.0;
            if outside || taken.iter().any(meets) {
                continue;
            }
            sheet.svg.open("edge-label");
            sheet.svg.rect(area, Fill { color: sheet.look.ground, opacity: 0.85 }, None);
            sheet.svg.label_beside(&label, x, y, Anchor::Middle, sheet.look.soft);
            sheet.svg.close();
            taken.push(area);
            return true;
        }
    }
    false
}

fn draw_node(sheet: &mut Sheet<'_>, graph: &Graph, lay: &Lay, node: usize, area: Area) {
    let role = graph.roles[node];
    let name = &graph.nodes[node];
    let title = match role.map(|r| &sheet.table.colors[r]) {
        Some(role) => format!("{name} ({role})"),
        None => name.clone(),
    };
    sheet.svg.open_titled("node", &title);
    outline(sheet, area, role.map(|group| graph.looks[group]));
    let label = &lay.labels[node];
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

/// What roles and kinds of arrows look like; returns where the rest begins.
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
