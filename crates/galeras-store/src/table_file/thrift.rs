//! Thrift's compact protocol, as far as a footer and headers of pages need it: walked, never built.
//!
//! Source: github.com/apache/thrift, `doc/specs/thrift-compact-protocol.md`.

/// The deepest nesting that is walked; a footer has eight levels.
const MAX_DEPTH: usize = 32;

/// What kind of value comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A truth value in a list.
    Bool,
    /// One of a struct, which has no bytes of its own.
    Flag,
    I8,
    I16,
    I32,
    I64,
    Double,
    Binary,
    /// A list or a set.
    List,
    Map,
    Struct,
    Uuid,
}

impl Kind {
    fn of(code: u8) -> Option<Self> {
        Some(match code {
            1 | 2 => Self::Bool,
            3 => Self::I8,
            4 => Self::I16,
            5 => Self::I32,
            6 => Self::I64,
            7 => Self::Double,
            8 => Self::Binary,
            9 | 10 => Self::List,
            11 => Self::Map,
            12 => Self::Struct,
            13 => Self::Uuid,
            _ => return None,
        })
    }
}

/// Reads from bytes that may be anything. Everything returns `None` where they make no sense.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    depth: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, depth: 0 }
    }

    /// How many bytes are not read yet.
    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    /// Reads a struct: `on_field` is called with the id and the kind of each field, and must read
    /// or skip its value.
    pub(super) fn fields(
        &mut self,
        mut on_field: impl FnMut(&mut Self, i64, Kind) -> Option<()>,
    ) -> Option<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let mut id = 0_i64;
        loop {
            let header = self.byte()?;
            if header == 0 {
                self.depth -= 1;
                return Some(());
            }
            let kind = Kind::of(header & 0x0f)?;
            id = match header >> 4 {
                0 => self.integer()?,
                step => id.checked_add(i64::from(step))?,
            };
            // The value of a truth is in its header.
            let kind = if kind == Kind::Bool { Kind::Flag } else { kind };
            on_field(self, id, kind)?;
        }
    }

    /// Reads a list of values of this kind; `on_item` must read or skip one.
    pub(super) fn list(
        &mut self,
        kind: Kind,
        mut on_item: impl FnMut(&mut Self) -> Option<()>,
    ) -> Option<()> {
        let (found, items) = self.list_header()?;
        if items > 0 && found != Some(kind) {
            return None;
        }
        (0..items).try_for_each(|_| on_item(self))
    }

    /// The kind of the items and their number, which is never more than there are bytes left.
    fn list_header(&mut self) -> Option<(Option<Kind>, u64)> {
        let header = self.byte()?;
        let items = match header >> 4 {
            15 => self.varint()?,
            short => u64::from(short),
        };
        // Every item has a byte at least.
        (items <= self.rest.len() as u64).then_some((Kind::of(header & 0x0f), items))
    }

    pub(super) fn integer(&mut self) -> Option<i64> {
        let zigzag = self.varint()?;
        Some((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed())
    }

    pub(super) fn binary(&mut self) -> Option<&'a [u8]> {
        let length = self.varint()?;
        self.take(usize::try_from(length).ok()?)
    }

    /// Passes over a value.
    pub(super) fn skip(&mut self, kind: Kind) -> Option<()> {
        match kind {
            Kind::Flag => Some(()),
            Kind::Bool | Kind::I8 => self.take(1).map(drop),
            Kind::I16 | Kind::I32 | Kind::I64 => self.varint().map(drop),
            Kind::Double => self.take(8).map(drop),
            Kind::Uuid => self.take(16).map(drop),
            Kind::Binary => self.binary().map(drop),
            Kind::Struct => self.fields(|reader, _, kind| reader.skip(kind)),
            Kind::List => self.deeper(|reader| {
                let (kind, items) = reader.list_header()?;
                (0..items).try_for_each(|_| reader.skip(kind?))
            }),
            Kind::Map => self.deeper(|reader| {
                let items = reader.varint()?;
                if items == 0 {
                    return Some(());
                }
                let kinds = reader.byte()?;
                let (key, value) = (Kind::of(kinds >> 4)?, Kind::of(kinds & 0x0f)?);
                (0..items).try_for_each(|_| reader.skip(key).and_then(|()| reader.skip(value)))
            }),
        }
    }

    fn deeper(&mut self, work: impl FnOnce(&mut Self) -> Option<()>) -> Option<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        work(self)?;
        self.depth -= 1;
        Some(())
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(bytes)?;
        self.rest = rest;
        Some(taken)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_zigzag() {
        let integer = |bytes: &[u8]| Reader::new(bytes).integer();
        assert_eq!(integer(&[0]), Some(0));
        assert_eq!(integer(&[1]), Some(-1));
        assert_eq!(integer(&[0xac, 0x02]), Some(150));
        let least = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(integer(&least), Some(i64::MIN));
        assert_eq!(integer(&[0xff; 11]), None);
        assert_eq!(integer(&[0x80]), None);
    }

    #[test]
    fn lists_that_are_longer_than_the_rest_are_refused() {
        let mut list = vec![0xf5];
        list.extend([0xff, 0xff, 0xff, 0x7f]);
        list.extend([0; 100]);
        assert_eq!(Reader::new(&list).skip(Kind::List), None);
        assert_eq!(Reader::new(&[0x25, 0, 0]).skip(Kind::List), Some(()));
        assert_eq!(Reader::new(&[0xf5]).skip(Kind::List), None);
    }

    #[test]
    fn no_depth_overflows_the_stack() {
        // A list of a list of a list …
        assert_eq!(Reader::new(&[0x19; 100_000]).skip(Kind::List), None);
        assert_eq!(Reader::new(&[0x1c; 100_000]).skip(Kind::Struct), None);
    }

    #[test]
    fn fields_have_ids_and_kinds() {
        // 1: true, 3: i32 7, 20 (long form): binary "ab".
        let bytes = [0x11, 0x25, 14, 0x08, 40, 2, b'a', b'b', 0];
        let mut found = Vec::new();
        let mut reader = Reader::new(&bytes);
        let read = reader.fields(|reader, id, kind| {
            found.push((id, kind));
            reader.skip(kind)
        });
        assert_eq!(read, Some(()));
        assert_eq!(found, [(1, Kind::Flag), (3, Kind::I32), (20, Kind::Binary)]);
    }
}
