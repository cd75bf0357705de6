//! The graph of a workflow's steps, and its formats: Mermaid, DOT, SVG and lines.

use std::fmt::Write;

use galeras_figures::{Diagram, DiagramEdge, DiagramNode};

use super::text;
use super::units::count;
use galeras_base::terminal_escape::{escape_json, is_hidden};

/// A step, or all cells of a matrix step.
#[derive(Clone, Debug)]
pub struct GraphNode {
    /// The step's name.
    pub name: String,
    /// The operator.
    pub label: String,
    /// The states of its cells; a step without a matrix has one.
    pub states: Vec<NodeState>,
}

/// The state of a step if the workflow ran now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeState {
    /// Its result is stored.
    Hit,
    /// It was never computed.
    New,
    /// One of its dependencies has changed, or its result is gone.
    Changed,
    /// A step that it reads is computed first; the result decides if this one runs.
    Waiting,
    /// It cannot be computed.
    Broken,
}

impl NodeState {
    /// All states, the best first.
    const ALL: [Self; 5] = [Self::Hit, Self::New, Self::Changed, Self::Waiting, Self::Broken];

    /// The state in one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::New => "new",
            Self::Changed => "changed",
            Self::Waiting => "waiting",
            Self::Broken => "broken",
        }
    }
}

impl GraphNode {
    /// The state that every cell has, if they agree.
    fn state(&self) -> Option<NodeState> {
        let first = self.states.first()?;
        self.states.iter().all(|state| state == first).then_some(*first)
    }

    /// The text under the name: the operator and the states of its cells.
    fn caption(&self) -> String {
        format!("{} · {}", self.label, self.states_text())
    }

    /// The states in words: `hit`, or `12 cells: 10 hit, 2 new`.
    fn states_text(&self) -> String {
        if let [state] = self.states.as_slice() {
            return state.name().to_string();
        }
        let number = |state| self.states.iter().filter(|s| **s == state).count();
        let counts: Vec<String> = NodeState::ALL
            .into_iter()
            .filter(|state| number(*state) > 0)
            .map(|state| format!("{} {}", count(number(state) as u64), state.name()))
            .collect();
        format!("{} cells: {}", count(self.states.len() as u64), counts.join(", "))
    }
}

/// A table between two steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphEdge {
    /// The position of the step that produces it.
    pub from: usize,
    /// The position of the step that reads it.
    pub to: usize,
    /// The port, unless it is the main one.
    pub label: Option<String>,
}

/// The steps of a workflow and the tables between them.
#[derive(Clone, Debug)]
pub struct StepGraph {
    /// The workflow's name.
    pub title: String,
    /// The steps.
    pub nodes: Vec<GraphNode>,
    /// The tables; those without a valid step are ignored.
    pub edges: Vec<GraphEdge>,
}

/// The format of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphFormat {
    /// A Mermaid flow chart, as GitHub shows it.
    Mermaid,
    /// DOT, for Graphviz.
    Dot,
    /// A self-contained picture.
    Svg,
    /// A line for each step, for a terminal.
    Text,
}

impl StepGraph {
    fn valid_edges(&self) -> impl Iterator<Item = &GraphEdge> {
        let count = self.nodes.len();
        self.edges.iter().filter(move |e| e.from < count && e.to < count)
    }
}

/// `g` as text of the format `f`. Names may have any characters.
pub fn render_graph(g: &StepGraph, f: GraphFormat) -> String {
    match f {
        GraphFormat::Mermaid => mermaid(g),
        GraphFormat::Dot => dot(g),
        GraphFormat::Svg => svg(g),
        GraphFormat::Text => lines(g),
    }
}

/// Fill, line and text of a state, readable on light and on dark pages.
fn colors(state: NodeState) -> (&'static str, &'static str, &'static str) {
    match state {
        NodeState::Hit => ("#d7f0dd", "#2e7d46", "#12351e"),
        NodeState::New => ("#dbe7fb", "#3b6fc4", "#16305c"),
        NodeState::Changed => ("#f6f0dc", "#a08a3c", "#4a3f15"),
        NodeState::Waiting => ("#e8eaed", "#80868b", "#202124"),
        NodeState::Broken => ("#fbdcd9", "#c5352b", "#5c1510"),
    }
}

/// The colours of states, and all colours on a dark page.
const STYLE: &str = "\
.galeras-graph .hit>rect{fill:#e3f4e8;stroke:#2e7d46}\
.galeras-graph .new>rect{fill:#e6eefc;stroke:#3b6fc4}\
.galeras-graph .changed>rect{fill:#f9f4e3;stroke:#a08a3c}\
.galeras-graph .broken>rect{fill:#fce4e2;stroke:#c5352b;stroke-width:2}\
.galeras-graph .waiting>rect{stroke-dasharray:4 3}\
@media (prefers-color-scheme:dark){\
.galeras-graph>rect,.galeras-graph .edge-label rect{fill:#1b1c1f}\
.galeras-graph text{fill:#e8eaed}\
.galeras-graph .caption text{fill:#a9aeb4}\
.galeras-graph .edge-label text{fill:#bdc1c6}\
.galeras-graph .edge>path{stroke:#80868b}\
.galeras-graph .head path{fill:#80868b}\
.galeras-graph .node>rect{fill:#2a2c30;stroke:#80868b}\
.galeras-graph .hit>rect{fill:#1d3526;stroke:#5bb974}\
.galeras-graph .new>rect{fill:#1c2a44;stroke:#8ab4f8}\
.galeras-graph .changed>rect{fill:#3a3418;stroke:#d6bf5c}\
.galeras-graph .broken>rect{fill:#43201d;stroke:#f28b82}\
}";

