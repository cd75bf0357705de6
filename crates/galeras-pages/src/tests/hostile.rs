//! Text from outside does nothing on a page.

use serde_json::{Value, json};

use super::{between, from_json};
use crate::markdown::markdown;
use crate::parts::{Parts, script_json};
use crate::report;
use crate::text::{Changes, Excerpt, Markup, escape, has_hidden};

/// Ends every element and context around the text.
const ATTACK: &str = "</script></style></title></code></pre></template>\" onload=attack() ' x='\
                      <script>attack()</script><img src=x onerror=attack()>]]>-->{{ 7 * 7 }}{% x %}";

/// A report with the text `T` in every place, also as a key.
const EVERY_TEXT: &str = r#"{
  "title": "T", "workflow": "T", "question": "T", "made_at": "T", "made_by": "T",
  "run": { "id": "T", "started": "T", "status": "T" },
  "facts": [{ "name": "T", "value": "T" }],
  "params": [{ "name": "T", "value": "T", "help": "T" }, { "name": "T", "value": { "T": "T" } }],
  "missing": [{ "step": "T", "reason": "T", "command": "T" }],
  "sections": [
    { "kind": "text", "title": "T", "markdown": "T" },
    { "kind": "findings", "title": "T", "note": "T", "findings": [
      { "sentence": "T", "outcome": "T", "contrast": "T", "group": "T", "verdict": "T",
        "effect": 1, "low": 0, "high": 2 },
      { "sentence": "T", "status": "refused" } ] },
    { "kind": "figure", "title": "T", "svg": "T", "caption": "T", "alt": "T", "source": "T", "file_name": "T" },
    { "kind": "table", "title": "T", "caption": "T", "source": "T", "file_name": "T", "choice": "T", "total": 9,
      "columns": [{ "name": "T", "data_type": "T", "unit": "T", "description": "T" }, { "name": "T", "sort_link": "T" }],
      "rows": [["T", { "T": ["T"] }], [null, 1]], "row_links": ["T", "T"] },
    { "kind": "rows", "title": "T", "caption": "T", "choice": "T", "source": "T", "points": [
      { "id": "T", "title": "T", "groups": [{ "name": "T", "value": "T" }],
        "scores": [{ "metric": "T", "value": 1.0 }, { "metric": "T" }],
        "prompt": [{ "name": "T", "value": "T" }], "answer": "T", "reference": "T",
        "texts": [{ "name": "T", "value": "T" }],
        "trace": [{ "step": "T", "id": "T", "text": "T", "url": "T" }] },
      { "id": "T", "groups": [{ "name": "T", "value": "other" }], "answer": "T" }] },
    { "kind": "attrition", "stages": [
      { "step": "T", "operator": "T", "rows": 1, "lost": 1,
        "reasons": [{ "reason": "T", "rows": 1, "examples": [{ "name": "T", "value": "T" }] }] }] },
    { "kind": "diagnostics", "notes": [{ "step": "T", "text": "T" }] },
    { "kind": "reproduce", "note": "T", "commands": [{ "name": "T", "value": "T" }],
      "facts": [{ "name": "T", "value": "T" }], "digests": [{ "name": "T", "value": "T" }] }],
  "graph": {
    "arrows": [{ "from": "T", "to": "T", "port": "T" }],
    "steps": [{ "name": "T", "operator": "T", "arguments": "T", "reason": "T", "digest": "T",
      "assertions": [{ "test": "T", "detail": "T" }],
      "ports": [{ "name": "T", "digest": "T",
        "first_rows": { "title": "T", "file_name": "T", "columns": [{ "name": "T" }], "rows": [["T"]] },
        "columns": [
          { "name": "T", "data_type": "T", "unit": "T", "description": "T",
            "statistics": { "min": "T", "max": "T", "bins": [{ "low": 0, "high": 1, "count": 3 }] } },
          { "name": "T", "statistics": { "top": [{ "value": "T", "count": 1 }] } }] }] }] }
}"#;

