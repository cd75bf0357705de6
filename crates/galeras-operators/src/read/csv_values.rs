//! Infers the types of CSV columns, and converts texts to values. A column gets a type other than
//! text only if each value is written exactly as that type prints it, so that nothing is lost.

use std::str::FromStr;
use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, BooleanArray, PrimitiveArray, StringArray, new_null_array,
};
use arrow::compute::kernels::cast_utils::{Parser, string_to_datetime};
use arrow::datatypes::{
    DataType, Date32Type, Field, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};

use galeras_operator::table_digest::type_name;
use galeras_workflow::quote;

const BOOL: u16 = 1;
const WHOLE: u16 = 1 << 1;
const FLOAT: u16 = 1 << 2;
/// A day; then times by the digits of their seconds.
const DATE: u16 = 1 << 3;
const SECOND: u16 = 1 << 4;
const MILLI: u16 = 1 << 5;
const MICRO: u16 = 1 << 6;
const NANO: u16 = 1 << 7;
const TEXT: u16 = 1 << 8;

/// The state of inference for a column.
#[derive(Default)]
pub(super) struct GuessedType {
    kinds: u16,
    empty_text: bool,
    /// It has a time outside the range of nanoseconds.
    far: bool,
    /// The first whole number that is not exact as a float, and its line.
    long: Option<(u64, String)>,
    /// The first text that often stands for a missing value, and its line.
    marker: Option<(u64, String)>,
}

/// Texts that programs write for a missing value.
const MISSING_MARKERS: &[&str] =
    &["#N/A", "-", "N/A", "NA", "NULL", "None", "n/a", "na", "none", "null", "?"];

/// What to do about a text that may stand for a missing value.
fn marker_help(name: &str, marker: &str) -> String {
    format!(
        "; if it stands for a missing value, add `null_values: [\"{marker}\"]`, else declare the \
         column as text, `types: {{ {name}: utf8 }}`"
    )
}

impl GuessedType {
    pub(super) fn see(&mut self, text: &str, line: u64) {
        // Programs that quote everything write an empty text like this: it is a value only in text
        // columns.
        self.empty_text |= text.is_empty();
        if text.is_empty() || self.kinds & TEXT != 0 {
            return;
        }
        if MISSING_MARKERS.contains(&text) {
            self.marker.get_or_insert_with(|| (line, text.to_owned()));
            return;
        }
        let kind = kind(text);
        self.kinds |= kind;
        if kind == WHOLE && self.long.is_none() && parsed_float::<f64>(text).is_none() {
            self.long = Some((line, text.to_owned()));
        }
        self.far |= kind & (DATE | SECOND | MILLI | MICRO) != 0 && nanoseconds(text).is_none();
    }

    /// The type of the column `name`.
    ///
    /// # Errors
    /// If digits would be lost: in words, with the line.
    pub(super) fn data_type(&self, name: &str) -> Result<DataType, String> {
        const TIMES: u16 = DATE | SECOND | MILLI | MICRO | NANO;
        let moment = |unit| Ok(DataType::Timestamp(unit, None));
        match (&self.marker, self.kinds) {
            (Some((line, marker)), kinds) if kinds != 0 && kinds & !(WHOLE | FLOAT) == 0 => {
                let help = marker_help(name, marker);
                let name = quote(name);
                return Err(format!(
                    "line {line}: the column {name} is {} among numbers{help}",
                    quote(marker)
                ));
            }
            (Some(_), _) => return Ok(DataType::Utf8),
            (None, _) => {}
        }
        match self.kinds {
            0 if self.empty_text => Ok(DataType::Utf8),
            0 => Ok(DataType::Null),
            BOOL => Ok(DataType::Boolean),
            WHOLE => Ok(DataType::Int64),
            kinds if kinds & !(WHOLE | FLOAT) == 0 => match &self.long {
                None => Ok(DataType::Float64),
                Some((line, number)) => Err(format!(
                    "line {line}: the column {} has fractions, and the whole number {number} more \
                     digits than a number with a fraction can keep; declare the column as text \
                     (`types: {{ {name}: utf8 }}`)",
                    quote(name)
                )),
            },
            DATE => Ok(DataType::Date32),
            kinds if kinds & !TIMES == 0 => match kinds {
                kinds if kinds & NANO != 0 && self.far => Ok(DataType::Utf8),
                kinds if kinds & NANO != 0 => moment(TimeUnit::Nanosecond),
                kinds if kinds & MICRO != 0 => moment(TimeUnit::Microsecond),
                kinds if kinds & MILLI != 0 => moment(TimeUnit::Millisecond),
                _ => moment(TimeUnit::Second),
            },
            _ => Ok(DataType::Utf8),
        }
    }
}

