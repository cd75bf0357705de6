//! Finds texts in the cells of a table, at any depth of lists and structs.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::DataType;

/// Calls `visit` with texts that contain those of all cells, until it returns a value: that value
/// with the column's name.
pub(super) fn find_in_texts<T>(
    batch: &RecordBatch,
    visit: &impl Fn(&str) -> Option<T>,
) -> Option<(String, T)> {
    let schema = batch.schema();
    let mut columns = schema.fields().iter().zip(batch.columns());
    columns.find_map(|(field, column)| {
        find(column.as_ref(), visit).map(|found| (field.name().clone(), found))
    })
}

fn find<T>(array: &dyn Array, visit: &impl Fn(&str) -> Option<T>) -> Option<T> {
    match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().iter().flatten().find_map(visit),
        DataType::LargeUtf8 => array.as_string::<i64>().iter().flatten().find_map(visit),
        DataType::Utf8View => array.as_string_view().iter().flatten().find_map(visit),
        DataType::Binary => {
            let mut values = array.as_binary::<i32>().iter().flatten();
            values.find_map(|value| visit(&String::from_utf8_lossy(value)))
        }
        DataType::List(_) => find(array.as_list::<i32>().values().as_ref(), visit),
        DataType::LargeList(_) => find(array.as_list::<i64>().values().as_ref(), visit),
        DataType::Struct(_) => {
            array.as_struct().columns().iter().find_map(|column| find(column.as_ref(), visit))
        }
        _ => None,
    }
}
