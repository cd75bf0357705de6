use super::*;

fn code(answer: &str) -> Cow<'_, str> {
    extract(answer).code
}

/// Checks the code of an answer, also with CRLF and with tildes.
fn check(answer: &str, expected: &str) {
    assert_eq!(code(answer), expected, "{answer}");
    assert_eq!(code(&answer.replace('\n', "\r\n")), expected.replace('\n', "\r\n"), "{answer}");
    let (answer, expected) = (answer.replace('`', "~"), expected.replace('`', "~"));
    assert_eq!(code(&answer), expected, "{answer}");
}

#[test]
fn an_answer_without_a_fence_is_code() {
    check("", "");
    check("def f():\n    return 1", "def f():\n    return 1");
    check(" \n>>> f()\n1\n", " \n>>> f()\n1\n");
    check("``\nx\n``", "``\nx\n``");
    check("\u{a0}```\nx\n```", "");
    assert!(matches!(code("x"), Cow::Borrowed(_)));
}

#[test]
fn a_block_is_its_lines() {
    check("Sure!\n```python\ndef f():\n    pass\n```\nThat's it.", "def f():\n    pass\n");
    check("```\nx\n\ny\n```", "x\n\ny\n");
    check("```\nx\n``` \t\n```\ny\n```", "x\n");
    check("a\n```\n>>> f()\n1\n```", ">>> f()\n1\n");
    assert!(matches!(code("```\nx\n```"), Cow::Borrowed("x\n")));
}

#[test]
fn the_info_string_may_be_anything() {
    for info in ["", "python", " py title=\"a b\"", "c++ {1,2}", "日本", "{.python}"] {
        check(&format!("```{info}\nx\n```"), "x\n");
    }
    // With backticks this is inline code. After tildes both may follow.
    assert_eq!(code("```x = `1` ```\ny"), "```x = `1` ```\ny");
    assert_eq!(code("~~~ `~\nx\n~~~"), "x\n");
}

#[test]
fn a_fence_closes_with_its_character_and_length() {
    check("````md\n```\nx\n```\n````\n", "```\nx\n```\n");
    check("```\nx\n`````\ny", "x\n");
    check("```\nx\n``\n```y\n``` z\n", "x\n``\n```y\n``` z\n");
    assert_eq!(code("```\n~~~\nx\n```"), "~~~\nx\n");
    assert_eq!(code("~~~\n```\nx\n~~~"), "```\nx\n");
}

#[test]
fn a_cut_answer_ends_its_block() {
    check("Here:\n```python\ndef f():\n    retu", "def f():\n    retu");
    check("Here:\n```python", "");
    check("Here:\n```python\n", "");
    check("```\nx\n``", "x\n``");
}

#[test]
fn python_comes_before_def_before_the_first() {
    check("```sh\npip\n```\n```\ndef f(): 1\n```\n```py\nx\n```", "x\n");
    check("```Python3\nx\n```\n```python\ny\n```", "x\n");
    check("```sh\npip\n```\n```js\ndef f(): 1\n```\n```\ndef g(): 1\n```", "def f(): 1\n");
    check("```sh\nundef x\n_def y\ndef\n```\n```\nasync def g(): 1\n```", "async def g(): 1\n");
    check("```sh\na\n```\n```js\nb\n```", "a\n");
    check("```pycon\na\n```\n```python2\nb\n```\n```python:x.py\nc\n```", "c\n");
}

#[test]
fn an_empty_block_is_taken_last() {
    check("```python\n \n```\n```\nx\n```", "x\n");
    check("```\n\n```\n```\n```", "\n");
    check("```\n```", "");
}

#[test]
fn the_indentation_of_the_fence_is_taken_off() {
    check("  ```\n  def f():\n      x\n y\n\n  ```", "def f():\n    x\ny\n\n");
    check("   ```\nx\n   ```", "x\n");
    check("  ```\n\tx\n  ```", "  x\n");
    // A fence indented by four columns is not a fence.
    check("    ```\n    x\n    ```", "    ```\n    x\n    ```");
    check("\t```\nx", "\t```\nx");
    check("```\nx\n    ```\n   ```\n", "x\n    ```\n");
}

