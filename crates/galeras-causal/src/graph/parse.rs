//! Parses DOT or dagitty text into a `GraphBuilder`.
//!
//! Both languages are statements in braces: nodes, chains of edges, groups and attributes. They
//! differ only in their headers, keywords and ports, so one parser reads both. Its explicit stack
//! keeps deep nesting from overflowing the thread's.

use std::fmt;

use super::dag::{CausalGraph, Edge, GraphBuilder, GraphError};

/// The most edges, and names moved in and out of groups, of a text: `{a b c ...} -> {a b c ...}` is
/// short and has many edges.
const MOST_WORK: usize = 4_000_000;

const QUOTE_NAMES: &str = "a name with other characters than letters, digits, `_` and `.` must \
                           stand in double quotes";

#[derive(Default)]
struct Frame {
    offset: usize,
    /// All nodes inside, which an edge to the group connects.
    members: Vec<usize>,
    /// The operand before the current position.
    left: Option<Vec<usize>>,
    arrow: Option<(Direction, usize)>,
    /// The edges of this statement, as ranges of the builder's edges.
    edges: Vec<(usize, usize)>,
    /// The statement has had its attributes, so only more attributes can follow.
    closed: bool,
    /// The defaults of nodes and edges.
    latent: bool,
    direction: Direction,
}

impl Frame {
    /// Ends the statement; an arrow needs a right side.
    fn end_statement(&mut self) -> Result<(), GraphError> {
        if let Some((_, offset)) = self.arrow.take() {
            return Err(GraphError::new("this arrow has no node on its right", offset));
        }
        self.left = None;
        self.edges.clear();
        self.closed = false;
        Ok(())
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    /// The language is dagitty's, not DOT.
    dagitty: bool,
    builder: GraphBuilder,
    stack: Vec<Frame>,
    work: usize,
}

impl CausalGraph {
    /// Parses a graph from DOT (`digraph { Z -> {X Y}; U [latent="yes"]; U -> X }`) or dagitty text
    /// (`dag { X [exposure] Y [outcome] U [latent] Z -> X -> Y X <-> Y }`).
    ///
    /// Supported are quoted names, comments, chains, groups in braces, `subgraph`, DOT's defaults
    /// (`node [...]`, `edge [...]`) and ports, and edges `->`, `<-`, `<->` and `dir=both`. `X <->
    /// Y` is an unnamed latent common cause. A node is latent by `latent`, `unobserved` or
    /// `observed="no"`. Other attributes are ignored. Errors are other text, an edge without a
    /// direction, a cycle, which is named, or more than 4,000,000 edges.
    pub fn parse(text: &str) -> Result<CausalGraph, GraphError> {
        let mut lexer = Lexer::new(text);
        let (dagitty, offset) = header(&mut lexer)?;
        let stack = vec![Frame { offset, ..Frame::default() }];
        let builder = GraphBuilder::default();
        let mut parser = Parser { lexer, dagitty, builder, stack, work: 0 };
        parser.body()?;
        parser.builder.finish()
    }
}

/// Reads up to the first brace; returns its position, and true for dagitty.
fn header(lexer: &mut Lexer<'_>) -> Result<(bool, usize), GraphError> {
    let (mut token, mut offset) = lexer.next()?;
    if matches!(&token, Token::Name(name) if name.is_keyword("strict")) {
        (token, offset) = lexer.next()?;
    }
    let is = |words: &[&str]| match &token {
        Token::Name(name) => words.iter().any(|word| name.is_keyword(word)),
        _ => false,
    };
    let dagitty = is(&["dag"]);
    if is(&["graph", "pdag", "mag", "pag"]) {
        let error = GraphError::new(format!("{token} is not a directed acyclic graph"), offset);
        return Err(error.help("every edge needs a direction: use `digraph {` or `dag {`"));
    }
    if !dagitty && !is(&["digraph"]) {
        let message = match token {
            Token::End => "the graph is empty".to_owned(),
            other => format!("expected `digraph` or `dag`, found {other}"),
        };
        let help = "start the text with `digraph {` (DOT) or `dag {` (dagitty)";
        return Err(GraphError::new(message, offset).help(help));
    }
    let (mut token, mut offset) = lexer.next()?;
    if matches!(token, Token::Name(_)) {
        (token, offset) = lexer.next()?;
    }
    match token {
        Token::Mark('{') => Ok((dagitty, offset)),
        other => Err(GraphError::new(format!("expected `{{`, found {other}"), offset)),
    }
}

impl Parser<'_> {
    /// The innermost open brace. The stack is never empty inside the body.
    fn frame(&mut self, offset: usize) -> Result<&mut Frame, GraphError> {
        self.stack.last_mut().ok_or_else(|| GraphError::new("`}` closes nothing", offset))
    }

