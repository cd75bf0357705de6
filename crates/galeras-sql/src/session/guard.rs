//! Reading what others wrote, so that a panic on the way is an error.
//!
//! The libraries that decode Parquet, CSV and JSON are written for files that are as they should
//! be; on damaged ones some of them panic. This is the one place that knows.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;

use futures::FutureExt as _;

/// Returns the result of `work`.
///
/// # Errors
/// The message of a panic. Values that `work` was changing must not be used afterwards.
pub async fn guarded<T>(work: impl Future<Output = T>) -> Result<T, String> {
    AssertUnwindSafe(work).catch_unwind().await.map_err(|payload| said(payload.as_ref()))
}

fn said(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a library gave up").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_error_that_says_what_it_said() {
        assert_eq!(guarded(async { 1 }).await, Ok(1));
        let work = async { [1, 2, 3][..std::hint::black_box(9)].len() };
        assert!(guarded(work).await.unwrap_err().contains("out of range"));
    }
}
