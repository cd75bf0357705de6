use super::*;

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
    check("s.split('</think>')\nt = \"<think>\"", "s.split('</think>')\nt = \"<think>\"");
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
