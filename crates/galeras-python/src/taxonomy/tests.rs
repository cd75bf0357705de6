//! Tests of the counts: by hand, and against those of CPython's tokenizer.

use super::*;

fn counted(text: &str) -> Vec<(&'static str, u64)> {
    named(taxonomy(text))
}

fn named(counts: [u64; 10]) -> Vec<(&'static str, u64)> {
    CATEGORIES.into_iter().zip(counts).filter(|&(_, count)| count > 0).collect()
}

#[test]
fn each_category_counts_its_tokens() {
    for (text, category, count) in [
        ("{ } [ ] ( ) : return pass yield with", "blocks", 11),
        ("try except finally raise", "exceptions", 4),
        ("class", "oop", 1),
        ("assert", "tests", 1),
        ("import from await async def lambda global nonlocal del as", "declaration", 10),
        ("if else elif", "conditional", 3),
        ("for while break continue", "loops", 4),
        ("= + - * / % == != >= <= ~ << >> & ^ | < > ** // :=", "operators", 21),
        ("+= -= *= /= //= %= @= &= |= ^= >>= <<= **=", "operators", 13),
        ("and or not in is", "operators", 5),
        ("int float str bool bytes bytearray complex", "casting", 7),
        ("list tuple dict set frozenset", "casting", 5),
        ("@ ... None True False", "extra_tokens", 5),
    ] {
        assert_eq!(counted(text), [(category, count)], "{text}");
        let dense: String = text.split(' ').map(|token| format!("\\\n{token}\t#if\n")).collect();
        assert_eq!(counted(&dense), [(category, count)], "{dense}");
    }
}

#[test]
fn a_method_has_the_counts_of_the_hand() {
    let method = "def scale(self, xs: list, by: float = 1.0) -> list:\n\
                  \x20   '''Scale if need be.'''\n\
                  \x20   out = []  # for all\n\
                  \x20   for x in xs:\n\
                  \x20       try:\n\
                  \x20           out.append(float(x) * by)\n\
                  \x20       except ValueError as e:\n\
                  \x20           assert not self.strict, f'{x if x else by}'\n\
                  \x20           raise TypeError(x) from e\n\
                  \x20   return out if out is not None else None\n";
    assert_eq!(
        counted(method),
        [
            // ( : : ) : [ ] : : ( ( ) ) : ( ) return
            ("blocks", 17),
            ("exceptions", 3),
            ("tests", 1),
            // def as from
            ("declaration", 3),
            ("conditional", 2),
            ("loops", 1),
            // = = in * not is not
            ("operators", 7),
            ("casting", 4),
            ("extra_tokens", 2),
        ]
    );
}

#[test]
fn tokens_without_a_category_and_cut_text() {
    for (text, expected) in [
        ("", &[][..]),
        (" \t\n\r\n\x0c", &[]),
        ("a, b.c; d -> iff classs _if IF none true null self this default print", &[]),
        ("1 1.5 0xFF 1e-5 .5 1_000j", &[]),
        ("'if' \"\"\"for\nwhile\"\"\" rb'(' f'{x if y else z}' u\"[\"", &[]),
        ("# if ( [ {", &[]),
        ("! $ ? `", &[]),
        ("añadir 变量 — “”", &[]),
        // A type after a dot is an attribute.
        ("x.str . list \\\n . int", &[]),
        ("str.int", &[("casting", 1)]),
        ("from.import x", &[("declaration", 2)]),
        ("...int", &[("casting", 1), ("extra_tokens", 1)]),
        // Cut text counts as far as it goes.
        (
            "def f(x):\n    return 'if (\n    x = 1",
            &[("blocks", 4), ("declaration", 1), ("operators", 1)],
        ),
        ("x = '''if\nfor", &[("operators", 1)]),
        ("x = \"a\\", &[("operators", 1)]),
        ("x = \"a\\é", &[("operators", 1)]),
        ("'''a\\", &[]),
        ("x = f'", &[("operators", 1)]),
        ("x \\", &[]),
        (")]}(([", &[("blocks", 6)]),
        ("if 'a\rif 'b\r\nif", &[("conditional", 3)]),
    ] {
        assert_eq!(counted(text), expected, "{text}");
    }
}

#[test]
fn match_and_case_are_keywords_in_front_of_a_block() {
    for (text, expected) in [
        ("match x:\n case 1: a\n case [b]: c\n case _: d\n", 4),
        ("match (x):\r\n case (y): z", 2),
        ("match = case\nmatch(x)\nmatch[1:2]\nmatch: int = 1\nx.match(y)", 0),
        ("match(x); y: int", 0),
        ("match(x) = y[:]", 0),
        // Cut before the colon.
        ("match x", 0),
        // Known fault: an annotation of a subscript.
        ("match[x]: int = 1", 1),
    ] {
        assert_eq!(taxonomy(text)[CONDITIONAL], expected, "{text}");
    }
}

#[test]
fn every_prefix_of_a_text_can_be_counted() {
    let text = "@é\nasync def ü(x: int = 0x1f) -> 'ß':\r\n\t\"\"\"—\\\"\"\"\"\n\treturn f'{x!r:\\é}' + \
                1.5e-3 if x<<=1 else rb'\\'' # “”\n  match y:\n    case ...: 'ü\\\n' \\\n x";
    let mut last = 0;
    for end in (0..=text.len()).filter(|&end| text.is_char_boundary(end)) {
        last = taxonomy(&text[..end]).iter().sum();
        taxonomy_published(&text[end..]);
    }
    assert!(last > 15);
}

#[test]
fn time_is_linear() {
    for text in
        ["'\n", "'''\n\"\"\" ", "(", "match x\n", "f'{", "\\", "1.", "é", "if ", "r", "match ("]
    {
        let text = text.repeat(1 << 17);
        let start = std::time::Instant::now();
        taxonomy(&text);
        taxonomy_published(&text);
        assert!(start.elapsed().as_secs() < 5);
    }
}

#[test]
fn the_published_lists_count_as_published() {
    for (text, expected) in [
        ("import from", &[("oop", 2), ("declaration", 2)][..]),
        ("break :", &[("blocks", 1), ("declaration", 1), ("loops", 1), ("operators", 1)]),
        (
            "this default do none long",
            &[("oop", 1), ("conditional", 1), ("loops", 1), ("casting", 1), ("extra_tokens", 1)],
        ),
        ("def elif and < > ** // += None lambda with yield list", &[]),
    ] {
        assert_eq!(named(taxonomy_published(text)), expected, "{text}");
    }
}

#[test]
fn counts_are_those_of_cpythons_tokenizer() {
    let known = include_str!("../../../../tests/reference/taxonomy.json");
    let known: Vec<serde_json::Value> = serde_json::from_str(known).unwrap();
    assert!(known.len() >= 100);
    for row in &known {
        let text = row["code"].as_str().unwrap();
        let of = |name: &str| -> Vec<u64> {
            row[name].as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).collect()
        };
        assert_eq!(taxonomy(text).to_vec(), of("counts"), "{text}");
        assert_eq!(taxonomy_published(text).to_vec(), of("published"), "{text}");
    }
}
