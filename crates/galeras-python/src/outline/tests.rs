//! Tests of `outline`: always against `methods`.

use super::*;
use crate::PythonMethod;
use crate::library::{cases, pick, python_files};
use proptest::prelude::*;

fn difference(pieces: &Pieces, source: &str) -> Option<String> {
    for nested in [true, false] {
        let want = methods(source, nested);
        let cold = Pieces::new(1 << 20);
        for (name, memo) in [("cold", &cold), ("warm", &cold), ("shared", pieces)] {
            let got = memo.outline(source, nested);
            let same = match (&got, &want) {
                (Ok(got), Ok(want)) => {
                    got.len() == want.len() && got.methods().eq(want.iter().map(without_code))
                }
                (got, want) => got.as_ref().err() == want.as_ref().err(),
            };
            if !same {
                let got = got.map(|got| format!("{:?}", got.methods().collect::<Vec<_>>()));
                return Some(format!("{name} {nested}\n{source}\n{got:?}\n{want:?}"));
            }
        }
    }
    None
}

fn without_code(m: &PythonMethod) -> OutlineMethod<'_> {
    OutlineMethod {
        fun_name: &m.fun_name,
        qualified_name: &m.qualified_name,
        ordinal: m.ordinal,
        start_line: m.start_line as u32,
        end_line: m.end_line as u32,
        start_byte: m.start_byte as u32,
        end_byte: m.end_byte as u32,
    }
}

/// The number of methods and pieces if `source` is assembled from pieces.
fn pieced(source: &str) -> Option<(usize, usize)> {
    let pieces = Pieces::new(1 << 20);
    assert_eq!(difference(&pieces, source), None);
    let cuts = Cuts::of(source.as_bytes());
    let all = cuts.spans.len() + cuts.members.len();
    pieces.assemble(source, true).map(|outline| (outline.len(), all))
}

/// A class that is long enough to be split.
fn long_class(extra: &str) -> String {
    let member = "    def m(self, a, b=1):\n        \"\"\"Text.\n\nAt the margin.\n\"\"\"\n        def inner(): pass\n        return [a,\n    b]\n\n";
    let note = "    # a comment between the members\n";
    format!(
        "import a\n\n@deco(\n1)\nclass A(B):\n    '''Doc.'''\n    x: int = 1\n{}{extra}{}\nx = 1\n",
        member.repeat(5),
        [note, member].concat().repeat(3)
    )
}

#[test]
fn sound_code_is_put_together() {
    for extra in [
        "",
        "    @property\n    # note\n    def p(self):\n        pass\n",
        "    def g(self): pass # c\n  # low\n",
        "    def g(self):\n        pass\n            # deep\n        # body\n    # member\n  # low\n# margin\n",
        "    if X:\n        def g(self): pass\n    else:\n        def g(self): pass\n",
        "    try:\n        pass\n    except E:\n        def g(self): pass\n    finally:\n        pass\n",
        "    class C:\n        def g(self): pass\n\n        def h(self): pass\n",
        "    s = f\"{x[\"a\"]} {{ {y!r:>{w}}\"\n",
        "    s = rb'\\'' b'''\ndef no(): pass\n'''\n",
        "    t = (\n    1,\n  2,\n3)\n    def g(self): x = \\\n    1\n",
        "    async def größe(self): pass\n\x0c\n    type: str = 'a'\n",
        "    match = re.match('a')\n    print = 1; exec = 2\n",
        "    def g(self):\n        match['a'] = print\n        match[b]= {}\n    match [\"c\"] = 1\n",
    ] {
        for text in [long_class(extra), long_class(extra).replace('\n', "\r\n")] {
            let (_, pieces) = pieced(&text).expect(extra);
            assert!(pieces > 8, "{extra}");
        }
    }
    let tabs = long_class("").replace("    ", "\t");
    assert!(pieced(&tabs).unwrap().1 > 8);
    assert!(
        pieced("").is_some() && pieced("# a\n\n").is_some() && pieced("def f(): pass").is_some()
    );
}

