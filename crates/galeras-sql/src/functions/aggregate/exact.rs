//! `ExactSum`: a sum of `f64` values, and of products of two, kept without any rounding.

use super::dyadic::{Dyadic, round_to_f64};

/// Bits that one limb owns; a limb is an `i64`, so the other 32 bits hold delayed carries.
const LIMB_BITS: u32 = 32;
/// The owned bits of a limb.
const LIMB_MASK: i64 = 0xffff_ffff;
/// Exponent of the lowest bit of limb 0. The smallest product of two doubles is 2^-2148;
/// this is the next multiple of the limb size below it.
const ORIGIN: i64 = -2176;
/// Distance in bits from limb 0 to the unit in the last place of a denormal double, 2^-1074.
const DENORMAL_POSITION: u32 = 1102;
/// Additions between two carry propagations. One addition changes a limb by less than
/// 2^53, so 2^9 of them and the normalised rest stay far below 2^63.
const LAZY_ADDITIONS: u32 = 512;
/// No sum of 2^64 products of finite doubles reaches a limb beyond this one.
const MAX_LIMBS: usize = 137;

/// The exact sum of a multiset of `f64` values and products of two `f64` values.
///
/// A fixed-point number with one bit for every power of two between the smallest and the largest
/// product of doubles, held in 32-bit limbs inside `i64` so that carries can wait (R. M. Neal,
/// "Fast exact summation using small and large superaccumulators", arXiv:1505.05571, 2015; the idea
/// is U. Kulisch's long accumulator). Only the limbs that the data touches are allocated: values of
/// one magnitude cost three limbs.
///
/// Addition and removal are exact, hence associative and commutative: the same multiset gives the
/// same value and the same bytes in any order and any partition. NaN and the infinities are counted
/// separately, so that they can be removed again.
#[derive(Clone, Debug, Default)]
pub struct ExactSum {
    /// Signed limbs, lowest first; between carries a limb may exceed its 32 bits.
    limbs: Vec<i64>,
    /// Grid index of `limbs[0]`.
    base: usize,
    /// Additions since the last carry propagation.
    pending: u32,
    /// Counts of non-finite terms; absent when there is none.
    special: Option<Box<Special>>,
}

/// How often NaN, infinity and its negative were added.
type Special = [u64; 3];

/// Bytes that are not the canonical form of an [`ExactSum`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the state of an exact sum is malformed")]
pub struct MalformedSum;

/// A finite double as `mantissa * 2^(position + ORIGIN)`, or `None` for NaN and infinities.
#[inline(always)]
fn split(x: f64) -> Option<(u64, u32)> {
    let bits = x.to_bits();
    let exponent = ((bits >> 52) & 0x7ff) as u32;
    if exponent == 0x7ff {
        return None;
    }
    let normal = u32::from(exponent != 0);
    let mantissa = (bits & ((1 << 52) - 1)) | (u64::from(normal) << 52);
    Some((mantissa, DENORMAL_POSITION + exponent - normal))
}

/// `-1` where the term counts negatively, else `0`.
#[inline(always)]
fn sign_mask(sign_bits: u64, remove: bool) -> i64 {
    ((sign_bits as i64) >> 63) ^ -i64::from(remove)
}

impl ExactSum {
    /// The empty sum, zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `x`, exactly.
    #[inline]
    pub fn add(&mut self, x: f64) {
        self.change(x, false);
    }

    /// Adds or removes `x`, exactly: to remove an added value restores the former sum, also for NaN
    /// and infinities.
    #[inline]
    pub fn change(&mut self, x: f64, remove: bool) {
        self.term(x, remove);
        self.tick(1);
    }

    /// Adds or removes the real product `a * b`, exactly, also where a double would under- or
    /// overflow.
    #[inline]
    pub fn change_product(&mut self, a: f64, b: f64, remove: bool) {
        self.product(a, b, remove);
        self.tick(1);
    }

    /// Adds every value of a slice; faster than single additions.
    pub fn add_slice(&mut self, values: &[f64]) {
        for block in values.chunks(LAZY_ADDITIONS as usize) {
            for &x in block {
                self.term(x, false);
            }
            self.tick(LAZY_ADDITIONS);
        }
    }

    /// Adds the products of two slices, pairwise, up to the length of the shorter.
    pub fn add_products(&mut self, a: &[f64], b: &[f64]) {
        let step = LAZY_ADDITIONS as usize;
        for (a, b) in a.chunks(step).zip(b.chunks(step)) {
            for (&a, &b) in a.iter().zip(b) {
                self.product(a, b, false);
            }
            self.tick(LAZY_ADDITIONS);
        }
    }

