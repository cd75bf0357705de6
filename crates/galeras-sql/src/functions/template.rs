//! Templates of prompts: MiniJinja over the columns of a row, checked before any row is there.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow::array::{Array, AsArray};
use arrow::datatypes::{
    DataType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use minijinja::machinery::{
    self, Instruction, Token, get_compiled_template, make_string_output, tokenize,
};
use minijinja::value::ValueKind;
use minijinja::{
    Environment, Error, ErrorKind, Output, State, UndefinedBehavior, Value, escape_formatter,
};

use super::template_depth;

/// Instructions that the rendering of one text may take; a loop over ten thousand items with a
/// handful of expressions stays below.
const FUEL: u64 = 1_000_000;

/// The most bytes of a text that a template makes of a row.
const MOST_BYTES: usize = 64 << 20;

/// The most words and signs between `{{` and `}}`, or `{%` and `%}`. An expression is as deep as a
/// chain of them is long (`a ~ b ~ c …`), and all work on it recurses.
const MAX_EXPRESSION: usize = 5_000;

/// The most branches (`elif`) of a template; each of them is one level deeper than the one before.
const MAX_BRANCHES: usize = 1_000;

/// Compiled templates by name.
pub struct Templates {
    environment: Environment<'static>,
}

/// A mistake in a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateError {
    /// The name of the template.
    pub template: String,
    /// The mistake, with its line if that is known.
    pub message: String,
}

impl Templates {
    /// Compiles templates, given with their names. Unlike Jinja a template may not include
    /// others, and an undefined value may only be tested (`if`, `default`), not written.
    ///
    /// # Errors
    /// All templates that cannot be compiled.
    pub fn new<'a>(
        templates: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, Vec<TemplateError>> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
        environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        environment.set_formatter(write);
        environment.add_filter("join", join);
        environment.add_filter("tojson", tojson);
        environment.add_filter("string", string);
        template_depth::add(&mut environment);
        // They are for HTML and for debugging, and write undefined values.
        for name in ["escape", "e", "safe", "pprint"] {
            environment.remove_filter(name);
        }
        environment.remove_global("debug");
        environment.set_fuel(Some(FUEL));
        let mut errors = Vec::new();
        for (name, text) in templates {
            let compiled =
                || match environment.add_template_owned(name.to_string(), text.to_string()) {
                    Err(error) => Some(explain(&error)),
                    Ok(()) => unknown(&environment, name),
                };
            let problem = match too_deep(text) {
                Some(problem) => Some(problem),
                None => unwound(compiled).unwrap_or_else(Some),
            };
            if let Some(message) = problem {
                errors.push(TemplateError { template: name.into(), message });
            }
        }
        if errors.is_empty() { Ok(Self { environment }) } else { Err(errors) }
    }

    /// The names that a template takes from the row, in alphabetical order. The name of one of
    /// Jinja's functions, such as `range`, is among them only if it is a column.
    pub fn variables(&self, name: &str, is_column: impl Fn(&str) -> bool) -> Vec<String> {
        let Ok(template) = self.environment.get_template(name) else { return Vec::new() };
        let mut names: BTreeSet<String> =
            template.undeclared_variables(false).into_iter().collect();
        // That leaves out names that are only sliced, as in `code[:9]`.
        let instructions = &get_compiled_template(&template).instructions;
        let mut assigned: BTreeSet<&str> = IMPLICIT.into();
        for instruction in (0..).map_while(|at| instructions.get(at)) {
            match instruction {
                Instruction::Lookup(name) if is_column(name) || !assigned.contains(name) => {
                    names.insert((*name).to_string());
                }
                Instruction::StoreLocal(name) => {
                    assigned.insert(name);
                }
                _ => {}
            }
        }
        let function = |name: &str| self.environment.globals().any(|(other, _)| other == name);
        names.retain(|name| is_column(name) || !function(name));
        names.into_iter().collect()
    }

    /// The text that a template makes of a row.
    ///
    /// # Errors
    /// Why not: it is the row's fault, or that of the template for every row.
    pub fn render(&self, name: &str, row: &Row) -> Result<String, RenderError> {
        let failed = |error: Error| self.failed(name, row, &error);
        let template = self.environment.get_template(name).map_err(failed)?;
        let compiled = get_compiled_template(&template);
        let checked = template_depth::checked(&compiled.instructions);
        let mut text = String::with_capacity(compiled.buffer_size_hint);
        let rendered = unwound(|| {
            machinery::eval(
                &self.environment,
                checked.as_ref().unwrap_or(&compiled.instructions),
                row.0.clone(),
                &compiled.blocks,
                &mut make_string_output(&mut text),
                compiled.initial_auto_escape.clone(),
            )
            .map(drop)
        });
        rendered.map_err(RenderError::Template)?.map_err(failed)?;
        if text.len() > MOST_BYTES {
            let most = MOST_BYTES >> 20;
            let message = format!("the template makes a text of more than {most} MiB");
            return Err(RenderError::Template(message));
        }
        Ok(text)
    }

    fn failed(&self, name: &str, row: &Row, error: &Error) -> RenderError {
        use ErrorKind::{
            InvalidOperation, OutOfFuel, UndefinedError, UnknownFilter, UnknownFunction,
            UnknownMethod, UnknownTest, WriteFailure,
        };
        let text = explain(error);
        let columns = match error.kind() {
            UnknownFilter | UnknownFunction | UnknownMethod | UnknownTest => {
                return RenderError::Template(text);
            }
            OutOfFuel | WriteFailure => return RenderError::Template(text),
            UndefinedError | InvalidOperation => {
                self.variables(name, |column| row.get(column).is_some())
            }
            _ => Vec::new(),
        };
        let (nulls, holding) = row.nulls_of(&columns);
        let all = [nulls.as_slice(), holding.as_slice()].concat().join("`, `");
        RenderError::Row(match (nulls.len(), holding.len()) {
            (0, 0) => text,
            (1, 0) => format!("the column `{all}` is null"),
            (_, 0) => format!("the columns `{all}` are null"),
            (0, 1) => format!("the column `{all}` contains a null"),
            (0, _) => format!("the columns `{all}` contain nulls"),
            _ => format!("the columns `{all}` are null or contain nulls"),
        })
    }
}

