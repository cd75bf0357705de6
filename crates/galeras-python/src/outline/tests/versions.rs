//! Outlines of a file given another version must equal those of the file alone.

use super::*;

/// The first difference from the outline without another text, if any.
fn difference_beside(near: &str, source: &str) -> Option<String> {
    let mut parser = PythonParser::new().unwrap();
    let ends = Ends::of(near, source);
    for nested in [true, false] {
        let want = SHARED.outline(&mut parser, source, nested);
        let Ok(near) = SHARED.outline(&mut parser, near, nested) else { continue };
        let got = SHARED.outline_beside(&mut parser, &ends, &near, nested);
        let same = match (&got, &want) {
            (Err(got), Err(want)) => got == want,
            (Ok(got), Ok(want)) => {
                let places = |outline: &Outline| -> Vec<_> {
                    let parts = outline.parts.iter();
                    parts.map(|part| (part.byte, part.line, part.top)).collect()
                };
                got.methods().eq(want.methods()) && places(got) == places(want)
            }
            _ => false,
        };
        if !same {
            return Some(format!("{nested}\n{source}\n{got:?}\n{want:?}"));
        }
    }
    None
}

#[test]
fn only_what_changed_is_looked_up() {
    let pieces = Pieces::new(1 << 20);
    let mut parser = PythonParser::new().unwrap();
    let filler = |name: &str| -> String {
        (0..50).map(|i| format!("def {name}{i}(x):\n    return [{i},\n    x]\n\n")).collect()
    };
    let class = |name: &str| long_class("").replace("class A", &format!("class {name}"));
    let text =
        |middle: &str| [&*filler("f"), &class("A"), middle, &class("B"), &filler("g")].concat();
    let old = text("def h(): pass\n");
    let old_outline = pieces.outline(&mut parser, &old, true).unwrap();
    for middle in ["def h(): return\n", "", "def i(): pass\ndef h(): pass\ndef f1(): pass\n"] {
        let new = text(middle);
        let ends = Ends::of(&old, &new);
        // Only the other version provides pieces.
        let empty = Pieces::new(1 << 20);
        let outline = empty.outline_beside(&mut parser, &ends, &old_outline, true).unwrap();
        assert_eq!(difference_beside(&old, &new), None);
        let known =
            |part: &&Part| old_outline.parts.iter().any(|old| Arc::ptr_eq(&old.piece, &part.piece));
        assert!(outline.parts.iter().filter(known).count() > 115, "{middle}");
    }
    assert_eq!(difference_beside(&old, &text("'''open\n")), None);
    assert_eq!(difference_beside(&text("'''open\n"), &old), None);
}

#[test]
fn names_that_come_again_are_counted() {
    let old = "def f(): pass\n\ndef g(): pass\n\ndef h(): pass\n";
    for new in [
        "def f(): pass\n\ndef f(): pass\n\ndef h(): pass\n",
        "def f(): pass\n\ndef g(): pass\n\ndef h(): pass\n\ndef g(): pass\n",
        "def h(): pass\n\ndef f(): pass\n\ndef g(): pass\n\ndef h(): pass\n",
    ] {
        assert_eq!(difference_beside(old, new), None);
        assert_eq!(difference_beside(new, old), None);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn edited_versions_are_the_same(
        seed in edited(),
        one in proptest::collection::vec(edit(), 0..3),
        other in proptest::collection::vec(edit(), 0..3),
    ) {
        let (one, other) = (with_edits(&seed, one), with_edits(&seed, other));
        prop_assert_eq!(difference_beside(&one, &other), None);
    }

    #[test]
    fn tame_versions_are_the_same(
        lines in proptest::collection::vec(tame(), 1..20),
        at in any::<u32>(),
        new in proptest::collection::vec(tame(), 0..3),
        class in any::<bool>(),
    ) {
        let (before, after) = lines.split_at(at as usize % lines.len());
        let parts = [before.concat(), new.concat(), after.concat()];
        let [one, other] = [parts.concat(), [&*parts[0], &*parts[2]].concat()]
            .map(|text| if class { long_class(&text) } else { text });
        prop_assert_eq!(difference_beside(&one, &other), None);
        prop_assert_eq!(difference_beside(&other, &one), None);
    }
}
