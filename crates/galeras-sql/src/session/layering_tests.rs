//! Tables that leave columns to others, written and read in every way that there is: what comes back
//! is what a whole file gives.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Int64Array, ListBuilder, RecordBatch, StringArray,
    StringBuilder, UInt32Array,
};
use arrow::compute::{concat_batches, take_record_batch};
use proptest::prelude::*;

use super::*;
use galeras_operator::TableSchema;
use galeras_store::{PortArtifact, Store};

/// Methods: an id, a long text, a number, floats that are not numbers, and lists.
fn methods(rows: usize) -> RecordBatch {
    let ids = (0..rows).map(|at| format!("{at:06}"));
    let texts = (0..rows).map(|at| format!("def f{at}():\n    return {}", "x".repeat(at % 97)));
    let floats = (0..rows).map(|at| if at % 5 == 0 { f64::NAN } else { at as f64 / 3.0 });
    let mut lists = ListBuilder::new(StringBuilder::new());
    for at in 0..rows {
        match at % 4 {
            0 => lists.append_null(),
            some => lists.append_value((0..some).map(|item| Some(format!("{at}-{item}")))),
        }
    }
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(StringArray::from_iter_values(ids))),
        ("code", Arc::new(StringArray::from_iter_values(texts))),
        ("n", Arc::new(Int64Array::from_iter((0..rows as i64).map(|n| (n % 3 > 0).then_some(n))))),
        ("score", Arc::new(Float64Array::from_iter_values(floats))),
        ("names", Arc::new(lists.finish())),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn with(batch: &RecordBatch, name: &str, column: ArrayRef) -> RecordBatch {
    let known = batch.schema();
    let columns = known.fields().iter().map(|field| field.name().clone()).zip(batch.columns());
    let mut columns: Vec<(String, ArrayRef)> =
        columns.map(|(known, column)| (known, Arc::clone(column))).collect();
    match columns.iter_mut().find(|(known, _)| known == name) {
        Some((_, old)) => *old = column,
        None => columns.push((name.to_string(), column)),
    }
    RecordBatch::try_from_iter(columns).unwrap()
}

fn rows_of(batch: &RecordBatch, rows: impl IntoIterator<Item = usize>) -> RecordBatch {
    let rows = UInt32Array::from_iter_values(rows.into_iter().map(|row| row as u32));
    take_record_batch(batch, &rows).unwrap()
}

async fn folder() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().to_string_lossy()).await.unwrap();
    (folder, store)
}

async fn put(store: &Store, batch: &RecordBatch, over: &[&PortArtifact]) -> PortArtifact {
    let table = TableSchema::new(batch.schema(), None);
    let rows = session(2).read_batch(batch.clone()).unwrap();
    let bases =
        over.iter().map(|port| BaseTable { blob: port.blob, key: port.key.clone() }).collect();
    let open = open_table(rows, &table).await.unwrap().over(bases);
    open.store("out", store, 2, |_| {}, || {}).await.unwrap()
}

