//! `random_cut(code, id, seed, min, max, at, after, share_of)`: a random prefix of a method.
//!
//! The published pipeline draws r uniformly from [0.4, 0.65], cuts at the last space before
//! `int(len * r)` and strips the white space in front. This may lie inside the signature; here the
//! cut never does when `after` is `signature`, nor in the docstring when it is `docstring`. With
//! `share_of: rest` the share is of the text after them, so that a long docstring does not use it
//! up.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, StringArray, StructArray};
use arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use super::function_doc::{FunctionDoc, RowFunction};
use galeras_base::id::{keyed_hash, unit_interval};
use galeras_python::{cut_points, docstring_end, is_space, signature_end, with_parser};

/// The field with the reason why a method was not cut.
pub const CUT_REASON: &str = "reason";

/// The result: prefix, rest, position in characters, and the reason if there is none.
pub fn cut_type() -> Fields {
    Fields::from(vec![
        Field::new("random_cut", DataType::Utf8, true),
        Field::new("cut_rest", DataType::Utf8, true),
        Field::new("cut_at", DataType::Int64, true),
        Field::new(CUT_REASON, DataType::Utf8, true),
    ])
}

/// The parameters of a cut, literal in the call.
#[derive(Clone, Copy)]
struct Params {
    seed: i64,
    min: f64,
    max: f64,
    at: Boundary,
    after: After,
    share_of: ShareOf,
}

/// The text that the share refers to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ShareOf {
    /// The whole text.
    Text,
    /// The text after [`After`] without its leading white space. The cut lies within it.
    Rest,
}

/// The part of the method that the cut must follow.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    Nothing,
    Signature,
    /// Or the signature, where there is no docstring.
    Docstring,
}

/// Where a cut may lie.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Boundary {
    /// Before a space (U+0020) and the white space in front of it.
    Space,
    /// Before a token of the syntax tree.
    Token,
    /// Before a line.
    Line,
}

/// A struct of [`cut_type`].
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct RandomCut;

impl RowFunction for RandomCut {
    const DOC: FunctionDoc = FunctionDoc {
        name: "random_cut",
        version: 3,
        arguments: &[
            ("code", "text"),
            ("id", "text"),
            ("seed", "integer"),
            ("min", "float"),
            ("max", "float"),
            ("at", "text"),
            ("after", "text"),
            ("share_of", "text"),
        ],
        returns: "struct",
        summary: "the beginning of a method, as the operator `cut` gives it: up to a share of its characters drawn between `min` and `max`, at a `space`, `token` or `line`, after the `signature`, the `docstring` or `none` of them; the share is of the whole `text` or of the `rest` after them; all arguments but code and id are literals",
        nulls: "all fields but `reason` are null for null code and for code without a place to cut; a null id counts as an empty text",
        example: "random_cut('def area(width, height):\n    size = width * height\n    return size\n', 'a', 42, 0.4, 0.65, 'token', 'signature', 'text')",
        ..FunctionDoc::ROW
    };

    fn return_type() -> DataType {
        DataType::Struct(cut_type())
    }

    fn invoke(args: &ScalarFunctionArgs) -> Result<ArrayRef> {
        let params = params(&args.args[2..])?;
        let code = args.args[0].to_array(args.number_rows)?;
        let ids = args.args[1].to_array(args.number_rows)?;
        let (code, ids) = (code.as_string::<i32>(), ids.as_string::<i32>());
        let cuts: Vec<Result<(&str, &str), String>> =
            code.iter().zip(ids).map(|(text, id)| parts_of(text, id, &params)).collect();
        let parts = || cuts.iter().map(|cut| cut.as_ref().ok());
        let position = |(head, _): &(&str, &str)| head.chars().count() as i64;
        let columns: Vec<ArrayRef> = vec![
            Arc::new(parts().map(|parts| Some(parts?.0)).collect::<StringArray>()),
            Arc::new(parts().map(|parts| Some(parts?.1)).collect::<StringArray>()),
            Arc::new(parts().map(|parts| parts.map(position)).collect::<Int64Array>()),
            Arc::new(cuts.iter().map(|cut| cut.as_ref().err()).collect::<StringArray>()),
        ];
        Ok(Arc::new(StructArray::try_new(cut_type(), columns, None)?))
    }
}

/// The code up to its cut, and the rest.
fn parts_of<'t>(
    code: Option<&'t str>,
    id: Option<&str>,
    params: &Params,
) -> Result<(&'t str, &'t str), String> {
    let code = code.ok_or("the code is null")?;
    cut(code, id.unwrap_or_default(), params).map(|at| code.split_at(at))
}

/// The value of a word.
fn one_of<T: Copy>(word: &str, words: &[(&str, T)]) -> Option<T> {
    words.iter().find(|(name, _)| *name == word).map(|(_, value)| *value)
}