fn kind(text: &str) -> u16 {
    match text {
        "NaN" | "nan" | "inf" | "-inf" => return FLOAT,
        _ if bool_of(text).is_some() => return BOOL,
        _ => {}
    }
    match number_kind(text) {
        TEXT => time_kind(text),
        kind => kind,
    }
}

fn all_digits(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

/// The kind of number that a program would write. `007` and `12e45` (a commit) are not numbers:
/// digits with leading zeros are names, and an exponent has a sign, or one digit or a fraction
/// before it.
fn number_kind(text: &str) -> u16 {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (digits, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let some = !whole.is_empty() || fraction.is_some_and(|f| !f.is_empty());
    let zeros = whole.len() > 1 && whole.starts_with('0');
    if !some || zeros || !all_digits(whole) || !fraction.is_none_or(all_digits) {
        return TEXT;
    }
    if let Some(exponent) = exponent {
        let power = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        let written = (1..=3).contains(&power.len()) && all_digits(power);
        let signed = power.len() < exponent.len();
        if !written || !(signed || whole.len() == 1 || fraction.is_some()) {
            return TEXT;
        }
    } else if fraction.is_none() && text != "-0" {
        return if text.parse::<i64>().is_ok() { WHOLE } else { TEXT };
    }
    if parsed_float::<f64>(text).is_some() { FLOAT } else { TEXT }
}

fn time_kind(text: &str) -> u16 {
    let shaped = |text: &str, shape: &str| {
        text.len() == shape.len()
            && text.bytes().zip(shape.bytes()).all(|(byte, wanted)| match wanted {
                b'0' => byte.is_ascii_digit(),
                b'T' => matches!(byte, b'T' | b' '),
                _ => byte == wanted,
            })
    };
    if shaped(text, "0000-00-00") {
        return if Date32Type::parse(text).is_some() { DATE } else { TEXT };
    }
    let Some((moment, rest)) = text.split_at_checked(19) else { return TEXT };
    if !shaped(moment, "0000-00-00T00:00:00") {
        return TEXT;
    }
    let kind = match rest.strip_prefix('.').map(digits_in_front) {
        None if digits_in_front(rest) == 0 => SECOND,
        Some(1..=3) => MILLI,
        Some(4..=6) => MICRO,
        Some(7..=9) => NANO,
        _ => return TEXT,
    };
    let reached = match kind {
        NANO => nanoseconds(text),
        _ => microseconds(text),
    };
    if reached.is_some() { kind } else { TEXT }
}

fn digits_in_front(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

fn bool_of(text: &str) -> Option<bool> {
    match text {
        _ if text.eq_ignore_ascii_case("true") => Some(true),
        _ if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

/// The float, unless it differs from the written number: a whole number with too many digits, one
/// that is too large, or so small that it becomes zero.
pub(super) fn parsed_float<T: FromStr + Copy + Into<f64>>(text: &str) -> Option<T> {
    let float = text.parse::<T>().ok()?;
    let value: f64 = float.into();
    let mantissa = text.split(['e', 'E']).next().unwrap_or(text);
    let has = |digits: std::ops::RangeInclusive<u8>| mantissa.bytes().any(|b| digits.contains(&b));
    let whole = all_digits(text.strip_prefix(['+', '-']).unwrap_or(text));
    let kept = match value {
        _ if !value.is_finite() => !has(b'0'..=b'9'),
        0.0 => !has(b'1'..=b'9'),
        _ => !whole || text.parse::<i128>().is_ok_and(|number| value as i128 == number),
    };
    kept.then_some(float)
}

/// The time since 1970 in units of 10^-`digits` seconds, unless its seconds have more digits.
/// (Arrow's parsers count nanoseconds, which only cover 1677 to 2262.)
fn moment(text: &str, digits: u32) -> Option<i64> {
    let behind = text.split_once('.').map_or("", |(_, rest)| rest);
    let written = behind.get(..digits_in_front(behind)).unwrap_or_default();
    let more = written.get(digits as usize..).unwrap_or_default();
    if !more.bytes().all(|b| b == b'0') {
        return None;
    }
    let utc: Tz = "+00:00".parse().ok()?;
    let moment = string_to_datetime(&utc, text).ok()?;
    let parts = i64::from(moment.timestamp_subsec_nanos()) / 10_i64.pow(9 - digits);
    moment.timestamp().checked_mul(10_i64.pow(digits))?.checked_add(parts)
}

/// The microseconds of a time, unless it has more digits.
pub(super) fn microseconds(text: &str) -> Option<i64> {
    moment(text, 6)
}

fn nanoseconds(text: &str) -> Option<i64> {
    moment(text, 9)
}

/// Texts can be read as this type.
pub(super) fn is_readable(data_type: &DataType) -> bool {
    !data_type.is_nested() && *data_type != DataType::Binary
}

/// The texts as values of the field's type; `lines` has the line of each.
///
/// # Errors
/// The first value that is not of this type: in words, with its line and column.
pub(super) fn typed(texts: &StringArray, field: &Field, lines: &[u64]) -> Result<ArrayRef, String> {
    let column = Column { texts, field, lines };
    let array: ArrayRef = match field.data_type() {
        DataType::Null => new_null_array(&DataType::Null, texts.len()),
        DataType::Utf8 => Arc::new(texts.clone()),
        DataType::Boolean => {
            Arc::new(column.values(bool_of)?.into_iter().collect::<BooleanArray>())
        }
        DataType::Int8 => column.primitive::<Int8Type>(|t| t.parse().ok())?,
        DataType::Int16 => column.primitive::<Int16Type>(|t| t.parse().ok())?,
        DataType::Int32 => column.primitive::<Int32Type>(|t| t.parse().ok())?,
        DataType::Int64 => column.primitive::<Int64Type>(|t| t.parse().ok())?,
        DataType::UInt8 => column.primitive::<UInt8Type>(|t| t.parse().ok())?,
        DataType::UInt16 => column.primitive::<UInt16Type>(|t| t.parse().ok())?,
        DataType::UInt32 => column.primitive::<UInt32Type>(|t| t.parse().ok())?,
        DataType::UInt64 => column.primitive::<UInt64Type>(|t| t.parse().ok())?,
        DataType::Float32 => column.primitive::<Float32Type>(parsed_float)?,
        DataType::Float64 => column.primitive::<Float64Type>(parsed_float)?,
        DataType::Date32 => column.primitive::<Date32Type>(Date32Type::parse)?,
        DataType::Timestamp(TimeUnit::Second, _) => {
            column.primitive::<TimestampSecondType>(|t| moment(t, 0))?
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            column.primitive::<TimestampMillisecondType>(|t| moment(t, 3))?
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            column.primitive::<TimestampMicrosecondType>(microseconds)?
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            column.primitive::<TimestampNanosecondType>(nanoseconds)?
        }
        other => return Err(format!("no text is read as {}", type_name(other))),
    };
    match (0..array.len()).find(|row| !field.is_nullable() && array.is_null(*row)) {
        Some(row) => Err(format!(
            "line {}: the column {} has no value, but its type requires one (`!`)",
            column.line(row),
            quote(field.name())
        )),
        None => Ok(array),
    }
}

struct Column<'a> {
    texts: &'a StringArray,
    field: &'a Field,
    lines: &'a [u64],
}

impl Column<'_> {
    fn line(&self, row: usize) -> u64 {
        self.lines.get(row).copied().unwrap_or_default()
    }

    fn values<T>(&self, parse: impl Fn(&str) -> Option<T>) -> Result<Vec<Option<T>>, String> {
        let value = |(row, text): (usize, Option<&str>)| match text {
            None | Some("") => Ok(None),
            Some(text) => parse(text).map(Some).ok_or_else(|| {
                let help = match MISSING_MARKERS.contains(&text) {
                    true => marker_help(self.field.name(), text),
                    false => String::new(),
                };
                format!(
                    "line {}: the column {} is {}, not {}{help}",
                    self.line(row),
                    quote(self.field.name()),
                    quote(&start_of(text)),
                    type_name(self.field.data_type())
                )
            }),
        };
        self.texts.iter().enumerate().map(value).collect()
    }

    fn primitive<T: ArrowPrimitiveType>(
        &self,
        parse: impl Fn(&str) -> Option<T::Native>,
    ) -> Result<ArrayRef, String> {
        let values = self.values(parse)?;
        Ok(Arc::new(values.into_iter().collect::<PrimitiveArray<T>>()))
    }
}

/// The start of a text, short enough for a message.
pub(super) fn start_of(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::AsArray;

    use super::*;

    fn guessed(texts: &[&str]) -> Result<DataType, String> {
        let mut guess = GuessedType::default();
        texts.iter().zip(2..).for_each(|(text, line)| guess.see(text, line));
        guess.data_type("x")
    }

    #[test]
    fn numbers_are_written_as_numbers() {
        for (texts, wanted) in [
            (&["1", "-20", "0"][..], DataType::Int64),
            (&["1", ""], DataType::Int64),
            (
                &["1", "0.5", ".5", "5.", "1e5", "1.5e-30", "12.5E+3", "57e-20", "-inf"],
                DataType::Float64,
            ),
            (&["-0"], DataType::Float64),
            (&["007"], DataType::Utf8),
            (&["1", "00.5"], DataType::Utf8),
            (&["1234567", "12e4567"], DataType::Utf8),
            (&["1234567", "1234e56"], DataType::Utf8),
            (&["1234567", "1e00012"], DataType::Utf8),
            (&["1e400"], DataType::Utf8),
            (&["1e-400"], DataType::Utf8),
            (&["12345678901234567890"], DataType::Utf8),
            (&["1", "true"], DataType::Utf8),
            (&["true", "False"], DataType::Boolean),
            (&["", ""], DataType::Utf8),
            (&[], DataType::Null),
        ] {
            assert_eq!(guessed(texts), Ok(wanted), "{texts:?}");
        }
    }

    #[test]
    fn a_marker_among_numbers_is_told_with_its_line() {
        let message = guessed(&["1.5", "N/A", "2"]).unwrap_err();
        let words = "line 3: the column `x` is `N/A` among numbers; if it stands for a missing value, \
                     add `null_values: [\"N/A\"]`, else declare the column as text, `types: { x: utf8 }`";
        assert_eq!(message, words);
        for texts in [&["N/A"][..], &["NA", "word"], &["true", "NULL"], &["1", "-", "word"]] {
            assert_eq!(guessed(texts), Ok(DataType::Utf8), "{texts:?}");
        }
    }

    #[test]
    fn digits_that_a_float_would_lose_are_told_with_their_line() {
        let message = guessed(&["1.5", "9007199254740993"]).unwrap_err();
        assert!(message.starts_with("line 3: ") && message.contains("9007199254740993"));
        assert_eq!(guessed(&["1.5", "9007199254740992"]), Ok(DataType::Float64));
        assert_eq!(guessed(&["1", "9007199254740993"]), Ok(DataType::Int64));
        assert_eq!(guessed(&["1.5", "9007199254740993", "text"]), Ok(DataType::Utf8));
    }

    #[test]
    fn days_and_moments_are_those_of_the_calendar() {
        let moment = |unit| DataType::Timestamp(unit, None);
        for (texts, wanted) in [
            (&["2020-02-29"][..], DataType::Date32),
            (&["2020-02-29", "2020-02-30"], DataType::Utf8),
            (&["2020-02-29T10:00:00"], moment(TimeUnit::Second)),
            (&["2020-02-29", "2020-02-29 10:00:00.25Z"], moment(TimeUnit::Millisecond)),
            (&["2020-02-29T10:00:00.1234"], moment(TimeUnit::Microsecond)),
            (&["2020-02-29T10:00:00.1234567"], moment(TimeUnit::Nanosecond)),
            (&["9999-02-28", "2020-02-29T10:00:00.1234567"], DataType::Utf8),
            (&["2020-02-29T10:00:00.1234567891"], DataType::Utf8),
            (&["2020-02-29T25:00:00"], DataType::Utf8),
            (&["9999-12-31 00:00:00"], moment(TimeUnit::Second)),
            (&["2024-01-01 10:00:00", "0001-01-01"], moment(TimeUnit::Second)),
            (&["1000-01-01T00:00:00.123456"], moment(TimeUnit::Microsecond)),
            (&["9999-02-28T10:00:00.1234567"], DataType::Utf8),
        ] {
            assert_eq!(guessed(texts), Ok(wanted), "{texts:?}");
        }
    }

    #[test]
    fn moments_of_all_years_are_read_in_every_unit() {
        let read = |text: &str, unit| {
            let texts = StringArray::from(vec![text]);
            let field = Field::new("at", DataType::Timestamp(unit, None), true);
            let array = typed(&texts, &field, &[2])?;
            let wide = arrow::compute::cast(&array, &DataType::Int64).map_err(|e| e.to_string())?;
            Ok::<_, String>(wide.as_primitive::<Int64Type>().value(0))
        };
        // From Python's `calendar.timegm((9999, 12, 31, 0, 0, 0))`.
        for (text, of) in
            [("9999-12-31", 253_402_214_400), ("0001-01-01 00:00:00", -62_135_596_800)]
        {
            assert_eq!(read(text, TimeUnit::Second), Ok(of));
            assert_eq!(read(text, TimeUnit::Millisecond), Ok(of * 1_000));
            assert_eq!(read(text, TimeUnit::Microsecond), Ok(of * 1_000_000));
            assert!(read(text, TimeUnit::Nanosecond).is_err(), "{text}");
        }
        let half = "1969-12-31T23:59:59.5";
        assert!(read(half, TimeUnit::Second).is_err());
        assert_eq!(read(half, TimeUnit::Millisecond), Ok(-500));
        assert_eq!(read(half, TimeUnit::Nanosecond), Ok(-500_000_000));
    }

    #[test]
    fn a_value_that_does_not_fit_is_named() {
        let read = |text: &str, data_type: DataType| {
            let texts = StringArray::from(vec![Some("1"), Some(text)]);
            typed(&texts, &Field::new("n", data_type, true), &[2, 5])
                .map(|array| array.null_count())
        };
        assert_eq!(read("007", DataType::Utf8), Ok(0));
        assert_eq!(read("", DataType::Int64), Ok(1));
        assert_eq!(read("", DataType::Utf8), Ok(0));
        for (text, data_type) in [
            ("1.5", DataType::Int64),
            ("300", DataType::UInt8),
            ("1e400", DataType::Float64),
            ("9007199254740993", DataType::Float64),
            ("16777217", DataType::Float32),
            ("x", DataType::Float64),
        ] {
            let wanted =
                format!("line 5: the column `n` is `{text}`, not {}", type_name(&data_type));
            assert_eq!(read(text, data_type), Err(wanted));
        }
        let texts = StringArray::from(vec![None::<&str>]);
        let message = typed(&texts, &Field::new("n", DataType::Utf8, false), &[2]).unwrap_err();
        assert!(message.starts_with("line 2: the column `n` has no value"), "{message}");
    }
}