/// Stores a table over others and reads it back in every way; returns how it is stored.
async fn round_trip(store: &Store, batch: &RecordBatch, over: &[&PortArtifact]) -> PortArtifact {
    let whole = put(store, batch, &[]).await;
    let stored = put(store, batch, over).await;
    assert!(whole.layers.is_empty());
    assert_eq!((stored.digest, &stored.columns), (whole.digest, &whole.columns));
    assert_eq!(store.judge(&stored).await.unwrap(), None);

    let table = TableSchema::new(batch.schema(), None);
    let stored_schema = table.stored();
    let expected =
        scan(&session(1), store, &whole, &table, "step").unwrap().collect().await.unwrap();
    let expected = concat_batches(&stored_schema, &expected).unwrap();
    for threads in [1, 3] {
        let found = scan(&session(threads), store, &stored, &table, "step").unwrap();
        let found = sorted_by_key(found, &table.key).unwrap().collect().await.unwrap();
        same(&concat_batches(&stored_schema, &found).unwrap(), &expected);
    }
    // One column alone, of which the files of the others need not be opened.
    for field in stored_schema.fields() {
        let found = scan(&session(2), store, &stored, &table, "step").unwrap();
        let found = found.select_columns(&[field.name()]).unwrap();
        assert_eq!(found.count().await.unwrap(), batch.num_rows());
    }
    let as_it_is = scan_stored(&session(1), store, &stored).await.unwrap();
    assert_eq!(as_it_is.schema().as_arrow().fields(), stored_schema.fields());
    let (start, len) = (batch.num_rows() / 3, batch.num_rows() / 2);
    let range = (start as u64, len as u64);
    let found =
        scan_range(&session(1), store, &stored.blob, (&table, "step"), range).await.unwrap();
    let found = concat_batches(&stored_schema, &found.collect().await.unwrap()).unwrap();
    same(&found, &expected.slice(start, len));
    let file = Arc::new(store.table_file(&stored.blob).unwrap().unwrap());
    let last = batch.num_rows() as u64 - 1;
    let names: Vec<&str> = stored_schema.fields().iter().map(|f| f.name().as_str()).collect();
    let found = stored_rows(&file, &[last, 0, last / 2, 0], &names).unwrap();
    same(&found, &rows_of(&expected, [last as usize, 0, (last / 2) as usize, 0]));
    let path = whole_file(store, &stored).unwrap().unwrap();
    assert_eq!(whole_file(store, &stored).unwrap().unwrap(), path);
    let file = std::fs::File::open(path).unwrap();
    let read = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file);
    let read: Vec<RecordBatch> = read.unwrap().build().unwrap().map(Result::unwrap).collect();
    same(&concat_batches(&stored_schema, &read).unwrap(), &expected);
    stored
}

/// Equal to the bit, floats that are not numbers included.
fn same(one: &RecordBatch, other: &RecordBatch) {
    assert_eq!(one.num_rows(), other.num_rows());
    for (at, field) in other.schema().fields().iter().enumerate() {
        assert_eq!(one.column(at).to_data(), other.column(at).to_data(), "{}", field.name());
    }
}

fn blobs(port: &PortArtifact) -> Vec<galeras_base::digest::Digest> {
    port.layers.iter().map(|layer| layer.blob).collect()
}

#[tokio::test]
async fn what_is_added_kept_or_referred_to_is_stored_once() {
    let (_folder, store) = folder().await;
    let rows = 5_000;
    let one = methods(rows);
    let one_stored = put(&store, &one, &[]).await;
    let marks: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..rows).map(|n| format!("m{n}"))));
    let two = with(&one, "mark", marks);
    let two_stored = round_trip(&store, &two, &[&one_stored]).await;
    assert_eq!(blobs(&two_stored), [one_stored.blob]);
    assert!(two_stored.bytes * 2 < one_stored.bytes, "{}", two_stored.bytes);

    // A filter refers to the files themselves, not to one that refers on.
    let three = rows_of(&two, (0..rows).filter(|at| at % 7 != 3));
    let three_stored = round_trip(&store, &three, &[&two_stored]).await;
    assert_eq!(blobs(&three_stored), [one_stored.blob, two_stored.blob]);

    // Rows of other ids that name rows of the table, in another order and several times.
    let count = three.num_rows() * 2;
    let last = three.num_rows() - 1;
    let named: Vec<usize> = (0..count).map(|at| ((at / 2) ^ 3).min(last)).collect();
    let four = rows_of(&three, named);
    let four = with(&four, "of", Arc::clone(four.column_by_name("id").unwrap()));
    let ids = (0..count).map(|at| format!("child {at:06}"));
    let four = with(&four, "id", Arc::new(StringArray::from_iter_values(ids)));
    let four_stored = round_trip(&store, &four, &[&three_stored]).await;
    assert_eq!(blobs(&four_stored), [one_stored.blob, two_stored.blob]);

    // And on top of these: what was in any order stays so.
    let five = rows_of(&four, (0..count).filter(|at| at % 5 != 0));
    let five_stored = round_trip(&store, &five, &[&four_stored]).await;
    assert_eq!(blobs(&five_stored), [one_stored.blob, two_stored.blob, four_stored.blob]);
}

