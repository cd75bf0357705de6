//! Pairs: the means of each unit under both arms.

use galeras_causal::Refusal;

/// The means of the units under both arms, for units that have rows in both.
pub(super) struct UnitPairs {
    pub(super) treatment: Vec<f64>,
    pub(super) control: Vec<f64>,
    /// The unit of each pair.
    pub(super) units: Vec<u32>,
    /// The first row of each pair.
    pub(super) rows: Vec<u32>,
    /// Whether some unit has several rows in an arm.
    pub(super) averaged: bool,
}

impl UnitPairs {
    /// The pairs of a sample with units.
    pub(super) fn of(treated: &[bool], outcome: &[f64], units: &[u32]) -> Self {
        let size = units.iter().max().map_or(0, |last| *last as usize + 1);
        let mut sums = vec![[(0.0, 0u32); 2]; size];
        let mut first = vec![0u32; size];
        for (row, (unit, treated)) in units.iter().zip(treated).enumerate() {
            let arms = &mut sums[*unit as usize];
            if arms[0].1 + arms[1].1 == 0 {
                first[*unit as usize] = row as u32;
            }
            let (sum, n) = &mut arms[usize::from(*treated)];
            *sum += outcome[row];
            *n += 1;
        }
        let mut pairs = Self {
            treatment: Vec::with_capacity(size),
            control: Vec::with_capacity(size),
            units: Vec::with_capacity(size),
            rows: Vec::with_capacity(size),
            averaged: false,
        };
        for (unit, [(control, n0), (treatment, n1)]) in sums.into_iter().enumerate() {
            if n0 == 0 || n1 == 0 {
                continue;
            }
            pairs.averaged |= n0 > 1 || n1 > 1;
            pairs.treatment.push(treatment / f64::from(n1));
            pairs.control.push(control / f64::from(n0));
            pairs.units.push(unit as u32);
            pairs.rows.push(first[unit]);
        }
        pairs
    }

    /// The cluster of each pair, from the unit and the cluster of each row.
    ///
    /// # Errors
    /// A unit has rows in two clusters.
    pub(super) fn clusters(&self, units: &[u32], clusters: &[u32]) -> Result<Vec<u32>, Refusal> {
        let mut of_unit = vec![u32::MAX; units.len()];
        for (unit, cluster) in units.iter().zip(clusters) {
            let known = &mut of_unit[*unit as usize];
            if *known != u32::MAX && known != cluster {
                let message = "a unit has rows in two clusters: units must lie within one";
                return Err(Refusal::Other(message.into()));
            }
            *known = *cluster;
        }
        Ok(self.units.iter().map(|unit| of_unit[*unit as usize]).collect())
    }

    /// Treatment minus control, of each pair.
    pub(super) fn differences(&self) -> Vec<f64> {
        self.treatment.iter().zip(&self.control).map(|(t, c)| t - c).collect()
    }
}
