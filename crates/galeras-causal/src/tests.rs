//! Helpers of the unit tests: reference files, comparisons, random numbers.

use std::collections::HashMap;

use serde_json::Value;

use crate::Covariance::{self, Classic, Cr0, Cr1, Cr2, Cr3, Hc0, Hc1, Hc2, Hc3};

/// A JSON file below tests/reference.
pub(crate) fn json(path: &str) -> Value {
    let text = std::fs::read_to_string(format!("../../tests/reference/{path}")).unwrap();
    serde_json::from_str(&text).unwrap()
}

pub(crate) fn numbers(list: &Value) -> Vec<f64> {
    list.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

pub(crate) fn slices(columns: &[Vec<f64>]) -> Vec<&[f64]> {
    columns.iter().map(Vec::as_slice).collect()
}

/// A table of a CSV file, by column. Cells that are not numbers are NaN in `numbers`.
pub(crate) struct Table {
    names: Vec<String>,
    cells: Vec<Vec<String>>,
    numbers: Vec<Vec<f64>>,
}

impl Table {
    /// A file below tests/reference.
    pub(crate) fn read(path: &str) -> Self {
        Self::parse(&std::fs::read_to_string(format!("../../tests/reference/{path}")).unwrap())
    }

    pub(crate) fn parse(text: &str) -> Self {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let names: Vec<String> = reader.headers().unwrap().iter().map(Into::into).collect();
        let mut cells = vec![Vec::new(); names.len()];
        for record in reader.records() {
            cells
                .iter_mut()
                .zip(&record.unwrap())
                .for_each(|(column, cell)| column.push(cell.into()));
        }
        let number = |cell: &String| cell.parse().unwrap_or(f64::NAN);
        let numbers = cells.iter().map(|column| column.iter().map(number).collect()).collect();
        Self { names, cells, numbers }
    }

    fn position(&self, name: &str) -> usize {
        self.names.iter().position(|other| other == name).expect(name)
    }

    pub(crate) fn column(&self, name: &str) -> &[f64] {
        let column = &self.numbers[self.position(name)];
        assert!(column.iter().all(|number| !number.is_nan()), "{name}");
        column
    }

    pub(crate) fn columns<const N: usize>(&self, names: [&str; N]) -> [&[f64]; N] {
        names.map(|name| self.column(name))
    }

    /// True for 1 and `t`.
    pub(crate) fn treated(&self, name: &str) -> Vec<bool> {
        let at = self.position(name);
        let cells = self.cells[at].iter().zip(&self.numbers[at]);
        cells.map(|(cell, number)| cell == "t" || *number == 1.0).collect()
    }

    /// A column of codes.
    pub(crate) fn codes(&self, name: &str) -> Vec<u32> {
        self.column(name).iter().map(|code| *code as u32).collect()
    }

    /// Codes of the values in the order of first appearance.
    pub(crate) fn groups(&self, name: &str) -> Vec<u32> {
        let mut known = HashMap::new();
        let code = |cell| {
            let next = known.len() as u32;
            *known.entry(cell).or_insert(next)
        };
        self.cells[self.position(name)].iter().map(code).collect()
    }
}

/// A data set of tests/reference/causal with its reference numbers.
pub(crate) struct Study {
    pub(crate) json: Value,
    pub(crate) table: Table,
}

impl Study {
    pub(crate) fn read(name: &str) -> Self {
        let table = Table::read(&format!("causal/{name}.csv"));
        Self { json: json(&format!("causal/{name}.json")), table }
    }

    pub(crate) fn treated(&self) -> Vec<bool> {
        self.table.treated(self.json["meta"]["treatment"].as_str().unwrap())
    }

    pub(crate) fn outcome(&self) -> &[f64] {
        self.table.column(self.json["meta"]["outcome"].as_str().unwrap())
    }

    pub(crate) fn covariates(&self) -> Vec<&[f64]> {
        let names = self.json["meta"]["covariates"].as_array().unwrap().iter();
        names.map(|name| self.table.column(name.as_str().unwrap())).collect()
    }

    /// Propensity scores by the coefficients of a reference model.
    pub(crate) fn scores(&self, model: &str) -> Vec<f64> {
        let model = &self.json["propensity"][model];
        let mut linear = vec![model["intercept"].as_f64().unwrap(); self.treated().len()];
        for (column, coefficient) in self.covariates().iter().zip(numbers(&model["coef"])) {
            linear.iter_mut().zip(*column).for_each(|(sum, value)| *sum += coefficient * value);
        }
        linear.into_iter().map(|linear| 1.0 / (1.0 + (-linear).exp())).collect()
    }
}

/// Inverse-propensity weights with scores clipped to 0.05 and 0.95.
pub(crate) fn clipped_weights(scores: &[f64], treated: &[bool]) -> Vec<f64> {
    let weight = |(score, treated): (&f64, &bool)| {
        let score = score.clamp(0.05, 0.95);
        if *treated { 1.0 / score } else { 1.0 / (1.0 - score) }
    };
    scores.iter().zip(treated).map(weight).collect()
}

/// tests/reference/generalised_models.json with its tables.
pub(crate) struct GeneralisedModels {
    pub(crate) json: Value,
    pub(crate) table: Table,
    pub(crate) nhefs: Table,
}

impl GeneralisedModels {
    pub(crate) fn read() -> Self {
        let json = json("generalised_models.json");
        let table = Table::parse(json["csv"].as_str().unwrap());
        Self { json, table, nhefs: Table::read("causal/nhefs.csv") }
    }

    pub(crate) fn treated(&self) -> Vec<bool> {
        self.table.treated("arm")
    }

    pub(crate) fn covariates(&self) -> Vec<&[f64]> {
        self.table.columns(["size", "depth"]).to_vec()
    }
}

/// All kinds of standard errors; their names are those of the reference files.
pub(crate) const KINDS: [Covariance; 9] = [Classic, Hc0, Hc1, Hc2, Hc3, Cr0, Cr1, Cr2, Cr3];

/// An expected number.
pub(crate) trait Number {
    fn number(&self) -> f64;
}

impl Number for f64 {
    fn number(&self) -> f64 {
        *self
    }
}

impl Number for &Value {
    fn number(&self) -> f64 {
        self.as_f64().unwrap_or_else(|| panic!("{self} is not a number"))
    }
}

/// Fails unless two numbers agree to a relative tolerance.
#[track_caller]
pub(crate) fn close(found: f64, expected: impl Number, tolerance: f64) {
    near(found, expected, tolerance, 0.0);
}

/// Fails unless two numbers agree to a tolerance relative to the expected number, or to `floor` if
/// that is larger.
#[track_caller]
pub(crate) fn near(found: f64, expected: impl Number, tolerance: f64, floor: f64) {
    let expected = expected.number();
    let bound = tolerance * expected.abs().max(floor);
    assert!((found - expected).abs() <= bound, "{found:e} is not {expected:e}");
}

/// Random numbers by SplitMix64.
pub(crate) struct Draw(pub(crate) u64);

impl Draw {
    /// Uniform on [0, 1).
    pub(crate) fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A standard normal number (Box & Muller).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Numbers that are uniform on [-0.5, 0.5).
    pub(crate) fn column(&mut self, rows: usize) -> Vec<f64> {
        (0..rows).map(|_| self.uniform() - 0.5).collect()
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.uniform() * limit as f64) as usize
    }
}

