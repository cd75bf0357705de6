//! Finds the methods in one piece of a file by parsing it alone, and rejects unsound pieces.

use ruff_python_ast::{ModModule, Stmt};
use ruff_text_size::Ranged;

use super::super::methods::{Function, MAX_COPIES, PythonMethod, each_function, newlines};
use super::super::module::{Nesting, with_module};
use super::super::parse::ParseError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Context<'a> {
    Top,
    /// The beginning of a class, with decorators and comments, up to its first member.
    Header,
    /// Members of the class of this name in the module.
    Member(&'a str),
}

impl<'a> Context<'a> {
    pub(super) fn parts(self) -> (u8, &'a str) {
        match self {
            Self::Top => (0, ""),
            Self::Header => (1, ""),
            Self::Member(name) => (2, name),
        }
    }

    /// The text that is parsed before a piece in place of the statements there, and the text that
    /// completes it.
    fn around(self) -> (String, &'static str) {
        match self {
            Self::Top => (String::new(), ""),
            Self::Header => (String::new(), " pass\n"),
            Self::Member(name) => (format!("class {name}:\n"), ""),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The piece has the same meaning alone as in its file.
    Sound,
    /// It may have another meaning, or it is not a piece of this kind.
    Unfit,
    /// It has a syntax error.
    Broken,
}

#[derive(Debug)]
pub(super) struct Piece {
    pub(super) verdict: Verdict,
    /// The names of the methods, or that of the class whose header this is.
    pub(super) names: Box<str>,
    pub(super) methods: Box<[MethodEntry]>,
    pub(super) lines: u32,
}

/// A method; places count from the start of the piece, lines from 1.
#[derive(Debug)]
pub(super) struct MethodEntry {
    pub(super) hash: u64,
    /// Range of the qualified name in the names of the piece; it ends with the name.
    name: (u32, u32),
    fun_name: u32,
    pub(super) start_line: u32,
    pub(super) end_line: u32,
    pub(super) start_byte: u32,
    pub(super) end_byte: u32,
    /// Inside of a function.
    pub(super) nested: bool,
}

/// All numbers are at most 64 times the longest text, 256 MB.
fn number(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl Piece {
    fn empty(verdict: Verdict) -> Self {
        let (names, methods) = (Box::default(), Box::default());
        Self { verdict, names, methods, lines: 0 }
    }

    /// The methods of a text that was parsed as a whole.
    pub(super) fn whole(
        text: &str,
        methods: Vec<PythonMethod>,
        hash: impl Fn(&str) -> u64,
    ) -> Option<Self> {
        let mut list = Methods::of(text, &hash);
        for m in methods {
            let (name, qualified) = (&*m.fun_name, &*m.qualified_name);
            let range = m.start_byte..m.end_byte;
            list.add(&Function { name, qualified, range, nested: false }, 0)?;
        }
        Some(list.piece())
    }

    pub(super) fn qualified_name(&self, entry: &MethodEntry) -> &str {
        self.names.get(entry.name.0 as usize..entry.name.1 as usize).unwrap_or_default()
    }

    pub(super) fn fun_name(&self, entry: &MethodEntry) -> &str {
        self.names.get(entry.fun_name as usize..entry.name.1 as usize).unwrap_or_default()
    }

    pub(super) fn bytes(&self) -> usize {
        self.names.len() + size_of_val::<[MethodEntry]>(&self.methods)
    }
}

/// The contents of `text`; `hash` hashes a name.
pub(super) fn find(context: Context<'_>, text: &str, hash: impl Fn(&str) -> u64) -> Piece {
    if text.contains('\0') {
        return Piece::empty(Verdict::Broken);
    }
    let (before, after) = context.around();
    let whole = [&before, text, after].concat();
    let read = |nesting| {
        with_module(&whole, nesting, |module| match module.has_valid_syntax() {
            true => contents(context, text, &whole, module.syntax(), &hash),
            false => Piece::empty(Verdict::Broken),
        })
    };
    let piece: Result<Piece, ParseError> = Nesting::of(&whole).and_then(read);
    piece.unwrap_or_else(|_| Piece::empty(Verdict::Broken))
}

/// The contents of a piece whose text is `whole` with that around it.
fn contents(
    context: Context<'_>,
    text: &str,
    whole: &str,
    module: &ModModule,
    hash: &impl Fn(&str) -> u64,
) -> Piece {
    let before = match context {
        Context::Top => 0,
        Context::Header => {
            let name = header_name(module, text);
            return match name {
                Some(name) => Piece { names: name.into(), ..Methods::of(text, hash).piece() },
                None => Piece::empty(Verdict::Unfit),
            };
        }
        // A member that ends the class is not one.
        Context::Member(_) if module.body.len() != 1 => return Piece::empty(Verdict::Unfit),
        Context::Member(_) => whole.len() - text.len(),
    };
    let mut methods = Methods::of(text, hash);
    match each_function(whole, module, true, |function| methods.add(&function, before)) {
        Some(()) => methods.piece(),
        None => Piece::empty(Verdict::Broken),
    }
}

/// The name of the class whose header is `text`, if the text after it has become its body.
fn header_name<'a>(module: &'a ModModule, text: &str) -> Option<&'a str> {
    let [Stmt::ClassDef(class)] = &*module.body else { return None };
    let [Stmt::Pass(pass)] = &*class.body else { return None };
    (pass.start().to_usize() > text.len()).then_some(class.name.id.as_str())
}

struct Methods<'a, H> {
    text: &'a str,
    hash: &'a H,
    names: String,
    entries: Vec<MethodEntry>,
    copied: usize,
    /// The bytes before `counted` contain so many line ends.
    lines: usize,
    counted: usize,
}

impl<'a, H: Fn(&str) -> u64> Methods<'a, H> {
    fn of(text: &'a str, hash: &'a H) -> Self {
        let (names, entries) = (String::new(), Vec::new());
        Self { text, hash, names, entries, copied: 0, lines: 0, counted: 0 }
    }

    /// Adds a function of a text that has `before` bytes before this one. `None` if the names and
    /// texts of nested functions become too large.
    fn add(&mut self, function: &Function<'_>, before: usize) -> Option<()> {
        let (start, end) = (function.range.start.checked_sub(before)?, function.range.end - before);
        let code = self.text.get(start..end)?;
        self.copied += code.len() + function.qualified.len();
        if self.copied > MAX_COPIES.saturating_mul(self.text.len()) {
            return None;
        }
        self.lines += newlines(self.text.get(self.counted..start).unwrap_or_default());
        self.counted = start;
        let from = self.names.len();
        self.names.push_str(function.qualified);
        let to = self.names.len();
        self.entries.push(MethodEntry {
            hash: (self.hash)(function.qualified),
            name: (number(from), number(to)),
            fun_name: number(to - function.name.len()),
            start_line: number(self.lines + 1),
            end_line: number(self.lines + 1 + newlines(code.trim_end_matches('\n'))),
            start_byte: number(start),
            end_byte: number(end),
            nested: function.nested,
        });
        Some(())
    }

    fn piece(self) -> Piece {
        Piece {
            names: self.names.into(),
            methods: self.entries.into(),
            lines: number(newlines(self.text)),
            ..Piece::empty(Verdict::Sound)
        }
    }
}
