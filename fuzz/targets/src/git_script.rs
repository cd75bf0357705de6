//! Git objects from a script, so that a fuzzer writes broken objects and not broken checksums.
//!
//! A script is records, each begun by a line: `%blob`, `%tree`, `%commit`, `%tag`, the content of
//! an object; `%ofs N`, `%ref N`, a delta against record N as in a pack; `%raw`, bytes of a pack;
//! `%count N`, the length in the pack's header. In a content, `@N` is the id of record N: 20 bytes
//! in a tree, 40 digits elsewhere. Records are counted from 0.

use gix::ObjectId;
use gix::objs::Kind;

/// A record of a script.
pub(crate) enum Record {
    Object { kind: Kind, content: Vec<u8>, id: ObjectId },
    Delta { offset: bool, base: usize, content: Vec<u8> },
    Raw(Vec<u8>),
    Count(u32),
}

/// More would make the target slow.
const MOST_RECORDS: usize = 32;

/// Reads a script. Text before the first record is left out.
pub(crate) fn read(script: &[u8]) -> Vec<Record> {
    let mut records: Vec<Record> = Vec::new();
    let mut rest = script;
    while records.len() < MOST_RECORDS {
        let Some((head, content, next)) = next_record(rest) else { break };
        rest = next;
        let (word, number) = head.split_once(' ').unwrap_or((head, ""));
        let number = number.trim().parse::<usize>().unwrap_or_default();
        let kind = match word {
            "%blob" => Kind::Blob,
            "%tree" => Kind::Tree,
            "%commit" => Kind::Commit,
            "%tag" => Kind::Tag,
            "%ofs" | "%ref" => {
                let (offset, base) = (word == "%ofs", number);
                records.push(Record::Delta { offset, base, content: content.to_vec() });
                continue;
            }
            "%count" => {
                records.push(Record::Count(number as u32));
                continue;
            }
            _ => {
                records.push(Record::Raw(content.to_vec()));
                continue;
            }
        };
        let content = with_ids(content, kind == Kind::Tree, &records);
        let id = gix::objs::compute_hash(gix::hash::Kind::Sha1, kind, &content);
        let id = id.unwrap_or_else(|_| ObjectId::null(gix::hash::Kind::Sha1));
        records.push(Record::Object { kind, content, id });
    }
    records
}

/// The first line of the next record, its content, and the rest.
fn next_record(script: &[u8]) -> Option<(&str, &[u8], &[u8])> {
    let start = match script.first()? {
        b'%' => 0,
        _ => 1 + script.windows(2).position(|pair| pair == b"\n%")?,
    };
    let script = &script[start..];
    let line = script.iter().position(|byte| *byte == b'\n').unwrap_or(script.len());
    let head = std::str::from_utf8(&script[..line]).unwrap_or("%raw");
    let content = script.get(line + 1..).unwrap_or_default();
    let end = match content.first() {
        Some(b'%') => 0,
        _ => content.windows(2).position(|pair| pair == b"\n%").unwrap_or(content.len()),
    };
    let next = content.get(end..).unwrap_or_default();
    Some((head, &content[..end], next.strip_prefix(b"\n").unwrap_or(next)))
}

fn with_ids(content: &[u8], binary: bool, records: &[Record]) -> Vec<u8> {
    let mut out = Vec::with_capacity(content.len() + 64);
    let mut rest = content;
    while let Some((byte, after)) = rest.split_first() {
        let digits = after.iter().take(2).take_while(|byte| byte.is_ascii_digit()).count();
        let number = std::str::from_utf8(&after[..digits]).ok().and_then(|n| n.parse().ok());
        let id = number.filter(|_| *byte == b'@').and_then(|n: usize| match records.get(n) {
            Some(Record::Object { id, .. }) => Some(*id),
            _ => None,
        });
        rest = after;
        match id {
            Some(id) => {
                if binary {
                    out.extend_from_slice(id.as_bytes());
                } else {
                    out.extend_from_slice(id.to_string().as_bytes());
                }
                rest = &after[digits..];
            }
            None => out.push(*byte),
        }
    }
    out
}

/// The pack of a script, with its checksum.
pub(crate) fn pack(records: &[Record]) -> Vec<u8> {
    let entries = |record: &&Record| matches!(record, Record::Object { .. } | Record::Delta { .. });
    let mut count = records.iter().filter(entries).count() as u32;
    let mut body = Vec::new();
    let mut starts = vec![0; records.len()];
    for (at, record) in records.iter().enumerate() {
        starts[at] = body.len();
        match record {
            Record::Object { kind, content, .. } => {
                let number = match kind {
                    Kind::Commit => 1,
                    Kind::Tree => 2,
                    Kind::Blob => 3,
                    Kind::Tag => 4,
                };
                entry(&mut body, number, content.len(), &[]);
                body.extend(stored(content));
            }
            Record::Delta { offset, base, content } => {
                let distance =
                    starts.get(*base).map_or(1, |start| body.len().saturating_sub(*start));
                let id = match records.get(*base) {
                    Some(Record::Object { id, .. }) => id.as_bytes(),
                    _ => &[7; 20],
                };
                if *offset {
                    entry(&mut body, 6, content.len(), &distance_bytes(distance));
                } else {
                    entry(&mut body, 7, content.len(), id);
                }
                body.extend(stored(content));
            }
            Record::Raw(bytes) => body.extend_from_slice(bytes),
            Record::Count(number) => count = *number,
        }
    }
    let mut pack = b"PACK\0\0\0\x02".to_vec();
    pack.extend(count.to_be_bytes());
    pack.extend(body);
    let mut hasher = gix::hash::hasher(gix::hash::Kind::Sha1);
    hasher.update(&pack);
    if let Ok(id) = hasher.try_finalize() {
        pack.extend_from_slice(id.as_bytes());
    }
    pack
}

/// The head of an entry: type and size, and the base of a delta.
fn entry(body: &mut Vec<u8>, kind: u8, size: usize, base: &[u8]) {
    let mut left = size >> 4;
    let mut byte = (kind << 4) | (size & 15) as u8;
    while left > 0 {
        body.push(byte | 0x80);
        byte = (left & 0x7f) as u8;
        left >>= 7;
    }
    body.push(byte);
    body.extend_from_slice(base);
}

/// How far back a base is, as packs write it.
fn distance_bytes(distance: usize) -> Vec<u8> {
    let mut bytes = vec![(distance & 0x7f) as u8];
    let mut left = distance >> 7;
    while left > 0 {
        left -= 1;
        bytes.insert(0, 0x80 | (left & 0x7f) as u8);
        left >>= 7;
    }
    bytes
}

/// A zlib stream of blocks that are stored as they are.
pub(crate) fn stored(content: &[u8]) -> Vec<u8> {
    let mut out = vec![0x78, 0x01];
    let mut blocks = content.chunks(u16::MAX.into()).peekable();
    if blocks.peek().is_none() {
        out.extend([1, 0, 0, 0xff, 0xff]);
    }
    while let Some(block) = blocks.next() {
        let length = block.len() as u16;
        out.push(u8::from(blocks.peek().is_none()));
        out.extend(length.to_le_bytes());
        out.extend((!length).to_le_bytes());
        out.extend_from_slice(block);
    }
    let (mut low, mut high) = (1_u32, 0_u32);
    for byte in content {
        low = (low + u32::from(*byte)) % 65_521;
        high = (high + low) % 65_521;
    }
    out.extend((high << 16 | low).to_be_bytes());
    out
}
