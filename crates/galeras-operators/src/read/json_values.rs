//! Compares the values of a JSON file with the types that they are read as: a value must fit its
//! declared type, and a number must keep its digits. Arrow's reader cuts off fractions, rounds, and
//! converts texts to numbers. It also does not report where a file stops being JSON.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;

use arrow::compute::kernels::cast_utils::Parser as _;
use arrow::datatypes::{DataType, Date32Type, Schema, TimeUnit};
use serde::de::{DeserializeSeed, Deserializer as _, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Deserializer, Number, Value};

use super::csv_values::{microseconds, parsed_float, start_of};
use super::types::{DeclaredTypes, all_in};
use galeras_operator::table_digest::type_name;
use galeras_workflow::quote;

/// Checks all values of objects, in sequence or in a list.
///
/// # Errors
/// The first mistake, in words, with its line.
pub(super) fn check_values(
    reader: impl Read,
    lines: bool,
    declared: &DeclaredTypes,
) -> Result<(), String> {
    let line = Cell::new(1);
    let mut reader = Deserializer::from_reader(LineCounter { reader, line: &line, ended: false });
    let (seen, mistake) = (RefCell::default(), RefCell::default());
    let rows = Rows { declared, line: &line, seen, mistake };
    let failed = |error: serde_json::Error| {
        rows.mistake.borrow_mut().take().unwrap_or_else(|| format!("not JSON: {error}"))
    };
    if lines {
        // The end of the file is not a row and not an error.
        while reader.end().is_err() {
            let began = line.get();
            let row = RowVisitor(&rows).deserialize(&mut reader);
            row.map_err(|error| {
                let later = error.line() as u64 > began && rows.mistake.borrow().is_none();
                let what = failed(error);
                if later { format!("line {began}: this row does not end: {what}") } else { what }
            })?;
        }
    } else {
        reader.deserialize_seq(RowVisitor(&rows)).map_err(failed)?;
        reader.end().map_err(failed)?;
    }
    let seen = rows.seen.borrow();
    seen.iter().find_map(|(name, values)| values.mistake(name)).map_or(Ok(()), Err)
}

/// The schema has a float, so whole numbers may be read as floats.
pub(super) fn has_floats(schema: &Schema) -> bool {
    !schema.fields().iter().all(|field| all_in(field.data_type(), |one| !one.is_floating()))
}

/// Counts lines. The parser reads byte by byte, and one byte past a number: that byte counts only
/// at the next read.
struct LineCounter<'a, R> {
    reader: R,
    line: &'a Cell<u64>,
    ended: bool,
}

impl<R: Read> Read for LineCounter<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let Some(one) = buffer.get_mut(..1) else { return Ok(0) };
        let read = self.reader.read(one)?;
        if read == 1 {
            self.line.set(self.line.get() + u64::from(self.ended));
            self.ended = one == b"\n";
        }
        Ok(read)
    }
}

struct Rows<'a> {
    declared: &'a DeclaredTypes,
    line: &'a Cell<u64>,
    seen: RefCell<BTreeMap<String, SeenValues>>,
    mistake: RefCell<Option<String>>,
}

impl Rows<'_> {
    fn value(&self, name: &str, value: &Value) -> Result<(), String> {
        let line = self.line.get();
        match self.declared.get(name) {
            Some(field) if !field.is_nullable() && value.is_null() => Err(format!(
                "line {line}: the column {} is null, but its type requires a value (`!`)",
                quote(name)
            )),
            Some(field) if !fits(value, field.data_type()) => Err(format!(
                "line {line}: the column {} is {}, not {}",
                quote(name),
                quote(&start_of(&value.to_string())),
                type_name(field.data_type())
            )),
            Some(_) => Ok(()),
            None => {
                let mut seen = self.seen.borrow_mut();
                match seen.get_mut(name) {
                    Some(values) => values.see(value, line),
                    None => seen.entry(name.to_owned()).or_default().see(value, line),
                }
                Ok(())
            }
        }
    }

    /// Columns that an object leaves out are null.
    fn left_out(&self, had: &[String]) -> Result<(), String> {
        let left = self
            .declared
            .iter()
            .find(|(name, field)| !field.is_nullable() && !had.iter().any(|key| key == *name));
        match left {
            Some((name, _)) => self.value(name, &Value::Null),
            None => Ok(()),
        }
    }
}

/// Visits a row, or a list of them.
struct RowVisitor<'a, 'b>(&'a Rows<'b>);