    fn body(&mut self) -> Result<(), GraphError> {
        loop {
            let (token, offset) = self.lexer.next()?;
            match token {
                Token::Name(name) => self.name(&name, offset)?,
                Token::Mark('{') => {
                    let outer = self.frame(offset)?;
                    let (latent, direction) = (outer.latent, outer.direction);
                    self.stack.push(Frame { offset, latent, direction, ..Frame::default() });
                }
                Token::Mark('}') => {
                    self.frame(offset)?.end_statement()?;
                    let Some(closed) = self.stack.pop() else { return Ok(()) };
                    if self.stack.is_empty() {
                        return self.after();
                    }
                    self.operand(closed.members, offset)?;
                }
                Token::Arrow(arrow) => self.arrow(arrow, offset)?,
                Token::Mark('[') => self.brackets(offset)?,
                Token::Mark(';' | ',') => self.frame(offset)?.end_statement()?,
                Token::End => {
                    let open = self.stack.last().map_or(offset, |frame| frame.offset);
                    return Err(GraphError::new("this `{` is not closed", open)
                        .help("add a `}` at the end"));
                }
                other => {
                    let error = GraphError::new(format!("unexpected {other}"), offset);
                    return Err(error.help(QUOTE_NAMES));
                }
            }
        }
    }

    /// Nothing may follow the last brace.
    fn after(&mut self) -> Result<(), GraphError> {
        let (mut token, mut offset) = self.lexer.next()?;
        while token == Token::Mark(';') {
            (token, offset) = self.lexer.next()?;
        }
        if token == Token::End {
            return Ok(());
        }
        Err(GraphError::new(format!("unexpected {token} after the graph's last `}}`"), offset)
            .help("one text holds one graph"))
    }

    fn name(&mut self, name: &Name, offset: usize) -> Result<(), GraphError> {
        if self.lexer.take('=')? {
            // `bb = "0,0,1,1"`, `rankdir=LR`: settings of the drawing.
            return self.lexer.value("`=`").map(|_| ());
        }
        if !self.dagitty {
            if name.is_keyword("subgraph") {
                if !self.lexer.peek_is('{')? {
                    self.lexer.next()?;
                }
                if self.lexer.peek_is('{')? {
                    return Ok(());
                }
                return Err(GraphError::new("expected `{` after `subgraph`", offset));
            }
            for word in ["node", "edge", "graph"] {
                if name.is_keyword(word) {
                    return self.defaults(word, offset);
                }
            }
        }
        if name.text.is_empty() {
            return Err(GraphError::new("a name is empty", offset));
        }
        if name.negative {
            return Err(GraphError::new(format!("`{}` is not a name", name.text), offset)
                .help(format!("write it in double quotes: \"{}\"", name.text)));
        }
        let latent = self.frame(offset)?.latent;
        let node = self.builder.node(&name.text, latent);
        if !self.dagitty {
            // `node:port:compass` places the end of an edge in the drawing.
            while self.lexer.take(':')? {
                self.lexer.value("`:`")?;
            }
        }
        self.operand(vec![node], offset)
    }

