//! One value of a column as text: numbers without noise, nested values as JSON.

use std::io;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringBuilder};
use arrow::datatypes::{DataType, FieldRef, Float32Type, Float64Type};
use arrow::error::ArrowError;
use arrow::json::writer::{EncoderOptions, NullableEncoder, make_encoder};
use arrow::util::display::{ArrayFormatter, FormatOptions};

const OPTIONS: FormatOptions<'static> = FormatOptions::new().with_null("null");

/// Writes the values of one array for a table for people.
pub(super) enum CellFormatter<'a> {
    Float(&'a dyn Array),
    Nested(NullableEncoder<'a>),
    Other(ArrayFormatter<'a>),
}

impl<'a> CellFormatter<'a> {
    pub(super) fn new(
        field: &'a FieldRef,
        array: &'a dyn Array,
        options: &'a EncoderOptions,
    ) -> io::Result<Self> {
        match array.data_type() {
            DataType::Float32 | DataType::Float64 => Ok(Self::Float(array)),
            t if t.is_nested() => {
                make_encoder(field, array, options).map(Self::Nested).map_err(|e| failed(&e))
            }
            _ => {
                let formatter = ArrayFormatter::try_new(array, &OPTIONS);
                formatter.map(Self::Other).map_err(|e| failed(&e))
            }
        }
    }

    /// The value of `row`, with control characters.
    pub(super) fn text(&mut self, row: usize) -> io::Result<String> {
        match self {
            Self::Float(array) if array.is_null(row) => Ok("null".into()),
            Self::Float(array) => Ok(match array.data_type() {
                // Converted through decimal text, so that 0.1 is not 0.100000001490116.
                DataType::Float32 => {
                    let value = array.as_primitive::<Float32Type>().value(row);
                    float(value.to_string().parse().unwrap_or_else(|_| value.into()))
                }
                _ => float(array.as_primitive::<Float64Type>().value(row)),
            }),
            Self::Nested(encoder) => Ok(nested_text(encoder, row).unwrap_or_else(|| "null".into())),
            Self::Other(formatter) => {
                formatter.value(row).try_to_string().map_err(|e| io::Error::other(e.to_string()))
            }
        }
    }
}

/// Nested values are compact JSON with explicit nulls.
pub(super) fn json_options() -> EncoderOptions {
    EncoderOptions::default().with_explicit_nulls(true)
}

fn nested_text(encoder: &mut NullableEncoder<'_>, row: usize) -> Option<String> {
    if encoder.is_null(row) {
        return None;
    }
    let mut bytes = Vec::new();
    encoder.encode(row, &mut bytes);
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

pub(super) fn as_json_text(field: &FieldRef, array: &dyn Array) -> io::Result<ArrayRef> {
    let options = json_options();
    let mut encoder = make_encoder(field, array, &options).map_err(|e| failed(&e))?;
    let mut out = StringBuilder::new();
    for row in 0..array.len() {
        out.append_option(nested_text(&mut encoder, row));
    }
    Ok(Arc::new(out.finish()))
}

/// An Arrow error as an I/O error; a failed write keeps its kind.
pub(super) fn failed(error: &ArrowError) -> io::Error {
    let kind = match error {
        ArrowError::IoError(_, source) => source.kind(),
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error.to_string())
}

/// A number with up to six significant digits and no trailing zeros; its whole part is never
/// rounded.
pub fn float(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        return if value.is_nan() { "NaN".into() } else { value.to_string() };
    }
    if size != 0.0 && !(1e-4..1e15).contains(&size) {
        let text = format!("{value:.5e}");
        return match text.split_once('e') {
            Some((digits, exponent)) => format!("{}e{exponent}", trimmed(digits)),
            None => text,
        };
    }
    // Digits before the point; a number below 1 has more zeros after it instead.
    let whole = if size == 0.0 { 1 } else { size.log10().floor() as i32 + 1 };
    let decimals = usize::try_from(6 - whole).unwrap_or(0);
    let text = format!("{value:.decimals$}");
    match trimmed(&text) {
        "-0" => "0".into(),
        text => text.into(),
    }
}

fn trimmed(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_keep_six_digits_and_no_noise() {
        for (value, shown) in [
            (0.1 + 0.2, "0.3"),
            (0.0, "0"),
            (-0.0, "0"),
            (3.0, "3"),
            (-2.5, "-2.5"),
            (1.0 / 3.0, "0.333333"),
            (12_345.678_9, "12345.7"),
            (1_234_567.8, "1234568"),
            (0.000_123_456_789, "0.000123457"),
            (0.000_012_345_67, "1.23457e-5"),
            (1e300, "1e300"),
            (99.999_999_9, "100"),
        ] {
            assert_eq!(float(value), shown);
        }
        assert_eq!([f64::NAN, f64::INFINITY, -f64::INFINITY].map(float), ["NaN", "inf", "-inf"]);
    }
}
