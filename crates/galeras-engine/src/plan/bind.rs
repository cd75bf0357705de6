//! Binds one step in one cell: finds its operator, checks its arguments, determines its columns.

use std::sync::Arc;

use serde_json::Value;

use super::args;
use super::args::substitute_arguments;
use super::cell::{Cell, cell_suffix};
use super::expander::{BindKey, Expander, Site, StepTargets};
use super::load::Locking;
use super::mistake::{already_reported, diagnostic_of};
use super::model::{Check, Input, PlannedStep, StepTarget};
use super::other_names::instead_of;
use super::repair::repaired;
use galeras_base::memory_guard::active;
use galeras_operator::{
    ArgError, BindContext, BoundStep, Fact, INPUT, InputPorts, Operator, Port, Registration,
};
use galeras_sql::session::{forget_tables, guarded};
use galeras_workflow::code::Code;
use galeras_workflow::{
    Diagnostic, Diagnostics, From, Node, ParamType, Reference, Scope, Severity, SourceSpan, Span,
    StepKind, StepSpec, Text, quote,
};

impl Expander {
    /// Plans one cell of a step; reports every mistake, and panics of libraries.
    pub(super) async fn step(
        &mut self,
        site: &Site<'_>,
        step: &StepSpec,
        cell: &Cell,
        targets: &StepTargets,
    ) -> StepTarget {
        let _active = active(step.name.value.as_str());
        let panic = match guarded(self.bound(site, step, cell, targets)).await {
            Ok(target) => return target,
            Err(panic) => panic,
        };
        let name = quote(&step.name.value);
        let message = format!("step {name} cannot be planned: a library gave up ({panic})");
        let problem = site.error(Code::Defect, message, step.name.span);
        let help = "a file that it reads may be damaged, or an expression be one that nobody has \
                    thought of; please report it";
        self.diagnostics.push(problem.with_help(help));
        StepTarget::Broken
    }

    async fn bound(
        &mut self,
        site: &Site<'_>,
        step: &StepSpec,
        cell: &Cell,
        targets: &StepTargets,
    ) -> StepTarget {
        let source = &site.workflow.source;
        let StepKind::Op(op) = &step.kind else {
            self.check_expressions(site, step);
            return StepTarget::Broken;
        };
        let inputs = self.inputs(site, step, cell, targets);
        let Some(operator) = self.registry.get(&op.value) else {
            let message = format!("there is no operator {}", quote(&op.value));
            let known: Vec<&str> = self.registry.iter().map(|o| o.descriptor().name).collect();
            let problem = site.error(Code::UnknownOperator, message, op.span);
            self.diagnostics.push(match instead_of(&op.value) {
                Some(instead) => problem.with_help(instead),
                None => problem.with_suggestion(&op.value, known),
            });
            self.check_expressions(site, step);
            return StepTarget::Broken;
        };
        let before = self.diagnostics.len();
        let scope = self.cell_scope(site, cell);
        let schema = self.args_schema(operator);
        let with = step
            .with
            .as_ref()
            .map(|node| substitute_arguments(node, &schema, source, &scope, &mut self.diagnostics));
        // A mistake in an unreadable `with` has been reported.
        let readable = with.is_some() || !already_reported(&self.diagnostics, source, step.span);
        let place = with.as_ref().map_or(op.span, |_| step.name.span);
        let name = operator.descriptor().name;
        let fits = readable
            && args::check(with.as_ref(), &schema, name, source, place, &mut self.diagnostics);
        let ports_fit = self.check_ports(site, step, operator);
        let fits = fits && self.diagnostics.len() == before;
        let finite = with.as_ref().is_none_or(Node::is_finite);
        let full_name = format!("{}{}{}", site.prefix, step.name.value, cell_suffix(cell));
        let family = format!("{}{}", site.family, step.name.value);
        let (Some(inputs), true) = (inputs, ports_fit && readable && finite) else {
            return self.unbound(site, step, &scope, operator.fixed_ports());
        };
        let registration = self.registration(&family, &full_name, name, &inputs);
        let known = !inputs.iter().any(|input| input.schema.is_vague());
        let mut told = Vec::new();
        let mut bound = None;
        if fits && known {
            match self.bind(operator, with.as_ref(), &inputs, (site, registration.clone())).await {
                Ok(step) => bound = Some(step),
                Err(errors) => told = errors,
            }
        }
        for error in &told {
            let problem = self.diagnostic(site, step, with.as_ref(), error);
            self.diagnostics.push(problem);
        }
        let Some(bound) = bound else {
            let arguments =
                repaired(with.as_ref(), step.with.as_ref(), &schema, name, (source, place));
            let ports = match arguments {
                Some(arguments) => {
                    let about = (site.base, registration.is_some());
                    let (errors, ports) =
                        self.outline(operator, arguments, &inputs, about, &told).await;
                    for error in errors {
                        let problem = self.diagnostic(site, step, with.as_ref(), &error);
                        let place = Span::new(problem.span.start, problem.span.end());
                        // Only the first mistake of a place is reported: others may follow from it.
                        if !already_reported(&self.diagnostics, source, place) {
                            self.diagnostics.push(problem);
                        }
                    }
                    ports
                }
                None => operator.fixed_ports(),
            };
            return self.unbound(site, step, &scope, ports);
        };
        for warning in bound.warnings() {
            let mut problem = self.diagnostic(site, step, with.as_ref(), &warning);
            problem.severity = Severity::Warning;
            let place = Span::new(problem.span.start, problem.span.end());
            // All cells of a matrix have it.
            if !already_reported(&self.diagnostics, source, place) {
                self.diagnostics.push(problem);
            }
        }
        let pinned = match bound.fact() {
            Some(Fact::Snapshot { of }) => {
                self.pins.snapshot(operator.descriptor().name, &of).is_some()
            }
            Some(Fact::Version { .. } | Fact::File { .. } | Fact::Moving(_)) | None => false,
        };
        if let Some(problem) = self.unpinned(operator, bound.as_ref()) {
            let message = format!("step {} {problem}", quote(&step.name.value));
            let problem = site.error(Code::NotLocked, message, step.name.span);
            let help = format!("run `galeras lock {}` and commit galeras.lock", self.named);
            self.diagnostics.push(problem.with_help(help));
        }
        debug_assert!(
            operator.fixed_ports().is_none_or(|fixed| same_ports(&fixed, bound.ports())),
            "the ports of {name} are not fixed"
        );
        // A step whose results break a promise still has its columns.
        let checks = self.promises(site, step, bound.ports(), &scope);
        self.steps.push(PlannedStep {
            name: full_name,
            family,
            operator,
            step: bound,
            inputs,
            checks,
            base: site.base.to_path_buf(),
            source: Arc::clone(source),
            arguments: with,
            place: SourceSpan::new(source, step.name.span),
            pinned,
            registration,
        });
        StepTarget::Step(self.steps.len() - 1)
    }

