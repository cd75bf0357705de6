//! Checks a step despite a mistake in it or in its inputs, so that one mistake hides no others and
//! no false ones are reported.
//!
//! The step is bound under several hypotheses. In each, columns of unknown type have one type, and
//! unknown arguments have other values. If one column prevents binding under some of them, further
//! hypotheses give each column another type than the rest. A mistake under all hypotheses is real;
//! columns that all of them produce, in one type, are known. A mistake with a suggestion is
//! repaired, and the step is bound again: the rest is checked as if the user had followed the help.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Schema};

use super::expander::Expander;
use super::model::Input;
use super::repair::Repaired;
use galeras_operator::{ArgError, BindContext, NoConsent, Operator, Port, TableSchema};
use galeras_sql::session::forget_tables;
use galeras_workflow::code::Code;
use galeras_workflow::{Node, Value};

/// The types that a column of unknown type may have.
const TYPES: [DataType; 4] =
    [DataType::Utf8, DataType::Int64, DataType::Float64, DataType::Boolean];

/// Upper bound of mistakes that are repaired in one step.
const MAX_ROUNDS: usize = 12;

/// Upper bound of columns that a step may use from an input that is not fully known.
const MAX_SUPPOSED: usize = 64;

/// Upper bound of such bindings in one plan: with more broken cells, further ones add nothing new.
const MAX_BINDS: usize = 20_000;

/// A column that no table has: where it appears in the output, other unknown columns would as well.
const PROBE: &str = "\u{1}probe";

/// The mistake with its word in the argument as written, before these changes of its text.
fn written(mut error: ArgError, edits: &[Edit]) -> ArgError {
    for edit in edits.iter().rev().filter(|edit| edit.path == error.path) {
        let back = |at: usize, end: bool| match at {
            at if at <= edit.was.start => at,
            at if at >= edit.was.start + edit.now => at - edit.now + edit.was.len(),
            _ if end => edit.was.end,
            _ => edit.was.start,
        };
        error.word = error.word.map(|word| back(word.start, false)..back(word.end, true));
    }
    error
}

struct Edit {
    path: String,
    was: Range<usize>,
    now: usize,
}

/// A step with assumptions about its meaning.
struct AssumedStep {
    variants: Vec<Node>,
    inputs: BTreeMap<String, TableSchema>,
    edits: Vec<Edit>,
    /// Paths below which mistakes have been reported.
    told: Vec<String>,
    /// Something was left out.
    lossy: bool,
    /// `prereg` names it.
    registered: bool,
    /// Columns that an input lacks but the step needs.
    missing: BTreeSet<String>,
}

impl Expander {
    /// Checks a step that cannot be bound as it is. Returns the mistakes of the arguments beyond
    /// those that are already known, and the output tables, if something is known of them.
    pub(super) async fn outline(
        &mut self,
        operator: &dyn Operator,
        arguments: Repaired,
        inputs: &[Input],
        (base, registered): (&Path, bool),
        told: &[ArgError],
    ) -> (Vec<ArgError>, Option<Vec<Port>>) {
        let mut errors = Vec::new();
        let mut seen: BTreeSet<(String, String)> =
            told.iter().map(|e| (e.path.clone(), e.message.clone())).collect();
        let mut step = AssumedStep {
            variants: arguments.variants,
            inputs: inputs.iter().map(|i| (i.port.clone(), i.schema.clone())).collect(),
            edits: Vec::new(),
            told: arguments.changed,
            lossy: arguments.lossy,
            registered,
            missing: BTreeSet::new(),
        };
        let fixed = operator.fixed_ports();
        for _ in 0..MAX_ROUNDS {
            let found = match self.worlds(operator, &step, base).await {
                Ok(ports) => {
                    let ports = fixed.unwrap_or_else(|| step.surely(ports));
                    return (errors, Some(ports));
                }
                Err(found) => found,
            };
            if found.is_empty() {
                break;
            }
            for error in &found {
                if !step.lossy
                    && !step.covers(&error.path)
                    && seen.insert((error.path.clone(), error.message.clone()))
                {
                    errors.push(written(error.clone(), &step.edits));
                }
            }
            if !step.mend(&found) {
                break;
            }
        }
        (errors, fixed)
    }