fn every_text(text: &str) -> Value {
    fn put(value: Value, text: &str) -> Value {
        match value {
            Value::String(old) if old == "T" => json!(text),
            Value::Array(items) => items.into_iter().map(|item| put(item, text)).collect(),
            Value::Object(items) => {
                let key = |key: String| if key == "T" { text.to_string() } else { key };
                items.into_iter().map(|(name, item)| (key(name), put(item, text))).collect()
            }
            other => other,
        }
    }
    put(serde_json::from_str(EVERY_TEXT).unwrap(), text)
}

/// The tags of a page, with their attributes, as a browser's tokenizer sees them: the content of
/// `script` and `style` is raw text.
fn tags(html: &str) -> Vec<&str> {
    let mut tags = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        rest = &rest[at..];
        let end = rest.find('>').unwrap();
        tags.push(&rest[1..end]);
        let raw = ["script", "style"].iter().find(|name| rest[1..end].starts_with(**name));
        rest = match raw {
            Some(name) => &rest[rest.find(&format!("</{name}")).unwrap()..],
            None => &rest[end..],
        };
    }
    tags
}

#[test]
fn texts_make_no_element_and_no_attribute_anywhere() {
    // A short text and one that is cut: they have all the elements that there are.
    let harmless = ["harmless".to_string(), "long ".repeat(80)]
        .map(|text| report(&from_json(every_text(&text))).unwrap());
    let attacked = report(&from_json(every_text(ATTACK))).unwrap();
    let names = |html: &str| -> Vec<String> {
        tags(html)
            .iter()
            .map(|tag| {
                // The values of attributes aside: they are quoted, and quotes in them are escaped.
                let parts: Vec<&str> = tag.split('"').collect();
                assert_eq!(parts.len() % 2, 1, "an open quote in <{tag}>");
                parts.iter().step_by(2).copied().collect()
            })
            .collect()
    };
    let expected: Vec<String> = harmless.iter().flat_map(|page| names(page)).collect();
    let found = names(&attacked);
    let lacks = found.iter().filter(|tag| !expected.contains(tag)).collect::<Vec<_>>();
    assert!(lacks.is_empty(), "{lacks:?}");
    for page in harmless.iter().chain([&attacked]) {
        assert_eq!(tags(page).iter().filter(|tag| tag.starts_with("script")).count(), 2);
    }
}

#[test]
fn templates_do_not_read_texts_as_templates() {
    let html = report(&from_json(every_text(ATTACK))).unwrap();
    assert!(html.contains("{{ 7 * 7 }}{% x %}"));
    assert!(!html.contains("49{%"));
}

#[test]
fn no_address_loads_or_runs_anything() {
    let html = report(&from_json(every_text("javascript:attack()//"))).unwrap();
    for tag in tags(&html) {
        for name in ["href=\"", "src=\""] {
            let Some(at) = tag.find(name) else { continue };
            let address = &tag[at + name.len()..];
            let is_within = address.starts_with('#') || address.starts_with("data:");
            assert!(is_within, "{tag}: only parts of the page and data");
        }
    }
    let outside = report(&from_json(every_text("https://example.org/x.png"))).unwrap();
    for tag in tags(&outside) {
        assert!(!tag.contains("src=\"http") && !tag.starts_with("link rel=\"stylesheet"), "{tag}");
    }
}

#[test]
fn messages_have_code_between_backquotes_and_are_escaped_all_over() {
    let html = Markup::from_message("raise `<b>` to `2`");
    assert_eq!(html.0, "raise <code>&lt;b&gt;</code> to <code>2</code>");
    assert_eq!(Markup::from_message("a ` <b>").0, "a ` &lt;b&gt;");
}