    /// Reads the default attributes of DOT's `node`, `edge` or `graph`.
    fn defaults(&mut self, word: &str, offset: usize) -> Result<(), GraphError> {
        if !self.lexer.peek_is('[')? {
            return Err(GraphError::new(format!("`{word}` is a keyword of DOT"), offset)
                .help(format!("put a node of that name in double quotes: \"{word}\"")));
        }
        self.frame(offset)?.end_statement()?;
        while self.lexer.take('[')? {
            for attribute in read_attributes(&mut self.lexer)? {
                let frame = self.frame(offset)?;
                if word == "node" {
                    attribute.mark(&mut frame.latent, false)?;
                } else if word == "edge"
                    && let Some(direction) = attribute.direction()?
                {
                    frame.direction = direction;
                }
            }
        }
        Ok(())
    }

    fn arrow(&mut self, arrow: Direction, offset: usize) -> Result<(), GraphError> {
        let frame = self.frame(offset)?;
        if frame.arrow.is_some() {
            return Err(GraphError::new("there is no node between two arrows", offset));
        }
        if frame.closed {
            return Err(GraphError::new("attributes belong at the end of a statement", offset)
                .help("write the edge first: `X -> Y; X [latent]`"));
        }
        if frame.left.is_none() {
            return Err(GraphError::new("this arrow has no node on its left", offset));
        }
        frame.arrow = Some((arrow, offset));
        Ok(())
    }

    /// Handles the next operand of a chain, or the first of the next statement.
    fn operand(&mut self, mut nodes: Vec<usize>, offset: usize) -> Result<(), GraphError> {
        // The operand is kept only if it is used: copying a group at every level of a deep nest
        // would take quadratic time.
        let used_later = self.lexer.peek_starts_use()?;
        let frame = self.frame(offset)?;
        let pending = frame.arrow.take();
        if pending.is_none() {
            frame.end_statement()?;
        }
        if pending.is_some() || used_later {
            nodes.sort_unstable();
            nodes.dedup();
        }
        if let Some((arrow, at)) = pending {
            let left = frame.left.take().unwrap_or_default();
            self.connect(&left, &nodes, arrow, at)?;
        }
        if used_later {
            self.charge(nodes.len(), offset)?;
        }
        let frame = self.frame(offset)?;
        frame.left = used_later.then(|| nodes.clone());
        if nodes.len() > frame.members.len() {
            std::mem::swap(&mut frame.members, &mut nodes);
        }
        frame.members.append(&mut nodes);
        Ok(())
    }

    fn charge(&mut self, work: usize, offset: usize) -> Result<(), GraphError> {
        self.work = self.work.saturating_add(work);
        if self.work > MOST_WORK {
            return Err(GraphError::new("the graph has too many edges", offset)
                .help(format!("at most {MOST_WORK} edges are read")));
        }
        Ok(())
    }

    fn connect(
        &mut self,
        left: &[usize],
        right: &[usize],
        arrow: Direction,
        offset: usize,
    ) -> Result<(), GraphError> {
        self.charge(left.len().saturating_mul(right.len()), offset)?;
        self.charge(left.len() + right.len(), offset)?;
        let start = self.builder.edges.len();
        let direction = self.frame(offset)?.direction;
        for &a in left {
            for &b in right {
                if a == b {
                    return Err(GraphError::new("an edge leads from a node to itself", offset)
                        .help("a causal graph must be acyclic: nothing causes itself"));
                }
                let mut edge = Edge { from: a, to: b, both: false, offset };
                arrow.apply(&mut edge);
                direction.apply(&mut edge);
                self.builder.edges.push(edge);
            }
        }
        let end = self.builder.edges.len();
        self.frame(offset)?.edges.push((start, end));
        Ok(())
    }

