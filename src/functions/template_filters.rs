//! Filters of templates in the place of Jinja's: what is undefined writes nothing, and no width
//! fills the memory.

use minijinja::value::{Rest, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, State, Value, filters};

/// The largest width of a filter: with a larger one a few characters fill the memory.
const MOST_WIDTH: u64 = 10_000;

/// Adds the filters.
pub(super) fn add(environment: &mut Environment<'_>) {
    environment.add_filter("join", join);
    environment.add_filter("tojson", tojson);
    environment.add_filter("indent", indent);
    environment.add_filter("batch", batch);
    environment.add_filter("slice", slice);
    environment.add_filter("format", format);
}

/// Jinja's `join`, which writes nothing for what is undefined, without that.
fn join(value: Value, joiner: Option<String>) -> Result<String, Error> {
    let undefined = || Error::from(ErrorKind::UndefinedError);
    if value.is_undefined() {
        return Err(undefined());
    }
    let mut text = String::new();
    for (at, item) in value.try_iter()?.enumerate() {
        if item.is_undefined() {
            return Err(undefined());
        }
        if at > 0 {
            text.push_str(joiner.as_deref().unwrap_or_default());
        }
        match item.as_str() {
            Some(item) => text.push_str(item),
            None => text.push_str(&item.to_string()),
        }
    }
    Ok(text)
}

/// Jinja's `tojson`, which writes `null` for what is undefined, without that.
fn tojson(value: Value) -> Result<String, Error> {
    if value.is_undefined() {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    serde_json::to_string(&value)
        .map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))
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
    let mut widths = args.get(1).into_iter().cloned().chain(args.iter().filter_map(named));
    if widths.any(|width| is_large(&width)) { Err(too_wide()) } else { filter.call(state, &args) }
}

/// Jinja's `format`, up to a width.
fn format(state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let args = args.into_values();
    let text = args.first().and_then(Value::as_str).unwrap_or_default().replace("%%", "");
    let large = text.split('%').skip(1).any(|spec| {
        // `%(name)-10.3f`; `*` takes the number from the arguments.
        let spec = spec.split_once(')').map_or(spec, |(name, rest)| match name.starts_with('(') {
            true => rest,
            false => spec,
        });
        let end = spec.find(|c: char| !c.is_ascii_digit() && !"-+ #.*".contains(c));
        let spec = &spec[..end.unwrap_or(spec.len())];
        let digits = spec.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
        let wide = |digits: &str| digits.parse().map_or(true, |width: u64| width > MOST_WIDTH);
        digits.into_iter().any(wide) || spec.contains('*') && args.iter().skip(1).any(is_large)
    });
    if large {
        return Err(too_wide());
    }
    Value::from_function(filters::format).call(state, &args)
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
        ] {
            let error = rendered(text).unwrap_err();
            assert!(error.to_string().contains("a width is above"), "{text}: {error}");
        }
        for (text, wanted) in [
            ("{{ 'a\nb' | indent(2) }}", "a\n  b"),
            ("{{ [1, 2, 3] | batch(2, 0) | list }}", "[[1, 2], [3, 0]]"),
            ("{{ [1, 2, 3] | slice(2) | list }}", "[[1, 2], [3]]"),
            ("{{ '20000 * %5d %% 20000' | format(20000) }}", "20000 * 20000 % 20000"),
        ] {
            assert_eq!(rendered(text).unwrap(), wanted, "{text}");
        }
    }
}