/// The result of `work`, or the message of a panic: MiniJinja panics if a text would be larger than
/// the address space, or if a name in `format` has letters beyond ASCII.
fn unwound<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        format!("it cannot be evaluated: {}", text.unwrap_or("no reason is known"))
    })
}

/// Why a template would be too deep to be parsed, if it would be.
fn too_deep(text: &str) -> Option<String> {
    let (mut tokens, mut branches) = (0, 0);
    // Syntax errors are reported by the parser.
    for (token, span) in tokenize(text, false, Default::default()).map_while(Result::ok) {
        match token {
            Token::VariableStart | Token::BlockStart | Token::TemplateData(_) => tokens = 0,
            Token::Ident("elif") if tokens == 0 => branches += 1,
            _ => tokens += 1,
        }
        let line = span.start_line;
        if tokens > MAX_EXPRESSION {
            return Some(format!(
                "line {line}: an expression has more than {MAX_EXPRESSION} parts"
            ));
        }
        if branches > MAX_BRANCHES {
            return Some(format!("line {line}: it has more than {MAX_BRANCHES} branches (`elif`)"));
        }
    }
    None
}

/// Why a template makes nothing of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RenderError {
    /// The row has no value for something that the template writes.
    Row(String),
    /// The template is wrong for every row.
    Template(String),
}

