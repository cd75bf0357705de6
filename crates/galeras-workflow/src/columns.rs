//! Column types of a schema contract: `utf8!`, `list<float64>`, `struct<role: utf8, content:
//! utf8>`. Independent of Arrow; the plan compares a contract with a real schema.

use std::fmt;

use strum::{EnumString, IntoStaticStr, VariantNames};

const MAX_TYPE_DEPTH: usize = 16;
const MAX_FIELDS: usize = 1_000;

/// The type of a column.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ColumnType {
    /// A type without parts.
    Scalar(ScalarType),
    /// `list<item>`
    List(Box<ItemType>),
    /// `struct<name: type, …>`, at least one field.
    Struct(Vec<(String, ItemType)>),
}

/// A type that may exclude nulls: `utf8!`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ItemType {
    /// The type.
    pub ty: ColumnType,
    /// True if nulls are excluded.
    pub non_null: bool,
}

/// The types without parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum ScalarType {
    /// Text.
    Utf8,
    /// True or false.
    Bool,
    /// 8-bit integer.
    Int8,
    /// 16-bit integer.
    Int16,
    /// 32-bit integer.
    Int32,
    /// 64-bit integer.
    Int64,
    /// 8-bit integer without a sign.
    UInt8,
    /// 16-bit integer without a sign.
    UInt16,
    /// 32-bit integer without a sign.
    UInt32,
    /// 64-bit integer without a sign.
    UInt64,
    /// Single-precision number.
    Float32,
    /// Double-precision number.
    Float64,
    /// Bytes.
    Binary,
    /// A day.
    Date,
    /// A moment.
    Timestamp,
}

/// The reason why a type cannot be read, with the wrong bytes of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TypeError {
    pub(super) message: String,
    pub(super) help: Option<String>,
    /// The bytes within the type's text.
    pub(super) range: (usize, usize),
}

impl ItemType {
    /// Reads a type such as `list<utf8!>!`.
    pub(super) fn parse(text: &str) -> Result<Self, TypeError> {
        let mut parser = Parser { text, at: 0 };
        let out = parser.item(0)?;
        parser.skip_space();
        if parser.at < text.len() {
            return Err(parser.error("unexpected text after the type"));
        }
        Ok(out)
    }
}

impl std::str::FromStr for ItemType {
    type Err = String;

    /// Reads a type; the error describes the problem and, if possible, a suggestion.
    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(text).map_err(|error| match error.help {
            Some(help) => format!("{}; {help}", error.message),
            None => error.message,
        })
    }
}

impl fmt::Display for ItemType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.non_null { "!" } else { "" };
        write!(f, "{}{mark}", self.ty)
    }
}

