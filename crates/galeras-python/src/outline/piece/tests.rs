//! Tests of pieces: those read without a parser must equal their trees.

use super::*;
use crate::library::python_files;
use crate::outline::cut::Cuts;
use crate::outline::tests::{cases, pick};
use crate::parse::nodes;
use proptest::prelude::*;

fn shown(piece: &Piece) -> Vec<String> {
    let show = |entry: &MethodEntry| {
        let (name, alone) = (piece.qualified_name(entry), piece.fun_name(entry));
        format!("{name} {alone} {entry:?}")
    };
    piece.methods.iter().map(show).collect()
}

/// Compares both ways to read a piece; returns whether it is plain.
fn compare(parser: &mut PythonParser, context: Context<'_>, text: &str) -> Result<bool, String> {
    let hash = |name: &str| name.len() as u64;
    // `find` rejects these first.
    if text.contains('\0') {
        return Ok(false);
    }
    let Some(plain) = plain_piece(context, text, &hash) else { return Ok(false) };
    if matches!(context, Context::First | Context::Top) {
        as_its_tree(parser, text)?;
    }
    let parsed = parsed_piece(parser, context, text, &hash);
    let same = parsed.verdict == Verdict::Sound
        && shown(&plain) == shown(&parsed)
        && (plain.lines, plain.reread) == (parsed.lines, parsed.reread);
    // An overestimate of nodes only sends a text to the parser.
    let nodes = parsed.nodes <= plain.nodes && plain.nodes <= 2 * parsed.nodes + 40;
    if same && nodes {
        return Ok(true);
    }
    Err(format!(
        "{context:?}\n{text}\nplain: {} nodes, {:?}\nparsed: {:?}, {} nodes, {:?}",
        plain.nodes,
        shown(&plain),
        parsed.verdict,
        parsed.nodes,
        shown(&parsed)
    ))
}

/// Compares the counts of a plain text with its tree, if they are marked exact.
fn as_its_tree(parser: &mut PythonParser, text: &str) -> Result<(), String> {
    let Some(plain) = plain::read(text, false).filter(|plain| plain.exact) else { return Ok(()) };
    let tree = parser.parse(text).unwrap();
    let (mut open, mut height, mut identifiers) = (Vec::new(), 0, Vec::new());
    for (place, node) in nodes(tree.root_node()).enumerate() {
        open.retain(|&end| end > place);
        open.push(place + node.descendant_count());
        height = height.max(open.len() as u32);
        if node.kind() == "identifier" {
            identifiers.push((node.start_byte() as u32, node.end_byte() as u32));
        }
    }
    let count = tree.root_node().descendant_count() - 1;
    let counted = (plain.nodes, plain.height, plain.identifiers);
    if counted == (count, height, identifiers.clone()) || count == 0 {
        return Ok(());
    }
    Err(format!("{text}\ncounted: {counted:?}\ntree: {count} {height} {identifiers:?}"))
}

/// Returns whether a text is plain as a module, and as a class body when indented.
fn both(text: &str) -> [bool; 2] {
    let mut parser = PythonParser::new().unwrap();
    let top = compare(&mut parser, Context::Top, text).unwrap();
    assert_eq!(compare(&mut parser, Context::First, text), Ok(top));
    let inside: String = text
        .split_inclusive('\n')
        .map(|line| if line.trim().is_empty() { line.to_owned() } else { format!("  {line}") })
        .collect();
    [top, compare(&mut parser, Context::Member("C"), &inside).unwrap()]
}

