//! Tests of plain code: what is read without a parser must equal its tree.

use super::*;
use crate::library::{cases, pick, python_files};
use crate::parse::{PythonParser, nodes};
use proptest::prelude::*;

/// True if a text is plain; panics unless it then equals its tree.
fn is_plain(text: &str) -> bool {
    let mut parser = PythonParser::new().unwrap();
    compare(&mut parser, text).unwrap()
}

/// Compares a text with its tree; returns whether it is plain.
fn compare(parser: &mut PythonParser, text: &str) -> Result<bool, String> {
    let Some(plain) = read_plain(text) else { return Ok(false) };
    let tree = parser.parse_anew(text).map_err(|error| format!("{text}\n{error}"))?;
    let (mut open, mut height, mut identifiers) = (Vec::new(), 0, Vec::new());
    let mut definitions = Vec::new();
    for (place, node) in nodes(tree.root_node()).enumerate() {
        open.retain(|&end| end > place);
        open.push(place + node.descendant_count());
        height = height.max(open.len() as u32);
        match node.kind() {
            "identifier" => identifiers.push((node.start_byte() as u32, node.end_byte() as u32)),
            "function_definition" => definitions.push((true, node.start_byte())),
            "class_definition" => definitions.push((false, node.start_byte())),
            _ => {}
        }
    }
    let count = tree.root_node().descendant_count() - 1;
    let found: Vec<_> =
        plain.definitions.iter().map(|found| (found.is_function, found.start)).collect();
    // An overestimate of nodes only sends a text to the parser.
    let same = !tree.root_node().has_error()
        && found == definitions
        && (count..=2 * count + 40).contains(&plain.nodes);
    let counted = (plain.nodes, plain.height, plain.identifiers);
    let exact = counted == (count, height, identifiers.clone()) || !plain.exact || count == 0;
    if same && exact {
        return Ok(true);
    }
    Err(format!(
        "{text}\nplain: {counted:?} {found:?}\ntree: {count} {height} {identifiers:?} {definitions:?}"
    ))
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
        assert!(is_plain(text), "{text}");
    }
    assert!(is_plain("# a comment\n\n") && is_plain(""));
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
        assert!(!is_plain(&format!("{text}\n")), "{text}");
    }
    assert!(!is_plain("  x = 1\ny = 2\n") && !is_plain("x = 1\0\n") && !is_plain("'\\N{a'\n"));
    let deep = format!("x = {}1{}\n", "(".repeat(5_000), ")".repeat(5_000));
    assert!(!is_plain(&deep));
    let deep: String = (0..900).map(|at| format!("{}if a:\n", " ".repeat(at))).collect();
    assert!(!is_plain(&(deep + &" ".repeat(900) + "pass\n")));
}

#[test]
fn what_is_nested_deeply_is_not_plain() {
    let sources = |depth: usize| {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        [
            format!("def f(y: {open}int{close}):\n    return y\n"),
            format!("def f(y) -> {open}int{close}:\n    return y\n"),
            format!("y: {}int{close} = 1\n", "List[".repeat(depth)),
            format!("async def f(y):\n    return {}y\n", "await ".repeat(depth)),
        ]
    };
    for (depth, plain) in [(30, true), (1_000, false), (100_000, false)] {
        for source in sources(depth) {
            assert_eq!(is_plain(&source), plain, "{source}");
        }
    }
    // Siblings are not nested.
    let beside = format!("def f(y: List[{}]):\n    await y\n", vec!["[int]"; 1000].join(", "));
    assert!(is_plain(&beside));
}

/// Files are cut at their definitions: most have a line that is not plain.
#[test]
fn code_of_real_files_is_the_same() {
    let others = std::env::var_os("OUTLINE_CORPUS").map(std::path::PathBuf::from);
    let mut parser = PythonParser::new().unwrap();
    let (mut files, mut plain, mut all) = (0, 0, 0);
    for (path, text) in python_files(others) {
        files += 1;
        let mut parts = vec![String::new()];
        for line in text.split_inclusive('\n') {
            if line.starts_with("def ") || line.starts_with("class ") || line.starts_with('@') {
                parts.push(String::new());
            }
            parts.last_mut().unwrap().push_str(line);
        }
        for part in parts {
            let compared = compare(&mut parser, &part);
            let compared = compared.unwrap_or_else(|why| panic!("{}\n{why}", path.display()));
            all += part.len();
            plain += if compared { part.len() } else { 0 };
        }
    }
    let share = 100 * plain / all;
    assert!(files > 500 && share > 25, "{files} files, {share} % of {all} bytes");
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
        is_plain(&lines.concat());
    }

    #[test]
    fn expressions_anywhere_are_the_same(lines in proptest::collection::vec(line(), 1..4)) {
        is_plain(&lines.concat());
    }
}
