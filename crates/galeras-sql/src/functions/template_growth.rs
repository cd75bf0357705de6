//! What a template may make of a row: no more than a limit, whatever it doubles.
//!
//! MiniJinja counts instructions, not bytes: thirty of them double a text to a gigabyte. So before an
//! instruction that makes something larger, a copy of the instructions calls a function of this file,
//! which looks at the operands. Filters that make something larger say so to [`charge`]. What is
//! computed while a template is compiled is in `template_constants`.

use std::fmt::{self, Write as _};

use minijinja::machinery::{Instruction, Instructions};
use minijinja::value::{Rest, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State, Value};

/// The most bytes of a text that a template makes, also on the way.
pub(super) const MOST_BYTES: u64 = 64 << 20;

/// The most bytes of all texts that a template makes of a row, those on the way counted.
const MOST_BYTES_IN_ALL: u64 = 1 << 30;

/// How deep the lists and mappings of a template may be nested.
const MOST_NESTED: usize = 100;

/// What an item of a list counts for.
pub(super) const ITEM_BYTES: u64 = 16;

/// Names that no template can write.
const ADD: &str = "\u{0}add";
const CONCAT: &str = "\u{0}concat";
const TIMES: &str = "\u{0}times";
const KEPT: &str = "\u{0}kept";
const CUT: &str = "\u{0}cut";

/// What was made of the row at hand.
#[derive(Default)]
struct Made(u64);

/// Adds the functions that [`limited`] calls.
pub(super) fn add(environment: &mut Environment<'_>) {
    environment.add_function(ADD, |state: &mut State<'_, '_>, both: Rest<Value>| {
        let bytes = match both.0.as_slice() {
            // A list is not copied, but whatever works on it goes through all of it.
            [a, b] => size(a).saturating_add(size(b)),
            _ => 0,
        };
        charge(state, bytes).map(|()| operands(both.0))
    });
    environment.add_function(CONCAT, |state: &mut State<'_, '_>, both: Rest<Value>| {
        let weights = both.0.iter().map(weight).collect::<Result<Vec<_>, _>>()?;
        charge(state, weights.iter().sum::<u64>()).map(|()| operands(both.0))
    });
    environment.add_function(TIMES, |state: &mut State<'_, '_>, both: Rest<Value>| {
        let bytes = match both.0.as_slice() {
            [a, b] => repeated(a, b).max(repeated(b, a)),
            _ => 0,
        };
        charge(state, bytes).map(|()| operands(both.0))
    });
    environment.add_function(KEPT, |state: &mut State<'_, '_>, value: Rest<Value>| {
        let value = value.0.into_iter().next().unwrap_or_default();
        let bytes = visited(&value)?.saturating_mul(ITEM_BYTES);
        charge(state, bytes).map(|()| value)
    });
    environment.add_function(CUT, |state: &mut State<'_, '_>, value: Rest<Value>| {
        let value = value.0.into_iter().next().unwrap_or_default();
        charge(state, size(&value)).map(|()| value)
    });
}

/// Two operands, for an instruction that takes them apart: the first one ends up on top.
fn operands(mut both: Vec<Value>) -> Value {
    both.reverse();
    Value::from(both)
}

/// Counts what is made, and stops a template that makes too much.
///
/// # Errors
/// If it is too much at once, or with all before.
pub(super) fn charge(state: &mut State<'_, '_>, bytes: u64) -> Result<(), Error> {
    if bytes > MOST_BYTES {
        return Err(too_large());
    }
    let made = state.get_or_insert_extension_with(Made::default);
    made.0 = made.0.saturating_add(bytes);
    if made.0 > MOST_BYTES_IN_ALL {
        return Err(Error::new(
            ErrorKind::WriteFailure,
            format!(
                "the template makes more than {} MiB of text of one row; is there a loop in a loop?",
                MOST_BYTES_IN_ALL >> 20
            ),
        ));
    }
    Ok(())
}

pub(super) fn too_large() -> Error {
    Error::new(
        ErrorKind::WriteFailure,
        format!(
            "the template makes a text of more than {} MiB; does it double one in a loop?",
            MOST_BYTES >> 20
        ),
    )
}

/// The bytes of a value as text, and some for each item of what is nested.
///
/// # Errors
/// If they are more than a text may have: a list that holds another twice, and so on, is written in
/// a time that doubles.
pub(super) fn weight(value: &Value) -> Result<u64, Error> {
    if let Some(text) = value.as_str() {
        return Ok(text.len() as u64);
    }
    let visited = visited(value)?;
    let mut counter = Counter(0);
    match write!(counter, "{value}") {
        Ok(()) => Ok(counter.0 + visited * ITEM_BYTES),
        Err(_) => Err(too_large()),
    }
}

/// A value as text.
///
/// # Errors
/// If it is too large.
pub(super) fn text(value: &Value) -> Result<String, Error> {
    weight(value)?;
    Ok(value.to_string())
}

/// Counts what is written, and takes no more than a text may have.
struct Counter(u64);

impl fmt::Write for Counter {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += text.len() as u64;
        if self.0 > MOST_BYTES { Err(fmt::Error) } else { Ok(()) }
    }
}

