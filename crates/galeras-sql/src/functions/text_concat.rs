//! `a || b` for texts: one behind the other, and null if either is. It is an operator of SQL and has no
//! name that can be called; here it is a function, so that it has a limit as all functions have whose
//! result may be far larger than their arguments (`growth`).
//!
//! Does not live here: `||` for lists (`bounded`).

use std::sync::Arc;

use arrow::compute::kernels::concat_elements::concat_elements_dyn;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::type_coercion::binary::BinaryTypeCoercer;
use datafusion::logical_expr::{
    ColumnarValue, Expr, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion::scalar::ScalarValue;

/// The operator is its name.
pub(super) const TEXT_CONCAT: &str = "||";

/// `a || b` of texts.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct TextConcat {
    signature: Signature,
}

impl Default for TextConcat {
    fn default() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl TextConcat {
    /// The type that both sides get, if it is one of texts: as DataFusion's own operator does it.
    pub(super) fn text_type(left: &DataType, right: &DataType) -> Option<DataType> {
        let coercer = BinaryTypeCoercer::new(left, &Operator::StringConcat, right);
        let text = coercer.get_result_type().ok()?;
        matches!(text, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View).then_some(text)
    }
}

impl ScalarUDFImpl for TextConcat {
    fn name(&self) -> &str {
        TEXT_CONCAT
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let args: Vec<String> = args.iter().map(|arg| format!("{}", arg.schema_name())).collect();
        Ok(args.join(" || "))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let text = match types {
            [left, right] => Self::text_type(left, right),
            _ => None,
        };
        let wrong = || DataFusionError::Plan("`||` puts two texts or two lists together".into());
        text.map(|text| vec![text.clone(), text]).ok_or_else(wrong)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types.first().cloned().unwrap_or(DataType::Utf8))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let text = args.arg_fields.first().map_or(DataType::Utf8, |f| f.data_type().clone());
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), text, nullable)))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let sides = ColumnarValue::values_to_arrays(&args.args)?;
        let [left, right] = sides.as_slice() else {
            return Err(DataFusionError::Internal("`||` has two sides".into()));
        };
        let joined = concat_elements_dyn(left, right)?;
        Ok(match constant {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&joined, 0)?),
            false => ColumnarValue::Array(joined),
        })
    }
}
