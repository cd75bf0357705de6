//! The page of the report: findings, pictures, tables and answers of the study.

use axum::extract::State;

use super::answer::{Answered, Served, html};
use crate::report::{page, study};

pub(super) async fn report(State(served): State<Served>) -> Answered {
    let snapshot = served.study.snapshot().await?;
    let _reading = served.study.reading().await?;
    let report = study(&snapshot.surveyed).await?;
    Ok(html(page(&report)?))
}