    /// The attributes of the previous statement: of its edges, or of its nodes if it has none.
    fn brackets(&mut self, offset: usize) -> Result<(), GraphError> {
        let dagitty = self.dagitty;
        let frame = self.frame(offset)?;
        if let Some((_, at)) = frame.arrow {
            return Err(GraphError::new("this arrow has no node on its right", at));
        }
        let Some(left) = frame.left.take() else {
            return Err(GraphError::new("these attributes follow no node and no edge", offset));
        };
        frame.closed = true;
        let ranges = std::mem::take(&mut frame.edges);
        let attributes = read_attributes(&mut self.lexer)?;
        let on_edges: usize = ranges.iter().map(|range| range.1 - range.0).sum();
        self.charge((on_edges + left.len()).saturating_mul(attributes.len()), offset)?;
        for attribute in &attributes {
            if !ranges.is_empty() {
                let Some(direction) = attribute.direction()? else { continue };
                for &(start, end) in &ranges {
                    for edge in &mut self.builder.edges[start..end] {
                        direction.apply(edge);
                    }
                }
            } else {
                for &node in &left {
                    attribute.mark(&mut self.builder.latent[node], dagitty)?;
                }
            }
        }
        let frame = self.frame(offset)?;
        frame.left = Some(left);
        frame.edges = ranges;
        Ok(())
    }
}

/// The direction of an arrow, or of an edge relative to its arrow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Direction {
    #[default]
    Forward,
    Back,
    Both,
}

impl Direction {
    /// Reverses or doubles an edge.
    fn apply(self, edge: &mut Edge) {
        match self {
            Direction::Forward => {}
            Direction::Back => std::mem::swap(&mut edge.from, &mut edge.to),
            Direction::Both => edge.both = true,
        }
    }
}

/// An attribute: its key in lower case, and its value.
struct Attribute {
    key: String,
    value: Option<String>,
    offset: usize,
}

impl Attribute {
    /// Yes or no; yes without a value.
    fn truth(&self) -> Result<bool, GraphError> {
        let Some(value) = &self.value else { return Ok(true) };
        match value.trim().to_ascii_lowercase().as_str() {
            "yes" | "true" | "1" | "y" | "t" => Ok(true),
            "no" | "false" | "0" | "n" | "f" => Ok(false),
            other => {
                let message = format!("`{}` must be `yes` or `no`, found `{other}`", self.key);
                Err(GraphError::new(message, self.offset))
            }
        }
    }

    /// Applies the attribute to a node. One-letter forms exist in dagitty only.
    fn mark(&self, latent: &mut bool, dagitty: bool) -> Result<(), GraphError> {
        let short = dagitty && self.value.is_none();
        match self.key.as_str() {
            "latent" | "unobserved" => *latent = self.truth()?,
            "observed" => *latent = !self.truth()?,
            "l" | "u" if short => *latent = true,
            _ => {}
        }
        Ok(())
    }

    /// The direction of an edge, if the attribute is `dir`.
    fn direction(&self) -> Result<Option<Direction>, GraphError> {
        if self.key != "dir" {
            return Ok(None);
        }
        match self.value.as_deref().unwrap_or_default() {
            "forward" => Ok(Some(Direction::Forward)),
            "back" => Ok(Some(Direction::Back)),
            "both" => Ok(Some(Direction::Both)),
            other => {
                let message = format!("`dir` must be `forward`, `back` or `both`, found `{other}`");
                let error = GraphError::new(message, self.offset);
                Err(error.help("every edge of a causal graph needs a direction"))
            }
        }
    }
}

/// Reads attributes up to the closing bracket; unknown ones are ignored later.
fn read_attributes(lexer: &mut Lexer<'_>) -> Result<Vec<Attribute>, GraphError> {
    let mut attributes = Vec::new();
    loop {
        let (token, offset) = lexer.next()?;
        match token {
            Token::Mark(']') => return Ok(attributes),
            Token::Mark(',' | ';') => {}
            Token::Name(name) => {
                let value = if lexer.take('=')? { Some(lexer.value("`=`")?) } else { None };
                attributes.push(Attribute { key: name.text.to_ascii_lowercase(), value, offset });
            }
            other => {
                let message = format!("expected an attribute or `]`, found {other}");
                return Err(GraphError::new(message, offset));
            }
        }
    }
}

