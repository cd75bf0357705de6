//! Splits a method's text into code and docstring, by either
//! [`DocstringRule`](super::DocstringRule).

use std::borrow::Cow;

use tree_sitter::Node;

fn triple_quote(bytes: &[u8], mut from: usize) -> Option<usize> {
    loop {
        let rest = bytes.get(from..)?;
        from += rest.iter().position(|byte| matches!(byte, b'"' | b'\''))?;
        if bytes[from..].starts_with(&[bytes[from]; 3]) {
            return Some(from);
        }
        from += 1;
    }
}

/// Code and docstring by [`DocstringRule::Published`].
pub(super) fn split_published(code: &str) -> (Cow<'_, str>, Option<Cow<'_, str>>) {
    let bytes = code.as_bytes();
    let Some(open) = triple_quote(bytes, 0) else {
        return (code.into(), None);
    };
    let mut text = String::with_capacity(code.len());
    text.push_str(&code[..open]);
    // Nearly all methods have one docstring, which can be borrowed.
    let mut docstring = Cow::Borrowed("");
    let (mut start, mut kept) = (open + 3, false);
    loop {
        let end = triple_quote(bytes, start);
        let part = &code[start..end.unwrap_or(code.len())];
        if kept {
            text.push_str(part);
        } else if docstring.is_empty() {
            docstring = part.into();
        } else {
            docstring.to_mut().push_str(part);
        }
        let Some(end) = end else { break };
        (start, kept) = (end + 3, !kept);
    }
    (text.into(), Some(docstring))
}

/// Code and docstring by [`DocstringRule::FirstStatement`].
pub(super) fn split_first_statement<'t>(
    function: Option<Node<'_>>,
    code: &'t str,
) -> (Cow<'t, str>, Option<Cow<'t, str>>) {
    let none = || (code.into(), None);
    let statement = function
        .and_then(|function| function.child_by_field_name("body"))
        .and_then(|body| named_children(body).into_iter().find(|node| node.kind() != "comment"))
        .filter(|node| node.kind() == "expression_statement" && node.named_child_count() == 1);
    let Some(string) = statement.and_then(|node| node.named_child(0)) else {
        return none();
    };
    let strings = match string.kind() {
        "string" => vec![string],
        "concatenated_string" => named_children(string),
        _ => return none(),
    };
    let mut docstring = String::new();
    for part in strings.iter().filter(|part| part.kind() == "string") {
        let (Some(open), Some(close)) = (part.child(0), part.child(part.child_count().max(1) - 1))
        else {
            return none();
        };
        let prefix = code.get(open.byte_range()).unwrap_or_default();
        if prefix.contains(['f', 'F', 'b', 'B']) {
            return none();
        }
        docstring.push_str(code.get(open.end_byte()..close.start_byte()).unwrap_or_default());
    }
    let mut text = String::with_capacity(code.len());
    text.push_str(&code[..string.start_byte()]);
    text.push_str(&code[string.end_byte()..]);
    (text.into(), Some(docstring.into()))
}

fn named_children(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).collect()
}
