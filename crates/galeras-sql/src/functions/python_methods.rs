//! `python_methods(content, nested)`: the methods of a Python source file.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Builder, ListArray, StringBuilder, StructArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use super::function_doc::{FunctionDoc, RowFunction};
use galeras_operator::describe;
use galeras_python::{Outline, Pieces, decode_source};

/// Bytes of the pieces of files that are kept: a corpus seldom has a file twice, but copies follow
/// each other.
const KEPT_BYTES: usize = 1 << 20;

/// The columns of a method: name, type, description.
pub const METHOD_FIELDS: &[(&str, DataType, &str)] = &[
    ("fun_name", DataType::Utf8, "the method's name"),
    ("qualified_name", DataType::Utf8, "the name with its classes and outer functions"),
    ("start_line", DataType::Int64, "first line in the file, counted from 1"),
    ("end_line", DataType::Int64, "last line in the file"),
    ("code", DataType::Utf8, "the method's text from `def` on"),
];

/// The position among the methods of one qualified name in a file: part of the identity.
pub(super) const ORDINAL: &str = "ordinal";
/// The list of methods of a file; null if the file was rejected.
pub(super) const METHODS: &str = "methods";
/// Why a file was rejected.
pub(super) const REASON: &str = "reason";

/// The columns of a method with their descriptions.
pub fn methods_type() -> Vec<FieldRef> {
    METHOD_FIELDS
        .iter()
        .map(|(name, data_type, description)| {
            describe(name, data_type.clone(), false, description, None)
        })
        .collect()
}

fn method_fields() -> Fields {
    METHOD_FIELDS
        .iter()
        .map(|(name, data_type, _)| Field::new(*name, data_type.clone(), true))
        .chain([Field::new(ORDINAL, DataType::Int64, true)])
        .collect()
}

fn item() -> FieldRef {
    Arc::new(Field::new("item", DataType::Struct(method_fields()), true))
}

fn file_fields() -> Fields {
    Fields::from(vec![
        Field::new(METHODS, DataType::List(item()), true),
        Field::new(REASON, DataType::Utf8, true),
    ])
}

/// A struct of the file's methods, and the reason if there are none because the file cannot
/// be decoded or parsed.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct PythonMethods;

impl RowFunction for PythonMethods {
    const DOC: FunctionDoc = FunctionDoc {
        name: "python_methods",
        arguments: &[("content", "bytes"), ("nested", "boolean")],
        returns: "struct",
        summary: "the methods of a Python file, with those inside other methods if `nested` (a literal) is true",
        nulls: "for a null, and for a file that cannot be decoded or parsed, `methods` is null and `reason` explains why",
        version: 2,
        example: "python_methods(CAST('def area(width, height):\n    size = width * height\n    return size\n' AS BYTEA), true)",
        ..FunctionDoc::ROW
    };

    fn return_type() -> DataType {
        DataType::Struct(file_fields())
    }

    fn invoke(args: &ScalarFunctionArgs) -> Result<ArrayRef> {
        let ColumnarValue::Scalar(ScalarValue::Boolean(Some(nested))) = &args.args[1] else {
            return exec_err!("the argument `nested` of python_methods must be a literal");
        };
        let content = args.args[0].to_array(args.number_rows)?;
        let mut out = Columns::default();
        // Files that have a piece in common share its methods.
        let pieces = Pieces::new(KEPT_BYTES);
        for bytes in content.as_binary::<i32>() {
            match bytes {
                None => out.push_rejected("the file has no content"),
                Some(bytes) => match file_of(bytes, &pieces, *nested) {
                    Ok((source, outline)) => out.push_file(&source, &outline),
                    Err(reason) => out.push_rejected(&reason),
                },
            }
        }
        Ok(Arc::new(out.finish()?))
    }
}

/// The text of a file and its methods, or why there are none.
fn file_of(bytes: &[u8], pieces: &Pieces, nested: bool) -> Result<(String, Outline), String> {
    let source = decode_source(bytes).map_err(|error| error.to_string())?.text;
    let outline = pieces.outline(&source, nested).map_err(|error| error.to_string())?;
    Ok((source, outline))
}

#[derive(Default)]
struct Columns {
    fun_name: StringBuilder,
    qualified_name: StringBuilder,
    start_line: Int64Builder,
    end_line: Int64Builder,
    code: StringBuilder,
    ordinal: Int64Builder,
    lengths: Vec<usize>,
    valid: Vec<bool>,
    reason: StringBuilder,
}

impl Columns {
    fn push_file(&mut self, source: &str, outline: &Outline) {
        self.valid.push(true);
        self.reason.append_null();
        self.lengths.push(outline.len());
        for method in outline.methods() {
            let place = method.start_byte as usize..method.end_byte as usize;
            self.fun_name.append_value(method.fun_name);
            self.qualified_name.append_value(method.qualified_name);
            self.start_line.append_value(i64::from(method.start_line));
            self.end_line.append_value(i64::from(method.end_line));
            self.code.append_value(source.get(place).unwrap_or_default());
            self.ordinal.append_value(i64::from(method.ordinal));
        }
    }

    fn push_rejected(&mut self, reason: &str) {
        self.valid.push(false);
        self.reason.append_value(reason);
        self.lengths.push(0);
    }

    fn finish(mut self) -> Result<StructArray> {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.fun_name.finish()),
            Arc::new(self.qualified_name.finish()),
            Arc::new(self.start_line.finish()),
            Arc::new(self.end_line.finish()),
            Arc::new(self.code.finish()),
            Arc::new(self.ordinal.finish()),
        ];
        let methods = StructArray::try_new(method_fields(), columns, None)?;
        let list = ListArray::try_new(
            item(),
            OffsetBuffer::from_lengths(self.lengths),
            Arc::new(methods),
            Some(NullBuffer::from(self.valid)),
        )?;
        let columns: Vec<ArrayRef> = vec![Arc::new(list), Arc::new(self.reason.finish())];
        Ok(StructArray::try_new(file_fields(), columns, None)?)
    }
}
