//! Numbers as Parquet packs them, counted without making room for them: runs of levels and of
//! places in a dictionary, and lengths of texts as differences.
//!
//! Source: github.com/apache/parquet-format, `Encodings.md`. Everything returns `None` where the
//! bytes make no sense.

/// The bytes that a number up to this takes in bits.
pub(super) fn bit_width(largest: i16) -> u32 {
    u16::BITS - largest.unsigned_abs().leading_zeros()
}

/// Calls `on_run` with a number and how often it follows itself, for at most so many numbers. Ends
/// early where the bytes do, as readers do.
pub(super) fn runs(
    mut bytes: &[u8],
    width: u32,
    mut left: u64,
    mut on_run: impl FnMut(u64, u64),
) -> Option<()> {
    if width > 32 {
        return None;
    }
    while left > 0 && !bytes.is_empty() {
        let header = varint(&mut bytes)?;
        let count = header >> 1;
        if header & 1 == 0 {
            let size = width.div_ceil(8) as usize;
            let value =
                bytes.split_off(..size)?.iter().rev().fold(0, |sum, b| sum << 8 | u64::from(*b));
            on_run(value, count.min(left));
            left -= count.min(left);
            continue;
        }
        let numbers = count.saturating_mul(8).min(left);
        if width == 0 {
            on_run(0, numbers);
            left -= numbers;
            continue;
        }
        // Groups of eight numbers, one bit after the other.
        let mut bits = Bits { bytes, at: 0 };
        for _ in 0..numbers {
            let Some(value) = bits.take(width) else { return Some(()) };
            on_run(value, 1);
            left -= 1;
        }
        let size = count.checked_mul(u64::from(width))?;
        bytes = usize::try_from(size).ok().and_then(|size| bytes.get(size..)).unwrap_or_default();
    }
    Some(())
}

/// Calls `on_value` with each number that is stored as its difference to the one before, of which
/// there are at most so many; returns the bytes behind them.
pub(super) fn differences(
    mut bytes: &[u8],
    most: u64,
    mut on_value: impl FnMut(i64),
) -> Option<&[u8]> {
    let block = varint(&mut bytes)?;
    let parts = varint(&mut bytes)?;
    let mut left = varint(&mut bytes)?;
    let mut value = zigzag(varint(&mut bytes)?);
    if left > most || parts == 0 || block % 128 != 0 || block % parts != 0 {
        return None;
    }
    if left == 0 {
        return Some(bytes);
    }
    on_value(value);
    left -= 1;
    while left > 0 {
        let least = zigzag(varint(&mut bytes)?);
        let widths = bytes.split_off(..usize::try_from(parts).ok()?)?;
        for width in widths {
            if left == 0 {
                break;
            }
            let size = usize::try_from((block / parts).checked_mul(u64::from(*width))? / 8).ok()?;
            let mut bits = Bits { bytes, at: 0 };
            for _ in 0..left.min(block / parts) {
                let more = bits.take(u32::from(*width))?.cast_signed();
                // Lengths have 32 bits, and their differences may go round.
                value = i64::from(value.wrapping_add(least).wrapping_add(more) as i32);
                on_value(value);
                left -= 1;
            }
            // The last part may be cut.
            bytes = bytes.get(size..).unwrap_or_default();
        }
    }
    Some(bytes)
}

/// Numbers of any width, the lowest bit first.
struct Bits<'a> {
    bytes: &'a [u8],
    at: u64,
}

impl Bits<'_> {
    fn take(&mut self, width: u32) -> Option<u64> {
        if width > 64 {
            return None;
        }
        let (mut value, mut has) = (0, 0);
        while has < width {
            let byte = self.bytes.get(usize::try_from(self.at / 8).ok()?)?;
            let offset = (self.at % 8) as u32;
            let take = (8 - offset).min(width - has);
            let bits = (u64::from(*byte) >> offset) & ((1 << take) - 1);
            value |= bits << has;
            has += take;
            self.at += u64::from(take);
        }
        Some(value)
    }
}

pub(super) fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = bytes.split_off_first()?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn zigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8], width: u32, most: u64) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        runs(bytes, width, most, |value, count| found.push((value, count))).unwrap();
        found
    }

    #[test]
    fn runs_are_repeated_numbers_or_groups_of_eight() {
        // 100 times 4, and the numbers from 0 to 7 as the format's own example has them.
        let bytes = [0xc8, 0x01, 4, 0x03, 0x88, 0xc6, 0xfa];
        let mut expected = vec![(4, 100)];
        expected.extend((0..8).map(|value| (value, 1)));
        assert_eq!(all(&bytes, 3, 1000), expected);
        assert_eq!(all(&bytes, 3, 7), [(4, 7)]);
        assert_eq!(all(&[0xfe, 0xff, 0xff, 0xff, 0x0f], 0, u64::MAX), [(0, 0x7fff_ffff)]);
        assert_eq!(all(&[0xff, 0xff, 0xff, 0xff, 0x0f], 0, 1 << 40), [(0, 8 * 0x7fff_ffff)]);
        assert_eq!(runs(&[0xff; 20], 3, 10, |_, _| ()), None);
    }

    #[test]
    fn widths_are_those_of_the_largest_number() {
        assert_eq!([0, 1, 2, 3, 4].map(bit_width), [0, 1, 2, 2, 3]);
    }

    #[test]
    fn differences_add_up_and_are_never_more_than_there_may_be() {
        // The format's own example: 7, 5, 3, 1, 2, 3, 4, 5.
        let mut bytes = vec![0x80, 0x01, 4, 8, 14, 3, 2, 0, 0, 0];
        bytes.extend([0xc0, 0x3f, 0, 0, 0, 0, 0, 0, 1, 2]);
        let mut found = Vec::new();
        let rest = differences(&bytes, 8, |value| found.push(value)).unwrap();
        assert_eq!(found, [7, 5, 3, 1, 2, 3, 4, 5]);
        assert_eq!(rest, [1, 2]);
        assert_eq!(differences(&bytes, 7, |_| ()), None);
        // One block of two milliard equal numbers.
        let many = [0x80, 0x80, 0x80, 0x80, 0x08, 1, 0xff, 0xff, 0xff, 0xff, 0x07, 0, 0, 0];
        assert_eq!(differences(&many, 1000, |_| ()), None);
    }
}