    /// The ports that the step has under all hypotheses that allow binding, or the mistakes that it
    /// has under every one.
    async fn worlds(
        &mut self,
        operator: &dyn Operator,
        step: &AssumedStep,
        base: &Path,
    ) -> Result<Vec<Port>, Vec<ArgError>> {
        let vague = step.inputs.values().any(TableSchema::is_vague);
        let types = if vague { &TYPES[..] } else { &TYPES[..1] };
        let mut common: Option<Vec<ArgError>> = None;
        let mut bound: Vec<Vec<Port>> = Vec::new();
        let mut probed = None;
        for arguments in &step.variants {
            let (mut first, mut failed) = (None, false);
            for data_type in types {
                let registered = step.registered;
                let world =
                    Hypothesis { operator, arguments, base, data_type, odd: None, registered };
                match self.world(&world, &step.inputs, false).await {
                    Ok((ports, guessed)) => {
                        if vague && probed.is_none() {
                            let probe = self.world(&world, &step.inputs, true).await;
                            probed = probe.ok().map(|(ports, _)| ports);
                        }
                        bound.push(ports);
                        first.get_or_insert((world, guessed));
                    }
                    Err(errors) => {
                        failed = true;
                        let same = |a: &ArgError, b: &ArgError| {
                            (a.code, &a.path, &a.message) == (b.code, &b.path, &b.message)
                        };
                        common = Some(match common {
                            None => errors,
                            Some(before) => before
                                .into_iter()
                                .filter(|a| errors.iter().any(|b| same(a, b)))
                                .collect(),
                        });
                    }
                }
            }
            if let (Some((world, guessed)), true) = (first, failed) {
                bound.extend(self.odd_worlds(&world, &guessed, &step.inputs).await);
            }
        }
        if bound.is_empty() {
            let errors = common.unwrap_or_default();
            let unsure = |error: &ArgError| {
                // Nothing is fetched for this.
                error.code == Code::NotAllowed
                    || vague
                        && (error.column.is_some()
                        // The rows that a query keeps depend on keys, which are unknown.
                        || error.code == Code::NotDeterministic && !error.message.contains("run"))
            };
            return Err(errors.into_iter().filter(|error| !unsure(error)).collect());
        }
        Ok(agreed(&bound, vague, probed.as_deref()))
    }

    /// The ports of a step that can be bound under one hypothesis, with another type for one
    /// guessed column. One other type is enough to show that the type matters.
    async fn odd_worlds(
        &mut self,
        world: &Hypothesis<'_>,
        guessed: &BTreeSet<String>,
        inputs: &BTreeMap<String, TableSchema>,
    ) -> Vec<Vec<Port>> {
        let mut found = Vec::new();
        for column in guessed {
            for data_type in TYPES.iter().filter(|other| *other != world.data_type) {
                let odd = Hypothesis { odd: Some((column, data_type)), ..*world };
                if let Ok((ports, _)) = self.world(&odd, inputs, false).await {
                    found.push(ports);
                    break;
                }
            }
        }
        found
    }