/// A name, a number, or a quoted or HTML string.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Name {
    text: String,
    /// Unquoted, so that it can be a keyword.
    bare: bool,
    /// An unquoted negative number, which cannot name a node.
    negative: bool,
}

impl Name {
    /// Compares case-insensitively with a keyword.
    fn is_keyword(&self, word: &str) -> bool {
        self.bare && self.text.eq_ignore_ascii_case(word)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Name(Name),
    Arrow(Direction),
    /// One of `{}[];,=:`.
    Mark(char),
    End,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Name(name) => {
                // A name can be as long as the text.
                let shown: String = name.text.chars().take(40).collect();
                let more = if shown.len() < name.text.len() { "…" } else { "" };
                write!(f, "`{}{more}`", shown.escape_debug())
            }
            Token::Arrow(Direction::Forward) => f.write_str("`->`"),
            Token::Arrow(Direction::Back) => f.write_str("`<-`"),
            Token::Arrow(Direction::Both) => f.write_str("`<->`"),
            Token::Mark(mark) => write!(f, "`{mark}`"),
            Token::End => f.write_str("the end of the text"),
        }
    }
}

/// The tokens of a text, with one token of lookahead.
struct Lexer<'a> {
    text: &'a str,
    at: usize,
    peeked: Option<(Token, usize)>,
    /// The last token was `=`: only then can an HTML string follow.
    after_equals: bool,
}

fn in_name(c: char) -> bool {
    c == '_'
        || c == '.'
        || c.is_alphanumeric()
        || (!c.is_ascii() && !c.is_whitespace() && !c.is_control())
}

