//! Random numbers that are the same on every machine, and the distributions of the samples.

/// A generator of random numbers (Steele, Lea and Flood 2014).
pub(crate) struct SplitMix(pub(crate) u64);

impl SplitMix {
    /// The numbers of one data set of one cell.
    pub(crate) fn new(cell: u64, data_set: u64) -> Self {
        let mut mixed = Self(cell.wrapping_mul(0xd6e8_feb8_6659_fd93) ^ data_set);
        Self(mixed.bits())
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform on [0, 1).
    pub(crate) fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform on [-1, 1).
    pub(crate) fn symmetric(&mut self) -> f64 {
        2.0 * self.uniform() - 1.0
    }

    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }

    pub(crate) fn normal(&mut self) -> f64 {
        let (u, v) = (1.0 - self.uniform(), self.uniform());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    /// Student's t with three degrees of freedom: a variance, but no third moment.
    pub(crate) fn heavy(&mut self) -> f64 {
        let squares: f64 = (0..3).map(|_| self.normal().powi(2)).sum();
        self.normal() / (squares / 3.0).sqrt()
    }

    /// A Poisson number, by multiplication (Knuth).
    pub(crate) fn poisson(&mut self, mean: f64) -> f64 {
        let limit = (-mean).exp();
        let (mut product, mut count) = (self.uniform(), 0.0);
        while product > limit {
            product *= self.uniform();
            count += 1.0;
        }
        count
    }
}