    /// The sum, rounded once to the nearest double, ties to even; infinite where it leaves
    /// the range of doubles. NaN if a NaN or both infinities were added. An empty or a
    /// cancelled sum is `+0.0`.
    pub fn value(&self) -> f64 {
        if let Some(special) = self.special.as_deref() {
            return match special {
                [0, 0, 0] => 0.0,
                [0, _, 0] => f64::INFINITY,
                [0, 0, _] => f64::NEG_INFINITY,
                _ => f64::NAN,
            };
        }
        let (negative, base, digits) = self.magnitude();
        // The upper 96 to 128 bits decide; of the rest it matters only whether it is zero.
        let cut = digits.len().saturating_sub(4);
        let (rest, top) = digits.split_at(cut);
        let mantissa = top.iter().rev().fold(0u128, |m, &d| (m << LIMB_BITS) | u128::from(d));
        let sticky = rest.iter().any(|&d| d != 0);
        let exponent = ORIGIN + i64::from(LIMB_BITS) * (base + cut) as i64;
        round_to_f64(negative, mantissa, sticky, exponent)
    }

    /// Appends the canonical bytes: two sums have equal bytes if and only if their numbers and their
    /// counts of NaN and infinities are equal.
    ///
    /// Layout, little endian: flags (bit 0 negative, bit 1 counts present), grid index of the
    /// first limb, number of limbs, the limbs as `u32` (no zero limb at either end), then
    /// the three counts as `u64` (NaN, +inf, -inf) if present.
    pub fn write_bytes(&self, bytes: &mut Vec<u8>) {
        let (negative, base, digits) = self.magnitude();
        let special = self.special.as_deref();
        bytes.push(u8::from(negative) | (u8::from(special.is_some()) << 1));
        // Both fit: the grid has MAX_LIMBS < 256 limbs.
        bytes.push(base as u8);
        bytes.push(digits.len() as u8);
        for digit in &digits {
            bytes.extend_from_slice(&digit.to_le_bytes());
        }
        if let Some(special) = special {
            for count in special {
                bytes.extend_from_slice(&count.to_le_bytes());
            }
        }
    }