impl<'de> DeserializeSeed<'de> for RowVisitor<'_, '_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for RowVisitor<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let failed = |mistake: String| {
            *self.0.mistake.borrow_mut() = Some(mistake);
            A::Error::custom("a mistake")
        };
        let strict = self.0.declared.values().any(|field| !field.is_nullable());
        let mut had = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            let value: Value = map.next_value()?;
            self.0.value(&key, &value).map_err(failed)?;
            if strict {
                had.push(key);
            }
        }
        if strict { self.0.left_out(&had).map_err(failed) } else { Ok(()) }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(RowVisitor(self.0))?.is_some() {}
        Ok(())
    }
}

/// The values of a column, including nested ones.
#[derive(Default)]
struct SeenValues {
    /// The kind of the first value, and its line.
    kind: Option<(&'static str, u64)>,
    /// The first value of another kind, and its line.
    other: Option<(&'static str, u64)>,
    fraction: bool,
    /// The first whole number that is not exact as a float, and its line.
    long: Option<(u64, String)>,
    inner: BTreeMap<String, SeenValues>,
}

impl SeenValues {
    fn see(&mut self, value: &Value, line: u64) {
        let kind = match value {
            Value::Null => return,
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::String(_) => "a text",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        };
        let (first, _) = *self.kind.get_or_insert((kind, line));
        if first != kind {
            self.other.get_or_insert((kind, line));
        }
        match value {
            Value::Number(number) => {
                // Whole numbers that do not fit 64 bits are refused before.
                self.fraction |= !number.is_i64();
                if self.long.is_none() && number.is_i64() && !float_keeps::<f64>(number) {
                    self.long = Some((line, number.to_string()));
                }
            }
            Value::Array(items) => {
                let inner = self.inner.entry("[]".into()).or_default();
                items.iter().for_each(|item| inner.see(item, line));
            }
            Value::Object(map) => {
                for (key, value) in map {
                    match self.inner.get_mut(key) {
                        Some(inner) => inner.see(value, line),
                        None => self.inner.entry(key.clone()).or_default().see(value, line),
                    }
                }
            }
            _ => {}
        }
    }

    fn mistake(&self, name: &str) -> Option<String> {
        if let (Some((first, before)), Some((kind, line))) = (self.kind, self.other) {
            return Some(format!(
                "line {line}: the column {} is {kind}, and on line {before} it is {first}; a column \
                 has values of one kind, so write all of them as texts, in quotes",
                quote(name)
            ));
        }
        if let (true, Some((line, number))) = (self.fraction, &self.long) {
            return Some(format!(
                "line {line}: the column {} has fractions, and the whole number {number} more \
                 digits than a number with a fraction can keep; write its numbers as texts, in \
                 quotes",
                quote(name)
            ));
        }
        self.inner.iter().find_map(|(key, inner)| inner.mistake(&format!("{name}.{key}")))
    }
}

fn float_keeps<T: std::str::FromStr + Copy + Into<f64>>(number: &Number) -> bool {
    parsed_float::<T>(&number.to_string()).is_some()
}

fn fits(value: &Value, data_type: &DataType) -> bool {
    let within = |number: &Number| {
        let bits = 8 * data_type.primitive_width().unwrap_or(8) as u32;
        let (least, most) = match data_type.is_unsigned_integer() {
            true => (0, (1_i128 << bits) - 1),
            false => (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1),
        };
        let number = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
        number.is_some_and(|number| (least..=most).contains(&number))
    };
    match (value, data_type) {
        (Value::Null, _)
        | (Value::Bool(_), DataType::Boolean)
        | (Value::String(_), DataType::Utf8) => true,
        (Value::Number(n), integer) if integer.is_integer() => within(n),
        (Value::Number(n), DataType::Float32) => float_keeps::<f32>(n),
        // A number that does not fit 64 bits is a float already.
        (Value::Number(n), DataType::Float64) => n.is_f64() || float_keeps::<f64>(n),
        (Value::String(text), DataType::Date32) => Date32Type::parse(text).is_some(),
        (Value::String(text), DataType::Timestamp(TimeUnit::Microsecond, _)) => {
            microseconds(text).is_some()
        }
        (Value::Array(items), DataType::List(item)) => {
            items.iter().all(|value| fits(value, item.data_type()))
        }
        (Value::Object(map), DataType::Struct(fields)) => map.iter().all(|(key, value)| {
            fields.iter().any(|field| field.name() == key && fits(value, field.data_type()))
        }),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::datatypes::Field;

    use super::*;

    fn check(text: &str, lines: bool, types: &[(&str, DataType)]) -> Result<(), String> {
        let declared = types.iter().map(|(name, data_type)| {
            ((*name).to_owned(), Arc::new(Field::new(*name, data_type.clone(), true)))
        });
        check_values(text.as_bytes(), lines, &declared.collect())
    }

    #[test]
    fn digits_that_a_float_would_lose_are_told_with_their_line() {
        let number = "9007199254740993";
        for (text, lines, said) in [
            (format!("{{\"x\":1.5}}\n{{\"x\":{number}}}\n{{}}"), true, "line 2: the column `x` "),
            (format!("{{\"x\":{number}\n}}\n{{\"x\":1.5}}\n"), true, "line 1: the column `x` "),
            (format!("[{{\"x\":\n{number}\n}}, {{\"x\":1.5}}]\n"), false, "line 2: the column `x`"),
            (format!("{{\"x\":{{\"y\":[1.5,{number}]}}}}"), true, "line 1: the column `x.y.[]` "),
        ] {
            let message = check(&text, lines, &[]).unwrap_err();
            assert!(message.starts_with(said), "{text}: {message}");
        }
        assert_eq!(check("{\"x\":1.5}\n{\"x\":9007199254740992}\n\n", true, &[]), Ok(()));
        assert_eq!(check("{\"x\":1}\n{\"x\":9007199254740993}", true, &[]), Ok(()));
    }

    #[test]
    fn a_row_without_an_end_is_named_by_its_own_line() {
        for (text, said) in [
            ("{\"x\":1}\n{\"x\":\n", "line 2: this row does not end: not JSON: EOF"),
            (
                "{\"x\":1}\n{\"x\":2\n{\"x\":3}\n",
                "line 2: this row does not end: not JSON: expected",
            ),
            ("{\"x\":1}\n{\"x\" 2}\n", "not JSON: expected `:` at line 2"),
        ] {
            let message = check(text, true, &[]).unwrap_err();
            assert!(message.starts_with(said), "{text}: {message}");
        }
    }

    #[test]
    fn values_of_two_kinds_are_named_with_their_lines() {
        for (first, second, path, kinds) in [
            ("1", "\"x\"", "x", ["a number", "a text"]),
            ("\"x\"", "1.5", "x", ["a text", "a number"]),
            ("true", "0", "x", ["true or false", "a number"]),
            ("[1]", "1", "x", ["a list", "a number"]),
            ("{}", "[]", "x", ["an object", "a list"]),
            ("[1]", "[null,\"x\"]", "x.[]", ["a number", "a text"]),
            ("{\"y\":{\"z\":1}}", "{\"y\":{\"z\":\"x\"}}", "x.y.z", ["a number", "a text"]),
        ] {
            let text = format!("{{\"x\":null}}\n{{\"x\":{first}}}\n{{\"x\":{second}}}\n");
            let message = check(&text, true, &[]).unwrap_err();
            let [before, after] = kinds;
            let start =
                format!("line 3: the column `{path}` is {after}, and on line 2 it is {before};");
            assert!(message.starts_with(&start), "{text}: {message}");
        }
        assert_eq!(check("{\"x\":1}\n{\"x\":2.5,\"y\":[]}\n{\"x\":null}\n", true, &[]), Ok(()));
    }

    #[test]
    fn values_that_do_not_fit_are_named() {
        for (value, data_type) in [
            ("1.5", DataType::Int64),
            ("300", DataType::UInt8),
            ("\"1\"", DataType::Int64),
            ("1", DataType::Utf8),
            ("9007199254740993", DataType::Float64),
            ("\"2020-02-30\"", DataType::Date32),
            ("\"2020-02-20T10:00:00.1234567\"", DataType::Timestamp(TimeUnit::Microsecond, None)),
        ] {
            let name = type_name(&data_type);
            let text = format!("{{\"x\":null}}\n{{\"x\":{value}\n}}\n");
            let message = check(&text, true, &[("x", data_type)]).unwrap_err();
            assert!(message.starts_with("line 2: the column `x` is "), "{message}");
            assert!(message.ends_with(&format!("not {name}")), "{message}");
        }
    }

    #[test]
    fn where_a_file_is_no_json_is_told() {
        let message = check("{\"x\":1}\n{\"x\":2}\n{\"x\":}\n", true, &[]).unwrap_err();
        assert!(message.contains("line 3"), "{message}");
        assert!(check("{\"x\":1}\n[1]\n", true, &[]).unwrap_err().contains("line 2"));
    }
}
