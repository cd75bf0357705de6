//! DataFusion's functions whose result may be far larger than what they are given (`repeat`, `range`,
//! `lpad` …), or which take far longer than it takes to read it: what a result will take is computed
//! before it is made, and nothing of it is made while a query is only planned.
//!
//! A number in a query is enough to ask for all memory of a machine, and memory that is not there ends
//! the process. Does not live here: what each function makes (`growth`); the limits of templates
//! (`template_growth`).

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{DFSchema, extensions_options};
use datafusion::config::ConfigExtension;
use datafusion::error::{DataFusionError, Result};
use datafusion::functions_nested::planner::NestedFunctionPlanner;
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ExprSchemable, ExpressionPlacement, ReturnFieldArgs,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::growth::{Growth, MAX_CONSTANT, MAX_ROWS, MAX_VALUE};
use super::text_concat::TextConcat;

extensions_options! {
    /// What a session is for.
    pub struct Purpose {
        /// Its queries are planned and never run: what may take long need not be evaluated.
        pub planning: bool, default = false
    }
}

impl ConfigExtension for Purpose {
    const PREFIX: &'static str = "galeras";
}

/// One of DataFusion's functions, or of ours, with a limit.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Bounded {
    inner: Arc<ScalarUDF>,
    growth: Growth,
}

/// The function with its limit, if it needs one.
pub fn bounded(function: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
    match Growth::of(function.name()) {
        Some(growth) => Arc::new(ScalarUDF::from(Bounded { inner: function, growth })),
        None => function,
    }
}

/// Plans the operators of lists and texts (`a || b`, `[a, b]`) as DataFusion does, but with limits.
#[derive(Debug)]
pub struct BoundedOperators;

impl ExprPlanner for BoundedOperators {
    fn plan_binary_op(
        &self,
        expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        match with_limit(NestedFunctionPlanner.plan_binary_op(expr, schema)?) {
            PlannerResult::Original(expr) if expr.op == BinaryOperator::StringConcat => {
                let types = (expr.left.get_type(schema)?, expr.right.get_type(schema)?);
                Ok(match TextConcat::text_type(&types.0, &types.1) {
                    Some(_) => PlannerResult::Planned(call(vec![expr.left, expr.right])),
                    None => PlannerResult::Original(expr),
                })
            }
            planned => Ok(planned),
        }
    }

    fn plan_array_literal(
        &self,
        exprs: Vec<Expr>,
        schema: &DFSchema,
    ) -> Result<PlannerResult<Vec<Expr>>> {
        Ok(with_limit(NestedFunctionPlanner.plan_array_literal(exprs, schema)?))
    }
}

/// Two texts put together.
fn call(sides: Vec<Expr>) -> Expr {
    bounded(Arc::new(ScalarUDF::from(TextConcat::default()))).call(sides)
}

fn with_limit<T>(planned: PlannerResult<T>) -> PlannerResult<T> {
    match planned {
        PlannerResult::Planned(Expr::ScalarFunction(mut call)) => {
            call.func = bounded(call.func);
            PlannerResult::Planned(Expr::ScalarFunction(call))
        }
        other => other,
    }
}

impl Bounded {
    fn refused(&self, what: &str, bytes: u128, limit: u128) -> DataFusionError {
        let mib = |bytes: u128| bytes.div_ceil(1 << 20);
        let help = match self.growth {
            Growth::Range => "; to count further, read it like a table (`FROM range(0, 1000000)`)",
            _ => "",
        };
        DataFusionError::Execution(format!(
            "`{}` would make {what} of {} MiB, and {} MiB are the most{help}",
            self.inner.name(),
            mib(bytes),
            mib(limit),
        ))
    }
}

impl ScalarUDFImpl for Bounded {
    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if args.config_options.extensions.get::<Purpose>().is_some_and(|purpose| purpose.planning) {
            return Err(DataFusionError::Execution(format!(
                "`{}` is not evaluated while a query is planned",
                self.inner.name()
            )));
        }
        let constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        // What is constant is made once, and may then be repeated for every row of a batch.
        let (rows, value) = match constant {
            true => (1, MAX_CONSTANT),
            false => (args.number_rows, MAX_VALUE),
        };
        let size = self.growth.size(&args.args, rows)?;
        if size.largest > value {
            let what = if constant { "a constant" } else { "a value" };
            return Err(self.refused(what, size.largest, value));
        }
        if size.all > MAX_ROWS {
            return Err(self.refused(&format!("{rows} values together"), size.all, MAX_ROWS));
        }
        self.inner.inner().invoke_with_args(args)
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        self.inner.inner().schema_name(args)
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.inner().return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        self.inner.inner().return_field_from_args(args)
    }

    fn is_strict(&self) -> bool {
        self.inner.inner().is_strict()
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.inner.inner().simplify(args, info)
    }

    fn preimage(
        &self,
        args: &[Expr],
        literal: &Expr,
        info: &SimplifyContext,
    ) -> Result<PreimageResult> {
        self.inner.inner().preimage(args, literal, info)
    }

    fn conditional_arguments<'a>(
        &self,
        args: &'a [Expr],
    ) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.inner.inner().conditional_arguments(args)
    }

    fn short_circuits(&self) -> bool {
        self.inner.inner().short_circuits()
    }

    fn evaluate_bounds(&self, input: &[&Interval]) -> Result<Interval> {
        self.inner.inner().evaluate_bounds(input)
    }

    fn propagate_constraints(
        &self,
        interval: &Interval,
        inputs: &[&Interval],
    ) -> Result<Option<Vec<Interval>>> {
        self.inner.inner().propagate_constraints(interval, inputs)
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.inner.inner().output_ordering(inputs)
    }

    fn preserves_lex_ordering(&self, inputs: &[ExprProperties]) -> Result<bool> {
        self.inner.inner().preserves_lex_ordering(inputs)
    }

    fn strictly_order_preserving(&self, inputs: &[ExprProperties]) -> Result<bool> {
        self.inner.inner().strictly_order_preserving(inputs)
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.inner().coerce_types(types)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    fn placement(&self, args: &[ExpressionPlacement]) -> ExpressionPlacement {
        self.inner.inner().placement(args)
    }
}