    /// Binds the step under one hypothesis; also returns the columns of its inputs whose types are
    /// guessed. Columns that it uses from a partly unknown input are assumed to exist.
    async fn world(
        &mut self,
        world: &Hypothesis<'_>,
        inputs: &BTreeMap<String, TableSchema>,
        probe: bool,
    ) -> Result<(Vec<Port>, BTreeSet<String>), Vec<ArgError>> {
        let mut guessed: BTreeSet<String> = BTreeSet::new();
        let mut tables: BTreeMap<String, TableSchema> = BTreeMap::new();
        for (port, table) in inputs {
            let typed = table.schema.fields().iter().map(|field| {
                if *field.data_type() != DataType::Null {
                    return Arc::clone(field);
                }
                guessed.insert(field.name().clone());
                let data_type = world.type_of(field.name()).clone();
                Arc::new(field.as_ref().clone().with_data_type(data_type))
            });
            let schema = Arc::new(Schema::new(typed.collect::<Vec<FieldRef>>()));
            let mut table = TableSchema { schema, ..table.clone() };
            if probe && table.open {
                table = table.with(&[supposed(PROBE, world.data_type)]);
            }
            tables.insert(port.clone(), table);
        }
        let arguments = world.arguments.to_json();
        for _ in 0..MAX_SUPPOSED {
            self.outlined += 1;
            if self.outlined > MAX_BINDS {
                return Err(Vec::new());
            }
            forget_tables(&self.session);
            let cx = BindContext {
                session: self.session.clone(),
                inputs: tables.clone(),
                base: world.base.to_path_buf(),
                downloads: self.settings.downloads.clone(),
                pins: Arc::clone(&self.pins),
                registration: world.registered.then(Arc::default),
                consent: Arc::new(NoConsent),
            };
            let errors = match world.operator.bind(&arguments, &cx).await {
                Ok(bound) => return Ok((bound.ports().to_vec(), guessed)),
                Err(errors) => errors,
            };
            let mut grown = false;
            for column in errors.iter().filter_map(|error| error.column.as_deref()) {
                let mut open = tables.values_mut().filter(|t| t.open && t.field(column).is_none());
                if let Some(table) = open.next() {
                    *table = table.with(&[supposed(column, world.type_of(column))]);
                    guessed.insert(column.to_string());
                    grown = true;
                }
            }
            if !grown {
                return Err(errors);
            }
        }
        Err(Vec::new())
    }
}

#[derive(Clone, Copy)]
struct Hypothesis<'a> {
    operator: &'a dyn Operator,
    arguments: &'a Node,
    base: &'a Path,
    /// The type of the columns whose type is unknown.
    data_type: &'a DataType,
    /// The exceptions: columns of this name.
    odd: Option<(&'a str, &'a DataType)>,
    registered: bool,
}

impl Hypothesis<'_> {
    fn type_of(&self, column: &str) -> &DataType {
        match self.odd {
            Some((odd, data_type)) if odd == column => data_type,
            _ => self.data_type,
        }
    }
}

fn supposed(name: &str, data_type: &DataType) -> FieldRef {
    Arc::new(Field::new(name, data_type.clone(), true))
}

/// The tables that all hypotheses have in common. Columns that differ in type have none. A table is
/// open if a column is missing under one hypothesis, or if unknown columns of the input appear in
/// it.
fn agreed(worlds: &[Vec<Port>], vague: bool, probed: Option<&[Port]>) -> Vec<Port> {
    let Some((first, others)) = worlds.split_first() else { return Vec::new() };
    let find = |ports: &[Port], name: &str| ports.iter().find(|p| p.name == name).cloned();
    first
        .iter()
        .map(|port| {
            let others: Vec<Option<Port>> = others.iter().map(|w| find(w, port.name)).collect();
            let mut open = match probed.map(|ports| find(ports, port.name)) {
                _ if !vague => false,
                Some(Some(port)) => port.table.field(PROBE).is_some(),
                _ => true,
            };
            open |= others
                .iter()
                .flatten()
                .any(|other| other.table.names().any(|name| port.table.field(name).is_none()));
            let mut fields: Vec<FieldRef> = Vec::new();
            for field in port.table.schema.fields() {
                let there: Vec<Option<&FieldRef>> = others
                    .iter()
                    .map(|other| other.as_ref().and_then(|o| o.table.field(field.name())))
                    .collect();
                if there.iter().any(Option::is_none) {
                    open = true;
                    continue;
                }
                let same = there.iter().flatten().all(|f| f.data_type() == field.data_type());
                let data_type = if same { field.data_type().clone() } else { DataType::Null };
                fields.push(Arc::new(field.as_ref().clone().with_data_type(data_type)));
            }
            Port::new(port.name, known_part(fields, &port.table.key, open))
        })
        .collect()
}

