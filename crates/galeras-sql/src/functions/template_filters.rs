//! Filters of templates in the place of Jinja's: what is undefined writes nothing, and neither a
//! width nor a text that grows fills the memory.
//!
//! How much a template may make of a row is in `template_growth`.

use minijinja::value::{Rest, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, State, Value, filters};

use super::template_growth::{
    ITEM_BYTES, MOST_BYTES, charge, items, size, text, too_large, weight,
};

/// The largest width of a filter: with a larger one a few characters fill the memory.
const MOST_WIDTH: u64 = 10_000;

/// The width of a filter that is given none.
const USUAL_WIDTH: i64 = 4;

/// The name of a filter, what each item that it is given counts for, and how it is made.
type Filter = (&'static str, u64, fn() -> Value);

/// What counts for an item that is compared with others, many times, in its lower case.
const COMPARED: u64 = 8 * ITEM_BYTES;

/// Jinja's filters that go through a text or a list, or make one at most a few times as large. Those for
/// lists take a text as the list of its characters.
const COPYING: [Filter; 22] = [
    ("capitalize", 0, || Value::from_function(filters::capitalize)),
    ("chain", ITEM_BYTES, || Value::from_function(filters::chain)),
    ("dictsort", COMPARED, || Value::from_function(filters::dictsort)),
    ("groupby", COMPARED, || Value::from_function(filters::groupby)),
    ("items", ITEM_BYTES, || Value::from_function(filters::items)),
    ("lines", 0, || Value::from_function(filters::lines)),
    ("lower", 0, || Value::from_function(filters::lower)),
    ("map", ITEM_BYTES, || Value::from_function(filters::map)),
    ("max", ITEM_BYTES, || Value::from_function(filters::max)),
    ("min", ITEM_BYTES, || Value::from_function(filters::min)),
    ("reject", ITEM_BYTES, || Value::from_function(filters::reject)),
    ("rejectattr", ITEM_BYTES, || Value::from_function(filters::rejectattr)),
    ("reverse", 0, || Value::from_function(filters::reverse)),
    ("select", ITEM_BYTES, || Value::from_function(filters::select)),
    ("selectattr", ITEM_BYTES, || Value::from_function(filters::selectattr)),
    ("sort", COMPARED, || Value::from_function(filters::sort)),
    ("split", 0, || Value::from_function(filters::split)),
    ("title", 0, || Value::from_function(filters::title)),
    ("trim", 0, || Value::from_function(filters::trim)),
    ("unique", COMPARED, || Value::from_function(filters::unique)),
    ("upper", 0, || Value::from_function(filters::upper)),
    ("zip", ITEM_BYTES, || Value::from_function(filters::zip)),
];

/// Adds the filters.
pub(super) fn add(environment: &mut Environment<'_>) {
    environment.add_filter("join", join);
    environment.add_filter("tojson", tojson);
    environment.add_filter("indent", indent);
    environment.add_filter("batch", batch);
    environment.add_filter("slice", slice);
    environment.add_filter("format", format);
    environment.add_filter("replace", replace);
    environment.add_filter("list", list);
    environment.add_filter("string", string);
    environment.add_filter("sum", sum);
    for (name, item, filter) in COPYING {
        let filter = filter();
        let counted = move |state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>| {
            let args = args.into_values();
            let given: u64 = args.iter().map(given).sum();
            charge(state, given.saturating_mul(item))?;
            let made = filter.call(state, &args)?;
            charge(state, size(&made)).map(|()| made)
        };
        environment.add_filter(name, counted);
    }
}

/// How many items a filter for lists is given with a value.
fn given(value: &Value) -> u64 {
    value.as_str().map_or_else(|| items(value), |text| text.chars().count() as u64)
}

/// Jinja's `replace`, up to a length.
fn replace(state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let args = args.into_values();
    if let [value, from, to] = args.as_slice() {
        let (value, from) = (text(value)?, text(from)?);
        let places = value.matches(from.as_str()).count() as u64;
        charge(state, places.saturating_mul(weight(to)?).saturating_add(value.len() as u64))?;
    }
    Value::from_function(filters::replace).call(state, &args)
}

/// Jinja's `list`, up to a length.
fn list(state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let args = args.into_values();
    let items = args.first().map_or(0, given);
    charge(state, items.saturating_mul(ITEM_BYTES))?;
    Value::from_function(filters::list).call(state, &args)
}

/// Jinja's `string`, up to a length.
fn string(state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let args = args.into_values();
    let bytes = args.first().map_or(Ok(0), weight)?;
    charge(state, bytes)?;
    Value::from_function(filters::string).call(state, &args)
}

/// Jinja's `sum`, which adds texts up one by one, up to a length.
fn sum(state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let args = args.into_values();
    let value = args.first().cloned().unwrap_or_default();
    let numbers = match value.try_iter() {
        Ok(mut items) => items.all(|item| item.is_number()),
        Err(_) => true,
    };
    if !numbers {
        let total = weight(&value)?;
        for _ in 0..items(&value).min(MOST_BYTES) {
            charge(state, total)?;
        }
    }
    Value::from_function(filters::sum).call(state, &args)
}

/// Jinja's `join`, which writes nothing for what is undefined, without that.
fn join(state: &mut State<'_, '_>, value: Value, joiner: Option<String>) -> Result<String, Error> {
    let undefined = || Error::from(ErrorKind::UndefinedError);
    if value.is_undefined() {
        return Err(undefined());
    }
    let mut joined = String::new();
    for (at, item) in value.try_iter()?.enumerate() {
        if item.is_undefined() {
            return Err(undefined());
        }
        if at > 0 {
            joined.push_str(joiner.as_deref().unwrap_or_default());
        }
        match item.as_str() {
            Some(item) => joined.push_str(item),
            None => joined.push_str(&text(&item)?),
        }
        if joined.len() as u64 > MOST_BYTES {
            return Err(too_large());
        }
    }
    charge(state, joined.len() as u64).map(|()| joined)
}

/// Jinja's `tojson`, which writes `null` for what is undefined, without that.
fn tojson(state: &mut State<'_, '_>, value: Value) -> Result<String, Error> {
    if value.is_undefined() {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    weight(&value)?;
    let json = serde_json::to_string(&value)
        .map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))?;
    charge(state, json.len() as u64).map(|()| json)
}