#[cfg(test)]
mod tests {
    use datafusion::execution::SessionStateBuilder;
    use datafusion::prelude::SessionContext;

    use super::*;

    fn context(planning: bool) -> SessionContext {
        let mut builder = SessionStateBuilder::new().with_default_features();
        let scalars = builder.scalar_functions().get_or_insert_default();
        *scalars = scalars.drain(..).map(bounded).collect();
        builder.expr_planners().get_or_insert_default().insert(0, Arc::new(BoundedOperators));
        let mut state = builder.build();
        state.config_mut().options_mut().extensions.insert(Purpose { planning });
        SessionContext::new_with_state(state)
    }

    /// The value of an expression in the first of three rows with the columns `n` and `t`.
    async fn value(expr: &str) -> Result<String> {
        let rows = "(VALUES (3, 'ab'), (2, 'c'), (NULL, NULL)) AS t (n, t)";
        let sql = format!("SELECT {expr} AS v FROM {rows}");
        let batches = context(false).sql(&sql).await?.collect().await?;
        arrow::util::display::array_value_to_string(batches[0].column(0), 0).map_err(Into::into)
    }

    #[tokio::test]
    async fn what_is_small_is_as_ever() {
        for (expr, expected) in [
            ("repeat(t, n)", "ababab"),
            ("repeat('x', 3)", "xxx"),
            ("lpad(t, n, 'ü')", "üab"),
            ("replace(t, 'b', 'cd')", "acd"),
            ("regexp_replace(t, '(.)', '[$1]', 'g')", "[a][b]"),
            ("array_repeat(t, n)", "[ab, ab, ab]"),
            ("array_resize([1, 2], n, 7)", "[1, 2, 7]"),
            ("range(n)", "[0, 1, 2]"),
            ("generate_series(1, n)", "[1, 2, 3]"),
            ("range(5, 0, -2)", "[5, 3, 1]"),
            ("cardinality(range(DATE '2020-01-01', DATE '2020-03-01', INTERVAL '1 day'))", "60"),
            ("[n] || [1] || 2", "[3, 1, 2]"),
            ("[n, 1]", "[3, 1]"),
            ("concat(t, n)", "ab3"),
            ("array_to_string([n, 1], ', ')", "3, 1"),
            ("string_to_array(t, '')", "[ab]"),
            ("regexp_like(t, '^a')", "true"),
            ("levenshtein(t, 'b')", "1"),
            ("repeat(t, NULL)", ""),
            ("t || 'x' || n", "abx3"),
            ("arrow_typeof(t || n)", "Utf8"),
            ("t || NULL", ""),
            ("NULL || t || 'x'", ""),
            ("'x' || 'y'", "xy"),
            ("array_replace([n, 1], 1, 5)", "[3, 5]"),
            ("array_replace_all([t, 'b'], 'b', t)", "[ab, ab]"),
            ("array_to_string([t, NULL], '-', '?')", "ab-?"),
            ("range(n, NULL)", ""),
            ("range(5, 0)", "[]"),
            ("range(n, 2000000000, -1)", "[]"),
            ("cardinality(range(DATE '2020-01-01', NULL, INTERVAL '1 day'))", ""),
            ("range(DATE '2020-03-01', DATE '0001-01-01', INTERVAL '1 day')", "[]"),
        ] {
            assert_eq!(value(expr).await.unwrap(), expected, "{expr}");
        }
    }

