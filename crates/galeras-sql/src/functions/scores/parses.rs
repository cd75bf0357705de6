//! `parses`: the prediction is Python without a syntax error. An empty text is not.

use super::metric::{PairMetric, ScoreColumn, one_value};
use galeras_python::{parses, with_parser};

pub(super) const PARSES: PairMetric = PairMetric {
    columns: &[ScoreColumn::whole("parses", "1 if the prediction has no syntax error, else 0")],
    about: "1 if the prediction is Python without a syntax error, else 0.",
    function: None,
    // Null for a text that cannot be parsed within its bounds.
    scorer: |_| {
        one_value(|pair| {
            let parses = with_parser(|parser| parses(parser, pair.program));
            Ok(parses.ok().and_then(Result::ok).map(|parses| f64::from(u8::from(parses))))
        })
    },
    corpus: None,
};