#[test]
fn doubtful_code_is_the_same() {
    for extra in [
        "  def low(self): pass\n",
        "\tdef tab(self): pass\n",
        "    def g(self:\n        pass\n",
        "    x = 1,\n    b = 2\n    def g(self): pass\n",
        "    s = '\\N{abc'\n    def g(self): pass\n    d = {}\n",
        "    \\\n    def g(self): pass\n",
        "    def g(self):\n        return 1 \\\n\n    def h(self): pass\n",
        "    def g(self): pass\n      def h(self): pass\n",
        "\x0c    def g(self): pass\n",
        "    x = 1\r    def g(self): pass\n",
        "    \0def g(self): pass\n",
        "    @d\n",
        "    print 'a', 'b',\n    exec 'x' in y\n",
        "    match (a),\n    match (x):\n        case 1:\n            def g(self): pass\n",
        "\u{a0}   def g(self): pass\n",
        "else: pass\n",
        "'text'\n",
        "    s = '''open\n",
        "    s = 'open\n    def g(self): pass\n",
        "    s = f'{a\n",
        "x = 1 \\\n",
        "    def n(self):\n            match [a]:\n        '''Text.'''\n        def inner(): pass\n",
        "class A: pass\n    def g(self): pass\n",
        "print 'a' % (\n'b')\nprint >>f, 'a',\nb = 1\n",
    ] {
        for text in [
            long_class(extra),
            long_class(extra).replace('\n', "\r\n"),
            long_class(extra).replace("    ", "\t"),
            long_class("").replace("    '''Doc", &format!("{extra}    '''Doc")),
        ] {
            pieced(&text);
            pieced(text.trim_end());
            pieced(&["\u{feff}", &text].concat());
            pieced(&["if x:\n    pass\n", &text].concat());
        }
    }
}

#[test]
fn limits_are_those_of_a_whole_parse() {
    let comments = "# a comment of some length, as it is used in code\n";
    for text in [
        format!("def f():\n    pass\n{}", comments.repeat(2_000)),
        format!("def f():\n    pass\n    {}", comments.repeat(600)),
        "def f(): pass\n".repeat(70_000),
        "x = [a, b, [c, (d, e)]]\n".repeat(20_000),
        "x".repeat(5 << 20),
        // Dense: by its nodes the limit may be near, by its operations it is not.
        format!("def f():\n{}", " a=b*(c+d)-e\n".repeat(30_000)),
        " a=b*(c+d)-e\n def g(): -a\n".repeat(9_000).replace("\n ", "\n"),
        format!("class A:\n{}", " def g(a,b): -a+b*(c,d)[e]\n".repeat(9_000)),
        (0..1_200).map(|i| format!("{}def f():\n", " ".repeat(i))).collect(),
    ] {
        pieced(&text);
    }
}

#[test]
fn a_changed_member_leaves_the_other_pieces() {
    let pieces = Pieces::new(1 << 20);
    let (old, new) =
        (long_class("    def g(self): pass\n"), long_class("    def g(self): return\n"));
    let old = pieces.outline(&old, true).unwrap();
    let new = pieces.outline(&new, true).unwrap();
    let shared =
        old.parts.iter().filter(|a| new.parts.iter().any(|b| Arc::ptr_eq(&a.piece, &b.piece)));
    assert_eq!(shared.count() + 1, old.parts.len());
}

#[test]
fn memory_is_bounded_and_pieces_in_use_stay() {
    let pieces = Pieces::new(64 << 10);
    for i in 0..3_000 {
        let text = format!("def f{i}():\n    return {i}\n");
        assert_eq!(pieces.outline(&text, true).unwrap().len(), 1);
    }
    assert!(pieces.bytes() <= 64 << 10);
}

