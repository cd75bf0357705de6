//! `levenshtein(a, b)`, `codebleu(reference, prediction)` and so on: single scores for `sql`, which
//! are those of the operator `score` with its defaults.

use arrow::array::AsArray;
use arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature};

use super::metric::{Metric, places};
use super::pair_scores::{ScoredBatch, Texts};
use super::spec::ScoreSpec;
use crate::functions::function_doc::FunctionDoc;

/// The first column of a metric. It is null where a text is null or has no such score.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct MetricFunction {
    metric: Metric,
    name: &'static str,
    signature: Signature,
}

impl MetricFunction {
    /// The functions of the metrics that have one, with their descriptions.
    pub(super) fn all() -> impl Iterator<Item = (FunctionDoc, Self)> {
        Metric::all().filter_map(|metric| {
            let doc = metric.function?;
            Some((doc, Self { metric, name: doc.name, signature: doc.accepts() }))
        })
    }
}

impl ScalarUDFImpl for MetricFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.metric.columns[0].data_type())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let references = args.args[0].to_array(args.number_rows)?;
        let predictions = args.args[1].to_array(args.number_rows)?;
        let (references, predictions) = (references.as_string(), predictions.as_string());
        let texts = Texts { given: None, references, predictions };
        let batch = ScoredBatch::of(&ScoreSpec::only(self.metric), texts)?;
        let is_whole = self.metric.columns[0].is_whole;
        Ok(ColumnarValue::Array(batch.column(places(self.metric).0.start, is_whole)))
    }
}