impl fmt::Display for ColumnType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scalar(scalar) => f.write_str(scalar.into()),
            Self::List(item) => write!(f, "list<{item}>"),
            Self::Struct(fields) => {
                let fields: Vec<_> = fields.iter().map(|(n, ty)| format!("{n}: {ty}")).collect();
                write!(f, "struct<{}>", fields.join(", "))
            }
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn eat(&mut self, c: char) -> bool {
        self.skip_space();
        let next = self.rest().starts_with(c);
        if next {
            self.at += c.len_utf8();
        }
        next
    }

    fn word(&mut self) -> &'a str {
        self.skip_space();
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-'));
        let word = rest.get(..end.unwrap_or(rest.len())).unwrap_or("");
        self.at += word.len();
        word
    }

    fn error(&self, message: &str) -> TypeError {
        let width = self.rest().chars().next().map_or(0, char::len_utf8);
        TypeError { message: message.to_owned(), help: None, range: (self.at, self.at + width) }
    }

    fn item(&mut self, depth: usize) -> Result<ItemType, TypeError> {
        if depth > MAX_TYPE_DEPTH {
            return Err(self.error("the type is nested too deeply"));
        }
        let word = self.word();
        let start = self.at - word.len();
        let ty = match word {
            "" => return Err(self.error("a column type is missing here")),
            "list" => {
                self.expect('<', "write `list<utf8>`")?;
                let item = self.item(depth + 1)?;
                self.expect('>', "`list<` is never closed")?;
                ColumnType::List(Box::new(item))
            }
            "struct" => {
                self.expect('<', "write `struct<name: utf8>`")?;
                ColumnType::Struct(self.fields(depth)?)
            }
            name => match name.parse() {
                Ok(scalar) => ColumnType::Scalar(scalar),
                Err(strum::ParseError::VariantNotFound) => return Err(unknown(name, start)),
            },
        };
        let non_null = self.eat('!');
        Ok(ItemType { ty, non_null })
    }

    fn fields(&mut self, depth: usize) -> Result<Vec<(String, ItemType)>, TypeError> {
        let mut fields: Vec<(String, ItemType)> = Vec::new();
        loop {
            let name = self.word();
            if name.is_empty() {
                return Err(self.error("a field name is missing here"));
            }
            if fields.len() == MAX_FIELDS {
                return Err(self.error("the struct has too many fields"));
            }
            if fields.iter().any(|(n, _)| n == name) {
                self.at -= name.len();
                return Err(self.error("this field is defined twice"));
            }
            self.expect(':', "a colon is missing after the field name")?;
            fields.push((name.to_owned(), self.item(depth + 1)?));
            if !self.eat(',') {
                break;
            }
        }
        self.expect('>', "`struct<` is never closed")?;
        Ok(fields)
    }

    fn expect(&mut self, c: char, message: &str) -> Result<(), TypeError> {
        if self.eat(c) { Ok(()) } else { Err(self.error(message)) }
    }
}

fn unknown(name: &str, start: usize) -> TypeError {
    let names = ScalarType::VARIANTS;
    // Names from other systems.
    let foreign = match name.to_lowercase().as_str() {
        "string" | "str" | "text" | "varchar" => Some("utf8"),
        "int" | "integer" | "bigint" | "long" => Some("int64"),
        "float" | "double" | "number" => Some("float64"),
        "boolean" => Some("bool"),
        "bytes" => Some("binary"),
        "datetime" => Some("timestamp"),
        "array" => Some("list<…>"),
        "object" => Some("struct<…>"),
        _ => None,
    };
    let all = names.iter().copied().chain(["list", "struct"]);
    let help = match foreign.or_else(|| super::suggest::did_you_mean(name, all)) {
        Some(ours) => format!("did you mean `{ours}`?"),
        None => format!(
            "the types are {}, list<…> and struct<name: …>; a `!` at the end excludes nulls",
            names.join(", ")
        ),
    };
    TypeError {
        message: format!("there is no column type {}", super::diagnostic::quote(name)),
        help: Some(help),
        range: (start, start + name.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_read_and_write_the_same() {
        for text in [
            "utf8",
            "utf8!",
            "list<float64>!",
            "list<struct<role: utf8!, content: utf8>>",
            "timestamp",
        ] {
            assert_eq!(ItemType::parse(text).unwrap().to_string(), text);
        }
        let loose = ItemType::parse(" list < int64 ! > ! ").unwrap();
        assert_eq!(loose.to_string(), "list<int64!>!");
    }

    #[test]
    fn unknown_types_are_suggested_and_located() {
        let e = ItemType::parse("list<string>").unwrap_err();
        assert_eq!(e.range, (5, 11));
        assert_eq!(e.help.as_deref(), Some("did you mean `utf8`?"));
        let e = ItemType::parse("flaot64").unwrap_err();
        assert_eq!(e.help.as_deref(), Some("did you mean `float64`?"));
    }

    #[test]
    fn broken_and_hostile_types_are_errors() {
        for text in ["", "!", "list", "list<utf8", "struct<>", "struct<a utf8>", "utf8 x", "é"] {
            assert!(ItemType::parse(text).is_err(), "{text}");
        }
        assert!(ItemType::parse(&"list<".repeat(100_000)).is_err());
        assert!(ItemType::parse("struct<a: utf8, a: utf8>").is_err());
    }
}
