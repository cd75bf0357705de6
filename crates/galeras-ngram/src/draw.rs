//! Draws one of several weighted candidates, in integers.
//!
//! Probabilities are proportional to `weight^(1/T)`. At `T = 1` these are exactly the weights.
//! Otherwise they are quantised: `log2` of the weight to 32 binary places, times `1/T` with `T` in
//! thousandths, relative to the greatest weight, and back to an integer in 0..=2^32. A candidate
//! below 2^-32 of the best one is never drawn. `powf` and `exp` differ in the last place between
//! platforms; these integers do not.

const PLACES: u32 = 32;

/// Logarithms of small weights are in a table.
const TABLE: usize = 1024;

/// Size of the cache of quantised weights.
const QUANTISED: usize = 512;

pub(super) struct RandomStream {
    output: blake3::OutputReader,
    /// A block of it, as cheap as one number, and the place of the next number.
    block: [u8; 64],
    at: usize,
}

impl RandomStream {
    /// The numbers of a seed: the output of BLAKE3 for its eight bytes, least significant first, in
    /// pieces of eight bytes.
    pub(super) fn new(seed: u64) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("galeras ngram 1: random numbers");
        let output = hasher.update(&seed.to_le_bytes()).finalize_xof();
        Self { output, block: [0; 64], at: 64 }
    }

    fn next(&mut self) -> u64 {
        if self.at == self.block.len() {
            self.output.fill(&mut self.block);
            self.at = 0;
        }
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.block[self.at..self.at + 8]);
        self.at += 8;
        u64::from_le_bytes(bytes)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Temperature(u64);

impl Temperature {
    /// Rounds to thousandths. Below 0.0005, or NaN: 0. Above 1000: 1000.
    pub(super) fn new(temperature: f64) -> Self {
        // Multiplication and rounding are exact by IEEE 754, and `as` maps NaN to 0.
        Self((temperature * 1000.0).round().clamp(0.0, 1e6) as u64)
    }
}

/// Draws candidates, with reusable buffers.
pub(super) struct Sampler {
    /// `log2` of 0..TABLE.
    logarithms: Vec<u64>,
    weights: Vec<u64>,
    /// The greatest weight, another one, the temperature in thousandths, and the other one
    /// quantised: few weights make up most draws.
    quantised: Vec<(u64, u64, u64, u64)>,
}

impl Default for Sampler {
    fn default() -> Self {
        Self {
            logarithms: (0..TABLE as u64).map(log2).collect(),
            weights: Vec::new(),
            // Candidates always have a weight.
            quantised: vec![(0, 0, 0, 0); QUANTISED],
        }
    }
}

impl Sampler {
    /// The place of the drawn candidate; always takes one number of the stream. At temperature 0 it
    /// is the first of those with the greatest weight. `None` without candidates. Weights are
    /// positive.
    pub(super) fn draw(
        &mut self,
        candidates: &[(u32, u64)],
        temperature: Temperature,
        stream: &mut RandomStream,
    ) -> Option<usize> {
        let bits = stream.next();
        if candidates.len() == 1 {
            return Some(0);
        }
        let greatest = candidates.iter().map(|&(_, weight)| weight).max()?;
        self.weights.clear();
        match temperature.0 {
            0 => return candidates.iter().position(|&(_, weight)| weight == greatest),
            1000 => self.weights.extend(candidates.iter().map(|&(_, weight)| weight)),
            thousandths => {
                let mut last = (greatest, 1 << PLACES);
                for &(_, weight) in candidates {
                    if weight != last.0 {
                        last = (weight, self.quantise(greatest, weight, thousandths));
                    }
                    self.weights.push(last.1);
                }
            }
        }
        let total: u128 = self.weights.iter().map(|&weight| u128::from(weight)).sum();
        // The upper bits of the product: uniform in 0..total, with an error below total / 2^64.
        let mut left = (u128::from(bits).saturating_mul(total)) >> 64;
        self.weights.iter().position(|&weight| {
            let reached = left < u128::from(weight);
            left = left.saturating_sub(u128::from(weight));
            reached
        })
    }

    /// A weight relative to the greatest one, at a temperature in thousandths.
    fn quantise(&mut self, greatest: u64, weight: u64, thousandths: u64) -> u64 {
        let place = (greatest.wrapping_mul(31) ^ weight) as usize % QUANTISED;
        let known = self.quantised[place];
        if (known.0, known.1, known.2) == (greatest, weight, thousandths) {
            return known.3;
        }
        // Exact in 64 bits: logarithms are below 2^38.
        let power = exp2((self.log2(greatest) - self.log2(weight)) * 1000 / thousandths);
        self.quantised[place] = (greatest, weight, thousandths, power);
        power
    }

    fn log2(&self, weight: u64) -> u64 {
        self.logarithms.get(weight as usize).copied().unwrap_or_else(|| log2(weight))
    }
}

