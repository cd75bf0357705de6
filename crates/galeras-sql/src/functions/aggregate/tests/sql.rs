//! The aggregates in queries: values, order independence, nulls, types, windows.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch, UInt64Array,
};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type, UInt64Type};
use datafusion::datasource::MemTable;
use datafusion::functions_aggregate::all_default_aggregate_functions;
use datafusion::prelude::{SessionConfig, SessionContext};

use super::super::{APPROXIMATE, ORDER_DEPENDENT};
use super::expected;
use crate::functions::aggregates;

const N: usize = 1000;

/// A session with the exact aggregates and a table `t` cut into `partitions`.
fn session(columns: Vec<(&str, ArrayRef)>, partitions: usize, batch: usize) -> SessionContext {
    let config = SessionConfig::new().with_target_partitions(partitions).with_batch_size(batch);
    let ctx = SessionContext::new_with_config(config);
    aggregates().iter().for_each(|f| ctx.register_udaf(f.as_ref().clone()));
    let rows = RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, column)| (name, column, true)),
    )
    .unwrap();
    let pieces = |rows: &RecordBatch, size: usize| -> Vec<RecordBatch> {
        let starts = (0..rows.num_rows()).step_by(size);
        starts.map(|at| rows.slice(at, size.min(rows.num_rows() - at))).collect()
    };
    let size = rows.num_rows().div_ceil(partitions).max(1);
    let mut parts: Vec<_> = pieces(&rows, size).iter().map(|part| pieces(part, batch)).collect();
    parts.resize(partitions, Vec::new());
    let table = MemTable::try_new(rows.schema(), parts).unwrap();
    ctx.register_table("t", Arc::new(table)).unwrap();
    ctx
}

async fn query(ctx: &SessionContext, sql: &str) -> RecordBatch {
    let frame = ctx.sql(sql).await.unwrap();
    let schema = Arc::new(frame.schema().as_arrow().clone());
    let batches = frame.collect().await.unwrap();
    let schema = batches.first().map_or(schema, |b| b.schema());
    concat_batches(&schema, &batches).unwrap()
}

/// The floats of one column.
fn floats(batch: &RecordBatch, column: usize) -> Vec<Option<f64>> {
    batch.column(column).as_primitive::<Float64Type>().iter().collect()
}

/// The first row's floats, as bits; all NaN alike.
fn first_row(batch: &RecordBatch) -> Vec<Option<u64>> {
    let bits = |v: f64| {
        if v.is_nan() { f64::NAN.to_bits() } else { v.to_bits() }
    };
    (0..batch.num_columns()).map(|c| floats(batch, c)[0].map(bits)).collect()
}

fn column(values: &[Option<f64>]) -> ArrayRef {
    Arc::new(Float64Array::from(values.to_vec()))
}

fn dense(values: Vec<f64>) -> ArrayRef {
    Arc::new(Float64Array::from(values))
}

/// Uniform values in [0, 1), the generator of `expected.py`.
fn uniform(seed: u64) -> Vec<f64> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 11) as f64 / 2f64.powi(53)
    };
    (0..N).map(|_| next()).collect()
}