#[test]
fn files_of_the_standard_library_are_the_same() {
    let others = std::env::var_os("OUTLINE_CORPUS").map(std::path::PathBuf::from);
    let (mut files, mut assembled) = (0, 0);
    for (_, text) in python_files(others).into_iter().step_by(4) {
        files += 1;
        assembled += usize::from(pieced(&text).is_some());
    }
    assert!(files > 100 && assembled * 10 > files * 8, "{assembled} of {files}");
}

/// The same width of blanks and tabs is another indent for Python.
#[test]
fn members_have_the_same_indent() {
    let text = long_class("\tdef g(self): pass\n").replace("    ", "        ");
    assert_eq!(pieced(&text), None);
}

const LINES: &str = "def f(a, b=1):‖async def g():‖class A:‖class A(B, metaclass=C):‖class A: pass‖@d‖@d(1,‖1)\
    ‖pass‖x = 1‖x = 1,‖b = 2‖a,‖return x‖if x: pass‖if x:‖elif y:‖else:‖else: pass‖try:‖except E:\
    ‖except E, e:‖finally:‖for i in x:‖while x: pass‖with a as b, c:‖match x:‖match (a):‖match (a)\
    ‖match (a),‖match -a‖match [a]:‖match['a'] = b‖match[a] = b,‖case 1:‖case (x): pass\
    ‖type X = int‖type (x)‖[b] = 3‖type: str‖print 'a'‖print (a),‖print >>f, x‖exec 'a' in b‖print\
    ‖async = 1‖await x‖lambda: (yield)‖x = [‖]‖(‖)‖{‖}‖'''doc'''‖'''‖\"\"\"‖\"‖'‖f'{x\
    ‖f'{x!r:>{w}}' + \"a\"‖f\"{x[\"a\"]}\"‖rb'\\''‖'a\\‖s = '\\N{abc'‖s = '\\N{DASH}'‖'b'‖# note‖#\
    ‖\\‖x = 1 \\‖x = 1; y = 2;‖x = (1 +‖2)‖def größe(self): pass‖def f(): return 1 # end\
    ‖def f(x,\n  y): pass‖‖ ‖\t‖\u{c}‖\r‖\0‖\u{a0}‖\u{feff}‖yield‖global a‖import a, b\
    ‖from a import (b,‖x: int = 1‖*a, b = c‖del x‖é = 1‖class B:\n        def m(self): pass\
    ‖x = '''\ndef no(): pass\n'''‖not x‖@b‖-x‖0‖...";

const INDENTS: &str =
    "‖‖‖‖    ‖    ‖    ‖        ‖        ‖            ‖  ‖\t‖\t\t‖  \t‖\u{c}‖      ‖    \u{c}";

const ENDS: &str = "\n‖\n‖\n‖\n‖\n‖\n‖\r\n‖\n\n‖\r‖ \n‖ # c\n‖‖,\n‖:\n‖ \\\n";

fn line() -> impl Strategy<Value = String> {
    (pick(INDENTS), pick(LINES), pick(ENDS)).prop_map(|(a, b, c)| [a, b, c].concat())
}

const STATEMENTS: &str = "x = 1‖import a‖print('a')‖match (a)‖match (a),‖a,‖@d‖type (x)‖'s'‖print x,‖print (x)‖f(a)‖# c\
    ‖(a)‖[a]‖match [x]‖type [a]‖type X‖*a = 3‖[a] = 3‖(a) = 3‖\"b\"‖f'{x}'‖x: (a)‖x = y = a,\
    ‖x = *a,‖lambda: a‖x = 1 +‖return‖else:‖@d(1)‖print‖async‖await x‖a if b else c‖not a‖(yield)\
    ‖with (a, b): pass‖for a, in b: pass‖case 1:‖  's'‖  a‖          b‖b: int‖match [x]:\
    ‖match['a'] = x‖match [x] = y‖match[x]=[‖x = a,";

