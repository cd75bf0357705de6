//! A history in pieces: each commit once, whichever of them are mined and in whichever order.

use super::*;

/// A history of files that grow, are renamed and go.
fn history() -> TestRepository {
    let mut made = TestRepository::new();
    for at in 0..12 {
        made.write("a.py", &format!("def f():\n    return {at}\n\ndef g():\n    pass\n"));
        if at % 3 == 0 {
            made.write(&format!("b{at}.py"), &"def h():\n    pass\n\n".repeat(at + 1));
        }
        if at == 7 {
            fs::rename(made.dir().join("a.py"), made.dir().join("c.py")).unwrap();
        }
        made.commit();
    }
    made
}

fn mine_piece(mining: &Mining, piece: usize) -> MiningResult {
    let mut sink = CollectSink::default();
    mining.mine(piece, &mut sink, &AtomicBool::new(false), &|_| {}).unwrap();
    sink.0
}

#[test]
fn pieces_hold_each_commit_once() {
    let made = history();
    let mining = prepared(made.dir()).unwrap();
    let plan = mining.plan();
    assert!(plan.pieces() > 2, "{}", plan.pieces());
    let mut ids: Vec<String> = (0..plan.pieces())
        .flat_map(|piece| plan.piece_ids(piece).map(|id| id.to_string()))
        .collect();
    ids.sort();
    let mut all: Vec<String> =
        made.git(&["rev-list", "HEAD"], b"").lines().map(str::to_string).collect();
    all.sort();
    assert_eq!(ids, all);
    assert_eq!(plan.commits(), all.len());
}

#[test]
fn a_piece_is_the_same_alone() {
    let made = history();
    let whole = mined(made.dir()).unwrap();
    let mut sum = MiningResult::default();
    // The oldest first, each with nothing that another one has left behind.
    for piece in (0..prepared(made.dir()).unwrap().plan().pieces()).rev() {
        let mining = prepared(made.dir()).unwrap();
        let found = mine_piece(&mining, piece);
        assert_eq!(found, mine_piece(&mining, piece), "again, with warm caches");
        let ids: BTreeSet<String> =
            mining.plan().piece_ids(piece).map(|id| id.to_string()).collect();
        assert!(found.rows.iter().all(|(commit, ..)| ids.contains(commit)));
        sum.rows.extend(found.rows);
        sum.refused.extend(found.refused);
    }
    assert_eq!(sum, whole);
    assert!(whole.rows.len() > 12 && whole.refused.is_empty(), "{whole:?}");
}

#[test]
fn what_changed_is_the_same_before_and_piece_by_piece() {
    let made = history();
    let (before, mining) = (prepared(made.dir()).unwrap(), prepared(made.dir()).unwrap());
    let repository = Repository::open(made.dir()).unwrap();
    assert!(before.plan().blobs().is_empty());
    before.plan().compare(&repository, &options(), &AtomicBool::new(false)).unwrap();
    assert!(before.plan().blobs().len() > 12 && before.plan().damage().is_none());
    for piece in 0..mining.plan().pieces() {
        assert_eq!(mine_piece(&before, piece), mine_piece(&mining, piece));
    }
}

#[test]
fn refusals_of_the_plan_come_with_the_first_piece() {
    let made = history();
    let older = made.git(&["rev-parse", "HEAD~5"], b"");
    fs::write(made.dir().join(".git/shallow"), format!("{older}\n")).unwrap();
    let mining = prepared(made.dir()).unwrap();
    assert!(mining.plan().pieces() > 1);
    let older = gix::ObjectId::from_hex(older.as_bytes()).unwrap();
    assert!(mining.plan().piece_ids(0).any(|id| id == older));
    for piece in 0..mining.plan().pieces() {
        let refused = mine_piece(&mining, piece).refused;
        assert_eq!(refused.len(), usize::from(piece == 0), "{refused:?}");
    }
}

#[test]
fn nothing_to_mine_is_one_piece() {
    let mut made = TestRepository::new();
    made.write("a.txt", "text");
    made.commit();
    let mining = prepared(made.dir()).unwrap();
    assert_eq!((mining.plan().pieces(), mining.plan().commits()), (1, 1));
    assert_eq!(mining.plan().nothing_changed(), None, "nothing was looked at");
    assert_eq!(mine_piece(&mining, 0), MiningResult::default());
    assert_eq!(mining.plan().nothing_changed(), Some([(".txt".into(), 1)].into()));
}

#[test]
fn an_interrupt_ends_a_piece() {
    let made = history();
    let mining = prepared(made.dir()).unwrap();
    let mut sink = CollectSink::default();
    let error = mining.mine(0, &mut sink, &AtomicBool::new(true), &|_| {}).unwrap_err();
    assert_eq!(error.kind, super::super::GitErrorKind::Interrupted);
    assert_eq!(sink.0, MiningResult::default());
}