/// `log2(n)`, rounded down, with [`PLACES`] binary places; 0 for 0.
fn log2(n: u64) -> u64 {
    let Some(whole) = n.checked_ilog2() else { return 0 };
    // `x` is n / 2^whole in [1, 2), with 63 binary places. Squaring doubles its logarithm: each
    // time a binary place comes out.
    let mut x = n << (63 - whole);
    let mut log = u64::from(whole);
    for _ in 0..PLACES {
        let square = u128::from(x) * u128::from(x);
        let carry = (square >> 127) as u32;
        x = (square >> (63 + carry)) as u64;
        log = log << 1 | u64::from(carry);
    }
    log
}

/// `2^(32 - exponent)`, rounded down, for an exponent with [`PLACES`] binary places.
fn exp2(exponent: u64) -> u64 {
    let (whole, places) = (exponent >> PLACES, exponent & ((1 << PLACES) - 1));
    if whole > 32 {
        return 0;
    }
    let factors = ROOTS.iter().enumerate().filter(|(at, _)| places >> (31 - at) & 1 == 1);
    let product = factors.fold(1_u64 << 63, |product, (_, &root)| {
        ((u128::from(product) * u128::from(root)) >> 63) as u64
    });
    product >> 31 >> whole
}

/// `2^(-1/2)`, `2^(-1/4)`, `2^(-1/8)`... with 63 binary places.
const ROOTS: [u64; PLACES as usize] = {
    let mut roots = [0; PLACES as usize];
    let mut square = 1_u128 << 62;
    let mut at = 0;
    while at < roots.len() {
        square = (square << 63).isqrt();
        roots[at] = square as u64;
        at += 1;
    }
    roots
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_and_powers_are_right_to_the_last_places() {
        for n in [1, 2, 3, 10, 1000, 1023, 1024, 123_456_789, u64::MAX] {
            let log = log2(n) as f64 / 2_f64.powi(32);
            assert!((log - (n as f64).log2()).abs() < 1e-8, "{n}");
        }
        for exponent in [0.0, 0.001, 0.5, 1.0, 1.7, 20.3, 31.9] {
            let power = exp2((exponent * 2_f64.powi(32)) as u64) as f64;
            assert!((power - (32.0 - exponent).exp2()).abs() <= 1.5 + power * 1e-8, "{exponent}");
        }
        assert_eq!((exp2(0), exp2(32 << 32), exp2(33 << 32), exp2(u64::MAX)), (1 << 32, 1, 0, 0));
    }

    #[test]
    fn quantised_weights_are_pinned() {
        let quantised = |weight, thousandths| exp2((log2(100) - log2(weight)) * 1000 / thousandths);
        assert_eq!([quantised(1, 800), quantised(7, 500), quantised(99, 1300)], PINNED);
    }
    const PINNED: [u64; 3] = [13_581_879, 21_045_339, 4_261_890_807];

    #[test]
    fn temperatures_are_thousandths() {
        for (temperature, thousandths) in
            [(0.0, 0), (0.0004, 0), (0.7, 700), (1.0, 1000), (-3.0, 0), (1e9, 1_000_000)]
        {
            assert_eq!(Temperature::new(temperature), Temperature(thousandths));
        }
        assert_eq!(Temperature::new(f64::NAN), Temperature(0));
    }

    #[test]
    fn frequencies_follow_the_temperature() {
        let candidates = [(5, 1), (6, 2), (7, 7), (8, 2)];
        let mut sampler = Sampler::default();
        for temperature in [0.0, 0.5, 1.0, 1.5, 1000.0] {
            let mut stream = RandomStream::new(42);
            let mut seen = [0_u32; 4];
            for _ in 0..20_000 {
                let drawn = sampler.draw(&candidates, Temperature::new(temperature), &mut stream);
                seen[drawn.unwrap()] += 1;
            }
            let power = |weight: u64| (weight as f64).powf(1.0 / temperature);
            let total: f64 = candidates.iter().map(|c| power(c.1)).sum();
            for (seen, candidate) in seen.iter().zip(candidates) {
                let expected = match temperature {
                    0.0 => f64::from(u8::from(candidate.1 == 7)),
                    _ => power(candidate.1) / total,
                };
                assert!((f64::from(*seen) / 20_000.0 - expected).abs() < 0.015, "{temperature}");
            }
        }
        assert_eq!(sampler.draw(&[], Temperature(1000), &mut RandomStream::new(1)), None);
        assert_eq!(
            sampler.draw(&[(1, 4), (2, 4)], Temperature(0), &mut RandomStream::new(1)),
            Some(0)
        );
    }

    #[test]
    fn the_stream_of_a_seed_is_pinned() {
        let mut stream = RandomStream::new(1);
        assert_eq!(
            [stream.next(), stream.next()],
            [15_331_973_937_697_144_930, 122_572_735_203_901_800]
        );
        let mut bytes = [0; 8 * 40];
        RandomStream::new(1).output.fill(&mut bytes);
        let whole: Vec<u64> = bytes.as_chunks().0.iter().map(|b| u64::from_le_bytes(*b)).collect();
        let mut stream = RandomStream::new(1);
        assert_eq!(whole, (0..40).map(|_| stream.next()).collect::<Vec<_>>());
    }
}