/// How many items a list has; one for what has no length.
pub(super) fn items(value: &Value) -> u64 {
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable | ValueKind::Map => value.len().unwrap_or(1) as u64,
        _ => 0,
    }
}

/// The bytes of a text or a list itself, without those of its items.
pub(super) fn size(value: &Value) -> u64 {
    let text = value.as_str().map(|text| text.len() as u64);
    text.unwrap_or_else(|| items(value).saturating_mul(ITEM_BYTES))
}

/// The bytes of `value * number`; none if it is no text and no list, or no number.
fn repeated(value: &Value, number: &Value) -> u64 {
    let times = if number.is_number() { number.as_i64().unwrap_or(i64::MAX) } else { 0 };
    size(value).saturating_mul(times.max(0).unsigned_abs())
}

/// How many items are in a value, at all levels.
///
/// # Errors
/// If they are too many or nested too deep: then the value could not even be dropped.
fn visited(value: &Value) -> Result<u64, Error> {
    let most = MOST_BYTES / ITEM_BYTES;
    let mut left = most;
    visit(value, MOST_NESTED, &mut left)?;
    Ok(most - left)
}

fn visit(value: &Value, levels: usize, left: &mut u64) -> Result<(), Error> {
    let map = value.kind() == ValueKind::Map;
    if !map && !matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable) {
        return Ok(());
    }
    if levels == 0 {
        let message = format!("lists and mappings are nested more than {MOST_NESTED} deep");
        return Err(Error::new(ErrorKind::WriteFailure, message));
    }
    for item in value.try_iter()? {
        *left = left.checked_sub(1).ok_or_else(too_large)?;
        match map {
            true => visit(&value.get_item(&item)?, levels - 1, left)?,
            false => visit(&item, levels - 1, left)?,
        }
    }
    Ok(())
}

/// The instructions of a template with the calls that limit them; `None` if they cannot make more
/// than the texts of the template and of the row.
pub(super) fn limited<'a>(instructions: &Instructions<'a>) -> Option<Instructions<'a>> {
    let all = || (0..).map_while(|at| instructions.get(at));
    all().any(grows).then_some(())?;
    // Where every instruction will be.
    let mut places: Vec<u32> = vec![0];
    let mut end = 0;
    for instruction in all() {
        end += 1 + calls(instruction).0.len() as u32 + calls(instruction).1.len() as u32;
        places.push(end);
    }
    let place = |at: u32| places.get(at as usize).copied().unwrap_or(end);
    let mut copy = Instructions::new(instructions.name(), instructions.source());
    for (at, instruction) in (0..).zip(all()) {
        let (before, after) = calls(instruction);
        let moved = match instruction {
            Instruction::Jump(to) => Instruction::Jump(place(*to)),
            Instruction::JumpIfFalse(to) => Instruction::JumpIfFalse(place(*to)),
            Instruction::JumpIfFalseOrPop(to) => Instruction::JumpIfFalseOrPop(place(*to)),
            Instruction::JumpIfTrueOrPop(to) => Instruction::JumpIfTrueOrPop(place(*to)),
            Instruction::Iterate(to) => Instruction::Iterate(place(*to)),
            Instruction::BuildMacro(name, to, flags) => {
                Instruction::BuildMacro(name, place(*to), *flags)
            }
            // Counted where it is written, like all values.
            Instruction::EmitRaw(text) => Instruction::LoadConst(Value::from(*text)),
            other => other.clone(),
        };
        let line = instructions.get_line(at).and_then(|line| u16::try_from(line).ok());
        for instruction in before.into_iter().chain([moved]).chain(after) {
            match (instructions.get_span(at), line) {
                (Some(span), _) => copy.add_with_span(instruction, span),
                (None, Some(line)) => copy.add_with_line(instruction, line),
                (None, None) => copy.add(instruction),
            };
        }
    }
    Some(copy)
}

/// Whether an instruction alone, or a loop with it, makes something larger.
fn grows(instruction: &Instruction<'_>) -> bool {
    matches!(
        instruction,
        Instruction::Add
            | Instruction::Mul
            | Instruction::StringConcat
            | Instruction::Iterate(_)
            | Instruction::FastRecurse
            | Instruction::BuildMacro(..)
            | Instruction::StoreLocal(_)
            | Instruction::SetAttr(_)
            | Instruction::Slice
    )
}

/// What comes before an instruction, and after it.
fn calls<'a>(instruction: &Instruction<'a>) -> (Vec<Instruction<'a>>, Vec<Instruction<'a>>) {
    let both = |name| vec![Instruction::CallFunction(name, Some(2)), Instruction::UnpackList(2)];
    let kept = || Instruction::CallFunction(KEPT, Some(1));
    match instruction {
        Instruction::Add => (both(ADD), vec![]),
        Instruction::StringConcat => (both(CONCAT), vec![]),
        Instruction::Mul => (both(TIMES), vec![]),
        Instruction::StoreLocal(_) => (vec![kept()], vec![]),
        // The namespace is above its value.
        Instruction::SetAttr(_) => (vec![Instruction::Swap, kept(), Instruction::Swap], vec![]),
        Instruction::Slice => (vec![], vec![Instruction::CallFunction(CUT, Some(1))]),
        Instruction::EmitRaw(_) => (vec![], vec![Instruction::Emit]),
        _ => (vec![], vec![]),
    }
}
