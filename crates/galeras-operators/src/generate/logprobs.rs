//! The columns with the log-probabilities of an answer's tokens.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, Float64Array, Float64Builder, Int64Array, ListBuilder, StringBuilder, StructBuilder,
};
use arrow::datatypes::{DataType, Field, FieldRef, Fields};

use galeras_operator::describe;

const SUM: &str = "logprob_sum";
const MEAN: &str = "logprob_mean";
const COUNT: &str = "n_logprobs";
const TOKENS: &str = "token_logprobs";

fn token_fields() -> Fields {
    Fields::from(vec![
        Field::new("token", DataType::Utf8, true),
        Field::new("logprob", DataType::Float64, true),
    ])
}

pub(super) fn fields() -> Vec<FieldRef> {
    let tokens = DataType::new_list(DataType::Struct(token_fields()), true);
    let float = |name, about| describe(name, DataType::Float64, true, about, Some("nats"));
    vec![
        float(SUM, "natural logarithm of the probability of the answer: the sum over its tokens"),
        float(MEAN, "the same per token; exp(-x) is the perplexity"),
        describe(COUNT, DataType::Int64, true, "tokens with a log-probability", Some("tokens")),
        describe(TOKENS, tokens, true, "the tokens of the answer, each with its own", None),
    ]
}

/// One of the columns, from the tokens of each answer; `None` for another name.
pub(super) fn column<'a>(
    name: &str,
    told: impl Iterator<Item = Option<&'a [TokenPair]>>,
) -> Option<ArrayRef> {
    Some(match name {
        SUM => Arc::new(told.map(|tokens| sum(tokens?)).collect::<Float64Array>()),
        MEAN => {
            let mean = |tokens: &[TokenPair]| Some(sum(tokens)? / tokens.len() as f64);
            let mean = |tokens: &'a [TokenPair]| mean(tokens).filter(|mean| mean.is_finite());
            Arc::new(told.map(|tokens| mean(tokens?)).collect::<Float64Array>())
        }
        COUNT => {
            let count = |tokens: &[TokenPair]| {
                i64::try_from(tokens.iter().filter(|(_, logprob)| logprob.is_some()).count()).ok()
            };
            Arc::new(told.map(|tokens| count(tokens?)).collect::<Int64Array>())
        }
        TOKENS => lists(told),
        _ => return None,
    })
}

/// A token, and the logarithm of its probability.
pub(super) type TokenPair = (String, Option<f64>);

/// The sum in the order of the tokens; `None` if any is unknown.
fn sum(tokens: &[TokenPair]) -> Option<f64> {
    let sum = tokens.iter().try_fold(0.0, |sum, (_, logprob)| Some(sum + (*logprob)?));
    sum.filter(|sum: &f64| sum.is_finite())
}

fn lists<'a>(told: impl Iterator<Item = Option<&'a [TokenPair]>>) -> ArrayRef {
    let texts = Box::new(StringBuilder::new());
    let numbers = Box::new(Float64Builder::new());
    let mut lists = ListBuilder::new(StructBuilder::new(token_fields(), vec![texts, numbers]));
    for tokens in told {
        for (token, logprob) in tokens.unwrap_or_default() {
            let pair = lists.values();
            if let Some(texts) = pair.field_builder::<StringBuilder>(0) {
                texts.append_value(token);
            }
            if let Some(numbers) = pair.field_builder::<Float64Builder>(1) {
                numbers.append_option(*logprob);
            }
            pair.append(true);
        }
        lists.append(tokens.is_some());
    }
    Arc::new(lists.finish())
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array, AsArray};
    use arrow::datatypes::{Float64Type, Int64Type};

    use super::*;

    #[test]
    fn what_is_not_known_is_null() {
        let told = |logprobs: Option<Vec<Option<f64>>>| -> Option<Vec<TokenPair>> {
            Some(logprobs?.into_iter().map(|one| ("t".to_string(), one)).collect())
        };
        let all = [
            told(Some(vec![Some(-0.5), Some(-1.5)])),
            told(Some(vec![Some(-0.5), None])),
            told(Some(vec![])),
            told(Some(vec![Some(-f64::MAX), Some(-f64::MAX)])),
            told(None),
        ];
        let of = |name| column(name, all.iter().map(Option::as_deref)).unwrap();
        let floats = |name| of(name).as_primitive::<Float64Type>().iter().collect::<Vec<_>>();
        assert_eq!(floats(SUM), [Some(-2.0), None, Some(0.0), None, None]);
        assert_eq!(floats(MEAN), [Some(-1.0), None, None, None, None]);
        let counts: Vec<_> = of(COUNT).as_primitive::<Int64Type>().iter().collect();
        assert_eq!(counts, [Some(2), Some(1), Some(0), Some(2), None]);
        let lists = of(TOKENS);
        let lengths: Vec<_> = lists.as_list::<i32>().iter().map(|l| l.map(|l| l.len())).collect();
        assert_eq!(lengths, [Some(2), Some(2), Some(0), Some(2), None]);
        assert_eq!(*lists.data_type(), *fields()[3].data_type());
        assert!(column("model", std::iter::empty()).is_none());
    }
}
