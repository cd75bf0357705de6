//! The lines that two versions of a text share at their beginning and end.

/// Two texts, and the lines that both begin and end with.
#[derive(Clone, Copy, Debug)]
pub struct Ends<'a> {
    pub(crate) texts: [&'a str; 2],
    /// Bytes of the lines that both begin with.
    pub(crate) head: usize,
    /// Bytes of the lines that both end with, without those of the head.
    pub(crate) tail: usize,
}

impl<'a> Ends<'a> {
    /// Compares two texts by whole lines, which end with `\n` or with both texts.
    #[must_use]
    pub fn of(one: &'a str, other: &'a str) -> Self {
        let (a, b) = (one.as_bytes(), other.as_bytes());
        let texts = [one, other];
        let same = common_head(a, b);
        if same == a.len() && same == b.len() {
            return Self { texts, head: same, tail: 0 };
        }
        let line_start = |bytes: &[u8]| bytes.iter().rposition(|&byte| byte == b'\n');
        let head = line_start(&a[..same]).map_or(0, |at| at + 1);
        let (a, b) = (&a[head..], &b[head..]);
        let same = common_tail(a, b);
        let (from, other_from) = (a.len() - same, b.len() - same);
        let starts = |bytes: &[u8], at: usize| at == 0 || bytes.get(at - 1) == Some(&b'\n');
        let tail = if starts(a, from) && starts(b, other_from) {
            same
        } else {
            let shared = &a[from..];
            shared.iter().position(|&byte| byte == b'\n').map_or(0, |at| shared.len() - at - 1)
        };
        Self { texts, head, tail }
    }

    /// The same with the texts swapped.
    #[must_use]
    pub fn turned(self) -> Self {
        let [one, other] = self.texts;
        Self { texts: [other, one], ..self }
    }
}

const BLOCK: usize = 128;

fn common_head(a: &[u8], b: &[u8]) -> usize {
    let blocks = a.chunks_exact(BLOCK).zip(b.chunks_exact(BLOCK));
    let from = BLOCK * blocks.take_while(|(a, b)| a == b).count();
    let rest = a[from..].iter().zip(&b[from..]);
    from + rest.take_while(|(a, b)| a == b).count()
}

fn common_tail(a: &[u8], b: &[u8]) -> usize {
    let blocks = a.rchunks_exact(BLOCK).zip(b.rchunks_exact(BLOCK));
    let last = BLOCK * blocks.take_while(|(a, b)| a == b).count();
    let rest = a[..a.len() - last].iter().rev().zip(b[..b.len() - last].iter().rev());
    last + rest.take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same by the lines of both.
    fn by_lines(one: &str, other: &str) -> (usize, usize) {
        let (a, b): (Vec<_>, Vec<_>) =
            (one.split_inclusive('\n').collect(), other.split_inclusive('\n').collect());
        let head = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
        let (left, other_left) = (&a[head..], &b[head..]);
        let tail = left.iter().rev().zip(other_left.iter().rev()).take_while(|(a, b)| a == b);
        let bytes = |lines: &[&str]| lines.iter().map(|line| line.len()).sum();
        (bytes(&a[..head]), bytes(&a[a.len() - tail.count()..]))
    }

    proptest! {
        #[test]
        fn ends_are_those_of_whole_lines(
            head in "[ab\n]{0,300}", one in "[abc\n]{0,5}", other in "[abc\n]{0,5}",
            tail in "[ab\n]{0,300}",
        ) {
            let (one, other) = ([&*head, &*one, &*tail].concat(), [&*head, &*other, &*tail].concat());
            let ends = Ends::of(&one, &other);
            prop_assert_eq!((ends.head, ends.tail), by_lines(&one, &other));
            prop_assert_eq!(ends.turned().texts, [&*other, &*one]);
        }
    }
}