fn svg(g: &StepGraph) -> String {
    let nodes = g.nodes.iter().map(|node| DiagramNode {
        name: text::escape(&node.name),
        caption: text::escape(&node.caption()),
        description: text::escape(&format!("{}: {}", node.name, node.caption())),
        class: node.state().map_or("step", NodeState::name).to_string(),
        target: None,
    });
    let edges = g.valid_edges().map(|edge| DiagramEdge {
        from: edge.from,
        to: edge.to,
        label: edge.label.as_deref().map(text::escape),
    });
    let title = Some(text::escape(&g.title));
    Diagram { title, nodes: nodes.collect(), edges: edges.collect() }.svg(STYLE)
}

/// A line for each step: its name, its operator, its state, what it reads.
fn lines(g: &StepGraph) -> String {
    let mut reads: Vec<Vec<String>> = vec![Vec::new(); g.nodes.len()];
    for edge in g.valid_edges() {
        let port = edge.label.iter().map(|port| format!(".{port}")).collect::<String>();
        reads[edge.to].push(format!("{}{port}", g.nodes[edge.from].name));
    }
    let rows: Vec<[String; 4]> = g
        .nodes
        .iter()
        .zip(reads)
        .map(|(node, reads)| {
            let from = if reads.is_empty() { String::new() } else { "← ".to_string() };
            let reads = text::escape(&format!("{from}{}", reads.join(", ")));
            [text::escape(&node.name), text::escape(&node.label), node.states_text(), reads]
        })
        .collect();
    let widths: Vec<usize> = (0..3)
        .map(|i| rows.iter().map(|row| text::width(&row[i])).max().unwrap_or(0).min(WIDEST))
        .collect();
    let mut out = String::new();
    for row in &rows {
        let padded = row.iter().zip(&widths).map(|(cell, width)| text::left(cell, *width));
        let line = format!("{}  {}", padded.collect::<Vec<_>>().join("  "), row[3]);
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

/// A longer name shifts only its own line.
const WIDEST: usize = 40;

fn mermaid(g: &StepGraph) -> String {
    let mut out = String::new();
    // Writing to a String does not fail.
    let _ = writeln!(out, "---\ntitle: {}\n---\nflowchart TD", json_text(&g.title));
    for (i, node) in g.nodes.iter().enumerate() {
        let class = node.state().map(|s| format!(":::{}", s.name())).unwrap_or_default();
        let (name, label) = (mermaid_text(&node.name), mermaid_text(&node.caption()));
        let _ = writeln!(out, "  n{i}[\"{name}<br/><small>{label}</small>\"]{class}");
    }
    for edge in g.valid_edges() {
        let label = match &edge.label {
            Some(label) => format!("|\"{}\"|", mermaid_text(label)),
            None => String::new(),
        };
        let _ = writeln!(out, "  n{} -->{label} n{}", edge.from, edge.to);
    }
    let used = |state: &NodeState| g.nodes.iter().any(|node| node.state() == Some(*state));
    for state in NodeState::ALL.into_iter().filter(used) {
        let (fill, line, text) = colors(state);
        let name = state.name();
        let _ = writeln!(out, "  classDef {name} fill:{fill},stroke:{line},color:{text}");
    }
    out
}

/// A JSON string is also a YAML string.
fn json_text(text: &str) -> String {
    escape_json(serde_json::Value::from(text).to_string())
}

/// Mermaid reads HTML and Markdown in labels, and `#` starts its entities.
fn mermaid_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut inside = false;
    while let Some(c) = chars.next() {
        let before = std::mem::replace(&mut inside, c.is_alphanumeric());
        match c {
            '_' if before && chars.peek().is_some_and(|c| c.is_alphanumeric()) => out.push(c),
            '"' | '#' | '&' | '<' | '>' | '`' | '\\' | '*' | '_' | '|' | ';' | '{' | '}' => {
                let _ = write!(out, "#{};", u32::from(c));
            }
            c if c.is_control() => out.push(' '),
            // Such as `\u{202e}`, in letters.
            c if is_hidden(c) => {
                let _ = write!(out, "#92;u#123;{:x}#125;", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

fn dot(g: &StepGraph) -> String {
    let mut out = String::new();
    let title = dot_text(&g.title);
    let _ = writeln!(out, "digraph \"{title}\" {{");
    let _ = writeln!(out, "  graph [label=\"{title}\", labelloc=t, fontname=\"sans-serif\"];");
    let _ = writeln!(out, "  node [shape=box, style=\"rounded,filled\", fillcolor=\"#f8f9fa\",");
    let _ = writeln!(out, "        color=\"#5f6368\", fontname=\"sans-serif\"];");
    let _ = writeln!(out, "  edge [color=\"#5f6368\", fontname=\"sans-serif\", fontsize=10];");
    for (i, node) in g.nodes.iter().enumerate() {
        let (name, label) = (dot_text(&node.name), dot_text(&node.caption()));
        let color = node.state().map(colors).map(|(fill, line, text)| {
            format!(", fillcolor=\"{fill}\", color=\"{line}\", fontcolor=\"{text}\"")
        });
        let color = color.unwrap_or_default();
        let _ = writeln!(out, "  n{i} [label=\"{name}\\n{label}\"{color}];");
    }
    for edge in g.valid_edges() {
        let label = edge.label.as_deref().map(|l| format!(" [label=\"{}\"]", dot_text(l)));
        let _ = writeln!(out, "  n{} -> n{}{};", edge.from, edge.to, label.unwrap_or_default());
    }
    out.push_str("}\n");
    out
}

/// In a quoted DOT string, a backslash starts an escape (`\N` is the node's name) and `&` an
/// HTML entity.
fn dot_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '&' => out.push_str("&amp;"),
            c if c.is_control() => out.push(' '),
            c if is_hidden(c) => {
                let _ = write!(out, "\\\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph() -> StepGraph {
        let node = |name: &str, label: &str, states: &[NodeState]| GraphNode {
            name: name.into(),
            label: label.into(),
            states: states.to_vec(),
        };
        let cells = [NodeState::New, NodeState::Hit, NodeState::Hit];
        StepGraph {
            title: "cut: \"x\"".into(),
            nodes: vec![
                node("methods", "methods", &[NodeState::Hit]),
                node("gen[model=\"a\\N\"]", "generate", &cells),
                node("the_end_", "sql\n", &[NodeState::Broken]),
            ],
            edges: vec![
                GraphEdge { from: 0, to: 1, label: None },
                GraphEdge { from: 1, to: 2, label: Some("a|b".into()) },
                GraphEdge { from: 7, to: 2, label: None },
            ],
        }
    }

    #[test]
    fn mermaid_ids_are_numbers_and_labels_hold_no_syntax() {
        let expected = r##"---
title: "cut: \"x\""
---
flowchart TD
  n0["methods<br/><small>methods · hit</small>"]:::hit
  n1["gen[model=#34;a#92;N#34;]<br/><small>generate · 3 cells: 2 hit, 1 new</small>"]
  n2["the_end#95;<br/><small>sql  · broken</small>"]:::broken
  n0 --> n1
  n1 -->|"a#124;b"| n2
  classDef hit fill:#d7f0dd,stroke:#2e7d46,color:#12351e
  classDef broken fill:#fbdcd9,stroke:#c5352b,color:#5c1510
"##;
        assert_eq!(render_graph(&graph(), GraphFormat::Mermaid), expected);
    }

    #[test]
    fn dot_strings_are_closed_where_they_should() {
        let text = render_graph(&graph(), GraphFormat::Dot);
        assert!(text.starts_with("digraph \"cut: \\\"x\\\"\" {\n"), "{text}");
        assert!(
            text.contains(
                r#"  n1 [label="gen[model=\"a\\N\"]\ngenerate · 3 cells: 2 hit, 1 new"];"#
            ),
            "{text}"
        );
        assert!(text.contains("  n1 -> n2 [label=\"a|b\"];"), "{text}");
        assert!(!text.contains("n7"), "{text}");
    }

    #[test]
    fn lines_say_what_each_step_reads() {
        let expected = "\
methods           methods   hit                      
gen[model=\"a\\N\"]  generate  3 cells: 2 hit, 1 new  ← methods
the_end_          sql\\n     broken                 ← gen[model=\"a\\N\"].a|b
";
        let shown = render_graph(&graph(), GraphFormat::Text);
        let trimmed: Vec<&str> = expected.lines().map(str::trim_end).collect();
        assert_eq!(shown.lines().collect::<Vec<_>>(), trimmed);
    }

    #[test]
    fn what_hides_or_reorders_text_is_written_out() {
        let mut graph = graph();
        graph.title = "a\u{202e}b\u{9b}".into();
        graph.nodes[0].name = "m\u{2066}\u{1b}".into();
        graph.edges[1].label = Some("p\u{200b}".into());
        let mermaid = render_graph(&graph, GraphFormat::Mermaid);
        assert!(mermaid.contains(r#"title: "a\u202eb\u009b""#), "{mermaid}");
        assert!(mermaid.contains("m#92;u#123;2066#125; <br/>"), "{mermaid}");
        let dot = render_graph(&graph, GraphFormat::Dot);
        assert!(dot.contains(r#"digraph "a\\u{202e}b ""#), "{dot}");
        let svg = render_graph(&graph, GraphFormat::Svg);
        for text in [mermaid, dot, svg] {
            assert!(!text.contains(|c: char| is_hidden(c) && c != '\n'), "{text:?}");
        }
    }
}
