//! Repositories that are made to do harm: too much of everything, and objects that git does not write.

use super::{TestRepository, entry, fails, mined, python_files};
use crate::GitErrorKind;
use crate::changes::tree_changes;
use crate::limits::TreeLimits;
use crate::{ObjectId, Repository};

const METHOD: &str = "def f(self):\n    return 1\n";

fn id(text: &str) -> ObjectId {
    ObjectId::from_hex(text.as_bytes()).unwrap()
}

/// A tree of `width` entries that are all the same tree, `depth` levels deep, over a file.
fn bomb(made: &TestRepository, width: usize, depth: usize) -> String {
    let blob = made.object("blob", METHOD.as_bytes());
    let mut tree = made.object("tree", &entry("100644", b"m.py", &blob));
    for _ in 0..depth {
        let name = |at: usize| format!("{at:04}").into_bytes();
        let entries: Vec<u8> = (0..width).flat_map(|at| entry("40000", &name(at), &tree)).collect();
        tree = made.object("tree", &entries);
    }
    tree
}

#[test]
fn a_tree_of_ten_to_the_tenth_paths_is_one_refusal() {
    let mut made = TestRepository::new();
    let tree = bomb(&made, 10, 10);
    let root = made.commit_tree(&tree, None);
    // A difference from the bomb is found without reading all of it.
    let blob = made.object("blob", b"def g(self):\n    return 2\n");
    let other = made.object("tree", &entry("100644", b"n.py", &blob));
    let with = [entry("40000", b"0000", &tree), entry("40000", b"other", &other)].concat();
    let wrapped = made.object("tree", &entry("40000", b"0000", &tree));
    let wrapped = made.commit_tree(&wrapped, Some(&root));
    let with = made.object("tree", &with);
    let last = made.commit_tree(&with, Some(&wrapped));
    let found = mined(made.dir()).unwrap();
    assert_eq!(found.paths(&last), ["other/n.py"]);
    assert_eq!(found.rules(), ["limit", "limit"]);
    for (_, _, _, reason) in &found.refused {
        assert!(reason.contains("more than"), "{reason}");
    }
}

#[test]
fn each_limit_of_a_commit_holds() {
    let made = TestRepository::new();
    let tree = bomb(&made, 10, 3);
    let repository = Repository::open(made.dir()).unwrap();
    let changes = |tree: &str, limits: TreeLimits| {
        let mut objects = repository.objects();
        tree_changes(&mut objects, None, id(tree), &python_files(), &limits)
    };
    let all = TreeLimits { entries: 2_110, bytes: 1 << 20, files: 1_000 };
    let found = changes(&tree, all).unwrap();
    assert_eq!(found.blobs().count(), 1_000);
    for limits in [
        TreeLimits { entries: 2_109, ..all },
        TreeLimits { bytes: 30_000, ..all },
        TreeLimits { files: 999, ..all },
    ] {
        assert_eq!(changes(&tree, limits).unwrap_err().kind, GitErrorKind::Limit, "{limits:?}");
    }
    // Two thousand folders, one in the other.
    let blob = made.object("blob", METHOD.as_bytes());
    let mut deep = made.object("tree", &entry("100644", b"m.py", &blob));
    let mut trees = Vec::new();
    for _ in 0..2_100 {
        trees.push(entry("40000", b"d", &deep));
        let bytes = trees.last().unwrap();
        let id = gix::objs::compute_hash(gix::hash::Kind::Sha1, gix::objs::Kind::Tree, bytes);
        deep = id.unwrap().to_string();
    }
    std::fs::create_dir(made.dir().join("trees")).unwrap();
    let mut list = String::new();
    for (at, tree) in trees.iter().enumerate() {
        std::fs::write(made.dir().join(format!("trees/{at}")), tree).unwrap();
        list.push_str(&format!("trees/{at}\n"));
    }
    made.git(&["hash-object", "-t", "tree", "-w", "--literally", "--stdin-paths"], list.as_bytes());
    let repository = Repository::open(made.dir()).unwrap();
    let mut objects = repository.objects();
    let error = tree_changes(&mut objects, None, id(&deep), &python_files(), &TreeLimits::DEFAULT);
    assert_eq!(error.unwrap_err().kind, GitErrorKind::Limit);
}