fn params(args: &[ColumnarValue]) -> Result<Params> {
    let literal = |i: usize| match &args[i] {
        ColumnarValue::Scalar(value) => Ok(value),
        ColumnarValue::Array(_) => {
            exec_err!("the arguments of random_cut from the third on must be literals")
        }
    };
    let (
        ScalarValue::Int64(Some(seed)),
        ScalarValue::Float64(Some(min)),
        ScalarValue::Float64(Some(max)),
        ScalarValue::Utf8(Some(at)),
        ScalarValue::Utf8(Some(after)),
        ScalarValue::Utf8(Some(share_of)),
    ) = (literal(0)?, literal(1)?, literal(2)?, literal(3)?, literal(4)?, literal(5)?)
    else {
        return exec_err!("a parameter of random_cut is null");
    };
    let boundaries =
        [("space", Boundary::Space), ("token", Boundary::Token), ("line", Boundary::Line)];
    let Some(at) = one_of(at, &boundaries) else {
        return exec_err!(
            "random_cut cannot cut at `{at}`: it cuts at a `space`, `token` or `line`"
        );
    };
    let parts = [
        ("none", After::Nothing),
        ("signature", After::Signature),
        ("docstring", After::Docstring),
    ];
    let Some(after) = one_of(after, &parts) else {
        return exec_err!(
            "random_cut cannot cut after `{after}`: it cuts after `none`, `signature` or `docstring`"
        );
    };
    let Some(share_of) = one_of(share_of, &[("text", ShareOf::Text), ("rest", ShareOf::Rest)])
    else {
        return exec_err!(
            "random_cut takes no share of `{share_of}`: it takes one of the `text` or its `rest`"
        );
    };
    Ok(Params { seed: *seed, min: *min, max: *max, at, after, share_of })
}