#[test]
fn usual_code_is_plain() {
    for text in [
        "import a.b as c, d\nfrom .x import (y, z as w,)\nfrom .. import q\nfrom ... import t\nfrom m import *\n",
        "x = 1\ny: List[int] = [a for a in b if a if c for d in e]\nx += 3\n",
        "x, (y, [z, w.v]), u[0] = a = b, c\nx = yield a, b\n(yield)\n",
        "def f(a, b=1, *c, d: int = 2, e: 'T', **k) -> Dict[str, Callable[[int, ...], a.B | None]]:\n    return\n",
        "def f(a, /, b, *, c): pass  # c\n# d\n",
        "async def f():\n    async with a as b, c() as (d, e):\n        async for x in y: await z\n    else_ = 1\n",
        "@a.b(1, *x, c=2, **d)\n# note\n@e\n\nclass A(B, metaclass=C):\n    \"\"\"Text.\"\"\"\n\n    x = 1\n    @property\n    def m(self): return self.x\n",
        "if a:\n    b\nelif not c and d or e is not f:\n    pass\nelse:\n    raise X(1) from e\nwhile x < y <= z not in w: break\nelse: continue\n",
        "for i, (j, *k) in enumerate(x), y:\n    del i, j[0]\n    global a, b\n    assert a, 'b' \\\n        'c'\nelse:\n    pass\n",
        "try:\n    pass\nexcept (A, B) as e:\n    pass\nexcept C, e:\n    raise\nexcept:\n    pass\nelse:\n    pass\nfinally:\n    pass\n",
        "x = {a: b, **c}; y = {a, b}; z = {}; w = (); v = (a,); u = {k: v for k, v in w};\n",
        "x = lambda: 1\ny = lambda a, b=2, *c, **d: a if b else lambda: c\nz = f(x for x in y)(*a)[1:2, ::3, ...][:]\n",
        "a, = b, c, = d\nx = -1 ** ~2 // 3.5e-1 @ 0x1F % 0o17 % 0b1 << 1j | .5 & 10L ^ 1. % +a\n",
        "print('a', b=c)\nmatch = re.match(a)\nmatch.group()\ntype = type(x)\nx = a.print + type(y) + match\n",
        "s = 'a\\'b' r'\\\\' b\"\\\\\" u'\\x41' '''a\n'b''\\'''' \"\"\"\"a\"\"\"\n",
        "s = f'{a}{b.c[0]!r:>10}{{x}} {d(1, 2):.3f}' rf\"{a + b}\\d\"\n",
        "x = [\n    1,  # one\n\n    # two\n    2,\n]\nf(\n    a=1,\n)\n",
    ] {
        assert!(both(text)[0], "{text}");
    }
    assert_eq!(both("def f(self):\n    return 1\n"), [true; 2]);
    assert_eq!(both("# a comment\n\n"), [true, false]);
    assert_eq!(both(""), [true, false]);
}

#[test]
fn comments_belong_to_blocks_as_the_scanner_says() {
    let ends = "‖# a\n‖    # a\n‖        # a\n‖            # a\n‖\n\n        # a\n\n‖  # a\n\
        ‖        # a\n    # b\n# c\n‖    # b\n        # a\n‖# c\n        # a\n\
        ‖          # a\n      # b\n";
    let bodies = [
        "def f():\n    def g():\n        return 1\n",
        "def f():\n    def g():\n        return 1  # x\n",
        "def f():\n    def g(): return 1  # x\n",
        "class A:\n    def g(self):\n        if a:\n            return 1\n",
        "def f():\n    try:\n        def g(): pass\n    finally:\n        pass\n",
    ];
    let after = ["", "x = 1\n", "    x = 1\n", "def h(): pass", "    # z", "        x = 1\n"];
    let mut plain = 0;
    for body in bodies {
        for end in ends.split('‖') {
            for after in after {
                let text = format!("{body}{end}{after}");
                let found = [both(&text), both(text.trim_end())];
                plain += found.iter().flatten().filter(|plain| **plain).count();
            }
        }
    }
    assert!(plain > 900, "{plain}");
}

#[test]
fn doubtful_code_is_left_to_the_parser() {
    let texts = "x = 1,‖print 'a'‖print‖exec(a)‖match (a)‖type X = int‖x = (y := 1)‖def f[T](a): pass\
        ‖x = '\\N{DASH}'‖x = 'a‖x = '''a‖x = (1‖x = 1)‖x = f'{a[\"b\"]}'‖x = f'{a:{b}}'\
        ‖x = f'{a=}'‖é = 1‖x = 1\r‖if a:\n    b\n  c‖if a:‖with (a, b): pass‖try:\n    pass\
        ‖else: pass‖x = *a, b‖x = 0777a‖x = `a`‖a <> b‖def f((a, b)): pass‖x = a if b\
        ‖f(x for x in y, z)‖{a: b, c}‖() = x‖1 = x‖f() = x‖@a\nx = 1‖x = \\\n\n1‖return = 1\
        ‖lambda x: y = 1‖def f(a b): pass‖x ? y‖a !b‖def f():\n    x = (a +\n  b)‖import a,\
        ‖case x:\n    pass‖pass pass‖x;; y‖a b";
    for text in texts.split('‖') {
        assert!(!both(&format!("{text}\n"))[0], "{text}");
    }
    assert_eq!(both("  x = 1\ny = 2\n"), [false; 2]);
    let deep = format!("x = {}1{}\n", "(".repeat(5_000), ")".repeat(5_000));
    assert_eq!(both(&deep), [false; 2]);
    let deep: String = (0..900).map(|at| format!("{}if a:\n", " ".repeat(at))).collect();
    assert!(!both(&(deep + &" ".repeat(900) + "pass\n"))[0]);
}

