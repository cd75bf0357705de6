//! Markdown to HTML that is safe: HTML within it is shown as text, links lead to the web or within
//! the page only, and pictures are links.

use pulldown_cmark::{Alignment, CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use crate::number;
use crate::parts::Parts;
use crate::text::{Markup, escape, push_code};

/// `source` as HTML. Headings are `shift` levels lower than in the source, at most the sixth.
pub(crate) fn markdown(source: &str, shift: usize) -> Markup {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let mut writer = Writer { shift, ..Writer::default() };
    for event in Parser::new_ext(source, options) {
        writer.event(event);
    }
    Markup(writer.out)
}

/// Markdown, as much of it as a page shows of a text.
pub(crate) fn prose(parts: &mut Parts, source: &str, shift: usize) -> Markup {
    let limit = parts.limits.text_chars;
    match source.char_indices().nth(limit) {
        None => markdown(source, shift),
        Some((at, _)) => {
            let total = number::count(source.chars().count() as u64);
            let shown = number::count(limit as u64);
            parts.notes.push(format!("A text: {shown} of {total} characters are shown."));
            markdown(&source[..at], shift)
        }
    }
}

#[derive(Default)]
struct Writer {
    out: String,
    shift: usize,
    /// How each open link or picture ends.
    links: Vec<&'static str>,
    alignments: Vec<Alignment>,
    column: usize,
    in_head: bool,
    in_code: bool,
}

impl Writer {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) if self.in_code => push_code(&mut self.out, &text),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => {
                self.out.push_str(&escape(&text));
            }
            Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.out.push_str("<code>");
                push_code(&mut self.out, &text);
                self.out.push_str("</code>");
            }
            Event::SoftBreak => self.out.push('\n'),
            Event::HardBreak => self.out.push_str("<br>\n"),
            Event::Rule => self.out.push_str("<hr>\n"),
            Event::TaskListMarker(done) => self.out.push_str(if done { "☑ " } else { "☐ " }),
            Event::FootnoteReference(name) => self.out.push_str(&escape(&name)),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.out.push_str("<p>"),
            Tag::Heading { level, .. } => {
                let level = (level as usize + self.shift).min(6);
                self.out.push_str(&format!("<h{level}>"));
            }
            Tag::BlockQuote(_) => self.out.push_str("<blockquote>\n"),
            Tag::CodeBlock(kind) => {
                let label = match kind {
                    CodeBlockKind::Fenced(language) if !language.is_empty() => {
                        format!("Code, {}", escape(&language))
                    }
                    _ => "Code".to_string(),
                };
                self.out.push_str(&format!(
                    "<pre class=\"code\" tabindex=\"0\" role=\"group\" aria-label=\"{label}\"><code>"
                ));
                self.in_code = true;
            }
            Tag::List(None) => self.out.push_str("<ul>\n"),
            Tag::List(Some(first)) => self.out.push_str(&format!("<ol start=\"{first}\">\n")),
            Tag::Item => self.out.push_str("<li>"),
            Tag::Table(alignments) => {
                self.alignments = alignments;
                self.out.push_str("<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Table\"><table>\n");
            }
            Tag::TableHead => {
                self.in_head = true;
                self.column = 0;
                self.out.push_str("<thead><tr>");
            }
            Tag::TableRow => {
                self.column = 0;
                self.out.push_str("<tr>");
            }
            Tag::TableCell => {
                let right = self.alignments.get(self.column) == Some(&Alignment::Right);
                let class = if right { " class=\"num\"" } else { "" };
                let cell = if self.in_head { "th scope=\"col\"" } else { "td" };
                self.out.push_str(&format!("<{cell}{class}>"));
                self.column += 1;
            }
            Tag::Emphasis => self.out.push_str("<em>"),
            Tag::Strong => self.out.push_str("<strong>"),
            Tag::Strikethrough => self.out.push_str("<s>"),
            Tag::Link { dest_url, .. } => self.link(&dest_url, ""),
            Tag::Image { dest_url, .. } => self.link(&dest_url, "picture: "),
            _ => {}
        }
    }

    fn link(&mut self, address: &str, before: &str) {
        // A link within a link cannot be: the outer one counts.
        let end = match safe_address(address) {
            Some(address) if !self.links.contains(&"</a>") => {
                self.out.push_str(&format!("<a href=\"{}\" rel=\"noreferrer\">", escape(address)));
                "</a>"
            }
            _ => "",
        };
        self.out.push_str(before);
        self.links.push(end);
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.out.push_str("</p>\n"),
            TagEnd::Heading(level) => {
                let level = (level as usize + self.shift).min(6);
                self.out.push_str(&format!("</h{level}>\n"));
            }
            TagEnd::BlockQuote(_) => self.out.push_str("</blockquote>\n"),
            TagEnd::CodeBlock => {
                self.in_code = false;
                self.out.push_str("</code></pre>\n");
            }
            TagEnd::List(true) => self.out.push_str("</ol>\n"),
            TagEnd::List(false) => self.out.push_str("</ul>\n"),
            TagEnd::Item => self.out.push_str("</li>\n"),
            TagEnd::Table => self.out.push_str("</tbody></table></div>\n"),
            TagEnd::TableHead => {
                self.in_head = false;
                self.out.push_str("</tr></thead><tbody>\n");
            }
            TagEnd::TableRow => self.out.push_str("</tr>\n"),
            TagEnd::TableCell => self.out.push_str(if self.in_head { "</th>" } else { "</td>" }),
            TagEnd::Emphasis => self.out.push_str("</em>"),
            TagEnd::Strong => self.out.push_str("</strong>"),
            TagEnd::Strikethrough => self.out.push_str("</s>"),
            TagEnd::Link | TagEnd::Image => {
                let end = self.links.pop().unwrap_or_default();
                self.out.push_str(end);
            }
            _ => {}
        }
    }
}

/// An address that a link may lead to: on the web, a mailbox, or within the page.
pub(crate) fn safe_address(address: &str) -> Option<&str> {
    let lower = address.to_ascii_lowercase();
    let known =
        ["https://", "http://", "mailto:", "#"].iter().any(|start| lower.starts_with(start));
    (known && !address.contains(char::is_control)).then_some(address)
}