/// A name, two columns, and the bits of the expected statistics.
type DataSet = (&'static str, Vec<f64>, Vec<f64>, [u64; 17]);

/// The columns of `expected.py`.
fn data_sets() -> Vec<DataSet> {
    let (u, w) = (uniform(1), uniform(2));
    let both = || u.iter().zip(&w).enumerate().map(|(i, (&a, &b))| (i as i32, a, b));
    let scaled = |a: f64, i: i32, k: i32| (a - 0.5) * 2f64.powi((i * k) % 600 - 300);
    vec![
        ("uniform", u.clone(), w.clone(), expected::UNIFORM),
        (
            "large mean",
            both().map(|(_, a, _)| 1e9 + a).collect(),
            both().map(|(_, a, b)| 3.0 - 2.0 * a + b / 8.0).collect(),
            expected::LARGE_MEAN,
        ),
        (
            "scales",
            both().map(|(i, a, _)| scaled(a, i, 37)).collect(),
            both().map(|(i, _, b)| scaled(b, i, 53)).collect(),
            expected::SCALES,
        ),
        (
            "line",
            both().map(|(i, ..)| f64::from(i)).collect(),
            both().map(|(i, ..)| 3.0 * f64::from(i) + 7.0).collect(),
            expected::LINE,
        ),
    ]
}

/// Every float statistic of `expected::NAMES` over `t`.
fn statistics() -> String {
    let calls = expected::NAMES.split(' ').map(|name| {
        let two = name.starts_with("regr") || name.starts_with("co");
        format!("{name}({})", if two { "y, x" } else { "x" })
    });
    calls.collect::<Vec<_>>().join(", ")
}

#[tokio::test]
async fn every_statistic_is_the_rounded_exact_value_in_any_partitioning() {
    for (name, x, y, bits) in data_sets() {
        let wanted: Vec<_> = bits.iter().map(|&b| Some(b)).collect();
        for partitions in 1..=8 {
            for reversed in [false, true] {
                let order = |v: &[f64]| {
                    let mut v = v.to_vec();
                    v.rotate_left(partitions * 97);
                    if reversed {
                        v.reverse()
                    }
                    v
                };
                let columns = vec![("x", dense(order(&x))), ("y", dense(order(&y)))];
                let ctx = session(columns, partitions, 64);
                let all = query(&ctx, &format!("SELECT {} FROM t", statistics())).await;
                assert_eq!(first_row(&all), wanted, "{name}, {partitions} partitions");
                let sql = format!("SELECT {} FROM t GROUP BY x IS NULL", statistics());
                assert_eq!(first_row(&query(&ctx, &sql).await), wanted, "{name}, grouped");
            }
        }
    }
}

#[tokio::test]
async fn groups_equal_filters_and_nulls_do_not_count() {
    let x: Vec<_> =
        uniform(3).into_iter().enumerate().map(|(i, v)| (i % 7 != 0).then_some(v)).collect();
    let y: Vec<_> =
        uniform(4).into_iter().enumerate().map(|(i, v)| (i % 11 != 0).then_some(v)).collect();
    let g: ArrayRef = Arc::new(Int64Array::from_iter_values((0..N as i64).map(|i| i % 3)));
    let ctx = session(vec![("x", column(&x)), ("y", column(&y)), ("g", g)], 4, 50);
    let calls = statistics();
    let groups = query(&ctx, &format!("SELECT {calls} FROM t GROUP BY g ORDER BY g")).await;
    for k in 0..3 {
        let one = query(&ctx, &format!("SELECT {calls} FROM t WHERE g = {k} AND x = x")).await;
        let filtered = calls.replace(')', &format!(") FILTER (WHERE g = {k})"));
        let filtered = query(&ctx, &format!("SELECT {filtered} FROM t")).await;
        assert_eq!(first_row(&groups.slice(k, 1)), first_row(&filtered), "group {k}");
        // Rows where x is null count for no statistic of this query.
        assert_eq!(first_row(&one), first_row(&filtered), "group {k}");
    }
}

#[tokio::test]
async fn empty_and_single_rows_are_null_where_datafusion_says_so() {
    let sql = |filter: &str| format!("SELECT {}, 0.0 FROM t WHERE {filter}", statistics());
    let ctx = session(vec![("x", dense(vec![2.0, 3.0])), ("y", dense(vec![5.0, 5.0]))], 2, 1);
    let builtin = SessionContext::new();
    builtin.register_table("t", ctx.table_provider("t").await.unwrap()).unwrap();
    for filter in ["x > 9", "x = 2", "x > 0"] {
        let (ours, theirs) = (query(&ctx, &sql(filter)).await, query(&builtin, &sql(filter)).await);
        assert_eq!(first_row(&ours), first_row(&theirs), "{filter}");
        assert_eq!(ours.schema(), theirs.schema(), "{filter}");
    }
    let count = query(&ctx, "SELECT regr_count(y, x) FROM t WHERE x > 9").await;
    assert_eq!(count.column(0).data_type(), &DataType::UInt64);
    assert_eq!(count.column(0).null_count(), 0);
}

#[tokio::test]
async fn nan_and_infinity_reach_the_result_in_any_order() {
    let values = [1.0, f64::NAN, f64::INFINITY, -2.0, f64::NEG_INFINITY, -0.0, 0.0];
    for shift in 0..values.len() {
        let mut v = values.to_vec();
        v.rotate_left(shift);
        let ctx = session(vec![("x", dense(v)), ("y", dense(values.to_vec()))], 3, 2);
        let sql = "SELECT sum(x), avg(x), var(x), stddev(x), covar(y, x), corr(y, x), max(x), \
                   min(x), sum(x) FILTER (WHERE x > 0 AND x < 2), min(x) FILTER (WHERE x = 0) \
                   FROM t";
        let nan = Some(f64::NAN.to_bits());
        let [one, low, zero] = [1.0, f64::NEG_INFINITY, -0.0].map(|v: f64| Some(v.to_bits()));
        let wanted = vec![nan, nan, nan, nan, nan, nan, nan, low, one, zero];
        assert_eq!(first_row(&query(&ctx, sql).await), wanted, "shift {shift}");
        let grouped = format!("{sql} GROUP BY x IS NULL");
        assert_eq!(first_row(&query(&ctx, &grouped).await), wanted, "shift {shift}, grouped");
    }
}

#[tokio::test]
async fn integers_keep_their_sum_type_and_have_an_exact_mean() {
    let values = vec![Some(i64::MAX), Some(i64::MAX - 2), None, Some(-1), Some(3)];
    let ctx = session(vec![("x", Arc::new(Int64Array::from(values)))], 3, 1);
    let ints = query(&ctx, "SELECT sum(x), sum(DISTINCT x), max(x) FROM t WHERE x < 4").await;
    assert!(ints.columns().iter().all(|c| c.data_type() == &DataType::Int64));
    let sql = "SELECT avg(x), mean(DISTINCT x), avg(x) FILTER (WHERE x > 3), \
               avg(CAST(x + 0 AS BIGINT UNSIGNED)) FILTER (WHERE x > 3), \
               avg(CAST(x % 100 AS INT)), avg(CAST(x % 100 + 0 AS FLOAT)), sum(CAST(x % 100 AS FLOAT)) FROM t";
    let batch = query(&ctx, sql).await;
    let row: Vec<_> = (0..7).map(|c| floats(&batch, c)[0].unwrap()).collect();
    let mean = ((i64::MAX as i128 * 2 - 2 + 2) / 4) as f64;
    let pair = (i64::MAX - 1) as f64;
    // 7 + 5 - 1 + 3
    assert_eq!(row, vec![mean, mean, pair, pair, 3.5, 3.5, 14.0]);
    let null = query(&ctx, "SELECT avg(NULL), avg(x) FILTER (WHERE x IS NULL) FROM t").await;
    assert_eq!(first_row(&null), [None, None]);
    let error = ctx.sql("SELECT avg('a' || x) FROM t").await.and_then(|f| f.into_optimized_plan());
    assert!(error.is_err(), "text has no mean");
    let decimal = query(&ctx, "SELECT avg(CAST(x AS DECIMAL(20, 2))) FROM t WHERE x < 4").await;
    assert!(matches!(decimal.column(0).data_type(), DataType::Decimal128(_, 6)));
}

/// Of n numbers that are 37 apart the variance is 37² n (n + 1) / 12, here 106097.5 of a sample and
/// 102560.91666… of all; y is 3 x + 7 over the distances.
#[tokio::test]
async fn integers_beyond_2_to_53_have_exact_moments() {
    let x: ArrayRef = Arc::new(Int64Array::from_iter_values((0..30).map(|i| (1 << 60) + 37 * i)));
    let y: ArrayRef =
        Arc::new(Float64Array::from_iter_values((0..30).map(|i| f64::from(i) * 111.0 + 7.0)));
    let ctx = session(vec![("x", x), ("y", y)], 3, 4);
    let unsigned = "CAST(x AS BIGINT UNSIGNED)";
    for x in ["x", unsigned] {
        let sql = format!(
            "SELECT var({x}), stddev({x}), var_pop(DISTINCT {x}), corr(y, {x}), corr({x}, {x}), \
             regr_slope(y, {x}), covar_samp({x}, y), regr_sxx(y, {x}) FROM t"
        );
        let batch = query(&ctx, &sql).await;
        let row: Vec<_> = (0..8).map(|c| floats(&batch, c)[0].unwrap()).collect();
        let all = 1_230_731.0 * 2.5 / 30.0;
        let wanted = [106_097.5, 106_097.5_f64.sqrt(), all, 1.0, 1.0, 3.0, 318_292.5, 3_076_827.5];
        assert_eq!(row, wanted, "{x}");
    }
}

/// An integer has the same parts in every batch, whatever else is in the batch.
#[tokio::test]
async fn an_integer_beside_large_ones_is_the_same_value() {
    let large = (1 << 60) + 1;
    let x: ArrayRef = Arc::new(Int64Array::from(vec![5, large, 5, 7, large, 7]));
    let ctx = session(vec![("x", x)], 2, 1);
    let sql = "SELECT avg(DISTINCT x), var_pop(DISTINCT x - x % 2) FROM t";
    let row = query(&ctx, sql).await;
    // Of 5, 7 and 2^60 + 1; of 4, 6 and 2^60, whose squares are 2^120 and 52 and whose sum is 2^60 + 10.
    let large = f64::from(1 << 30).powi(2);
    let variance = large * large * 2.0 / 9.0;
    assert_eq!(floats(&row, 0), [Some(large / 3.0)]);
    assert!((floats(&row, 1)[0].unwrap() / variance - 1.0).abs() < 1e-15);
}

#[tokio::test]
async fn a_sum_of_integers_is_right_or_an_error() {
    let values = vec![Some(i64::MAX), Some(5), Some(-7), Some(i64::MAX), Some(i64::MIN), None];
    for partitions in 1..=3 {
        let x: ArrayRef = Arc::new(Int64Array::from(values.clone()));
        let ctx = session(vec![("x", x)], partitions, 1);
        // On the way the sum is beyond 64 bits, whatever the order.
        let sums = query(&ctx, "SELECT sum(x) FROM t").await;
        assert_eq!(sums.column(0).as_primitive::<Int64Type>().value(0), i64::MAX - 3);
        let grouped = query(&ctx, "SELECT sum(x) FROM t GROUP BY x IS NULL ORDER BY 1").await;
        assert_eq!(grouped.column(0).as_primitive::<Int64Type>().value(0), i64::MAX - 3);
        for sql in [
            "SELECT sum(x) FROM t WHERE x > 0",
            "SELECT sum(x) FROM t WHERE x > 0 GROUP BY x IS NULL",
            "SELECT sum(x) OVER () FROM t WHERE x > 0",
            "SELECT sum(x) OVER (ORDER BY x ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t",
            "SELECT sum(DISTINCT x) FROM (SELECT x FROM t UNION ALL SELECT 6) AS u WHERE x > 0",
        ] {
            let error = ctx.sql(sql).await.unwrap().collect().await.unwrap_err().to_string();
            assert!(error.contains("more than 64 bits hold"), "{sql}: {error}");
        }
    }
    let large = vec![Some(u64::MAX), None];
    let ctx = session(vec![("x", Arc::new(UInt64Array::from(large)))], 1, 1);
    let sum = query(&ctx, "SELECT sum(x) FROM t").await;
    assert_eq!(sum.column(0).as_primitive::<UInt64Type>().value(0), u64::MAX);
}

#[tokio::test]
async fn distinct_counts_each_value_once() {
    let x = [0.1, 0.2, 0.1, 0.3, 0.3, 0.1].map(Some);
    let y = [1.0, 2.0, 1.0, 3.0, 4.0, 9.0].map(Some);
    for partitions in 1..=4 {
        let ctx = session(vec![("x", column(&x)), ("y", column(&y))], partitions, 2);
        let sql = "SELECT sum(DISTINCT x), avg(DISTINCT x), var(DISTINCT x), stddev(DISTINCT x), \
                   sum(DISTINCT y), covar_pop(DISTINCT y, x) FROM t";
        let row = first_row(&query(&ctx, sql).await);
        // Fractions of 0.1, 0.2, 0.3; of 1, 2, 3, 4, 9; of the five distinct pairs.
        let wanted = [0.6, 0.2, 0.009999999999999998, 0.09999999999999999, 19.0, -0.06];
        assert_eq!(row.len(), wanted.len());
        for (got, wanted) in row.iter().zip(wanted) {
            let got = f64::from_bits(got.unwrap());
            assert!((got - wanted).abs() < 1e-15, "{got} is not {wanted}");
        }
        let single = query(&ctx, "SELECT sum(DISTINCT x), avg(DISTINCT x) FROM t").await;
        assert_eq!(first_row(&single), row[..2]);
    }
    // One DISTINCT column becomes a GROUP BY, two do not: in both the zeros are one.
    let ctx = session(vec![("x", dense(vec![0.0, -0.0, 3.0])), ("y", dense(vec![1.0; 3]))], 1, 8);
    let group_by = query(&ctx, "SELECT avg(DISTINCT x) FROM t").await;
    let own = query(&ctx, "SELECT avg(DISTINCT x), sum(DISTINCT y) FROM t").await;
    assert_eq!(first_row(&group_by), first_row(&own)[..1]);
}

#[tokio::test]
async fn sliding_windows_equal_fresh_sums() {
    let x: Vec<f64> =
        uniform(5).iter().enumerate().map(|(i, v)| v * 10f64.powi(i as i32 % 30)).collect();
    let i: ArrayRef = Arc::new(Int64Array::from_iter_values(0..N as i64));
    let ctx = session(vec![("x", dense(x.clone())), ("i", i)], 4, 64);
    let frame = "OVER (ORDER BY i ROWS BETWEEN 3 PRECEDING AND CURRENT ROW)";
    let sql = format!(
        "SELECT sum(x) {frame}, avg(x) {frame}, sum(DISTINCT x) {frame}, stddev_pop(x) {frame}, \
         regr_slope(x, i) {frame}, sum(x) OVER (ORDER BY i), max(x) {frame} FROM t ORDER BY i"
    );
    let batch = query(&ctx, &sql).await;
    for end in [0usize, 1, 5, 500, 999] {
        let from = end.saturating_sub(3);
        let whole = format!(
            "SELECT sum(x) FILTER (WHERE i >= {from}), avg(x) FILTER (WHERE i >= {from}), \
             sum(x) FILTER (WHERE i >= {from}) AS d, stddev_pop(x) FILTER (WHERE i >= {from}), \
             regr_slope(x, i) FILTER (WHERE i >= {from}), sum(x), \
             max(x) FILTER (WHERE i >= {from}) FROM t WHERE i <= {end}"
        );
        let fresh = query(&ctx, &whole).await;
        assert_eq!(first_row(&batch.slice(end, 1)), first_row(&fresh), "row {end}");
    }
}

#[tokio::test]
async fn many_groups_spilled_through_partial_states_stay_exact() {
    // More groups than rows per group: the partial aggregation hands rows over as states.
    let n = 20_000;
    let x = dense((0..n).map(|i| f64::from(i) * 0.1).collect());
    let g: ArrayRef = Arc::new(Int64Array::from_iter_values((0..i64::from(n)).map(|i| i % 9_000)));
    let mut results = Vec::new();
    for partitions in [1, 3, 8] {
        let ctx = session(vec![("x", x.clone()), ("g", g.clone())], partitions, 512);
        let skip = "SET datafusion.execution.skip_partial_aggregation_probe_rows_threshold = 100";
        ctx.sql(skip).await.unwrap();
        let sql = "SELECT g, sum(x), stddev(x), corr(x, g + x) FROM t GROUP BY g ORDER BY g";
        results.push(query(&ctx, sql).await);
    }
    assert_eq!(results[0].num_rows(), 9_000);
    assert!(results.iter().all(|r| r == &results[0]));
}

/// By `numpy.quantile` of numpy 2.4.6, whose default is the interpolation of the SQL standard.
#[tokio::test]
async fn percentiles_are_interpolated_with_all_digits() {
    let far: Vec<f64> = (0..20_000).map(f64::from).collect();
    for (values, share, ascending, descending) in [
        (vec![0.0, 1.0, 2.0], 2.5e-7, 5e-7, 1.999_999_5),
        (vec![0.0, 1.0], 0.12345678, 0.12345678, 0.87654322),
        (far, 0.3, 5999.7, 13999.3),
        (vec![0.0, 1e6], 0.333_333_333_3, 333_333.333_3, 666_666.666_7),
        (vec![8.0, 1.0, 4.0, 2.0], 0.9, 6.8, 1.3),
        (vec![3.0, 1.0, 2.0], 0.0, 1.0, 3.0),
        (vec![3.0, 1.0, 2.0], 1.0, 3.0, 1.0),
        (vec![3.0, 1.0, 2.0], 0.5, 2.0, 2.0),
        (vec![7.0], 0.3, 7.0, 7.0),
    ] {
        for partitions in [1, 3] {
            let ctx = session(vec![("x", dense(values.clone()))], partitions, 512);
            let sql = format!(
                "SELECT percentile_cont({share}) WITHIN GROUP (ORDER BY x), \
                 percentile_cont({share}) WITHIN GROUP (ORDER BY x DESC), \
                 quantile_cont(DISTINCT x, {share}) FROM t"
            );
            let found = query(&ctx, &sql).await;
            for (at, right) in [ascending, descending, ascending].into_iter().enumerate() {
                let value = floats(&found, at)[0].unwrap();
                assert!((value - right).abs() <= 1e-12 * right.abs().max(1.0), "{sql}: {value}");
            }
        }
    }
    let ctx = session(vec![("x", column(&[Some(4.0), None, Some(1.0), Some(2.0)]))], 1, 512);
    let sql = "SELECT quantile_cont(x, 0.1) OVER (ORDER BY x ROWS BETWEEN 1 PRECEDING AND CURRENT \
               ROW) AS q FROM t ORDER BY x NULLS LAST";
    assert_eq!(floats(&query(&ctx, sql).await, 0), [Some(1.0), Some(1.1), Some(2.2), Some(4.0)]);
}

#[test]
fn every_default_aggregate_is_replaced_listed_or_safe() {
    // Integer, boolean or sorted state: the same value in any order.
    let safe = "approx_distinct bit_and bit_or bit_xor bool_and bool_or count grouping median";
    let ours = aggregates();
    for builtin in all_default_aggregate_functions() {
        let name = builtin.name();
        let replaced = ours.iter().find(|f| f.name() == name);
        let places = usize::from(replaced.is_some())
            + usize::from(ORDER_DEPENDENT.contains(&name))
            + usize::from(APPROXIMATE.contains(&name))
            + usize::from(safe.split(' ').any(|safe| safe == name));
        assert_eq!(places, 1, "{name}");
        if let Some(ours) = replaced {
            assert_eq!(ours.aliases(), builtin.aliases(), "{name}");
        }
    }
    let builtins: Vec<_> = all_default_aggregate_functions();
    let known = |name: &str| builtins.iter().any(|f| f.name() == name);
    assert!(ORDER_DEPENDENT.iter().chain(APPROXIMATE).all(|name| known(name)));
    assert!(ours.iter().all(|f| known(f.name())));
}
