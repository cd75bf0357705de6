//! The graph of the steps of one workflow file: unknown steps, cycles, a topological order.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use petgraph::Direction;
use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};

use galeras_workflow::code::Code;
use galeras_workflow::{Diagnostic, Diagnostics, StepRef, Workflow, quote};

/// Orders the steps (by position in the file) so that each comes after its inputs. Steps on a cycle
/// are reported and left out.
pub(super) fn order(workflow: &Workflow, diagnostics: &mut Diagnostics) -> Vec<usize> {
    let mut graph = DiGraph::<usize, ()>::new();
    let mut nodes: HashMap<&str, NodeIndex> = HashMap::new();
    let steps: Vec<(usize, NodeIndex)> =
        (0..workflow.steps.len()).map(|i| (i, graph.add_node(i))).collect();
    for (i, node) in &steps {
        nodes.entry(workflow.steps[*i].name.value.as_str()).or_insert(*node);
    }
    for (i, node) in &steps {
        for reference in workflow.steps[*i].from.iter().flat_map(|f| f.refs()) {
            match nodes.get(reference.step.as_str()) {
                // References may repeat an edge: a search for an existing one would walk all edges
                // of a step that everything reads.
                Some(upstream) => {
                    graph.add_edge(*upstream, *node, ());
                }
                None if diagnostics.is_full() => diagnostics.drop_error(),
                None => diagnostics.push(unknown_step(workflow, reference)),
            }
        }
    }
    let mut cyclic = vec![false; steps.len()];
    // Tarjan's algorithm in petgraph recurses: a long chain would overflow the stack.
    for component in kosaraju_scc(&graph) {
        if component.len() > 1 || graph.contains_edge(component[0], component[0]) {
            let members: Vec<usize> = component.iter().map(|n| graph[*n]).collect();
            members.iter().for_each(|i| cyclic[*i] = true);
            report(workflow, &members, diagnostics);
        }
    }
    // Kahn's algorithm; among ready steps the first in the file comes first.
    let mut waiting: Vec<usize> = steps
        .iter()
        .map(|(_, node)| {
            graph
                .neighbors_directed(*node, Direction::Incoming)
                .filter(|n| !cyclic[graph[*n]])
                .count()
        })
        .collect();
    let mut ready: BinaryHeap<Reverse<usize>> =
        (0..steps.len()).filter(|i| waiting[*i] == 0 && !cyclic[*i]).map(Reverse).collect();
    let mut order = Vec::with_capacity(steps.len());
    while let Some(Reverse(i)) = ready.pop() {
        order.push(i);
        for next in graph.neighbors(steps[i].1) {
            let next = graph[next];
            waiting[next] = waiting[next].saturating_sub(1);
            if waiting[next] == 0 && !cyclic[next] {
                ready.push(Reverse(next));
            }
        }
    }
    order
}

pub(super) fn unknown_step(workflow: &Workflow, reference: &StepRef) -> Diagnostic {
    let message = format!("there is no step {}", quote(&reference.step));
    let known = workflow.steps.iter().map(|s| s.name.value.as_str());
    Diagnostic::error(Code::UnknownStep, message, &workflow.source, reference.step_span)
        .with_suggestion(&reference.step, known)
}

/// Upper bound of named steps of a cycle; more would hide the message.
const NAMED: usize = 10;

fn report(workflow: &Workflow, component: &[usize], diagnostics: &mut Diagnostics) {
    let mut steps = component.to_vec();
    steps.sort_unstable();
    let first = &workflow.steps[steps[0]];
    let mut names: Vec<String> =
        steps.iter().take(NAMED).map(|i| quote(&workflow.steps[*i].name.value)).collect();
    if steps.len() > NAMED {
        names.push(format!("and {} more", steps.len() - NAMED));
    }
    let message = match steps.as_slice() {
        [_] => format!("step {} reads its own result", names[0]),
        _ => format!("the steps {} need each other's results", names.join(", ")),
    };
    let span = first
        .from
        .iter()
        .flat_map(|f| f.refs())
        .find(|r| steps.iter().any(|i| workflow.steps[*i].name.value == r.step))
        .map_or(first.name.span, |r| r.span);
    let mut problem = Diagnostic::error(Code::Cycle, message, &workflow.source, span)
        .with_help("a step can read only results that do not depend on it");
    for i in steps.iter().take(NAMED).skip(1) {
        let step = &workflow.steps[*i];
        problem = problem.with_related(&workflow.source, step.name.span, "also on the cycle");
    }
    diagnostics.push(problem);
}

#[cfg(test)]
mod tests {
    use super::*;
    use galeras_workflow::parse;

    #[test]
    fn a_long_chain_and_a_wide_fan_are_put_in_order() {
        const STEPS: usize = 20_000;
        let step = |at: usize| match at {
            0 => "s0: { op: x }".to_string(),
            _ if at.is_multiple_of(2) => format!("s{at}: {{ op: x, from: s0 }}"),
            _ => format!("s{at}: {{ op: x, from: s{} }}", at.saturating_sub(2)),
        };
        let steps: Vec<String> = (0..STEPS).map(|at| format!("  {}", step(at))).collect();
        let text = format!("galeras: 1\nsteps:\n{}\n", steps.join("\n"));
        let workflow = parse("w.yaml", &text).0.unwrap();
        let mut diagnostics = Diagnostics::new();
        let order = order(&workflow, &mut diagnostics);
        assert!(diagnostics.is_empty());
        assert_eq!(order, (0..STEPS).collect::<Vec<_>>());
    }
}