#[test]
fn too_many_commits_beyond_the_limits_are_the_end_of_their_repository() {
    let mut made = TestRepository::new();
    // One name that is too long for a path, once in each of many commits.
    let blob = made.object("blob", METHOD.as_bytes());
    let name = vec![b'n'; 5000];
    let tree = made.object("tree", &entry("100644", &name, &blob));
    let sound = made.object("tree", &entry("100644", b"m.py", &blob));
    let mut parent: Option<String> = None;
    for at in 0..66 {
        let next = if at % 2 == 0 { &tree } else { &sound };
        parent = Some(made.commit_tree(next, parent.as_deref()));
    }
    fails(mined(made.dir()), GitErrorKind::Limit, "64");
}

#[test]
fn a_tree_that_git_does_not_write_refuses_its_commit() {
    let mut made = TestRepository::new();
    let blob = made.object("blob", METHOD.as_bytes());
    let file = |name: &str| entry("100644", name.as_bytes(), &blob);
    let pkg = made.object("tree", &file("m.py"));
    let folder = |name: &str| entry("40000", name.as_bytes(), &pkg);
    let sound = made.object("tree", &[file("a.py"), folder("pkg")].concat());
    let mut parent = made.commit_tree(&sound, None);
    let mut refused = Vec::new();
    for (bytes, word) in [
        // The others are in `tree`.
        ([file("pkg/m.py"), folder("q")].concat(), "fullPathname"),
        ([file("pkg"), folder("pkg")].concat(), "duplicateEntries"),
        (entry("777", b"a.py", &blob), "badFilemode"),
        (file("a.py")[..20].to_vec(), "badTree"),
        (b"100644 a.py".to_vec(), "badTree"),
    ] {
        let tree = made.object("tree", &bytes);
        refused.push((made.commit_tree(&tree, Some(&parent)), word));
        // The next one is compared with it.
        let after = made.commit_tree(&sound, Some(&refused.last().unwrap().0));
        refused.push((after.clone(), word));
        parent = after;
    }
    let more = made.object("tree", &[file("a.py"), file("b.py"), folder("pkg")].concat());
    let last = made.commit_tree(&more, Some(&parent));
    let found = mined(made.dir()).unwrap();
    assert_eq!(found.refused.len(), refused.len(), "{:?}", found.rules());
    for (commit, word) in &refused {
        let refusal = found.refused.iter().find(|(of, ..)| of == commit).unwrap();
        assert!(refusal.1.is_none() && refusal.2 == "tree", "{refusal:?}");
        assert!(refusal.3.contains(word), "{word}: {}", refusal.3);
        assert!(found.paths(commit).is_empty());
    }
    assert_eq!(found.paths(&last), ["b.py"]);
    assert_eq!(mined(made.dir()).unwrap(), found, "always the same");
}

#[test]
fn links_and_submodules_that_become_files_are_new_and_files_that_go_are_not() {
    let mut made = TestRepository::new();
    let blob = made.object("blob", METHOD.as_bytes());
    let pkg = made.object("tree", &entry("100644", b"m.py", &blob));
    let mut commits: Vec<String> = Vec::new();
    for mode in ["120000", "100644", "100755", "160000", "100644", "40000"] {
        let id = if mode == "40000" { &pkg } else { &blob };
        let tree = made.object("tree", &entry(mode, b"m.py", id));
        commits.push(made.commit_tree(&tree, commits.last().cloned().as_deref()));
    }
    let found = mined(made.dir()).unwrap();
    assert!(found.refused.is_empty(), "{:?}", found.refused);
    let paths: Vec<Vec<&str>> = commits.iter().map(|commit| found.paths(commit)).collect();
    // The last one renames the file into the folder of its name.
    assert_eq!(paths, [&[][..], &["m.py"], &[], &[], &["m.py"], &[]]);
}