/// A table with these fields, and those of its key columns that are among them.
fn known_part(fields: Vec<FieldRef>, key: &[String], open: bool) -> TableSchema {
    let key = key.iter().filter(|name| fields.iter().any(|field| field.name() == *name));
    let key = key.cloned().collect();
    TableSchema { schema: Arc::new(Schema::new(fields)), key, open }
}

impl AssumedStep {
    /// True if a mistake at `path` may come from a change.
    fn covers(&self, path: &str) -> bool {
        let within = |path: &str, outer: &str| {
            path.strip_prefix(outer)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        let near = |told: &String| within(path, told) || within(told, path);
        !self.told.is_empty() && (path.is_empty() || self.told.iter().any(near))
    }

    /// Repairs one of these mistakes, so that the next one can be found; false if none can be
    /// repaired.
    fn mend(&mut self, errors: &[ArgError]) -> bool {
        // Words at the end of a text first, so that the earlier ones keep their places.
        let mut order: Vec<&ArgError> = errors.iter().collect();
        order.sort_by_key(|error| std::cmp::Reverse(error.word.as_ref().map(|word| word.start)));
        let mut done = false;
        for error in order {
            done |= self.replace(error) || self.suppose(error) || self.leave_out(error);
        }
        done
    }

    fn replace(&mut self, error: &ArgError) -> bool {
        let Some(instead) = &error.instead else { return false };
        let mut edit = None;
        let changed: Option<Vec<Node>> = self
            .variants
            .iter()
            .map(|node| {
                let text = node.at_pointer(&error.path)?.as_str()?;
                let (was, text) = match (&error.word, &error.column) {
                    (Some(word), _) => {
                        let (before, after) = (text.get(..word.start)?, text.get(word.end..)?);
                        (word.clone(), format!("{before}{instead}{after}"))
                    }
                    (None, Some(column)) if text == column => (0..text.len(), instead.clone()),
                    _ => return None,
                };
                edit = Some(Edit { path: error.path.clone(), was, now: instead.len() });
                let value = Value::String(text);
                node.changed(&error.path, &|old| Some(Node { value: value.clone(), ..old.clone() }))
            })
            .collect();
        let Some(changed) = changed else { return false };
        self.variants = changed;
        self.edits.extend(edit);
        true
    }

    fn suppose(&mut self, error: &ArgError) -> bool {
        let Some(column) = &error.column else { return false };
        let lacking = self.inputs.values_mut().find(|table| table.field(column).is_none());
        let Some(table) = lacking else { return false };
        *table = table.with(&[supposed(column, &DataType::Null)]);
        self.missing.insert(column.clone());
        true
    }

    fn leave_out(&mut self, error: &ArgError) -> bool {
        if error.path.is_empty() {
            return false;
        }
        let left: Option<Vec<Node>> =
            self.variants.iter().map(|node| node.without(&error.path)).collect();
        let Some(left) = left else { return false };
        self.variants = left;
        self.told.push(error.path.clone());
        self.lossy = true;
        true
    }

    /// The known part of these ports, after all assumptions.
    fn surely(&self, ports: Vec<Port>) -> Vec<Port> {
        ports
            .into_iter()
            .map(|mut port| {
                let table = &port.table;
                let given = |f: &FieldRef| {
                    let same = |t: &TableSchema| {
                        t.field(f.name()).is_some_and(|i| i.data_type() == f.data_type())
                    };
                    self.inputs.values().any(same)
                };
                let kept = |f: &&FieldRef| {
                    let supposed = self.missing.contains(f.name());
                    !supposed && (!self.lossy || given(f))
                };
                let fields: Vec<FieldRef> =
                    table.schema.fields().iter().filter(kept).cloned().collect();
                let open = table.open || self.lossy || !self.missing.is_empty();
                port.table = known_part(fields, &table.key, open);
                port
            })
            .collect()
    }
}
