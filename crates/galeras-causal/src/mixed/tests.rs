//! Mixed models against lme4's published results, statsmodels, and a dense computation.

mod designs;
mod oracle;
mod peers;
mod published;

use super::{MixedFit, RandomTerm, mixed};
use crate::tests::Table;

fn published(name: &str) -> Table {
    Table::read(&format!("mixed/{name}.csv"))
}

pub(super) fn intercepts(groups: &[u32]) -> RandomTerm<'_> {
    RandomTerm { groups, intercept: true, slopes: Vec::new() }
}

pub(super) fn fit(
    table: &Table,
    outcome: &str,
    fixed: &[&str],
    random: &[&str],
    reml: bool,
) -> MixedFit {
    let columns: Vec<&[f64]> = fixed.iter().map(|name| table.column(name)).collect();
    let groups: Vec<Vec<u32>> = random.iter().map(|name| table.groups(name)).collect();
    let terms: Vec<RandomTerm<'_>> = groups.iter().map(|groups| intercepts(groups)).collect();
    mixed(table.column(outcome), &columns, &terms, reml).unwrap()
}
