//! Mixed models against lme4's published results, statsmodels, and a dense computation.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod designs;
mod oracle;
mod peers;
mod published;

use std::collections::HashMap;

use super::{MixedFit, RandomTerm, mixed};

/// A table of text, by column.
pub(super) struct Table(HashMap<String, Vec<String>>);

impl Table {
    pub(super) fn parse(text: &str) -> Self {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let names: Vec<String> = reader.headers().unwrap().iter().map(Into::into).collect();
        let mut columns: Vec<Vec<String>> = vec![Vec::new(); names.len()];
        for record in reader.records() {
            let record = record.unwrap();
            columns.iter_mut().zip(&record).for_each(|(column, cell)| column.push(cell.into()));
        }
        Self(names.into_iter().zip(columns).collect())
    }

    /// A published data set.
    pub(super) fn published(name: &str) -> Self {
        let path = format!("../../tests/reference/mixed/{name}.csv");
        Self::parse(&std::fs::read_to_string(path).unwrap())
    }

    pub(super) fn numbers(&self, name: &str) -> Vec<f64> {
        self.0[name].iter().map(|cell| cell.parse().unwrap()).collect()
    }

    pub(super) fn codes(&self, name: &str) -> Vec<u32> {
        let mut known = HashMap::new();
        self.0[name]
            .iter()
            .map(|cell| {
                let next = known.len() as u32;
                *known.entry(cell).or_insert(next)
            })
            .collect()
    }
}

/// Intercepts of these groups.
pub(super) fn intercepts(groups: &[u32]) -> RandomTerm<'_> {
    RandomTerm { groups, intercept: true, slopes: Vec::new() }
}

/// A fit with random intercepts only.
pub(super) fn fit(
    table: &Table,
    outcome: &str,
    fixed: &[&str],
    random: &[&str],
    reml: bool,
) -> MixedFit {
    let columns: Vec<Vec<f64>> = fixed.iter().map(|name| table.numbers(name)).collect();
    let columns: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
    let groups: Vec<Vec<u32>> = random.iter().map(|name| table.codes(name)).collect();
    let terms: Vec<RandomTerm<'_>> = groups.iter().map(|groups| intercepts(groups)).collect();
    mixed(&table.numbers(outcome), &columns, &terms, reml).unwrap()
}

/// Random numbers: SplitMix64.
pub(super) struct Draw(pub(super) u64);

impl Draw {
    pub(super) fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(super) fn normal(&mut self) -> f64 {
        let (u, v) = (1.0 - self.uniform(), self.uniform());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    pub(super) fn below(&mut self, limit: usize) -> usize {
        (self.uniform() * limit as f64) as usize
    }
}