/// The byte at which `code` is cut: the last boundary not after the drawn position, or the
/// first one behind it when that would lie in the signature.
fn cut(code: &str, id: &str, params: &Params) -> Result<usize, String> {
    let draw = unit_interval(keyed_hash(params.seed, "cut", id.as_bytes()));
    let ratio = params.min + draw * (params.max - params.min);
    let boundary = match params.after {
        After::Nothing => 0,
        After::Signature | After::Docstring => with_parser(|parser| match params.after {
            After::Docstring => docstring_end(parser, code),
            After::Nothing | After::Signature => signature_end(parser, code),
        })
        .and_then(|result| result)
        .map_err(|error| error.to_string())?
        .ok_or("the code has no signature to cut after")?,
    };
    // Where the share is counted from, and the first byte at which a cut may lie.
    let (start, first) = match params.share_of {
        ShareOf::Text => (0, boundary.max(1)),
        ShareOf::Rest => {
            let after = code.get(boundary..).unwrap_or_default();
            let start = boundary + (after.len() - after.trim_start().len());
            let one = code.get(start..).and_then(|rest| rest.chars().next());
            (start, start + one.map_or(0, char::len_utf8))
        }
    };
    let part = code.get(start..).unwrap_or_default();
    let wanted = (part.chars().count() as f64 * ratio) as usize;
    let wanted = part.char_indices().nth(wanted).map_or(code.len(), |(byte, _)| start + byte);
    // The last of these bytes before the drawn position, or the first one after it.
    let byte = |byte: u8, wanted: usize| {
        let head = code.as_bytes().get(first..wanted);
        let last = head.and_then(|head| head.iter().rposition(|b| *b == byte));
        let rest = || code.as_bytes().get(first..).unwrap_or_default();
        last.or_else(|| rest().iter().position(|b| *b == byte)).map(|at| first + at)
    };
    let place = match params.at {
        // A prompt that ends within an indentation would tell the model some of the next line.
        Boundary::Space => byte(b' ', wanted)
            .map(|at| code.get(..at).unwrap_or_default().trim_end_matches(is_space).len()),
        // No line begins behind the last line feed.
        Boundary::Line => {
            byte(b'\n', wanted.min(code.trim_end_matches('\n').len())).map(|at| at + 1)
        }
        Boundary::Token => {
            let points = with_parser(|parser| cut_points(parser, code))
                .and_then(|result| result)
                .map_err(|error| error.to_string())?;
            let allowed = || points.iter().copied().filter(|at| *at >= first);
            allowed().filter(|at| *at <= wanted).max().or_else(|| allowed().min())
        }
    };
    place.filter(|at| (1..code.len()).contains(at)).ok_or_else(|| {
        let after = match params.after {
            After::Nothing => "",
            After::Signature => " after the signature",
            After::Docstring => " after the docstring",
        };
        format!("there is no place to cut{after}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "def area(width, height):\n    size = width * height\n    return size\n";

    fn params(at: Boundary, min: f64, max: f64) -> Params {
        Params { seed: 42, min, max, at, after: After::Signature, share_of: ShareOf::Text }
    }

    #[test]
    fn a_cut_lies_at_the_last_space_before_the_position() {
        let at = cut(CODE, "x", &params(Boundary::Space, 0.6, 0.6)).expect("has a body");
        let wanted = (CODE.len() as f64 * 0.6) as usize;
        assert_eq!(CODE.as_bytes()[at], b' ');
        assert!(at < wanted && !CODE[at + 1..wanted].contains(' '));
    }

    /// `code[:code.rfind(" ", 0, int(len(code) * r))].strip()` in the published pipeline.
    #[test]
    fn white_space_before_the_cut_belongs_to_the_rest() {
        for share in [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9] {
            let at = cut(CODE, "x", &params(Boundary::Space, share, share)).expect("has a body");
            let position = (CODE.len() as f64 * share) as usize;
            let space = CODE[..position].rfind(' ').expect("a space");
            assert_eq!(&CODE[..at], CODE[..space].trim(), "{share}");
        }
        let at = cut(CODE, "x", &params(Boundary::Space, 0.8, 0.8)).expect("has a body");
        assert!(CODE[at..].starts_with("\n    return"), "{:?}", &CODE[at..]);
    }

    #[test]
    fn a_cut_never_lies_in_the_signature_or_the_docstring() {
        let documented =
            "def f(x):\n    \"\"\"Say what it does, and why.\"\"\"\n    return x + 1\n";
        for (code, after, (min, max), end) in [
            (CODE, After::Signature, (0.0, 0.1), "height):"),
            (documented, After::Docstring, (0.4, 0.65), "why.\"\"\""),
        ] {
            for boundary in [Boundary::Space, Boundary::Token, Boundary::Line] {
                let params = Params { after, ..params(boundary, min, max) };
                let at = cut(code, "x", &params).expect("has a body");
                assert!(code[..at].contains(end), "{at}");
            }
        }
    }

    #[test]
    fn a_share_of_the_rest_shows_some_of_the_body_behind_a_long_docstring() {
        let doc = "Say what it does. ".repeat(40);
        let code = format!(
            "def f(x):\n    \"\"\"{doc}\"\"\"\n    y = x + 1\n    z = y * 2\n    return y + z\n"
        );
        let end = code.rfind("\"\"\"").expect("a docstring") + 3;
        for boundary in [Boundary::Space, Boundary::Token, Boundary::Line] {
            let whole = Params { after: After::Docstring, ..params(boundary, 0.4, 0.65) };
            let rest = Params { share_of: ShareOf::Rest, ..whole };
            for id in ["a", "b", "c", "d"] {
                let at = cut(&code, id, &whole).expect("has a body");
                assert!(code[end..at].trim().len() < "y = x + 1".len(), "{:?}", &code[end..at]);
                let at = cut(&code, id, &rest).expect("has a body");
                assert!(!code[end..at].trim().is_empty(), "{:?}", &code[end..at]);
                assert!(!code[at..].trim().is_empty());
                let share = (at - end) as f64 / (code.len() - end) as f64;
                assert!((0.2..=0.75).contains(&share), "{share}");
            }
        }
        // A body of one word cannot be cut.
        let one = "def f(x):\n    \"\"\"Say it.\"\"\"\n    pass";
        let rest = Params {
            after: After::Docstring,
            share_of: ShareOf::Rest,
            ..params(Boundary::Space, 0.4, 0.65)
        };
        assert!(cut(one, "a", &rest).is_err());
        assert!(cut("def f(x):\n    ", "a", &Params { after: After::Signature, ..rest }).is_err());
        // Of a text without anything in front, both are the same.
        for id in ["a", "b", "c"] {
            let text = Params { after: After::Nothing, ..params(Boundary::Space, 0.4, 0.65) };
            let rest = Params { share_of: ShareOf::Rest, ..text };
            assert_eq!(cut(CODE, id, &text), cut(CODE, id, &rest));
        }
    }

    #[test]
    fn the_draw_depends_on_seed_and_id_only() {
        let wide = params(Boundary::Space, 0.4, 0.65);
        assert_eq!(cut(CODE, "a", &wide), cut(CODE, "a", &wide));
        let other = Params { seed: 43, ..params(Boundary::Space, 0.4, 0.65) };
        let ids = || (0..64).map(|i| i.to_string());
        let with = |p: &Params| ids().map(|id| cut(CODE, &id, p)).collect::<Vec<_>>();
        assert_ne!(with(&wide), with(&other));
    }

    #[test]
    fn what_cannot_be_cut_is_said() {
        assert!(cut("x = 1", "a", &params(Boundary::Space, 0.4, 0.6)).is_err());
        assert!(cut("", "a", &params(Boundary::Space, 0.4, 0.6)).is_err());
        for boundary in [Boundary::Space, Boundary::Token, Boundary::Line] {
            let anywhere = Params { after: After::Nothing, ..params(boundary, 0.4, 0.6) };
            assert!(cut("", "a", &anywhere).is_err());
        }
    }
}