/// Jinja's `indent`, up to a width.
fn indent(state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    bounded(state, Value::from_function(filters::indent), args)
}

/// Jinja's `batch`, up to a length.
fn batch(state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    bounded(state, Value::from_function(filters::batch), args)
}

/// Jinja's `slice`, up to a number of slices.
fn slice(state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    bounded(state, Value::from_function(filters::slice), args)
}

/// Calls a filter whose first argument is a width.
fn bounded(
    state: &mut State<'_, '_>,
    filter: Value,
    args: Rest<ValueOrKwargs>,
) -> Result<Value, Error> {
    let args = args.into_values();
    let named = |value: &Value| value.get_attr("width").ok().filter(|_| value.is_kwargs());
    let widths = args.get(1).into_iter().cloned().chain(args.iter().filter_map(named));
    let widths: Vec<Value> = widths.collect();
    if widths.iter().any(is_large) {
        return Err(too_wide());
    }
    // Of a text, every line gets as much before it.
    let widest = widths.iter().filter_map(Value::as_i64).max().unwrap_or(USUAL_WIDTH);
    let value = args.first().cloned().unwrap_or_default();
    let lines = value.as_str().map_or(1, |text| 1 + text.matches('\n').count() as u64);
    let unit = if value.as_str().is_some() { 1 } else { ITEM_BYTES };
    charge(state, size(&value).saturating_add(lines * widest.unsigned_abs() * unit))?;
    filter.call(state, &args)
}

/// Jinja's `format`, up to a width.
fn format(state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let args = args.into_values();
    let text = args.first().and_then(Value::as_str).unwrap_or_default();
    let fields = fields(text);
    let large = fields.iter().any(|(_, spec)| {
        let digits = spec.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
        let wide = |digits: &str| digits.parse().map_or(true, |width: u64| width > MOST_WIDTH);
        digits.into_iter().any(wide) || spec.contains('*') && args.iter().skip(1).any(is_large)
    });
    if large {
        return Err(too_wide());
    }
    // minijinja reads names byte by byte, and panics within a character.
    if let Some((name, _)) = fields.iter().find(|(name, _)| !name.is_ascii()) {
        let message = format!("the name `{name}` in `%(…)` has letters beyond ASCII");
        return Err(Error::new(ErrorKind::InvalidOperation, message));
    }
    let weights = args.iter().map(weight).collect::<Result<Vec<_>, _>>()?;
    // A name may be used as often as it is written.
    let named = fields.iter().any(|(name, _)| !name.is_empty());
    let uses = if named { fields.len() as u64 } else { 1 };
    let written = weights.iter().sum::<u64>().saturating_mul(uses);
    charge(state, written.saturating_add(text.len() as u64))?;
    Value::from_function(filters::format).call(state, &args)
}