#[test]
fn a_fence_in_a_list_is_indented_with_its_item() {
    check("1. So:\n\n   ```python\n   def f():\n       x\n   ```\n2. Done.", "def f():\n    x\n");
    check("- a\n  10) b\n      ```\n      x\n      ```\n", "x\n");
    check("-     a\n  ```\n  x\n  ```\n", "x\n");
    check("-\n     ```\n     x\n     ```\n", "x\n");
    // After the list it would be indented too far.
    check("- a\n\nb\n     ```\nx\n", "- a\n\nb\n     ```\nx\n");
    check("-a\n     ```\nx", "-a\n     ```\nx");
}

#[test]
fn a_fence_in_a_docstring_is_text_if_it_is_indented() {
    let method = "def f():\n    '''Say:\n\n    ```\n    f()\n    ```\n    '''\n    - 1\n";
    check(method, method);
    check(&format!("```python\n{method}```\n"), method);
    // In a class, and in a list.
    check(
        "- a\n  ```\n  class A:\n      '''\n      ```\n      '''\n  ```\n",
        "class A:\n    '''\n    ```\n    '''\n",
    );
    // At the margin it closes the block, unless the opening fence is longer.
    check("```python\ns = '''\n```\n'''\n```\n", "s = '''\n");
    check("````python\ns = '''\n```\n'''\n````\n", "s = '''\n```\n'''\n");
}

#[test]
fn reasoning_is_left_out() {
    check("<think>\n```python\nno\n```\n</think>\n```python\nyes\n```", "yes\n");
    check("<think>\n```python\nno\n</think>```\nyes\n```", "yes\n");
    check("<think></think>x = 1\n", "x = 1\n");
    check(" \n <think> a </think>\n\nx", " \n \n\nx");
    check("a\n<think>b</think>\nc\n<think>d</think>e", "a\n\nc\ne");
    check("a\n<think>b</think></think>c", "c");
    assert!(matches!(code("<think>a</think>\nx"), Cow::Borrowed("\nx")));
}

#[test]
fn reasoning_without_an_end_or_a_beginning() {
    check("<think>\nI could\n```python\nx\n```\n", "");
    check("```\nx\n```\n<think>\n```python\ny", "x\n");
    check("I could\n```python\nno\n```\n</think>\n\n```\nyes\n```\n", "yes\n");
    check("I could\n</think>\nx = 1", "\nx = 1");
}

#[test]
fn code_about_reasoning_is_code() {
    let about = "s = re.sub('<think>.*</think>', '', s)\nt = '''\n<think>\n</think>\n'''\n";
    check(&format!("```python\n{about}```"), about);
    for about in [
        about,
        // Quotes protect marks also in code that ends too early.
        "s.split('</think>')\nt = \"<think>\"\nx = (",
        "t = rb'<think>'\nu = [a for a in '' + '</THINK>'",
        // The others are in comments and strings of valid code.
        "x = 1  # without <think>a</think>",
        "def f():\n    '''Drops\n    </think> and all before.\n    '''\n    return 1",
        "t = f\"{a}<thinking>\"\nassert t, a  # [THINK]",
    ] {
        check(about, about);
        assert_eq!(extract(about).reasoning, None, "{about}");
    }
}

