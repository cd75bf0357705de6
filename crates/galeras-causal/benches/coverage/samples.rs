//! The data sets: treatments, outcomes, groups. The effect is the same for all rows and every
//! outcome is linear in the covariates, so all estimators are consistent. Estimators that need
//! another outcome draw it for the same rows (`generalised`, `grouped`).

use crate::random::SplitMix;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Normal,
    Binary,
    Count,
    Heavy,
    /// Four ordered levels, which `generalised` draws; here the outcome is normal.
    Ordered,
}

impl Outcome {
    pub(crate) const ALL: [Self; 5] =
        [Self::Normal, Self::Binary, Self::Count, Self::Heavy, Self::Ordered];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Binary => "binary",
            Self::Count => "count",
            Self::Heavy => "heavy-tailed",
            Self::Ordered => "ordered",
        }
    }

    pub(crate) fn effect(self) -> f64 {
        if self == Self::Binary { 0.25 } else { 1.0 }
    }

    /// The change of the outcome from one end of the covariates to their middle.
    pub(crate) fn slope(self) -> f64 {
        match self {
            Self::Binary => 0.2,
            Self::Count => 1.5,
            Self::Normal | Self::Heavy | Self::Ordered => 2.0,
        }
    }

    /// An outcome; `t` is between 0 and 1, `place` (the covariates' effect) and `group` between -1
    /// and 1.
    pub(crate) fn draw(self, random: &mut SplitMix, t: f64, place: f64, group: f64) -> f64 {
        match self {
            Self::Normal | Self::Ordered => t + 2.0 * place + group + random.normal(),
            Self::Heavy => t + 2.0 * place + group + random.heavy(),
            Self::Binary => {
                let rate = 0.375 + 0.25 * t + 0.2 * place + 0.15 * group;
                f64::from(u8::from(random.chance(rate)))
            }
            Self::Count => random.poisson(3.0 + t + 1.5 * place + group),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sample {
    /// This many rows, treated by a coin that two covariates load.
    Rows(usize),
    /// This many clusters of 10 to 30 rows, treated as `Rows`; a tenth to a third of the variance
    /// is between clusters.
    Clusters(usize),
    /// This many clusters of 10 to 30 rows, half of which are treated as a whole.
    TreatedClusters(usize),
    /// This many units with five rows under each arm.
    Units(usize),
    /// This many units with one row under each arm.
    Pairs(usize),
}

impl Sample {
    pub(crate) const ALL: [Self; 17] = [
        Self::Rows(20),
        Self::Rows(50),
        Self::Rows(200),
        Self::Rows(1000),
        Self::Clusters(8),
        Self::Clusters(12),
        Self::Clusters(30),
        Self::TreatedClusters(8),
        Self::TreatedClusters(12),
        Self::TreatedClusters(30),
        Self::Units(20),
        Self::Units(50),
        Self::Units(200),
        Self::Pairs(20),
        Self::Pairs(50),
        Self::Pairs(200),
        Self::Pairs(1000),
    ];

    pub(crate) fn name(self) -> String {
        match self {
            Self::Rows(n) => format!("{n} rows"),
            Self::Clusters(n) => format!("{n} clusters"),
            Self::TreatedClusters(n) => format!("{n} clusters, half treated"),
            Self::Units(n) => format!("{n} units × 2 × 5"),
            Self::Pairs(n) => format!("{n} pairs"),
        }
    }
}

#[derive(Default)]
pub(crate) struct DataSet {
    pub(crate) treated: Vec<bool>,
    pub(crate) outcome: Vec<f64>,
    pub(crate) covariates: [Vec<f64>; 2],
    pub(crate) clusters: Option<Vec<u32>>,
    /// An instrument of `moved`, and its outcome, which something unobserved also moves.
    pub(crate) instrument: Vec<f64>,
    pub(crate) moved: Vec<f64>,
    pub(crate) of_moved: Vec<f64>,
    /// A treatment by a fair coin, and its outcome.
    pub(crate) coin: Vec<bool>,
    pub(crate) of_coin: Vec<f64>,
    /// A count under that treatment that varies more than Poisson's: negative binomial of size 2.
    pub(crate) spread: Vec<f64>,
}

pub(crate) fn data_set(sample: Sample, outcome: Outcome, random: &mut SplitMix) -> DataSet {
    let mut data = DataSet::default();
    match sample {
        Sample::Rows(n) => {
            for _ in 0..n {
                let [x, z] = [random.symmetric(), random.symmetric()];
                let treated = random.chance(expit(0.8 * x - 0.5 * z));
                data.push(random, outcome, [x, z], treated, 0.0);
                data.push_coin_and_instrument(random, outcome, 0.5 * (x + z));
            }
        }
        Sample::Clusters(n) | Sample::TreatedClusters(n) => {
            let mut clusters = Vec::new();
            let shift = usize::from(random.chance(0.5));
            for cluster in 0..n {
                let group = random.symmetric();
                for _ in 0..10 + cluster % 3 * 10 {
                    let [x, z] = [random.symmetric(), random.symmetric()];
                    let treated = match sample {
                        Sample::Clusters(_) => random.chance(expit(0.8 * x - 0.5 * z)),
                        _ => (cluster + shift) % 2 == 0,
                    };
                    data.push(random, outcome, [x, z], treated, group);
                    clusters.push(cluster as u32);
                }
            }
            data.clusters = Some(clusters);
        }
        Sample::Units(n) | Sample::Pairs(n) => {
            let rows = if matches!(sample, Sample::Units(_)) { 10 } else { 2 };
            let mut clusters = Vec::new();
            for unit in 0..n {
                let [x, z] = [random.symmetric(), random.symmetric()];
                let groups = [0.0, 0.5].map(|share| share * random.symmetric());
                for row in 0..rows {
                    let group = groups[1] * if row % 2 == 0 { 1.0 } else { -1.0 };
                    data.push(random, outcome, [x, z], row % 2 == 0, group);
                    clusters.push(unit as u32);
                }
            }
            data.clusters = Some(clusters);
        }
    }
    data
}

impl DataSet {
    pub(crate) fn columns(&self) -> [&[f64]; 2] {
        self.covariates.each_ref().map(Vec::as_slice)
    }

    pub(crate) fn clusters(&self) -> Option<&[u32]> {
        self.clusters.as_deref()
    }

    /// The number of clusters or units.
    pub(crate) fn groups(&self) -> usize {
        self.clusters.iter().flatten().max().map_or(0, |last| *last as usize + 1)
    }

    /// Half of the covariates' effect on a row.
    pub(crate) fn place(&self, row: usize) -> f64 {
        0.5 * (self.covariates[0][row] + self.covariates[1][row])
    }

    /// The means of each unit's rows under the treatment, and under the control.
    pub(crate) fn unit_means(&self) -> [Vec<f64>; 2] {
        let mean = |rows: &[f64], arm: usize| {
            rows.iter().skip(arm).step_by(2).sum::<f64>() / (rows.len() / 2) as f64
        };
        let rows = self.outcome.len() / self.groups().max(1);
        [0, 1].map(|arm| self.outcome.chunks(rows).map(|unit| mean(unit, arm)).collect())
    }

    fn push(
        &mut self,
        random: &mut SplitMix,
        outcome: Outcome,
        covariates: [f64; 2],
        treated: bool,
        group: f64,
    ) {
        self.treated.push(treated);
        let place = 0.5 * (covariates[0] + covariates[1]);
        self.outcome.push(outcome.draw(random, number(treated), place, group));
        for (column, value) in self.covariates.iter_mut().zip(covariates) {
            column.push(value);
        }
    }

    fn push_coin_and_instrument(&mut self, random: &mut SplitMix, outcome: Outcome, place: f64) {
        let coin = random.chance(0.5);
        self.coin.push(coin);
        self.of_coin.push(outcome.draw(random, number(coin), place, 0.0));
        if outcome == Outcome::Count {
            // A gamma variable of shape 2 and mean 1.
            let more = -0.5 * ((1.0 - random.uniform()).ln() + (1.0 - random.uniform()).ln());
            self.spread.push(random.poisson((3.0 + number(coin) + 1.5 * place) * more));
        }
        let (instrument, unseen) = (random.chance(0.5), random.symmetric());
        let moved = random.chance(0.5 + if instrument { 0.4 } else { -0.4 } + 0.1 * unseen);
        self.instrument.push(number(instrument));
        self.moved.push(number(moved));
        self.of_moved.push(outcome.draw(random, number(moved), place, 0.5 * unseen));
    }
}

pub(crate) fn number(yes: bool) -> f64 {
    f64::from(u8::from(yes))
}

pub(crate) fn expit(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}
