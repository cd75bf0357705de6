//! A Git server that answers with the input.
//!
//! An input is up to three answers, parted by lines of `%%`: to the first request, to the
//! question for branches, to that for objects. In an answer a line `>text` is sent as a packet
//! line, `=text` as it stands without its line feed, any other as it stands. An answer `-` is a
//! good one.

use std::sync::PoisonError;

use galeras_git::{Fetcher, ObjectId, remote_head};

use crate::git_server::{ADVERTISED, WORLD, fetched, packet, reply, said};
use crate::loopback::Replies;

/// A branch, at a commit that nobody has.
fn branches() -> Vec<u8> {
    let id = "10".repeat(20);
    let head = format!("{id} HEAD symref-target:refs/heads/main\n");
    let branch = format!("{id} refs/heads/main\n");
    [packet(head.as_bytes()), packet(branch.as_bytes()), b"0000".to_vec()].concat()
}

/// Asks the server for its branches and for objects.
pub(crate) fn server(input: &[u8]) {
    let mut parts: Vec<&[u8]> = Vec::new();
    let mut rest = input;
    while parts.len() < 3 {
        let end = rest.windows(4).position(|part| part == b"\n%%\n");
        parts.push(&rest[..end.unwrap_or(rest.len())]);
        rest = end.map_or(&[], |end| &rest[end + 4..]);
    }
    let advertised = encoded(parts[0], ADVERTISED);
    let branches = encoded(parts[1], &branches());
    let objects = encoded(parts[2], &fetched(b"PACK\0\0\0\x02\0\0\0\0").body);
    let world = WORLD.lock().unwrap_or_else(PoisonError::into_inner);
    let url = world.server.url("r.git");
    let answers = |post| Replies { get: vec![reply(advertised.clone(), false)], post: vec![post] };
    let mut wanted = ObjectId::from([0x10; 20]);
    for branch in [None, Some("main")] {
        world.server.set(answers(reply(branches.clone(), true)));
        if let Some(head) = said(remote_head(&url, branch, &world.network)) {
            assert!(!head.commit.is_null());
            wanted = head.commit;
        }
    }
    world.server.set(answers(reply(objects, true)));
    let folder = tempfile::tempdir().unwrap();
    let mut fetcher = Fetcher::open(&url, folder.path(), &world.network).unwrap();
    let _ = said(fetcher.supports_filter());
    let got = said(fetcher.everything(wanted));
    assert!(got.is_none() || fetcher.contains(&wanted), "it said that it had come");
}

fn encoded(part: &[u8], good: &[u8]) -> Vec<u8> {
    if part.trim_ascii() == b"-" {
        return good.to_vec();
    }
    let mut out = Vec::new();
    for line in part.split_inclusive(|byte| *byte == b'\n') {
        match line.first() {
            Some(b'>') => out.extend(packet(&line[1..])),
            Some(b'=') => {
                out.extend_from_slice(line[1..].strip_suffix(b"\n").unwrap_or(&line[1..]))
            }
            _ => out.extend_from_slice(line),
        }
    }
    out
}