/// Answers, their code, and whether they have thoughts.
#[test]
fn marks_count_within_a_line() {
    let (bad, good) = ("```python\nbad\n```", "```python\ngood\n```\n");
    for (answer, expected, thoughts) in [
        (format!("Try:\n{bad}\nI'll stop.</think>So:\n{good}"), "good\n", true),
        (format!("Try:\n{bad}\nDon't 'x' it.</think>{good}"), "good\n", true),
        (format!("<think>{bad}\nDone.</think>{good}"), "good\n", true),
        (format!("OK. <think>First:\n{bad}\n</think>\n{good}"), "good\n", true),
        (format!("OK. <think>First:\n{bad}\nDone.</think> So:\n{good}"), "good\n", true),
        (format!("Try:\n{bad}\nNo.</think>good = 1"), "good = 1", true),
        (
            "So I return one.</think>def f():\n    return 1\n".into(),
            "def f():\n    return 1\n",
            true,
        ),
        // The end of the answer came first.
        (format!("```\ngood\n```\nOr: <think>First:\n{bad}"), "good\n", true),
        (format!("```\ngood\n```\nOr: <think>\n{bad}"), "good\n", true),
        // Mentions of marks.
        (format!("It drops the <think> tag:\n{good}"), "good\n", false),
        (format!("It drops **<think>** and `</think>`:\n{good}"), "good\n", false),
        (format!("{good}It ends at the </think> tag."), "good\n", false),
        (format!("{good}It ends at the </think> tag"), "good\n", false),
        (
            format!("{good}It ends at \"</think>\", or the </think> and a </think>."),
            "good\n",
            false,
        ),
    ] {
        check(&answer, expected);
        assert_eq!(extract(&answer).reasoning.is_some(), thoughts, "{answer}");
    }
}

#[test]
fn every_family_of_models_has_its_marks() {
    let (bad, good) = ("Try:\n```python\nbad\n```", "```python\ngood\n```\n");
    for Mark { open, close } in MARKS {
        for answer in [
            format!("{open}\n{bad}\n{close}\n{good}"),
            format!("{open}{bad}\n{close}{good}"),
            format!("OK. {open}{bad}\nSo {close}{good}"),
            format!("{bad}\n{close}\n{good}"),
            format!("{bad}\nSo {close}{good}"),
        ] {
            for answer in [answer.clone(), answer.replace(open, &open.to_lowercase())] {
                let found = extract(&answer);
                assert_eq!(found.code, "good\n", "{answer}");
                let thoughts = found.reasoning.unwrap();
                assert!(thoughts.contains("Try:\n```python\nbad\n```"), "{answer}: {thoughts}");
            }
        }
        let cut = format!("{open}\n{bad}");
        let found = extract(&cut);
        assert_eq!((&*found.code, found.reasoning.as_deref()), ("", Some(bad)), "{cut}");
        let about = format!("s = '{open}{close}'");
        assert_eq!(code(&about), about);
    }
}

#[test]
fn thoughts_are_kept() {
    for (answer, thoughts) in [
        ("x = 1", None),
        ("<think>\n\n</think>\nx = 1", None),
        ("<think> a\nb </think>x", Some("a\nb")),
        ("<think>a</think>x\n<thinking>b</thinking>y", Some("a\n\nb")),
        ("a\n</think>x", Some("a")),
        ("<think>a", Some("a")),
        ("<|channel|>analysis<|message|>a<|channel|>final<|message|>x", Some("a")),
    ] {
        assert_eq!(extract(answer).reasoning.as_deref(), thoughts, "{answer}");
    }
}

#[test]
fn every_prefix_of_an_answer_has_code() {
    let answer =
        "é\n<think>ü</think>1. ß\n   ```pythön\r\n\té\n   ```\n~~~~ ~\nx\n~~~~\n</think>\n—";
    for end in (0..=answer.len()).filter(|&end| answer.is_char_boundary(end)) {
        code(&answer[..end]);
        code(&answer[end..]);
    }
}

#[test]
fn time_is_linear() {
    for line in [
        "```\n",
        "```",
        "`",
        "~~~ ```\n",
        "<think>",
        "<think>\n",
        "</think>\n",
        "\n",
        " ",
        "\t",
        "- ",
        "1. a\n",
        "```\ndef\n```\n",
        "<think></think>\n",
        "<think></think>",
        "x<think>",
        "x</think>",
        "x<think></think>",
        "x<think></think>\n",
        "<think>\n`</think>`\n",
        "'<think> ",
        "◁",
        "undef ",
        "   ```\nx\n   ```\n",
    ] {
        let answer = line.repeat(1 << 16);
        let start = std::time::Instant::now();
        code(&answer);
        code(&format!("```\n{answer}"));
        assert!(start.elapsed().as_secs() < 5, "{line}");
    }
}