#[test]
fn pieces_of_real_files_are_the_same() {
    let others = std::env::var_os("OUTLINE_CORPUS").map(std::path::PathBuf::from);
    let mut parser = PythonParser::new().unwrap();
    let (mut files, mut plain, mut all) = (0, 0, 0);
    for (path, text) in python_files(others) {
        files += 1;
        let cuts = Cuts::of(text.as_bytes());
        for span in &cuts.spans {
            let members = &cuts.members[span.members.clone()];
            let ends = members.iter().skip(1).copied().chain([span.end]);
            let members = members.iter().zip(ends);
            let members = members.map(|(&from, to)| (Context::Member("C"), from, to));
            for (context, from, to) in members.chain([(Context::Top, span.start, span.end)]) {
                let compared = compare(&mut parser, context, &text[from..to]);
                let compared = compared.unwrap_or_else(|why| panic!("{}\n{why}", path.display()));
                all += to - from;
                plain += if compared { to - from } else { 0 };
            }
        }
    }
    let share = 100 * plain / all;
    assert!(files > 500 && share > 75, "{files} files, {share} % of {all} bytes");
}

const WORDS: &str = "def‖class‖f‖x‖(‖)‖[‖]‖{‖}‖:‖,‖.‖=‖==‖+‖-‖*‖**‖/‖@‖~‖<<‖not‖in‖is‖if‖else‖for‖while‖lambda\
    ‖yield‖await‖async‖from‖import‖as‖with‖try‖except‖finally‖return‖raise‖del‖global‖assert‖pass\
    ‖print‖exec‖match‖type‖None‖1‖1.5‖0x1‖.5‖'a'‖f'{x}'‖\"b\"‖'''c'''‖r'\\'‖...‖->‖;‖\n‖\n    \
    ‖\n        ‖\n‖\n    ‖# c\n‖# c\n    ‖ ‖\\\n‖+=‖and‖or‖!=‖|";

fn statement() -> impl Strategy<Value = String> {
    let words = proptest::collection::vec(pick(WORDS), 1..9);
    words.prop_map(|words| words.join(" ").replace(" \n", "\n") + "\n")
}

const LEAVES: &str = "a‖b.c‖1‖'s'‖None‖f(x)‖x[1:2]‖type‖match‖...‖print‖1.5j‖f'{a}'‖b'x' 'y'‖{}‖()‖[]‖a.match‖*a\
    ‖**k‖0‖a‖b‖c";

const INFIX: &str = "+‖-‖*‖**‖//‖@‖<‖==‖in‖not in‖is not‖and‖or‖if‖,‖=‖:‖:=‖else‖|‖>>";

const PREFIX: &str = "-‖~‖not ‖await ‖lambda: ‖lambda x, *y: ‖*‖yield ‖(yield) + ";

const BRACKETS: &str = "(%)‖[%]‖{%}‖(%,)‖[%,]‖{%: 1}‖f'{%}'‖f(%)(1)";

fn expression() -> impl Strategy<Value = String> {
    let leaf = pick(LEAVES).prop_map(str::to_owned);
    leaf.prop_recursive(4, 24, 4, move |inner| {
        let pair = (inner.clone(), inner.clone());
        let triple = (inner.clone(), inner.clone(), inner.clone());
        prop_oneof![
            (pair.clone(), pick(INFIX)).prop_map(|((a, b), op)| format!("{a} {op} {b}")),
            (inner.clone(), pick(PREFIX)).prop_map(|(a, op)| format!("{op}{a}")),
            (inner, pick(BRACKETS)).prop_map(|(a, form)| form.replace('%', &a)),
            pair.clone().prop_map(|(a, b)| format!("{a}({b})")),
            pair.clone().prop_map(|(a, b)| format!("{a}[{b}]")),
            pair.clone().prop_map(|(a, b)| format!("f(k={a}, *{b})")),
            pair.prop_map(|(a, b)| format!("({a},\n        {b})")),
            triple.clone().prop_map(|(a, b, c)| format!("[{a} for {b} in {c}]")),
            triple.clone().prop_map(|(a, b, c)| format!("{{{a}: {b} for x in y if {c}}}")),
            triple.prop_map(|(a, b, c)| format!("{a} if {b} else {c}")),
        ]
    })
}

const STARTS: &str = "‖x = ‖x, y = ‖x: ‖return ‖yield ‖raise ‖assert ‖del ‖x += ‖print(a) ‖from a import ‖import ‖@\
    ‖for x in ‖if ‖while ‖with ‖def f(a=‖class A(‖except ‖elif ‖x[0] = y = ";

const ENDS: &str = "‖‖‖‖:‖:‖)‖):‖,‖ = 1‖; x‖ # c‖ as y:‖: pass‖):\n    pass";

fn line() -> impl Strategy<Value = String> {
    (pick("‖‖‖    ‖    ‖        "), pick(STARTS), expression(), pick(ENDS))
        .prop_map(|(indent, start, middle, end)| format!("{indent}{start}{middle}{end}\n"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(400)))]

    #[test]
    fn words_in_any_order_are_the_same(lines in proptest::collection::vec(statement(), 1..5)) {
        both(&lines.concat());
    }

    #[test]
    fn expressions_anywhere_are_the_same(lines in proptest::collection::vec(line(), 1..4)) {
        both(&lines.concat());
    }
}