#[test]
fn hidden_characters_are_shown_by_their_names() {
    assert_eq!(escape("a\u{1b}[2J\0\u{202e}b\u{9b}\r\nc\td"), "a⟨ESC⟩[2J⟨NUL⟩⟨RLO⟩b⟨U+009B⟩\nc\td");
    assert_eq!(escape("<a href='x'>&\"</a>"), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;&lt;/a&gt;");
    let html =
        report(&from_json(every_text("a\u{1b}\0\u{202e}\u{2066}\u{200b}\u{e0041}b"))).unwrap();
    let hidden = html.chars().find(|c| has_hidden(&c.to_string()));
    assert_eq!(hidden, None, "in the whole page, also in its JSON");
}

#[test]
fn whole_texts_come_back_from_the_json_of_the_page() {
    let text = format!("{ATTACK}\u{1b}\0\u{202e}\u{2028}\r\n{}", "x".repeat(30_000));
    let mut parts = Parts::default();
    let (excerpt, id) = parts.excerpt(&text);
    assert!(!excerpt.is_whole());
    let json = parts.kept_json();
    assert!(!json.0.contains(['<', '>', '&', '\u{2028}']));
    let kept: Value = serde_json::from_str(&json.0).unwrap();
    assert_eq!(kept[id.unwrap()], json!(text));
    assert_eq!(script_json(&json!("\u{e0041}")), "\"\\udb40\\udc41\"");
}

#[test]
fn a_line_of_a_megabyte_is_cut_in_its_place() {
    let text = format!("before\n{}\nafter\n", "x".repeat(1_000_000));
    let excerpt = Excerpt::new(&text, 20_000, 2_000);
    assert_eq!(excerpt.gaps, [(7 + 2_000, 998_000)]);
    let html = excerpt.to_markup(&[], &Changes::default());
    assert!(html.0.contains("<span class=\"gap\">… 998,000 more characters</span>\nafter"));
    assert!(html.0.len() < 3_000);
}

#[test]
fn what_an_excerpt_shows_and_leaves_out_adds_up() {
    for text in ["", "a", "a\nb\n", "\n\n\n", "äöü\nlonger line\nx", "no end of line at all"] {
        for limit in 0..30 {
            for line in 0..10 {
                let excerpt = Excerpt::new(text, limit, line);
                let left: usize = excerpt.gaps.iter().map(|gap| gap.1).sum();
                let sum = excerpt.text.chars().count() + left;
                assert_eq!(sum, text.chars().count(), "{text:?} {limit} {line}");
                excerpt.to_markup(&[], &Changes::default());
            }
        }
    }
}

#[test]
fn markdown_is_safe_and_headings_stay_below_those_of_the_page() {
    let source = "# A\n<b onclick=x>b</b> [l](javascript:x) ![p](http://e.org/x.png)\n\n<script>x</script>\n";
    let html = markdown(source, 2).0;
    assert!(html.starts_with("<h3>A</h3>"), "{html}");
    let picture = "<a href=\"http://e.org/x.png\" rel=\"noreferrer\">picture: p</a>";
    for words in ["&lt;b onclick=x&gt;", "&lt;script&gt;", picture] {
        assert!(html.contains(words), "{words} in {html}");
    }
    assert!(!html.contains("javascript") && !html.contains("<img"), "{html}");
    let nested = markdown("[a ![b](https://e.org/1) c](https://e.org/2)", 0);
    assert_eq!(nested.0.matches("<a ").count(), nested.0.matches("</a>").count());
    let deep = markdown(&"> ".repeat(20_000), 0);
    assert!(!deep.0.is_empty());
}

#[test]
fn broken_python_is_shown_whole() {
    let code = "def f(x:\n  return [x for (1\n\"\"\"never closed \u{0}\n\tclass @@@ é";
    let ranges = crate::highlight::python(code);
    let html = Excerpt::new(code, 1_000, 1_000).to_markup(&ranges, &Changes::default());
    let after_tags = html.0.split('<').map(|part| part.split('>').next_back().unwrap());
    let shown: String = after_tags.collect();
    assert_eq!(shown.replace("&quot;", "\"").replace("NUL", "\0"), code);
    assert!(html.0.contains("<span class=\"hl-keyword\">def</span>"));
    let deep = format!("x = {}", "(".repeat(19_000));
    assert!(crate::highlight::python(&deep).len() < 100);
}

#[test]
fn styles_cannot_end_a_picture() {
    let svg = "<svg xmlns='http://www.w3.org/2000/svg' width=\"10cm\" height='5cm'><style>*{}</style>\"'#%\n</svg>";
    let of = json!({ "sections": [{ "kind": "figure", "svg": svg, "alt": "a" }] });
    let page = report(&from_json(of)).unwrap();
    let source = between(&page, "src=\"", "\"");
    assert!(source.starts_with("data:image/svg+xml,%3Csvg"), "{source}");
    assert!(!source.contains(['<', '>', '#', '\'', '\n']), "{source}");
    assert!(page.contains("width=\"378\" height=\"189\""));
}