fn tame() -> impl Strategy<Value = String> {
    let heads = "def f(self):‖def g(a): ‖class C:‖if a:‖async def h():";
    let (indents, ends) = ("    ‖        ‖            ", "\n‖\n‖\n\n‖\r\n");
    let block = (pick("‖    "), pick(heads), pick(indents), pick(LINES), pick(ends));
    prop_oneof![
        8 => block.prop_map(|(a, b, c, d, e)| format!("{a}{b}\n{c}{d}{e}")),
        8 => (pick("‖    "), pick(STATEMENTS)).prop_map(|(a, b)| format!("{a}{b}\n")),
        2 => line(),
    ]
}

fn in_class(class: bool, text: String) -> String {
    if class { long_class(&text) } else { text }
}

fn seeds() -> Vec<String> {
    let mut seeds = vec![
        long_class(""),
        long_class("    if X:\n        def g(self): pass\n    else:\n        pass\n"),
    ];
    let files = std::env::var("OUTLINE_SEEDS").unwrap_or_default();
    seeds.extend(files.split(':').filter_map(|path| std::fs::read_to_string(path).ok()));
    seeds
}

type Edit = (u8, u32, u32, String, String);

fn edit() -> impl Strategy<Value = Edit> {
    (0..9_u8, any::<u32>(), any::<u32>(), line(), "[ \\t\\r\\n\"'#\\\\(){}\\[\\],:@a=fN]{1,2}")
}

fn edited() -> impl Strategy<Value = String> {
    (proptest::sample::select(seeds()), proptest::collection::vec(edit(), 0..5))
        .prop_map(|(seed, edits)| with_edits(&seed, edits))
}

fn with_edits(seed: &str, edits: Vec<Edit>) -> String {
    let mut lines: Vec<String> = seed.split_inclusive('\n').map(str::to_owned).collect();
    for (kind, a, b, line, chars) in edits {
        let (a, b) = (a as usize % lines.len(), b as usize % lines.len());
        match kind {
            0 => drop(lines.remove(a)),
            1 => lines.insert(a, line),
            2 => lines.insert(a, lines[b].clone()),
            3 => lines.swap(a, b),
            4 | 5 => {
                let at =
                    lines[a].char_indices().map(|(at, _)| at).nth(b % lines[a].len()).unwrap_or(0);
                if kind == 4 {
                    lines[a].insert_str(at, &chars)
                } else {
                    lines[a].remove(at);
                }
            }
            6 => lines[a] = lines[a].trim_start().to_owned(),
            7 => lines[a].insert_str(0, "    "),
            _ => lines[a] = lines[a].replace("    ", "\t"),
        }
        lines.retain(|line| !line.is_empty());
        if lines.is_empty() {
            lines.push(String::from("\n"));
        }
    }
    lines.concat()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(150)))]

    #[test]
    fn broken_programs_are_the_same(lines in proptest::collection::vec(line(), 0..14), class in any::<bool>()) {
        let text = in_class(class, lines.concat());
        prop_assert_eq!(difference(&Pieces::new(1 << 20), &text), None);
    }

    #[test]
    fn tame_programs_are_the_same(lines in proptest::collection::vec(tame(), 0..10), class in any::<bool>()) {
        let text = in_class(class, lines.concat());
        prop_assert_eq!(difference(&SHARED, &text), None);
    }

    #[test]
    fn edited_programs_are_the_same(text in edited()) {
        prop_assert_eq!(difference(&SHARED, &text), None);
    }
}

/// Pieces of one case are reused in the next.
static SHARED: std::sync::LazyLock<Pieces> = std::sync::LazyLock::new(|| Pieces::new(4 << 20));

#[test]
fn names_that_come_again_are_counted() {
    for text in [
        "def f(): pass\n\ndef f(): pass\n\ndef h(): pass\n",
        "def f(): pass\n\ndef g(): pass\n\ndef h(): pass\n\ndef g(): pass\n",
        "def h(): pass\n\ndef f(): pass\n\ndef g(): pass\n\ndef h(): pass\n",
    ] {
        assert_eq!(difference(&SHARED, text), None);
    }
}
