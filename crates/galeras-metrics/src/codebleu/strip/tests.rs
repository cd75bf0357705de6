//! Tests of `strip`; expected values are those of Python 3.11 and the peers' functions.

use super::{java as strip_java, python as strip_python};

fn python(text: &str) -> String {
    let (mut work, mut out) = (String::from("old"), String::from("old"));
    strip_python(text, &mut work, &mut out);
    out
}

fn java(text: &str) -> String {
    let (mut work, mut out) = (String::from("old"), String::from("old"));
    strip_java(text, &mut work, &mut out);
    out
}

#[test]
fn comments_docstrings_and_blank_lines_go() {
    let text = "def f(a):  # why\n    '''doc'''\n\n    # note\n    return 'a' # end";
    assert_eq!(python(text), "def f(a):  \n    return 'a' ");
}

#[test]
fn a_string_that_begins_a_statement_goes_with_or_without_what_follows() {
    assert_eq!(python("def f():\n    x\n    ', '.join(y)"), "def f():\n    x\n    .join(y)");
    assert_eq!(python("x = 1\nb'abc'"), "x = 1");
    // After a comment line, and after a dedent, it stays.
    assert_eq!(python("def f():\n    x\n    # note\n    'doc'"), "def f():\n    x\n    'doc'");
}

#[test]
fn white_space_becomes_spaces_except_for_indentation() {
    assert_eq!(python("if a:\n\tb\t=\t1\n\tc"), "if a:\n\tb = 1\n c");
    assert_eq!(python("x = 1 + \\\n    2"), "x = 1 +    2");
}

#[test]
fn texts_that_python_cannot_tokenize_stay() {
    for text in [
        "def f(a:\n    return a # x",
        "x = '''a # b",
        "if a:\n    b # c\n  d",
        "x = ) # c",
        "x = 1 \\\n",
    ] {
        assert_eq!(python(text), text);
    }
}

#[test]
fn an_unclosed_quote_is_two_errors_and_no_string() {
    assert_eq!(python("x =\t'ab # c\ny # d"), "x =\t'ab \ny ");
    assert_eq!(python("x = 'ab\\\nc # d'\ny # e"), "x = 'ab\\\nc # d'\ny ");
}

#[test]
fn javas_comments_are_not_pythons() {
    assert_eq!(java("x = a // b # c\n\ny = 'a//b' // c"), "x = a  \ny = 'a//b'  ");
    assert_eq!(java("a /* b\n c */ d \"/*\" /* e"), "a   d \"/*\" /* e");
    assert_eq!(java("x = 'a\\'//b' // it's\n// c"), "x = 'a\\'//b'  ");
    assert_eq!(java("it's // gone"), "it's  ");
    assert_eq!(java(""), "");
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
        python(&text);
        java(&text);
    }
}