    /// Adds the sum that the bytes start with and returns the bytes after it.
    pub fn merge_bytes<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], MalformedSum> {
        let [flags, base, len, rest @ ..] = bytes else {
            return Err(MalformedSum);
        };
        let (base, len) = (usize::from(*base), usize::from(*len));
        let (digits, mut rest) = rest.split_at_checked(len * 4).ok_or(MalformedSum)?;
        let (digits, tail) = digits.as_chunks::<4>();
        let trimmed = |d: Option<&[u8; 4]>| d.is_none_or(|d| *d != [0; 4]);
        let canonical = tail.is_empty()
            && *flags < 4
            && base + len < MAX_LIMBS
            && (len > 0 || (base == 0 && flags & 1 == 0))
            && trimmed(digits.first())
            && trimmed(digits.last());
        if !canonical {
            return Err(MalformedSum);
        }
        if flags & 2 != 0 {
            let (counts, after) = rest.split_at_checked(24).ok_or(MalformedSum)?;
            let mut counts = counts.as_chunks::<8>().0.iter().map(|c| u64::from_le_bytes(*c));
            let special: Special = std::array::from_fn(|_| counts.next().unwrap_or(0));
            if special == Special::default() {
                return Err(MalformedSum);
            }
            let all = self.special.get_or_insert_default();
            all.iter_mut().zip(special).for_each(|(all, more)| *all = all.saturating_add(more));
            rest = after;
        }
        let digits = digits.iter().map(|d| u32::from_le_bytes(*d));
        self.add_digits(flags & 1 != 0, base, digits);
        Ok(rest)
    }

    /// The exact number, or `None` if NaN or an infinity was added.
    pub fn to_dyadic(&self) -> Option<Dyadic> {
        if self.special.is_some() {
            return None;
        }
        let (negative, base, digits) = self.magnitude();
        let exponent = ORIGIN + i64::from(LIMB_BITS) * base as i64;
        Some(Dyadic::from_digits(negative, digits, exponent))
    }

    /// Bytes on the heap.
    pub fn heap_size(&self) -> usize {
        self.limbs.capacity() * size_of::<i64>()
            + self.special.as_ref().map_or(0, |_| size_of::<Special>())
    }

    /// One addition without the count of pending ones.
    #[inline(always)]
    fn term(&mut self, x: f64, remove: bool) {
        match split(x) {
            Some((0, _)) => {}
            Some((mantissa, position)) => {
                self.deposit(mantissa, position, sign_mask(x.to_bits(), remove));
            }
            None => self.count_special(x, remove),
        }
    }

    /// One addition of a product without the count of pending ones.
    #[inline(always)]
    fn product(&mut self, a: f64, b: f64, remove: bool) {
        let (Some((ma, pa)), Some((mb, pb))) = (split(a), split(b)) else {
            return self.count_special(a * b, remove);
        };
        if ma == 0 || mb == 0 {
            return;
        }
        let product = u128::from(ma) * u128::from(mb);
        // (pa + ORIGIN) + (pb + ORIGIN) - ORIGIN; at least 28, as a position is >= 1102.
        let position = pa + pb - ORIGIN.unsigned_abs() as u32;
        let sign = sign_mask(a.to_bits() ^ b.to_bits(), remove);
        self.deposit((product as u64) & ((1 << 53) - 1), position, sign);
        self.deposit((product >> 53) as u64, position + 53, sign);
    }

    /// Adds a mantissa below 2^53 at a bit position: into two neighbouring limbs.
    #[inline(always)]
    fn deposit(&mut self, mantissa: u64, position: u32, sign: i64) {
        let index = (position / LIMB_BITS) as usize;
        let shift = position % LIMB_BITS;
        let low = (((mantissa << shift) as i64 & LIMB_MASK) ^ sign) - sign;
        let high = (((mantissa >> 1) >> (LIMB_BITS - 1 - shift)) as i64 ^ sign) - sign;
        let at = index.wrapping_sub(self.base);
        if let Some([a, b]) = self.limbs.get_mut(at..at.wrapping_add(2)) {
            *a += low;
            *b += high;
        } else {
            self.widen(index, index + 2);
            let at = index - self.base;
            if let Some([a, b]) = self.limbs.get_mut(at..at + 2) {
                *a += low;
                *b += high;
            }
        }
    }

    /// Counts additions and propagates carries before a limb could overflow.
    #[inline(always)]
    fn tick(&mut self, additions: u32) {
        self.pending += additions;
        if self.pending >= LAZY_ADDITIONS {
            self.carry();
        }
    }

    /// Makes the limbs of the grid in `from..to` present.
    #[cold]
    fn widen(&mut self, from: usize, to: usize) {
        if self.limbs.is_empty() {
            self.base = from;
        }
        if from < self.base {
            let missing = self.base - from;
            self.limbs.splice(0..0, std::iter::repeat_n(0, missing));
            self.base = from;
        }
        let wanted = to - self.base;
        if wanted > self.limbs.len() {
            // One spare limb takes the carries.
            self.limbs.reserve_exact(wanted + 1 - self.limbs.len());
            self.limbs.resize(wanted, 0);
        }
    }

    /// Brings every limb but the highest into `0..2^32`; the highest keeps the sign.
    fn carry(&mut self) {
        self.pending = 0;
        let Some((last, lower)) = self.limbs.split_last_mut() else {
            return;
        };
        let mut carry = 0;
        for limb in lower {
            let t = *limb + carry;
            *limb = t & LIMB_MASK;
            carry = t >> LIMB_BITS;
        }
        let t = *last + carry;
        if t.unsigned_abs() >> LIMB_BITS == 0 {
            *last = t;
        } else {
            *last = t & LIMB_MASK;
            self.limbs.push(t >> LIMB_BITS);
        }
    }

    /// Sign, grid index of the first digit, and the digits in base 2^32 without zeros at
    /// either end; an empty list for zero.
    fn magnitude(&self) -> (bool, usize, Vec<u32>) {
        let mut copy = Self { limbs: self.limbs.clone(), ..Self::default() };
        copy.carry();
        let negative = copy.limbs.last().is_some_and(|&top| top < 0);
        if negative {
            copy.limbs.iter_mut().for_each(|limb| *limb = -*limb);
            copy.carry();
        }
        let Some(first) = copy.limbs.iter().position(|&limb| limb != 0) else {
            return (false, 0, Vec::new());
        };
        let end = copy.limbs.iter().rposition(|&limb| limb != 0).map_or(0, |i| i + 1);
        let digits = copy.limbs[first..end].iter().map(|&limb| limb as u32).collect();
        (negative, self.base + first, digits)
    }

    /// Adds a number given by its digits.
    fn add_digits(
        &mut self,
        negative: bool,
        base: usize,
        digits: impl ExactSizeIterator<Item = u32>,
    ) {
        if digits.len() == 0 {
            return;
        }
        self.widen(base, base + digits.len());
        let start = base - self.base;
        for (limb, digit) in self.limbs.iter_mut().skip(start).zip(digits) {
            *limb += if negative { -i64::from(digit) } else { i64::from(digit) };
        }
        self.tick(1);
    }

    #[cold]
    fn count_special(&mut self, x: f64, remove: bool) {
        let special = self.special.get_or_insert_default();
        let [nan, positive, negative] = &mut **special;
        let count = match x {
            x if x.is_nan() => nan,
            x if x > 0.0 => positive,
            _ => negative,
        };
        *count = if remove { count.saturating_sub(1) } else { *count + 1 };
        if **special == Special::default() {
            self.special = None;
        }
    }
}
