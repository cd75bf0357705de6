//! Finds tables by the names that users type on a command line: those of `from:` (`valid.rejects`,
//! `gen[*]`, `gen[seed=1]`, `collected.raw_data`), and full names of steps in embedded workflows
//! (`collected/methods`).

use std::sync::Arc;

use super::cell::{Cell, cell_suffix, lookup};
use super::expander::{Site, StepCells, StepTargets};
use super::input::{Input, TableRef};
use super::model::{Plan, StepTarget};
use super::reference::TableFinder;
use super::scalar::plain;
use galeras_operator::INPUT;
use galeras_workflow::code::Code;
use galeras_workflow::{
    Cells, Diagnostic, Diagnostics, Source, Span, StepRef, Workflow, did_you_mean, parse_step_ref,
    quote,
};

const LISTED: usize = 5;

impl Plan {
    /// The table with this name. As in `from:`, but a selection that leaves several cells
    /// (`gen[seed=1]` where cells also have a model) unites them, with the matrix keys as columns,
    /// and a step's only cell needs no brackets.
    ///
    /// # Errors
    /// The mistake in the name, with a suggestion if there is one.
    pub fn table(&self, name: &str) -> Result<Input, Box<Diagnostic>> {
        if let Some(input) = self.exactly(name) {
            return Ok(input);
        }
        let (prefix, last) = split_path(name);
        let Some(scope) = self.scopes.get(prefix) else {
            return Err(Box::new(self.no_path(prefix, last)));
        };
        let reference = parse_step_ref(last)?;
        let source = Source::new("the name of a table", last);
        let Some(cells) = scope.get(&reference.step) else {
            return Err(Box::new(self.unknown(&format!("{prefix}{}", reference.step), &source)));
        };
        // Places are in the name, not in the file.
        let workflow = Workflow { source: Arc::clone(&source), ..self.workflow.clone() };
        let params = serde_json::Map::new();
        let base = std::path::Path::new("");
        let site = Site {
            workflow: &workflow,
            written: &workflow,
            base,
            params: &params,
            prefix,
            family: "",
        };
        let mut diagnostics = Diagnostics::new();
        let mut finder = TableFinder { steps: &self.steps, diagnostics: &mut diagnostics };
        let found = match chosen(&reference, cells) {
            Chosen::One(target) => finder.port(&site, &reference, target, INPUT),
            Chosen::Several(cells) => {
                let targets = StepTargets::from([(reference.step.clone(), StepCells::new(cells))]);
                let all = StepRef { cells: Cells::All, ..reference };
                finder.table(&site, &all, &Vec::new(), &targets, INPUT)
            }
            Chosen::Unclear => return Err(Box::new(unclear(prefix, &reference, cells, &source))),
            Chosen::None => {
                let fixed = match &reference.cells {
                    Cells::Select(keys) => keys.as_slice(),
                    Cells::Plain | Cells::All => &[],
                };
                finder.check_selection(&site, &reference, cells, fixed)
            }
            .and(None),
        };
        found.ok_or_else(|| {
            let first = diagnostics.into_sorted().into_iter().next();
            let none = || {
                let message = format!("there are no cells {}", quote(name));
                Diagnostic::error(Code::UnknownCell, message, &source, Span::new(0, last.len()))
            };
            Box::new(first.unwrap_or_else(none))
        })
    }

