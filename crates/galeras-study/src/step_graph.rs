//! The graph of a workflow's steps with their states.

use std::collections::{HashMap, HashSet};

use crate::Surveyed;
use galeras_display::{GraphEdge, GraphNode, NodeState, StepGraph};
use galeras_engine::runner::Forecast;
use galeras_operator::MAIN;
use galeras_operator::event::Reason;

/// The graph to draw; without `cells`, steps that share a name are merged.
pub fn step_graph(surveyed: &Surveyed, cells: bool) -> StepGraph {
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
    let mut drawn = HashSet::new();
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