/// Of the fields of a printf-style text the names and what is between these and the conversion:
/// `name` and `-10.3` of `%(name)-10.3f`. A field that is not ended has the rest of the text.
fn fields(text: &str) -> Vec<(&str, &str)> {
    let (mut fields, mut rest) = (Vec::new(), text);
    while let Some((_, after)) = rest.split_once('%') {
        if let Some(after) = after.strip_prefix('%') {
            rest = after;
            continue;
        }
        let (name, after) = match after.strip_prefix('(') {
            Some(named) => named.split_once(')').unwrap_or((named, "")),
            None => ("", after),
        };
        let end = after.find(|c: char| !c.is_ascii_digit() && !"-+ #.*".contains(c));
        let (spec, after) = after.split_at(end.unwrap_or(after.len()));
        fields.push((name, spec));
        rest = after;
    }
    fields
}

fn is_large(width: &Value) -> bool {
    width.is_integer() && width.as_i64().is_none_or(|width| width.unsigned_abs() > MOST_WIDTH)
}

fn too_wide() -> Error {
    Error::new(ErrorKind::InvalidOperation, format!("a width is above {MOST_WIDTH}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn rendered(text: &str) -> Result<String, Error> {
        let mut environment = Environment::new();
        add(&mut environment);
        environment.render_str(text, ())
    }

    #[test]
    fn a_width_that_would_fill_the_memory_is_refused() {
        for text in [
            "{{ 'x' | indent(9223372036854775807) }}",
            "{{ 'x' | indent(width=20000) }}",
            "{{ [1] | batch(1000000000000, 'x') }}",
            "{{ [1] | slice(1000000000000, 'x') }}",
            "{{ '%1000000000000d' | format(1) }}",
            "{{ '%(a).20000f' | format(a=1) }}",
            "{{ '%*d' | format(1000000000000, 1) }}",
            "{{ '%(a%b)1000000000d' | format(**{'a%b': 1}) }}",
            "{{ '%(a%%b)1000000000d' | format(**{'a%%b': 1}) }}",
        ] {
            let error = rendered(text).unwrap_err();
            assert!(error.to_string().contains("a width is above"), "{text}: {error}");
        }
        for (text, wanted) in [
            ("{{ 'a\nb' | indent(2) }}", "a\n  b"),
            ("{{ [1, 2, 3] | batch(2, 0) | list }}", "[[1, 2], [3, 0]]"),
            ("{{ [1, 2, 3] | slice(2) | list }}", "[[1, 2], [3]]"),
            ("{{ '20000 * %5d %% 20000' | format(20000) }}", "20000 * 20000 % 20000"),
            ("{{ '%(a%b)3d%% of é' | format(**{'a%b': 1}) }}", "  1% of é"),
        ] {
            assert_eq!(rendered(text).unwrap(), wanted, "{text}");
        }
    }

    #[test]
    fn a_name_beyond_ascii_is_an_error() {
        for text in ["%(größe)s", "%(é", "%(a%é", "%d %(a) %(é)d"] {
            let error = rendered(&format!("{{{{ '{text}' | format(1) }}}}")).unwrap_err();
            assert!(error.to_string().contains("letters beyond ASCII"), "{text}: {error}");
        }
        assert_eq!(rendered("{{ 'ö %s é' | format('ü') }}").unwrap(), "ö ü é");
    }

    #[test]
    fn a_text_that_is_taken_as_characters_may_not_be_long() {
        let doubled = |times: usize| format!("'abcd'{}", " | replace('', 'abcdefg')".repeat(times));
        for filter in ["sort", "unique", "sort | reverse", "list", "max", "map('upper') | list"] {
            // 4 characters, then 39, 319, …: 1.3 and 10 million at last.
            let rendered =
                |times| rendered(&format!("{{{{ {} | {filter} | first }}}}", doubled(times)));
            assert!(rendered(4).is_ok(), "{filter}");
            let error = rendered(7).unwrap_err();
            assert!(error.to_string().contains("the template makes"), "{filter}: {error}");
        }
    }
}