/// Integers below `most` by a linear congruential generator.
pub(crate) fn integers(n: usize, seed: u64, most: u64) -> Vec<f64> {
    let mut state = seed;
    let mut next = |_| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((state >> 33) % most) as f64
    };
    (0..n).map(&mut next).collect()
}

/// Solves A x = b for several right sides by elimination with pivoting; also returns ln |det A|.
pub(crate) fn solve(mut a: Vec<Vec<f64>>, mut b: Vec<Vec<f64>>) -> (Vec<Vec<f64>>, f64) {
    let (size, mut log) = (a.len(), 0.0);
    for at in 0..size {
        let best = (at..size).max_by(|i, j| a[*i][at].abs().total_cmp(&a[*j][at].abs())).unwrap();
        a.swap(at, best);
        b.iter_mut().for_each(|column| column.swap(at, best));
        log += a[at][at].abs().ln();
        let pivot = a[at].clone();
        for row in (0..size).filter(|row| *row != at) {
            let weight = a[row][at] / pivot[at];
            a[row].iter_mut().zip(&pivot).for_each(|(cell, value)| *cell -= weight * value);
            b.iter_mut().for_each(|column| column[row] -= weight * column[at]);
        }
    }
    b.iter_mut().for_each(|column| (0..size).for_each(|row| column[row] /= a[row][row]));
    (b, log)
}
