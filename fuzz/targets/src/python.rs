//! Python texts: the outline of versions against the whole parse, and all measurements.

use galeras_python::{
    OutlineMethod, Pieces, Recounter, SyntaxPattern, calls, cut_points, decode_source,
    docstring_end, features, methods, parses, signature_end, size, taxonomy, taxonomy_published,
    with_parser,
};

/// The outline of each version of a file is the list of its methods, regardless of earlier
/// versions.
pub(crate) fn outline(input: &[u8]) {
    let pieces = Pieces::new(1 << 20);
    for version in crate::texts(input) {
        for nested in [true, false, true] {
            assert_outline(&pieces, &version, nested);
        }
    }
}

fn assert_outline(pieces: &Pieces, source: &str, nested: bool) {
    let got = pieces.outline(source, nested);
    let want = methods(source, nested);
    match (got, want) {
        (Ok(got), Ok(want)) => {
            let got: Vec<OutlineMethod<'_>> = got.methods().collect();
            let want: Vec<OutlineMethod<'_>> = want
                .iter()
                .map(|method| OutlineMethod {
                    fun_name: &method.fun_name,
                    qualified_name: &method.qualified_name,
                    ordinal: method.ordinal,
                    start_line: method.start_line as u32,
                    end_line: method.end_line as u32,
                    start_byte: method.start_byte as u32,
                    end_byte: method.end_byte as u32,
                })
                .collect();
            assert_eq!(got, want, "nested: {nested}");
        }
        (got, want) => assert_eq!(got.err(), want.err(), "nested: {nested}"),
    }
}

/// Everything that is measured of a text: twice the same, with places inside of it.
pub(crate) fn measures(input: &[u8]) {
    let text = match decode_source(input) {
        Ok(decoded) => decoded.text,
        Err(_) => String::from_utf8_lossy(input).into_owned(),
    };
    with_parser(|parser| {
        let first = features(parser, &text);
        assert_eq!(first, features(parser, &text));
        let points = cut_points(parser, &text).unwrap_or_default();
        assert!(points.is_sorted_by(|a, b| a < b), "{points:?}");
        let ends = [signature_end(parser, &text), docstring_end(parser, &text)];
        let ends = ends.into_iter().filter_map(|end| end.ok().flatten());
        for place in points.into_iter().chain(ends) {
            assert!(text.is_char_boundary(place), "{place} of {}", text.len());
        }
        let _ = calls(parser, &text);
        let mut recounter = Recounter::default();
        let recount = recounter.measure(parser, &text).ok();
        assert_eq!(recount, recounter.measure(parser, &text).ok());
    })
    .expect("the parser is there");
    assert_eq!(parses(&text), parses(&text));
    assert_eq!(size(&text), size(&text));
    let tokens: u64 = taxonomy(&text).iter().sum();
    assert!(tokens <= 2 * text.len() as u64);
    let _ = taxonomy_published(&text);
}

/// A pattern of syntax, and a text in which it is looked for: the count has its limit.
pub(crate) fn pattern(input: &[u8]) {
    let texts = crate::texts(input);
    let (Some(pattern), code) = (texts.first(), texts.get(1).map_or("", String::as_str)) else {
        return;
    };
    match SyntaxPattern::new(pattern) {
        Ok(pattern) => with_parser(|parser| {
            // A text without a tree, or with one that is too much work, has no count.
            let Ok(all) = pattern.count(parser, code, usize::MAX) else { return };
            for limit in [1, 2] {
                assert_eq!(pattern.count(parser, code, limit), Ok(all.min(limit)));
            }
        })
        .expect("the parser is there"),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