/// The first unknown name in a template: a filter, a test, a function, a method.
/// Otherwise these are only found when a row gets there.
fn unknown(environment: &Environment<'_>, name: &str) -> Option<String> {
    let template = environment.get_template(name).ok()?;
    let instructions = &get_compiled_template(&template).instructions;
    let mut state = environment.empty_state();
    let columns = template.undeclared_variables(false);
    let mut before = None;
    (0..).map_while(|at| instructions.get(at)).find_map(|instruction| {
        let last = before.replace(instruction);
        let mut filter = |name: &str| {
            let applied = state.apply_filter(name, &[Value::UNDEFINED]);
            let unknown = applied.is_err_and(|error| error.kind() == ErrorKind::UnknownFilter);
            unknown.then(|| format!("there is no filter `{name}`"))
        };
        match instruction {
            // `map` takes the name of another one.
            Instruction::ApplyFilter("map", Some(2), _) => match last {
                Some(Instruction::LoadConst(name)) => name.as_str().and_then(filter),
                _ => None,
            },
            Instruction::ApplyFilter(name, ..) => filter(name),
            Instruction::PerformTest(name, ..) => {
                let tested = state.perform_test(name, &[Value::UNDEFINED]);
                let unknown = tested.is_err_and(|error| error.kind() == ErrorKind::UnknownTest);
                unknown.then(|| format!("there is no test `{name}`"))
            }
            Instruction::CallFunction(name, _) => {
                let known = environment.globals().any(|(function, _)| function == *name);
                (!known && columns.contains(*name))
                    .then(|| format!("there is no function `{name}`"))
            }
            Instruction::CallMethod(name, _) if !LOOP_METHODS.contains(name) => {
                Some(format!("there is no method `{name}`; filters are written `value | filter`"))
            }
            Instruction::Include(..) | Instruction::LoadBlocks | Instruction::CallBlock(_) => {
                Some("a template takes in no others, and has no blocks".into())
            }
            _ => None,
        }
    })
}

/// The names that Jinja itself gives a meaning to.
const IMPLICIT: [&str; 3] = ["loop", "caller", "self"];

/// The methods of the variable `loop`, the only ones there are.
const LOOP_METHODS: [&str; 2] = ["cycle", "changed"];

/// Writes a value. A slice of an undefined value is an empty list, so an empty list is an error
/// where a column is null.
fn write(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    let empty = value.kind() == ValueKind::Seq && value.len() == Some(0);
    if empty && state.lookup(NULLS).is_some_and(|nulls| nulls.is_true()) {
        return Err(Error::new(ErrorKind::UndefinedError, "an empty list is written"));
    }
    defined(value)?;
    escape_formatter(out, state, value)
}

/// An error for an undefined value, also within lists and mappings, which MiniJinja writes as
/// `undefined`.
pub(super) fn defined(value: &Value) -> Result<(), Error> {
    if value.is_undefined() {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    if holds_undefined(value) {
        let message = "a list or a mapping holds an undefined value";
        return Err(Error::new(ErrorKind::UndefinedError, message));
    }
    Ok(())
}

fn holds_undefined(value: &Value) -> bool {
    let is_map = value.kind() == ValueKind::Map;
    if !is_map && !matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable) {
        return value.is_undefined();
    }
    let Ok(mut items) = value.try_iter() else { return false };
    items.any(|item| match is_map {
        true => value.get_item(&item).is_ok_and(|item| holds_undefined(&item)),
        false => holds_undefined(&item),
    })
}

/// Jinja's `string`, except that an undefined value within a list is an error.
fn string(value: Value) -> Result<Value, Error> {
    defined(&value)?;
    Ok(if value.kind() == ValueKind::String { value } else { value.to_string().into() })
}

/// Jinja's `join`, except that an undefined item is an error instead of an empty text.
fn join(value: Value, joiner: Option<String>) -> Result<String, Error> {
    defined(&value)?;
    let mut joined = String::new();
    for (at, item) in value.try_iter()?.enumerate() {
        if at > 0 {
            joined.push_str(joiner.as_deref().unwrap_or_default());
        }
        match item.as_str() {
            Some(item) => joined.push_str(item),
            None => joined.push_str(&item.to_string()),
        }
    }
    Ok(joined)
}

/// Jinja's `tojson`, except that an undefined value is an error instead of `null`. Within a list or a
/// mapping it is JSON's `null`.
fn tojson(value: Value) -> Result<String, Error> {
    if value.is_undefined() {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    serde_json::to_string(&value)
        .map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))
}

/// The name, which no column has, of the entry of a row that is true if a column is null.
const NULLS: &str = "\u{0}nulls";

/// An error in one line.
fn explain(error: &Error) -> String {
    let mut text = match error.detail() {
        // The message of a limit is complete.
        Some(detail) if error.kind() == ErrorKind::WriteFailure => detail.to_string(),
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    };
    if error.kind() == ErrorKind::OutOfFuel {
        text = "the template takes too long; is there a loop in a loop?".into();
    }
    match error.line() {
        Some(line) if line > 1 => format!("{text} (line {line} of the template)"),
        _ => text,
    }
}