    async fn bind(
        &mut self,
        operator: &dyn Operator,
        with: Option<&Node>,
        inputs: &[Input],
        (site, registration): (&Site<'_>, Option<Arc<Registration>>),
    ) -> Result<Arc<dyn BoundStep>, Vec<ArgError>> {
        forget_tables(&self.session);
        let cx = BindContext {
            session: self.session.clone(),
            inputs: inputs.iter().map(|i| (i.port.clone(), i.schema.clone())).collect(),
            base: site.base.to_path_buf(),
            downloads: self.settings.downloads.clone(),
            pins: Arc::clone(&self.pins),
            registration,
            consent: Arc::clone(&self.settings.consent),
        };
        let arguments = with.map_or_else(|| Value::Object(serde_json::Map::new()), Node::to_json);
        let key = BindKey::new(operator, &arguments, &cx);
        if let Some(bound) = self.bound.get(&key) {
            return Ok(Arc::clone(bound));
        }
        let bound: Arc<dyn BoundStep> = Arc::from(operator.bind(&arguments, &cx).await?);
        self.bound.insert(key, Arc::clone(&bound));
        Ok(bound)
    }

    fn diagnostic(
        &self,
        site: &Site<'_>,
        step: &StepSpec,
        with: Option<&Node>,
        error: &ArgError,
    ) -> Diagnostic {
        let arguments = with.map(|node| (node, step.with.as_ref()));
        let place = error.port.as_deref().and_then(|port| port_span(step, port));
        let place = place.unwrap_or(step.name.span);
        let diagnostic = diagnostic_of(error, &site.workflow.source, arguments, place);
        match path_param(site, step, error) {
            Some(name) => {
                let help =
                    error.help.as_deref().map_or_else(String::new, |help| format!("{help}; "));
                let other = format!("`--set {name}=PATH` names another, from the current folder");
                diagnostic.with_help(format!("{help}{other}"))
            }
            None => diagnostic,
        }
    }

    /// A step that could not be bound, with the known part of its tables.
    fn unbound(
        &mut self,
        site: &Site<'_>,
        step: &StepSpec,
        scope: &Scope,
        ports: Option<Vec<Port>>,
    ) -> StepTarget {
        let Some(ports) = ports else { return StepTarget::Broken };
        self.promises(site, step, &ports, scope);
        StepTarget::Outline(Arc::from(ports))
    }

    fn promises(
        &mut self,
        site: &Site<'_>,
        step: &StepSpec,
        ports: &[Port],
        scope: &Scope,
    ) -> Vec<Check> {
        let Some(main) = ports.first() else { return Vec::new() };
        let mut checks = self.contract(site, step, main);
        for assert in &step.asserts {
            let check = self.check(site, assert, ports, scope);
            checks.extend(check);
        }
        checks
    }

    /// The reason why a frozen run cannot have this step.
    fn unpinned(&self, operator: &dyn Operator, step: &dyn BoundStep) -> Option<String> {
        if self.settings.lock != Locking::Frozen {
            return None;
        }
        match step.fact()? {
            Fact::Snapshot { of } => match self.pins.snapshot(operator.descriptor().name, &of) {
                Some(_) => None,
                None => Some("asks a question that galeras.lock does not answer".to_string()),
            },
            Fact::Version { of } => match self.pins.version(operator.descriptor().name, &of) {
                Some(_) => None,
                None => Some("needs a version that galeras.lock does not pin".to_string()),
            },
            Fact::File { url } => {
                let current = step.side_files().ok()?.first()?.digest;
                match self.pins.files.get(&url) {
                    Some(pinned) if *pinned == current => None,
                    Some(_) => Some(format!("reads {url}, which has changed since it was locked")),
                    None => Some(format!("reads {url}, which galeras.lock does not pin")),
                }
            }
            Fact::Moving(why) => Some(format!("cannot be frozen: {why}")),
        }
    }

    fn check_ports(&mut self, site: &Site<'_>, step: &StepSpec, operator: &dyn Operator) -> bool {
        let name = operator.descriptor().name;
        let first = step.from.iter().flat_map(From::refs).next().map(|r| r.span);
        let (message, span, help) = match (operator.descriptor().inputs, &step.from) {
            (InputPorts::None, Some(From::One(_) | From::Ports(_))) => (
                format!("operator {} takes no input", quote(name)),
                first.unwrap_or(step.name.span),
                "remove `from`".to_string(),
            ),
            // `form:` for `from:` is reported as an unknown key.
            (InputPorts::One | InputPorts::OneAnd(_), None)
                if covers_unknown_key(&self.diagnostics, site, step) =>
            {
                return false;
            }
            (InputPorts::One | InputPorts::OneAnd(_), None) => (
                format!("operator {} needs an input", quote(name)),
                step.name.span,
                "add `from: <step>`".to_string(),
            ),
            (InputPorts::One, Some(From::Ports(_))) => (
                format!("operator {} takes one input", quote(name)),
                first.unwrap_or(step.name.span),
                "write `from: <step>`".to_string(),
            ),
            (InputPorts::OneAnd(also), Some(From::Ports(ports))) => {
                match port_problem(name, also, ports) {
                    Some(problem) => problem,
                    None => return true,
                }
            }
            _ => return true,
        };
        self.diagnostics.push(site.error(Code::WrongInputs, message, span).with_help(help));
        false
    }
}

fn port_span(step: &StepSpec, port: &str) -> Option<Span> {
    match step.from.as_ref()? {
        From::One(reference) => Some(reference.span()),
        From::Ports(ports) => {
            ports.iter().find(|(name, _)| name.value == port).map(|(name, _)| name.span)
        }
        From::Invalid(_) => None,
    }
}

fn same_ports(one: &[Port], other: &[Port]) -> bool {
    let same = |(a, b): (&Port, &Port)| {
        a.name == b.name && a.table.schema == b.table.schema && a.table.key == b.table.key
    };
    one.len() == other.len() && one.iter().zip(other).all(same)
}

/// The problem with the names of the input ports, if any: message, place and help.
fn port_problem(
    operator: &str,
    also: &[&str],
    ports: &[(Text, Reference)],
) -> Option<(String, Span, String)> {
    let takes = format!("it takes `{INPUT}` and, optionally, {}", also.join(", "));
    let unknown =
        ports.iter().find(|(port, _)| port.value != INPUT && !also.contains(&&*port.value));
    if let Some((port, _)) = unknown {
        let message = format!("operator {} has no input {}", quote(operator), quote(&port.value));
        return Some((message, port.span, takes));
    }
    let (first, _) = ports.first()?;
    if ports.iter().any(|(port, _)| port.value == INPUT) {
        return None;
    }
    let message = format!("operator {} needs an input called `{INPUT}`", quote(operator));
    Some((message, first.span, takes))
}

/// True if the step has an unknown key, which may be a misspelt `from`.
fn covers_unknown_key(diagnostics: &Diagnostics, site: &Site<'_>, step: &StepSpec) -> bool {
    diagnostics.iter().any(|d| {
        d.code == Code::UnknownKey
            && Arc::ptr_eq(&d.span.source, &site.workflow.source)
            && (step.span.start..step.span.end).contains(&d.span.start)
    })
}

/// The param whose value is the path of a missing file, if `--set` can change it.
fn path_param<'a>(site: &Site<'a>, step: &StepSpec, error: &ArgError) -> Option<&'a str> {
    if error.code != Code::MissingFile || !site.prefix.is_empty() {
        return None;
    }
    let written = step.with.as_ref()?.at_pointer(&error.path)?.as_str()?.trim();
    let expression = written.strip_prefix("${{")?.strip_suffix("}}")?.trim();
    let param = site.workflow.param(expression.strip_prefix("params.")?)?;
    matches!(param.ty, Some(ParamType::Path | ParamType::Repos))
        .then_some(param.name.value.as_str())
}