    #[tokio::test]
    async fn what_would_take_all_memory_is_refused_before_it_is_made() {
        for expr in [
            "length(repeat('a', 2000000000))",
            "length(repeat(t, 2000000000))",
            "length(lpad(t, 2000000000, 'x'))",
            "length(rpad('x', n * 1000000000))",
            "length(replace(repeat(t, 100000000), 'a', repeat('b', 1000)))",
            "length(replace(repeat(t, 10000000), '', repeat('b', 1000)))",
            "length(regexp_replace(repeat(t, 10000000), '.', repeat('$0', 1000), 'g'))",
            "cardinality(range(0, 2000000000))",
            "cardinality(range(n * 1000000000))",
            "cardinality(generate_series(n, -9000000000000000000, -1))",
            "cardinality(range(DATE '0001-01-01', DATE '9999-01-01', INTERVAL '1 nanosecond'))",
            "cardinality(generate_series(TIMESTAMP '2020-01-01', TIMESTAMP '2021-01-01', \
             INTERVAL '1 microsecond'))",
            "cardinality(array_repeat(n, 2000000000))",
            "cardinality(array_repeat(range(100000), 100000))",
            "cardinality(array_resize([n], 2000000000))",
            "cardinality(string_to_array(repeat('a', 1000000), NULL))",
            "length(array_to_string(range(n * 1000000), repeat('b', 10000)))",
            "length(array_to_string(array_repeat(arrow_cast(NULL, 'Utf8'), n * 1000000), '', \
             repeat('b', 10000)))",
            "cardinality(array_replace_all(array_repeat(t, n * 100000), t, repeat('b', 10000)))",
            "cardinality(range(TIMESTAMP '2020-01-01', TIMESTAMP '2021-01-01', \
             INTERVAL '1 microsecond'))",
            "length(repeat(t, 100000000) || repeat(t, 100000000))",
        ] {
            let error = value(expr).await.unwrap_err().to_string();
            assert!(error.contains("are the most"), "{expr}: {error}");
        }
        let step = "range(DATE '2020-01-01', DATE '2020-03-01', INTERVAL '1 month -31 days')";
        let error = value(step).await.unwrap_err().to_string();
        assert!(error.contains("others that go back"), "{error}");
    }

    #[tokio::test]
    async fn lists_that_double_are_refused_and_so_are_texts() {
        for (first, double) in [
            ("range(n * 1000)", "v || v"),
            ("repeat(t, 1000)", "concat(v, v)"),
            ("repeat(t, 1000)", "v || v"),
        ] {
            let with: Vec<String> = (1..27)
                .map(|i| format!("a{i} AS (SELECT {double} AS v FROM a{})", i - 1))
                .collect();
            let query = format!(
                "WITH a0 AS (SELECT {first} AS v FROM (VALUES (3, 'ab')) AS t (n, t)), {} \
                 SELECT v FROM a26",
                with.join(", ")
            );
            let failed = context(false).sql(&query).await.unwrap().collect().await.unwrap_err();
            assert!(failed.to_string().contains("are the most"), "{failed}");
        }
    }

    /// A list of a group is a part of the one that holds the lists of all groups.
    #[tokio::test]
    async fn lists_of_many_groups_are_counted_by_themselves() {
        let sql = "SELECT max(length(v)) AS v, count(*) AS n FROM (
                       SELECT array_to_string(array_agg(code), ' ') AS v FROM (
                           SELECT value % 2000 AS k, repeat('x', 10000) AS code FROM range(0, 4000)
                       ) GROUP BY k)";
        let batches = context(false).sql(sql).await.unwrap().collect().await.unwrap();
        let text = arrow::util::pretty::pretty_format_batches(&batches).unwrap().to_string();
        assert!(text.contains("20001") && text.contains("2000 "), "{text}");
    }

    #[tokio::test]
    async fn two_texts_have_the_name_and_the_nulls_of_the_operator() {
        let sql = "SELECT t || 'x', a || b, a || 'x' FROM (VALUES ('a'), (NULL)) AS t (t), \
                   (SELECT 'a' AS a, 'b' AS b)";
        let frame = context(false).sql(sql).await.unwrap();
        let columns: Vec<(String, bool)> = frame
            .schema()
            .fields()
            .iter()
            .map(|field| (field.name().clone(), field.is_nullable()))
            .collect();
        let named = |name: &str, nullable| (name.to_string(), nullable);
        let wanted = [
            named("t.t || Utf8(\"x\")", true),
            named("a || b", false),
            named("a || Utf8(\"x\")", false),
        ];
        assert_eq!(columns, wanted);
    }

    #[tokio::test]
    async fn nothing_that_takes_long_is_evaluated_while_a_query_is_planned() {
        for expr in ["length(repeat('a', 9))", "cardinality(range(0, 9))", "levenshtein('a', 'b')"]
        {
            let plan = async |planning| {
                let frame = context(planning).sql(&format!("SELECT {expr} AS v")).await.unwrap();
                frame.into_optimized_plan().unwrap().display_indent().to_string()
            };
            let name = ["repeat", "range", "levenshtein"].map(|name| format!("{name}("));
            let called = |plan: &str| name.iter().any(|name| plan.contains(name.as_str()));
            let (planned, run) = (plan(true).await, plan(false).await);
            assert!(called(&planned) && !called(&run), "{planned}\n{run}");
        }
    }
}
