//! `graph`: the steps of a workflow as a picture or as lines, the cells of a matrix step as one.

use std::collections::HashMap;

use clap::{Args, ValueEnum};

use super::context::{Exit, Failure, Surveyed, print};
use super::{Format, WorkflowArgs};
use galeras_display::{GraphEdge, GraphFormat, GraphNode, NodeState, StepGraph, render_graph};
use galeras_engine::runner::Forecast;
use galeras_operator::MAIN;
use galeras_operator::event::Reason;

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Picture {
    /// For Markdown.
    #[default]
    Mermaid,
    /// For Graphviz.
    Dot,
    /// A picture.
    Svg,
    /// A line for each step: operator, state, what it reads.
    Text,
}

#[derive(Args)]
pub(crate) struct GraphArgs {
    #[command(flatten)]
    workflow: WorkflowArgs,
    /// Draw each cell of a matrix step separately.
    #[arg(long)]
    cells: bool,
    /// The format of the graph.
    #[arg(long, value_enum, default_value_t)]
    format: Picture,
}

pub(crate) async fn graph(args: GraphArgs) -> Result<Exit, Failure> {
    let surveyed = Surveyed::load(&args.workflow, Format::Human).await?;
    let format = match args.format {
        Picture::Mermaid => GraphFormat::Mermaid,
        Picture::Dot => GraphFormat::Dot,
        Picture::Svg => GraphFormat::Svg,
        Picture::Text => GraphFormat::Text,
    };
    print(&render_graph(&drawn(&surveyed, args.cells), format))
}

/// The graph to draw; without `cells`, steps that share a name are merged.
pub(super) fn drawn(surveyed: &Surveyed, cells: bool) -> StepGraph {
    let plan = &surveyed.plan;
    let mut nodes: Vec<GraphNode> = Vec::new();
    let mut places = Vec::with_capacity(plan.steps.len());
    let mut families: HashMap<&str, usize> = HashMap::new();
    for (step, state) in plan.steps.iter().zip(&surveyed.states) {
        let state = node_state(&state.forecast);
        let known = families.get(step.family.as_str()).copied().filter(|_| !cells);
        let place = known.unwrap_or(nodes.len());
        match nodes.get_mut(place) {
            Some(node) => {
                node.name.clone_from(&step.family);
                node.states.push(state);
            }
            None => {
                families.insert(&step.family, place);
                let label = step.operator.descriptor().name.to_string();
                nodes.push(GraphNode { name: step.name.clone(), label, states: vec![state] });
            }
        }
        places.push(place);
    }
    let mut edges: Vec<GraphEdge> = Vec::new();
    let mut drawn = std::collections::HashSet::new();
    for (to, step) in plan.steps.iter().enumerate() {
        for table in step.inputs.iter().flat_map(|input| &input.tables) {
            let port = (table.port != MAIN).then_some(table.port);
            let (from, to) = (places[table.step], places[to]);
            if drawn.insert((from, to, port)) {
                edges.push(GraphEdge { from, to, label: port.map(str::to_string) });
            }
        }
    }
    StepGraph { title: plan.name.clone(), nodes, edges }
}

fn node_state(forecast: &Forecast) -> NodeState {
    match forecast {
        Forecast::Hit | Forecast::RemoteHit => NodeState::Hit,
        Forecast::Runs { reason: Reason::New, .. } => NodeState::New,
        Forecast::Runs { .. } => NodeState::Changed,
        Forecast::Waits { .. } => NodeState::Waiting,
        Forecast::Broken(_) => NodeState::Broken,
    }
}