    /// The names of the steps without cells, and of the outputs of embedded workflows, in plan
    /// order.
    pub fn table_names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for step in &self.steps {
            if names.last() != Some(&step.family) && !names.contains(&step.family) {
                names.push(step.family.clone());
            }
        }
        for (name, cells) in self.scopes.get("").into_iter().flatten() {
            if let Some((_, StepTarget::Embedded(outputs))) = cells.first() {
                names.extend(outputs.keys().map(|output| format!("{name}.{output}")));
            }
        }
        names
    }

    /// The port of the step with exactly this full name, including its cell.
    fn exactly(&self, name: &str) -> Option<Input> {
        let split = |at: usize| (&name[..at], Some(&name[at + 1..]));
        let mut candidates =
            std::iter::once((name, None)).chain(name.rmatch_indices('.').map(|(at, _)| split(at)));
        candidates.find_map(|(step, port)| {
            let at = self.steps.iter().position(|s| s.name == step)?;
            let ports = self.steps[at].step.ports();
            let port = match port {
                None => ports.first(),
                Some(port) => ports.iter().find(|p| p.name == port),
            }?;
            let table = TableRef { step: at, port: port.name, cell: Vec::new() };
            let (tables, schema) = (vec![table], port.table.materialised());
            Some(Input { port: INPUT.to_string(), tables, united: false, schema })
        })
    }

    fn unknown(&self, step: &str, source: &Arc<Source>) -> Diagnostic {
        let message = format!("the workflow has no step {}", quote(step));
        let span = Span::new(0, source.text().len());
        let problem = Diagnostic::error(Code::UnknownStep, message, source, span);
        let names = self.table_names();
        problem.with_help(match did_you_mean(step, names.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the steps are {}", listed(&names, 4 * LISTED)),
        })
    }

    fn no_path(&self, prefix: &str, last: &str) -> Diagnostic {
        let outer = prefix.trim_end_matches('/');
        let step = outer.split('[').next().unwrap_or(outer);
        let source = Source::new("the name of a table", format!("{prefix}{last}"));
        let begins = |known: &&String| {
            known.strip_prefix(step).is_some_and(|rest| rest.starts_with('[') && !step.is_empty())
        };
        let mut cells: Vec<String> =
            self.scopes.keys().filter(begins).map(|known| format!("{known}{last}")).collect();
        cells.sort();
        if cells.is_empty() {
            return self.unknown(
                &format!("{prefix}{}", last.split(['[', '.']).next().unwrap_or("")),
                &source,
            );
        }
        let message = format!("{} is a matrix step", quote(step));
        let span = Span::new(0, source.text().len());
        let problem = Diagnostic::error(Code::UnknownCell, message, &source, span);
        problem.with_help(format!("name one cell: {}", listed(&cells, LISTED)))
    }
}

/// The cells that a reference selects.
enum Chosen<'a> {
    One(&'a StepTarget),
    Several(Vec<(Cell, StepTarget)>),
    /// A matrix step without a selection of cells.
    Unclear,
    None,
}

fn chosen<'a>(reference: &StepRef, cells: &'a [(Cell, StepTarget)]) -> Chosen<'a> {
    let fixed = match &reference.cells {
        Cells::Select(keys) => keys.as_slice(),
        Cells::Plain | Cells::All => &[],
    };
    // If no cell has the key, none is left.
    let fits = |(cell, _): &&(Cell, StepTarget)| {
        fixed.iter().all(|(key, value)| lookup(cell, key).is_some_and(|v| plain(v) == *value))
    };
    let left: Vec<&(Cell, StepTarget)> = cells.iter().filter(fits).collect();
    match (left.as_slice(), &reference.cells) {
        ([], _) => Chosen::None,
        ([(_, target)], Cells::Plain | Cells::Select(_)) => Chosen::One(target),
        (_, Cells::Plain) => Chosen::Unclear,
        (several, _) => Chosen::Several(several.iter().map(|cell| (*cell).clone()).collect()),
    }
}

fn unclear(
    prefix: &str,
    reference: &StepRef,
    cells: &[(Cell, StepTarget)],
    source: &Arc<Source>,
) -> Diagnostic {
    let step = format!("{prefix}{}", reference.step);
    let port = reference.port.as_ref().map(|port| format!(".{port}")).unwrap_or_default();
    let names: Vec<String> =
        cells.iter().map(|(cell, _)| format!("{step}{}{port}", cell_suffix(cell))).collect();
    let message = format!("{} has {} cells", quote(&step), cells.len());
    let problem = Diagnostic::error(Code::UnknownCell, message, source, reference.span);
    problem.with_help(format!(
        "write `{step}[*]{port}` for all of them, or name one: {}",
        listed(&names, LISTED)
    ))
}

fn listed(names: &[String], most: usize) -> String {
    let mut shown: Vec<String> = names.iter().take(most).map(|name| format!("`{name}`")).collect();
    if names.len() > most {
        shown.push(format!("and {} more", names.len() - most));
    }
    shown.join(", ")
}

/// Splits a name after the last `/` outside brackets, where values may have one.
fn split_path(name: &str) -> (&str, &str) {
    let mut depth = 0_usize;
    let mut at = 0;
    for (i, c) in name.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            '/' if depth == 0 => at = i + 1,
            _ => {}
        }
    }
    name.split_at(at)
}

#[cfg(test)]
mod tests {
    use super::split_path;

    #[test]
    fn a_path_is_split_outside_of_brackets() {
        assert_eq!(split_path("a"), ("", "a"));
        assert_eq!(split_path("a/b/c[x=y/z].p"), ("a/b/", "c[x=y/z].p"));
        assert_eq!(split_path("a[m=org/x]/b"), ("a[m=org/x]/", "b"));
        assert_eq!(split_path("a[m=org/x"), ("", "a[m=org/x"));
    }
}