/// The values of a row by column; a null is undefined, also within a list or a struct.
pub struct Row(Value);

impl Row {
    /// The values of row `at` of these columns.
    ///
    /// # Errors
    /// If a value has no text form.
    pub fn of(columns: &[(String, &dyn Array)], at: usize) -> Result<Self, ArrowError> {
        let mut values: BTreeMap<String, Value> = BTreeMap::new();
        for (name, array) in columns {
            values.insert(name.clone(), value(*array, at)?);
        }
        let nulls = values.values().any(Value::is_undefined);
        values.insert(NULLS.into(), Value::from(nulls));
        Ok(Self(Value::from(values)))
    }

    /// The value of a column.
    fn get(&self, name: &str) -> Option<Value> {
        self.0.as_object()?.get_value(&Value::from(name))
    }

    /// Those of the names whose value is null, and those whose value contains a null.
    fn nulls_of(&self, names: &[String]) -> (Vec<String>, Vec<String>) {
        let holds = |name: &&String| self.get(name).is_some_and(|value| holds_undefined(&value));
        let is_null = |name: &String| self.get(name).is_some_and(|value| value.is_undefined());
        names.iter().filter(holds).cloned().partition(is_null)
    }
}

fn value(array: &dyn Array, at: usize) -> Result<Value, ArrowError> {
    macro_rules! number {
        ($kind:ty) => {
            Value::from(array.as_primitive::<$kind>().value(at))
        };
    }
    if array.is_null(at) {
        return Ok(Value::UNDEFINED);
    }
    Ok(match array.data_type() {
        DataType::Utf8 => Value::from(array.as_string::<i32>().value(at)),
        DataType::LargeUtf8 => Value::from(array.as_string::<i64>().value(at)),
        DataType::Utf8View => Value::from(array.as_string_view().value(at)),
        DataType::Boolean => Value::from(array.as_boolean().value(at)),
        DataType::Int8 => number!(Int8Type),
        DataType::Int16 => number!(Int16Type),
        DataType::Int32 => number!(Int32Type),
        DataType::Int64 => number!(Int64Type),
        DataType::UInt8 => number!(UInt8Type),
        DataType::UInt16 => number!(UInt16Type),
        DataType::UInt32 => number!(UInt32Type),
        DataType::UInt64 => number!(UInt64Type),
        DataType::Float32 => number!(Float32Type),
        DataType::Float64 => number!(Float64Type),
        DataType::List(_) => {
            let items = array.as_list::<i32>().value(at);
            let items: Result<Vec<Value>, _> =
                (0..items.len()).map(|item| value(&items, item)).collect();
            Value::from(items?)
        }
        DataType::Struct(fields) => {
            let of_row = array.as_struct();
            let values: Result<BTreeMap<String, Value>, ArrowError> = fields
                .iter()
                .zip(of_row.columns())
                .map(|(field, column)| Ok((field.name().clone(), value(column, at)?)))
                .collect();
            Value::from(values?)
        }
        // Dates, times and decimals are written as they are shown.
        _ => {
            let shown = ArrayFormatter::try_new(array, &FormatOptions::default())?;
            Value::from(shown.value(at).try_to_string()?)
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        ArrayRef, Int64Array, ListBuilder, StringArray, StringBuilder, StructArray,
    };
    use arrow::datatypes::Field;

    use super::*;

    fn one(text: &str) -> Templates {
        Templates::new([("t", text)]).map_err(|errors| errors[0].message.clone()).unwrap()
    }

    fn rendered(text: &str, columns: &[(&str, &dyn Array)]) -> Result<String, RenderError> {
        let columns: Vec<(String, &dyn Array)> =
            columns.iter().map(|(name, array)| (name.to_string(), *array)).collect();
        one(text).render("t", &Row::of(&columns, 0).unwrap())
    }

    #[test]
    fn columns_are_written_as_they_are() {
        let code = StringArray::from(vec!["if a < b && c:\n    \"x\""]);
        let lines = Int64Array::from(vec![3]);
        let mut names = ListBuilder::new(StringBuilder::new());
        names.values().append_value("a");
        names.values().append_value("b");
        names.append(true);
        let names = names.finish();
        let columns: [(&str, &dyn Array); 3] =
            [("code", &code), ("nloc", &lines), ("names", &names)];
        let text = "{{ nloc + 1 }} {{ names | join(', ') }}\n```python\n{{ code }}\n```\n";
        let wanted = "4 a, b\n```python\nif a < b && c:\n    \"x\"\n```";
        assert_eq!(rendered(text, &columns).unwrap(), wanted);
    }

    #[test]
    fn a_null_may_be_asked_for_but_not_written() {
        let docstring = StringArray::from(vec![None::<&str>]);
        let columns: [(&str, &dyn Array); 1] = [("docstring", &docstring)];
        let empty = StringArray::from(vec![""]);
        let full: [(&str, &dyn Array); 1] = [("docstring", &empty)];
        assert_eq!(rendered("{{ docstring | list }}", &full).unwrap(), "[]");
        let asked = "{% if docstring %}{{ docstring }}{% else %}none{% endif %}";
        assert_eq!(rendered(asked, &columns).unwrap(), "none");
        assert_eq!(rendered("{{ docstring | default('-') }}", &columns).unwrap(), "-");
        let null = RenderError::Row("the column `docstring` is null".into());
        for writes in [
            "a {{ docstring }}",
            "{{ docstring[:3] }}",
            "{{ docstring + 'x' }}",
            "{{ docstring | join(' ') }}",
            "{{ [docstring, 'x'] | join(' ') }}",
            "{{ docstring | tojson }}",
        ] {
            assert_eq!(rendered(writes, &columns).unwrap_err(), null, "{writes}");
        }
    }

    #[test]
    fn a_null_within_a_list_or_a_struct_may_be_asked_for_but_not_written() {
        let mut names = ListBuilder::new(StringBuilder::new());
        names.values().append_value("a");
        names.values().append_null();
        names.append(true);
        let names = names.finish();
        let path: ArrayRef = Arc::new(StringArray::from(vec![None::<&str>]));
        let at =
            StructArray::from(vec![(Arc::new(Field::new("path", DataType::Utf8, true)), path)]);
        let doc = StringArray::from(vec!["x"]);
        let columns: [(&str, &dyn Array); 3] = [("names", &names), ("at", &at), ("doc", &doc)];
        for (text, wanted) in [
            ("{{ names[0] }} {{ names | length }} {{ doc ~ names[0] }}", "a 2 xa"),
            ("{% for n in names %}{{ n | default('-') }}{% endfor %}", "a-"),
            ("{% for n in names if n %}{{ n }}{% endfor %}{{ at.path or doc }}", "ax"),
            ("{{ names | tojson }} {{ at | tojson }}", r#"["a",null] {"path":null}"#),
            ("{{ [doc, ['x']] }}", "['x', ['x']]"),
        ] {
            assert_eq!(rendered(text, &columns).as_deref(), Ok(wanted), "{text}");
        }
        for (text, column) in [
            ("{{ names }}", "names"),
            ("{{ names[1] }}", "names"),
            ("{% for n in names %}{{ n }}{% endfor %}", "names"),
            ("{{ names ~ 'x' }}", "names"),
            ("{{ doc ~ names }}", "names"),
            ("{{ names | join(' ') }}", "names"),
            ("{{ [names] | join(' ') }}", "names"),
            ("{{ names | string }}", "names"),
            ("{{ names[:2] }}", "names"),
            ("{{ names | list }}", "names"),
            ("{{ [[names]] }}", "names"),
            ("{% set x = {'a': names} %}{{ x }}", "names"),
            ("{{ at }}", "at"),
            ("{{ at.path }}", "at"),
            ("{{ at | items }}", "at"),
        ] {
            let null = RenderError::Row(format!("the column `{column}` contains a null"));
            assert_eq!(rendered(text, &columns).unwrap_err(), null, "{text}");
        }
        let nope = rendered("{{ [doc.nope] }}", &columns).unwrap_err();
        assert!(matches!(&nope, RenderError::Row(text) if text.contains("undefined")), "{nope:?}");
    }

    #[test]
    fn what_a_template_reads_is_known_without_a_row() {
        let text = "{% for n in range(3) %}{{ n }}{{ loop.index }}{{ code[:n] }}{% endfor %}\
                    {% set x = nloc %}{{ x }}{{ row.deep }}";
        assert_eq!(one(text).variables("t", |_| false), ["code", "nloc", "row"]);
        assert_eq!(one("{{ range }}").variables("t", |name| name == "range"), ["range"]);
        assert_eq!(
            one("{{ a[:3] }}{% set b = b[c:] %}{{ b }}").variables("t", |_| false),
            ["a", "b", "c"]
        );
    }

    #[test]
    fn mistakes_are_found_with_their_line() {
        let errors = Templates::new([("a", "{{ x }}"), ("b", "1\n{{ x")]).map(|_| ()).unwrap_err();
        assert_eq!(errors.iter().map(|e| e.template.as_str()).collect::<Vec<_>>(), ["b"]);
        assert!(errors[0].message.contains("line 2"), "{errors:?}");
    }

    #[test]
    fn names_that_stand_for_nothing_are_found_without_a_row() {
        for (text, name) in [
            ("{{ x | nope }}", "filter `nope`"),
            ("{% if x %}{{ x | upper | nope }}{% endif %}", "filter `nope`"),
            ("{% filter nope %}{{ x }}{% endfilter %}", "filter `nope`"),
            ("{{ [x] | map('nope') }}", "filter `nope`"),
            ("{{ x is nope }}", "test `nope`"),
            ("{{ nope(x) }}", "function `nope`"),
            ("{{ x.upper() }}", "method `upper`"),
        ] {
            let errors = Templates::new([("t", text)]).map(|_| ()).unwrap_err();
            assert!(errors[0].message.starts_with(&format!("there is no {name}")), "{errors:?}");
        }
        for text in [
            "{% raw %}{{ a | b }}{% endraw %} c | d {# | e #} {{ '|f' }}",
            "{% macro m(x) %}{{ x }}{% endmacro %}{{ m('a') }}",
            "{% for x in range(3) %}{{ loop.cycle('a', 'b') }}{{ x is even }}{% endfor %}",
        ] {
            assert!(Templates::new([("t", text)]).is_ok(), "{text}");
        }
        for other in ["{% include 'x' %}", "{% extends 'x' %}", "{% import 'x' as y %}"] {
            assert!(Templates::new([("t", other)]).is_err(), "{other}");
        }
    }

    #[test]
    fn a_template_without_end_is_stopped() {
        let text = "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}";
        let error = rendered(text, &[]).unwrap_err();
        assert!(matches!(error, RenderError::Template(text) if text.contains("takes too long")));
    }

    #[test]
    fn a_template_that_is_too_deep_is_refused_before_it_is_parsed() {
        for (text, message) in [
            (format!("\n{{{{ x{} }}}}", " ~ x".repeat(100_000)), "line 2: an expression has"),
            (format!("{{{{ {}1 }}}}", "-".repeat(100_000)), "line 1: an expression has"),
            (format!("{{{{ x{} }}}}", "|upper".repeat(100_000)), "line 1: an expression has"),
            (
                format!("{{% if x %}}{}{{% endif %}}", "{% elif x %}".repeat(100_000)),
                "line 1: it has more than 1000 branches",
            ),
        ] {
            let errors = Templates::new([("t", &*text)]).map(|_| ()).unwrap_err();
            assert!(errors[0].message.starts_with(message), "{errors:?}");
        }
        let long = "{{ x }} and {% if x %}y{% endif %}".repeat(5_000);
        assert!(Templates::new([("t", &*long)]).is_ok());
    }

    #[test]
    fn values_that_nest_without_end_are_refused() {
        let nesting = |step: &str| {
            format!(
                "{{% set ns = namespace(x=1) %}}{{% for a in range(999) %}}{step}{{% endfor %}}"
            )
        };
        let deep = "nested more than 100 deep";
        for (text, message) in [
            (nesting("{% set ns.x = [[ns.x]] %}"), deep),
            (nesting("{% set ns.x = {'a': ns.x} %}"), deep),
            (nesting("{% set ns.x = [ns.x, ns.x] %}"), "does it double one in a loop?"),
            (
                "{% set n = namespace() %}{% set n.n = [n] %}{{ n }}".to_string(),
                "cannot contain a namespace",
            ),
            ("{% set x = [x] %}".repeat(102), deep),
        ] {
            let error = rendered(&text, &[]).unwrap_err();
            assert!(
                matches!(&error, RenderError::Template(text) if text.contains(message)),
                "{text}: {error:?}"
            );
        }
    }

    #[test]
    fn a_text_that_is_too_large_and_a_panic_are_errors_of_the_template() {
        let large = "{% for a in range(9999) %}".to_string() + &"x".repeat(20_000) + "{% endfor %}";
        for (text, message) in [
            (large.as_str(), "a text of more than 64 MiB"),
            (
                "{{ 'x' | indent(9223372036854775808) }}",
                "it cannot be evaluated: capacity overflow",
            ),
            ("{{ '%(größe)s' | format(1) }}", "it cannot be evaluated: "),
        ] {
            let error = rendered(text, &[]).unwrap_err();
            assert!(
                matches!(&error, RenderError::Template(text) if text.contains(message)),
                "{text:.40}: {error:?}"
            );
        }
        let error = rendered("{{ 'ab' * 9223372036854775807 }}", &[]).unwrap_err();
        assert!(matches!(&error, RenderError::Row(text) if text.contains("repeat")), "{error:?}");
    }

    #[test]
    fn values_that_are_kept_are_the_same_as_without_checks() {
        let names = StringArray::from(vec!["a,b,c"]);
        let null = StringArray::from(vec![None::<&str>]);
        let columns: [(&str, &dyn Array); 2] = [("names", &names), ("null", &null)];
        for (text, wanted) in [
            ("{% for n in names | split(',') %}{{ loop.index * 2 ~ n }};{% endfor %}", "2a;4b;6c;"),
            ("{% for n in [] %}x{% else %}none{% endfor %} end", "none end"),
            (
                "{% set x = [1] + [2, 3] %}{{ x }} {{ x | sum }} {{ 2 + 3 * 4 - 1 }}",
                "[1, 2, 3] 6 13",
            ),
            ("{{ [1, 2] * 2 }} {{ 3 * 'ab' }} {{ 1.5 + 1 }}", "[1, 2, 1, 2] ababab 2.5"),
            (
                "{% macro m(x, y='-') %}<{{ x }}{{ y }}{{ caller() if caller else '' }}>\
                 {% endmacro %}{{ m('a') ~ m('b', y='+') }}{% call m('c') %}in{% endcall %}",
                "<a-><b+><c-in>",
            ),
            (
                "{% for a in [1, [2, [3]]] recursive %}\
                 {{ loop(a) if a is sequence else a }}{% endfor %}",
                "123",
            ),
            ("{% if null and names ~ 'x' %}a{% elif names %}{{ names[:1] }}{% endif %}", "a"),
            (
                "{% set t %}{{ names }}!{% endset %}{{ t | upper }}{% filter lower %}A{% endfilter %}",
                "A,B,C!a",
            ),
            (
                "{% set ns = namespace(n=0) %}{% for i in range(9) if i is odd %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}",
                "16",
            ),
            (
                "{% with a = 1, b = 'x' %}{{ a ~ b }}{% endwith %}{{ 'y' if null is defined else 'n' }}",
                "1xn",
            ),
            (
                "{{ 'abab' | replace('b', '..') }}{{ 'ab' | list }}{{ 12 | string | length }}",
                "a..a..['a', 'b']2",
            ),
        ] {
            assert_eq!(rendered(text, &columns).as_deref(), Ok(wanted), "{text}");
        }
        let wanted = RenderError::Row("the column `null` is null".into());
        for text in ["{{ null ~ 'x' }}", "{% set x = null + 'x' %}", "{{ 2 * null }}"] {
            assert_eq!(rendered(text, &columns).unwrap_err(), wanted, "{text}");
        }
        let error =
            rendered("a\n{% if names %}\n{{ names + 1 }}{% endif %}{{ 1 + 2 }}", &columns[..1])
                .unwrap_err();
        assert!(
            matches!(&error, RenderError::Row(text) if text.ends_with("(line 3 of the template)")),
            "{error:?}"
        );
    }
}