#[tokio::test]
async fn what_is_changed_new_or_sparse_is_stored() {
    let (_folder, store) = folder().await;
    let rows = 5_000;
    let one = methods(rows);
    let one_stored = put(&store, &one, &[]).await;
    let code = one.column_by_name("code").unwrap().as_string::<i32>().clone();
    for changed in [0, 1_023, 1_024, 4_999] {
        let texts = code.iter().enumerate();
        let texts = texts.map(|(at, text)| if at == changed { Some("changed") } else { text });
        let two = with(&one, "code", Arc::new(StringArray::from_iter(texts)));
        round_trip(&store, &two, &[&one_stored]).await;
    }
    // A row that the other lacks, in each of the row groups.
    for lacking in [0, 2_500, 4_999] {
        let base = put(&store, &rows_of(&one, (0..rows).filter(|at| *at != lacking)), &[]).await;
        round_trip(&store, &one, &[&base]).await;
    }
    let none = put(&store, &one, &[]).await;
    let few = rows_of(&one, [7, 8]);
    assert!(round_trip(&store, &few, &[&none]).await.layers.is_empty());
    // Minus zero is not zero, and one that is no number need not be another.
    let zeros: ArrayRef = Arc::new(Float64Array::from(vec![0.0; rows]));
    let minus: ArrayRef = Arc::new(Float64Array::from(vec![-0.0; rows]));
    let base = put(&store, &with(&one, "score", zeros), &[]).await;
    round_trip(&store, &with(&one, "score", minus), &[&base]).await;
}

#[tokio::test]
async fn a_table_whose_layer_is_gone_is_no_table() {
    let (_folder, store) = folder().await;
    let one = methods(3_000);
    let base = put(&store, &one, &[]).await;
    let marks: ArrayRef = Arc::new(Int64Array::from_iter_values(0..3_000));
    let two = put(&store, &with(&one, "mark", marks), &[&base]).await;
    assert!(store.has_table(&two).await.unwrap());
    std::fs::remove_file(store.local_blob(&base.blob).unwrap()).unwrap();
    assert!(!store.has_table(&two).await.unwrap());
    assert!(store.judge(&two).await.unwrap().is_some());
    let table = TableSchema::new(one.schema(), None);
    let error = scan(&session(1), &store, &two, &table, "step").unwrap().collect().await;
    assert!(error.is_err());
}

#[tokio::test]
async fn an_id_is_found_without_reading_other_row_groups() {
    let (_folder, store) = folder().await;
    let one = methods(5_000);
    let base = put(&store, &one, &[]).await;
    let marks: ArrayRef = Arc::new(Int64Array::from_iter_values(0..5_000));
    let batch = with(&one, "mark", marks);
    let two = put(&store, &batch, &[&base]).await;
    let table = TableSchema::new(batch.schema(), None);
    let found = scan(&session(1), &store, &two, &table, "step").unwrap();
    let found = found.filter(column("id").eq(datafusion::logical_expr::lit("004321"))).unwrap();
    let plan = found.clone().create_physical_plan().await.unwrap();
    let shown = datafusion::physical_plan::displayable(plan.as_ref()).indent(false).to_string();
    assert!(shown.contains("groups=1"), "{shown}");
    let rows = found.collect().await.unwrap();
    let rows = concat_batches(&rows[0].schema(), &rows).unwrap();
    assert_eq!(rows.num_rows(), 1);
    assert_eq!(rows.column_by_name("code").unwrap().as_string::<i32>().value(0).len(), 24 + 53);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn any_rows_and_changes_come_back(
        kept in prop::collection::vec(prop::bool::weighted(0.7), 2_500),
        changed in prop::collection::vec((0..2_500_usize, 0..5_usize), 0..4),
        extra in 0..3_usize,
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
        runtime.block_on(async {
            let (_folder, store) = folder().await;
            let one = methods(2_500);
            let base = put(&store, &one, &[]).await;
            let mut next = one.clone();
            for (row, column) in changed {
                // The value of another row in the place of a row's.
                if column > 0 {
                    let name = next.schema().field(column).name().clone();
                    let other = (row + 1) % 2_500;
                    let order = (0..2_500).map(|at| if at == row { other } else { at });
                    let values = rows_of(&next, order).column(column).clone();
                    next = with(&next, &name, values);
                }
            }
            let mut wanted: Vec<usize> = (0..2_500).filter(|at| kept[*at]).collect();
            if wanted.is_empty() {
                wanted.push(0);
            }
            let next = rows_of(&next, wanted);
            let second = round_trip(&store, &next, &[&base]).await;
            let third = rows_of(&next, (0..next.num_rows()).filter(|at| at % 11 != extra));
            if third.num_rows() > 0 {
                round_trip(&store, &third, &[&second, &base]).await;
            }
        });
    }
}
