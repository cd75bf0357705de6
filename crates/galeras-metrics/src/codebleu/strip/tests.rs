//! Tests of `strip`; expected values are those of Python 3.11 and the peers' functions.

use super::{java, python};

type Strip = fn(&str, &mut String, &mut String);

fn stripped(strip: Strip, text: &str) -> String {
    let (mut work, mut out) = (String::from("old"), String::from("old"));
    strip(text, &mut work, &mut out);
    out
}

#[test]
fn comments_docstrings_and_blank_lines_go() {
    for (text, expected) in [
        (
            "def f(a):  # why\n    '''doc'''\n\n    # note\n    return 'a' # end",
            "def f(a):  \n    return 'a' ",
        ),
        // A string that begins a statement goes with or without what follows.
        ("def f():\n    x\n    ', '.join(y)", "def f():\n    x\n    .join(y)"),
        ("x = 1\nb'abc'", "x = 1"),
        // After a comment line, and after a dedent, it stays.
        ("def f():\n    x\n    # note\n    'doc'", "def f():\n    x\n    'doc'"),
        // White space becomes spaces except for indentation.
        ("if a:\n\tb\t=\t1\n\tc", "if a:\n\tb = 1\n c"),
        ("x = 1 + \\\n    2", "x = 1 +    2"),
        // An unclosed quote is two errors and no string.
        ("x =\t'ab # c\ny # d", "x =\t'ab \ny "),
        ("x = 'ab\\\nc # d'\ny # e", "x = 'ab\\\nc # d'\ny "),
    ] {
        assert_eq!(stripped(python, text), expected, "{text}");
    }
    // Python cannot tokenize these.
    for text in [
        "def f(a:\n    return a # x",
        "x = '''a # b",
        "if a:\n    b # c\n  d",
        "x = ) # c",
        "x = 1 \\\n",
    ] {
        assert_eq!(stripped(python, text), text);
    }
}

#[test]
fn javas_comments_are_not_pythons() {
    for (text, expected) in [
        ("x = a // b # c\n\ny = 'a//b' // c", "x = a  \ny = 'a//b'  "),
        ("a /* b\n c */ d \"/*\" /* e", "a   d \"/*\" /* e"),
        ("x = 'a\\'//b' // it's\n// c", "x = 'a\\'//b'  "),
        ("it's // gone", "it's  "),
        ("", ""),
    ] {
        assert_eq!(stripped(java, text), expected, "{text}");
    }
}

#[test]
fn hostile_lines_take_linear_time() {
    let texts = [
        "\\'".repeat(500_000),
        "'\\".repeat(500_000),
        format!("x{}'", " ".repeat(1_000_000)),
        "/*".repeat(500_000),
        "'''\n".repeat(250_000),
        "(\\\n".repeat(300_000),
        "\t\0é\u{feff}$".repeat(150_000),
    ];
    for text in texts {
        stripped(python, &text);
        stripped(java, &text);
    }
}