#[test]
fn commits_of_odd_programs_are_read_or_refused() {
    let mut made = TestRepository::new();
    let blob = made.object("blob", METHOD.as_bytes());
    let sound = made.object("tree", &entry("100644", b"m.py", &blob));
    let good = "T <t> 1641081600 +0000";
    for (lines, rows, rule) in [
        (format!("author {good}\ncommitter {good}\n"), 1, None),
        // Outside of the window, however far.
        (format!("author {good}\ncommitter T <t> -5 +0000\n"), 0, None),
        (format!("author {good}\ncommitter T <t> -62167219201 +0000\n"), 0, Some("date")),
        (format!("author {good}\ncommitter T <t> 31556889864403199 +0000\n"), 0, Some("date")),
        (format!("author {good}\ncommitter T <t> 99999999999999999999 +0000\n"), 0, Some("date")),
        // Digits up to the first letter count, as git has it.
        (format!("author {good}\ncommitter T <t> 0x10 +0000\n"), 0, None),
        (format!("author {good}\ncommitter \n"), 0, Some("date")),
        (format!("author {good}\n"), 0, Some("date")),
        (format!("author T <t> 99999999999999999999 +9999\ncommitter {good}\n"), 1, None),
        (format!("author <> 1641081600\ncommitter {good}\n"), 1, None),
        (format!("committer {good}\n"), 1, None),
        (format!("author {good}\ncommitter {good}\nencoding no-such\n"), 1, None),
        (format!("author {good}\ncommitter {good}\nencoding UTF-16LE\n"), 1, None),
        (format!("author {good}\ncommitter {good}\nno value\n more\n\0\n"), 1, None),
    ] {
        let text = [format!("tree {sound}\n{lines}\n").as_bytes(), b"m\xe9\0ssage\xff\n"].concat();
        let commit = made.object("commit", &text);
        made.git(&["update-ref", "refs/heads/main", &commit], b"");
        let found = mined(made.dir()).unwrap();
        assert_eq!(found.rows.len(), rows, "{lines:?}: {:?}", found.refused);
        assert_eq!(found.rules(), rule.into_iter().collect::<Vec<_>>(), "{lines:?}");
    }
    made.commits += 1;
    let missing = "1".repeat(40);
    made.commit_tree(&sound, Some(&missing));
    fails(mined(made.dir()), GitErrorKind::Damaged, &missing);
}

#[test]
fn an_object_that_says_it_is_huge_is_refused_before_memory_is_taken() {
    let mut made = TestRepository::new();
    made.write("m.py", METHOD);
    made.commit();
    let blob = made.git(&["rev-parse", "HEAD:m.py"], b"");
    let file = made.dir().join(".git/objects").join(&blob[..2]).join(&blob[2..]);
    // A loose object whose head speaks of 2^60 bytes.
    let bytes = b"blob 1152921504606846976\0def f(self):\n";
    let mut stored = vec![0x78, 0x01, 0x01];
    let length = bytes.len() as u16;
    stored.extend(length.to_le_bytes());
    stored.extend((!length).to_le_bytes());
    stored.extend_from_slice(bytes);
    let (mut a, mut b) = (1_u32, 0_u32);
    for byte in bytes {
        a = (a + u32::from(*byte)) % 65_521;
        b = (b + a) % 65_521;
    }
    stored.extend((b << 16 | a).to_be_bytes());
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, &stored).unwrap();
    let found = mined(made.dir()).unwrap();
    assert!(found.rows.is_empty());
    assert_eq!(found.rules(), ["size m.py"]);
}