impl<'a> Lexer<'a> {
    fn new(text: &'a str) -> Lexer<'a> {
        Lexer { text, at: 0, peeked: None, after_equals: false }
    }

    fn next(&mut self) -> Result<(Token, usize), GraphError> {
        match self.peeked.take() {
            Some(token) => Ok(token),
            None => self.read(),
        }
    }

    fn peek(&mut self) -> Result<&Token, GraphError> {
        let token = self.next()?;
        Ok(&self.peeked.insert(token).0)
    }

    fn peek_is(&mut self, mark: char) -> Result<bool, GraphError> {
        Ok(*self.peek()? == Token::Mark(mark))
    }

    /// Takes the next token if it is this mark.
    fn take(&mut self, mark: char) -> Result<bool, GraphError> {
        Ok(self.peek_is(mark)? && self.peeked.take().is_some())
    }

    /// True if the next token uses the operand before it.
    fn peek_starts_use(&mut self) -> Result<bool, GraphError> {
        Ok(matches!(self.peek()?, Token::Arrow(_) | Token::Mark('[')))
    }

    /// The value of attribute or keyword `what`.
    fn value(&mut self, what: &str) -> Result<String, GraphError> {
        match self.next()? {
            (Token::Name(name), _) => Ok(name.text),
            (other, offset) => {
                let message = format!("expected a value after {what}, found {other}");
                Err(GraphError::new(message, offset))
            }
        }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// True if only blanks precede this position in its line.
    fn at_line_start(&self) -> bool {
        let before = self.text.get(..self.at).unwrap_or_default();
        let before = before.trim_end_matches([' ', '\t', '\u{feff}']);
        before.is_empty() || before.ends_with(['\n', '\r'])
    }

    /// Skips blanks and comments (`// ...`, `/* ... */`, and lines that begin with `#`).
    fn skip(&mut self) -> Result<(), GraphError> {
        loop {
            let rest = self.rest();
            let blank = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
            self.at += rest.len() - blank.len();
            if blank.starts_with("//") || (blank.starts_with('#') && self.at_line_start()) {
                self.at += blank.find(['\n', '\r']).unwrap_or(blank.len());
            } else if let Some(inside) = blank.strip_prefix("/*") {
                let Some(end) = inside.find("*/") else {
                    return Err(GraphError::new("this comment is not closed", self.at)
                        .help("a comment ends with `*/`"));
                };
                self.at += end + 4;
            } else {
                return Ok(());
            }
        }
    }

    fn read(&mut self) -> Result<(Token, usize), GraphError> {
        self.skip()?;
        let offset = self.at;
        let html = std::mem::replace(&mut self.after_equals, false);
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok((Token::End, offset)) };
        // Longer arrows come first; those of other graphs have no direction.
        for (text, direction) in [
            ("<->", Some(Direction::Both)),
            ("<-@", None),
            ("<-", Some(Direction::Back)),
            ("->", Some(Direction::Forward)),
            ("--", None),
            ("@-@", None),
            ("@->", None),
        ] {
            if !html && rest.starts_with(text) {
                self.at += text.len();
                let undirected = || {
                    GraphError::new("this edge has no direction", offset)
                        .help("write `->`, `<-`, or `<->` for a latent common cause")
                };
                return Ok((Token::Arrow(direction.ok_or_else(undirected)?), offset));
            }
        }
        match first {
            '{' | '}' | '[' | ']' | ';' | ',' | ':' | '=' => {
                self.at += 1;
                self.after_equals = first == '=';
                Ok((Token::Mark(first), offset))
            }
            '"' => self.quoted(offset),
            '<' if html => self.html(offset),
            '-' if rest[1..].starts_with(|c: char| c.is_ascii_digit() || c == '.') => {
                Ok(self.bare(offset, 1))
            }
            c if in_name(c) => Ok(self.bare(offset, 0)),
            c => {
                let message = format!("unexpected character `{}`", c.escape_debug());
                Err(GraphError::new(message, offset).help(QUOTE_NAMES))
            }
        }
    }

    fn bare(&mut self, offset: usize, sign: usize) -> (Token, usize) {
        let rest = self.rest();
        let length = rest[sign..].find(|c: char| !in_name(c)).unwrap_or(rest.len() - sign) + sign;
        self.at += length;
        let text = rest[..length].to_owned();
        (Token::Name(Name { text, bare: true, negative: sign > 0 }), offset)
    }

    fn quoted(&mut self, offset: usize) -> Result<(Token, usize), GraphError> {
        let mut text = String::new();
        let mut escaped = false;
        for (place, c) in self.rest().char_indices().skip(1) {
            match c {
                '\0' => {
                    return Err(GraphError::new("a name holds a NUL character", offset + place));
                }
                // DOT has `\"` and the line continuation; every other backslash is a character.
                '"' if escaped => {
                    text.pop();
                    text.push('"');
                    escaped = false;
                }
                '"' => {
                    self.at = offset + place + 1;
                    return Ok((Token::Name(Name { text, bare: false, negative: false }), offset));
                }
                '\n' if escaped => {
                    text.pop();
                    escaped = false;
                }
                c => {
                    text.push(c);
                    escaped = c == '\\' && !escaped;
                }
            }
        }
        Err(GraphError::new("this quote is not closed", offset).help("add a `\"`"))
    }

    fn html(&mut self, offset: usize) -> Result<(Token, usize), GraphError> {
        let mut depth = 0usize;
        for (place, c) in self.rest().char_indices() {
            match c {
                '<' => depth += 1,
                '>' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                let text = self.rest()[..=place].to_owned();
                self.at += place + 1;
                return Ok((Token::Name(Name { text, bare: false, negative: false }), offset));
            }
        }
        Err(GraphError::new("this `<` is not closed", offset))
    }
}
