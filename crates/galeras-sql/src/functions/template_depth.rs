//! Limits how deep the lists and mappings of a template are nested. MiniJinja drops and writes values
//! by recursion, so a list that a loop nests again and again would overflow the stack, and a namespace
//! that contains itself would be written without end.
//!
//! A template keeps a value by two instructions only. A copy of the instructions calls a function of
//! this file before them, and one instead of the operator `~`, which would write undefined values in
//! lists.

use minijinja::machinery::{Instruction, Instructions};
use minijinja::value::{Rest, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State, Value};

use super::template::defined;

/// The deepest list or mapping of a template.
const MOST_NESTED: usize = 100;

/// The items that the checks of one text look at. A list that has another one twice, and that one a
/// third twice, takes a time that doubles with every list.
const MOST_ITEMS: u64 = 8 << 20;

/// The names of the functions, which no template can write: for a variable, and for an attribute of a
/// namespace.
const CHECKED: &str = "\u{0}checked";
const CHECKED_ATTRIBUTE: &str = "\u{0}checked attribute";
/// The name of the function instead of `~`.
const CONCATENATED: &str = "\u{0}concatenated";

/// The items that the checks of the text at hand may still look at.
struct ItemsLeft(u64);

/// Adds the functions that [`checked`] calls.
pub(super) fn add(environment: &mut Environment<'_>) {
    for (name, attribute) in [(CHECKED, false), (CHECKED_ATTRIBUTE, true)] {
        environment.add_function(name, move |state: &mut State<'_, '_>, value: Rest<Value>| {
            let value = value.0.into_iter().next().unwrap_or_default();
            let left = state.get_or_insert_extension_with(|| ItemsLeft(MOST_ITEMS));
            visit(&value, MOST_NESTED, attribute, &mut left.0).map(|()| value)
        });
    }
    environment.add_function(CONCATENATED, concatenated);
}

fn concatenated(left: Value, right: Value) -> Result<String, Error> {
    defined(&left)?;
    defined(&right)?;
    Ok(format!("{left}{right}"))
}

fn is_namespace(value: &Value) -> bool {
    value.as_object().is_some_and(|object| object.type_name().ends_with("::Namespace"))
}

/// Checks a value; a namespace within an attribute of a namespace might contain itself.
fn visit(value: &Value, levels: usize, attribute: bool, left: &mut u64) -> Result<(), Error> {
    if attribute && is_namespace(value) {
        let message = "a namespace cannot contain a namespace";
        return Err(Error::new(ErrorKind::WriteFailure, message));
    }
    let map = value.kind() == ValueKind::Map;
    if !map && !matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable) {
        return Ok(());
    }
    let failed = |message: String| Error::new(ErrorKind::WriteFailure, message);
    if levels == 0 {
        let message = format!("lists and mappings are nested more than {MOST_NESTED} deep");
        return Err(failed(message));
    }
    for item in value.try_iter()? {
        *left = left.checked_sub(1).ok_or_else(|| {
            failed("its lists are too large; does it double one in a loop?".into())
        })?;
        match map {
            true => visit(&value.get_item(&item)?, levels - 1, attribute, left)?,
            false => visit(&item, levels - 1, attribute, left)?,
        }
    }
    Ok(())
}

/// The instructions of a template with the checks; `None` if it keeps and concatenates no values.
pub(super) fn checked<'a>(instructions: &Instructions<'a>) -> Option<Instructions<'a>> {
    let all = || (0..).map_while(|at| instructions.get(at));
    let concatenates = |one: &Instruction<'_>| matches!(one, Instruction::StringConcat);
    all().any(|one| added(one) > 0 || concatenates(one)).then_some(())?;
    // The new place of every instruction.
    let mut places: Vec<u32> = vec![0];
    let mut end = 0;
    for instruction in all() {
        end += 1 + added(instruction);
        places.push(end);
    }
    let place = |at: u32| places.get(at as usize).copied().unwrap_or(end);
    let mut copy = Instructions::new(instructions.name(), instructions.source());
    for (at, instruction) in (0..).zip(all()) {
        let mut moved = match instruction {
            Instruction::StringConcat => Instruction::CallFunction(CONCATENATED, Some(2)),
            _ => instruction.clone(),
        };
        if let Instruction::Jump(to)
        | Instruction::JumpIfFalse(to)
        | Instruction::JumpIfFalseOrPop(to)
        | Instruction::JumpIfTrueOrPop(to)
        | Instruction::Iterate(to)
        | Instruction::BuildMacro(_, to, _) = &mut moved
        {
            *to = place(*to);
        }
        let check = |name| Instruction::CallFunction(name, Some(1));
        let before = match instruction {
            Instruction::StoreLocal(_) => vec![check(CHECKED)],
            // The namespace is above its value.
            Instruction::SetAttr(_) => {
                vec![Instruction::Swap, check(CHECKED_ATTRIBUTE), Instruction::Swap]
            }
            _ => vec![],
        };
        let line = instructions.get_line(at).and_then(|line| u16::try_from(line).ok());
        for instruction in before.into_iter().chain([moved]) {
            match (instructions.get_span(at), line) {
                (Some(span), _) => copy.add_with_span(instruction, span),
                (None, Some(line)) => copy.add_with_line(instruction, line),
                (None, None) => copy.add(instruction),
            };
        }
    }
    Some(copy)
}

/// How many instructions come before an instruction.
fn added(instruction: &Instruction<'_>) -> u32 {
    match instruction {
        Instruction::StoreLocal(_) => 1,
        Instruction::SetAttr(_) => 3,
        _ => 0,
    }
}
