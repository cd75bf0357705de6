//! No writer loses its last bytes. A type that buffers writes what is left when it is dropped, and
//! tells no one that it could not: a full disk then looks like a shorter table. So each is bound to
//! a name, and ended under that name in the same block, by a call whose result is used.

use crate::fail_if_any;
use crate::sources::{SourceFile, rust_files};
use crate::tokens::{tokens, without_comments_and_tests};

/// Types that write, or lose, what is left when they are dropped: the end of their path.
const BUFFERED: &[&[&str]] = &[
    // The standard library, Tokio, object_store.
    &["BufWriter"],
    &["LineWriter"],
    &["fs", "File"],
    &["tokio", "fs", "OpenOptions"],
    // Arrow and Parquet. `TableWriter` is ours.
    &["ArrayWriter"],
    &["ArrowWriter"],
    &["AsyncArrowWriter"],
    &["FileWriter"],
    &["LineDelimitedWriter"],
    &["SerializedFileWriter"],
    &["StreamWriter"],
    &["TableWriter"],
    &["Writer"],
    &["WriterBuilder"],
    // What compresses, packs and encodes.
    &["BrotliEncoder"],
    &["BzEncoder"],
    &["CompressorWriter"],
    &["DeflateEncoder"],
    &["Encoder"],
    &["EncoderStringWriter"],
    &["EncoderWriter"],
    &["FrameEncoder"],
    &["GzEncoder"],
    &["LzmaWriter"],
    &["XzEncoder"],
    &["ZipWriter"],
    &["ZlibEncoder"],
];

/// Methods that leave the end of a writer to its drop, whatever it is.
const LEAVES: &[&str] = &["auto_finish", "on_finish"];

/// How they are made.
const MAKES: &[&str] = &[
    "build",
    "create",
    "from_path",
    "from_std",
    "from_writer",
    "new",
    "new_append",
    "new_buffered",
    "new_stream",
    "new_with_options",
    "options",
    "try_new",
    "try_new_with_options",
    "with_capacity",
];

/// How they are ended, with a result that says whether all was written.
const ENDS: &[&str] = &["close", "finish", "flush", "into_inner", "shutdown"];

/// Methods after which nobody knows any more that an end has failed.
const FORGETS: &[&str] = &["ok", "unwrap_or", "unwrap_or_default", "unwrap_or_else"];

/// Files whose writers are ended elsewhere, or lose nothing: the type, and why.
const EXCEPT: &[(&str, &str, &str)] = &[
    ("crates/galeras-git/src/net/link.rs", "BufWriter", "the transport flushes each request"),
    ("crates/galeras-git/src/net/ssh.rs", "BufWriter", "the transport flushes each request"),
    ("src/report/stream.rs", "WriterBuilder", "`TableWriter::finish` ends what it holds"),
    ("src/session/encode.rs", "ArrowWriter", "becomes a file writer, whose `close` is checked"),
    ("src/store/blob.rs", "File", "Tokio's file is read only"),
];

/// A writer that may lose something: its line, its type, and what is wrong.
type Loss = (usize, String, &'static str);

#[test]
fn no_writer_is_dropped_unflushed() {
    let mut problems = Vec::new();
    let mut excused = vec![false; EXCEPT.len()];
    for file in rust_files().into_iter().filter(is_shipped) {
        let path = file.path.display().to_string();
        for (line, name, what) in losses(&file.text) {
            match EXCEPT.iter().position(|(file, of, _)| *file == path && *of == name) {
                Some(at) => excused[at] = true,
                None => problems.push(format!("{path}:{line}: the {name} {what}")),
            }
        }
    }
    let stale = EXCEPT.iter().zip(excused).filter(|(_, used)| !used);
    problems.extend(stale.map(|((path, name, _), _)| format!("{path}: no {name} is excused")));
    fail_if_any(problems);
}

/// Code that runs in the program, as opposed to tests and benches.
fn is_shipped(file: &SourceFile) -> bool {
    let parts: Vec<&str> = file.path.iter().filter_map(|part| part.to_str()).collect();
    parts.contains(&"src") && !parts.iter().any(|part| ["tests", "tests.rs"].contains(part))
}

/// The writers of a text that are not ended, or whose end nobody looks at.
fn losses(text: &str) -> Vec<Loss> {
    let tokens = tokens(&without_comments_and_tests(text));
    let words: Vec<&str> = tokens.iter().map(|token| token.text.as_str()).collect();
    let mut losses = Vec::new();
    for (made, token) in tokens.iter().enumerate() {
        let called = made > 0 && words[made - 1] == "." && words.get(made + 1) == Some(&"(");
        if called && LEAVES.contains(&words[made]) {
            losses.push((token.line, token.text.clone(), "leaves the end of a writer to its drop"));
        }
        let Some((start, name)) = creation(&words, made) else { continue };
        let problem = match bound_name(&words, start) {
            None => Some("is bound to no name, so nothing can end it"),
            Some(bound) if is_ended(&words, made, bound) => None,
            Some(_) => Some("is not ended by a call whose result is used"),
        };
        losses.extend(problem.map(|what| (token.line, name.to_string(), what)));
    }
    losses
}

/// If a writer is made by the call of which the method stands at `at`: where its path starts, and
/// its type.
fn creation<'a>(words: &[&'a str], at: usize) -> Option<(usize, &'a str)> {
    if !MAKES.contains(&words[at]) || words.get(at + 1) != Some(&"(") || at < 2 {
        return None;
    }
    // The type, before `::` and what may stand in angle brackets.
    let mut last = at.checked_sub(2).filter(|_| words[at - 1] == "::")?;
    if words[last] == ">" {
        last = (0..last).rev().find(|i| words[*i] == "<")?.checked_sub(2)?;
    }
    let mut start = last;
    while start >= 2 && words[start - 1] == "::" {
        start -= 2;
    }
    let path: Vec<&str> = words[start..=last].iter().copied().step_by(2).collect();
    let buffered = BUFFERED.iter().any(|end| path.ends_with(end));
    // The file of the standard library buffers nothing.
    let plain = path.ends_with(&["fs", "File"]) && !path.contains(&"tokio");
    (buffered && !plain).then_some((start, words[last]))
}

/// The name in `let name =`, `let mut name =` or `let name: Type =` before `start`.
fn bound_name<'a>(words: &[&'a str], start: usize) -> Option<&'a str> {
    let statement = statement_before(words, start);
    let [first, rest @ .., last] = statement else { return None };
    let rest = rest.strip_prefix(&["mut"]).unwrap_or(rest);
    let name = rest.first()?;
    let typed = rest.get(1).is_none_or(|next| *next == ":");
    (*first == "let" && *last == "=" && typed && *name != "_").then_some(name)
}

/// The words of a statement before `at`.
fn statement_before<'a, 'w>(words: &'w [&'a str], at: usize) -> &'w [&'a str] {
    let start = words[..at].iter().rposition(|word| [";", "{", "}"].contains(word));
    &words[start.map_or(0, |start| start + 1)..at]
}

/// Whether `name`, bound at `from`, is ended in the block of its binding, and somebody looks.
fn is_ended(words: &[&str], from: usize, name: &str) -> bool {
    let mut depth = 0;
    for at in from..words.len() {
        match words[at] {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        if depth < 0 {
            return false;
        }
        let call = words[at..].get(..4).is_some_and(|four| {
            four[0] == name && four[1] == "." && ENDS.contains(&four[2]) && four[3] == "("
        });
        let field = at > 0 && words[at - 1] == ".";
        if call && !field && is_used(words, at) {
            return true;
        }
    }
    false
}

/// Whether the result of the chain of calls that begins at `at` is used.
fn is_used(words: &[&str], at: usize) -> bool {
    let mut end = at + 1;
    loop {
        match words.get(end).copied() {
            Some("?") => return true,
            Some(".") => {
                if words.get(end + 1).is_some_and(|method| FORGETS.contains(method)) {
                    return false;
                }
                end += 2;
            }
            Some("(") => end = behind_brackets(words, end),
            Some(";") => break,
            // The value of a block, an argument, the subject of a `match`.
            _ => return true,
        }
    }
    !matches!(statement_before(words, at), [] | ["let", "_", ..])
}

fn behind_brackets(words: &[&str], open: usize) -> usize {
    let mut depth = 0;
    for (at, word) in words.iter().enumerate().skip(open) {
        match *word {
            "(" => depth += 1,
            ")" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    words.len()
}

#[test]
fn a_writer_that_may_lose_something_is_found() {
    let bad = [
        // How `exec` lost its input: the outer writer ends, the inner one is dropped.
        "let mut w = LineDelimitedWriter::new(std::io::BufWriter::new(file)); w.finish()?;",
        "let mut w = BufWriter::new(file); w.write_all(b\"x\")?;",
        "let mut w = BufWriter::new(file); w.flush();",
        "let mut w = BufWriter::new(file); let _ = w.flush();",
        "let mut w = BufWriter::new(file); w.flush().ok();",
        "let mut w = BufWriter::new(file); w.flush().unwrap_or_default();",
        "let mut w = BufWriter::with_capacity(8, file); { v.flush()?; }",
        "let mut w = BufWriter::new(file); self.w.flush()?;",
        "{ let mut w = BufWriter::new(file); } w.flush()?;",
        "let _ = BufWriter::new(file);",
        "Ok(Self { out: BufWriter::new(file) })",
        "write(&mut BufWriter::new(file))?;",
        "let w = zstd::stream::write::Encoder::new(file, 3)?; copy(w)?;",
        "let mut w = csv::Writer::from_writer(file); w.serialize(row)?;",
        "let mut w = csv::WriterBuilder::new().build(file);",
        "let mut w = GzEncoder::<File>::new(file, level); w.finish();",
        "let mut f = tokio::fs::File::create(path).await?; f.write_all(b\"x\").await?;",
        "let mut w = ArrowWriter::try_new(file, schema, None)?; w.write(&batch)?;",
        "let mut w = ipc::writer::FileWriter::try_new(file, &schema)?; w.write(&batch)?;",
        "let mut w = ZipWriter::new(&mut out); w.start_file(name, options)?;",
        "let mut w = zip::ZipWriter::new_append(file)?; w.finish();",
        "let w = base64::write::EncoderWriter::new(file, &STANDARD); copy(w)?;",
        "let mut w = compressed(file)?.auto_finish(); w.flush()?;",
    ];
    for text in bad {
        assert_eq!(losses(&format!("fn f() {{ {text} }}")).len(), 1, "{text}");
    }
    let good = [
        "let mut w = BufWriter::new(file); w.write_all(b\"x\")?; w.flush()?; Ok(())",
        "let mut w = BufWriter::new(file); write(&mut w)?; w.flush()",
        "let mut w: BufWriter<File> = std::io::BufWriter::new(file); return w.flush();",
        "let w = BufWriter::new(file); w.into_inner().map_err(IntoInnerError::into_error)?.sync()?;",
        "let mut w = BufWriter::new(file); if let Err(e) = w.flush() { tell(e) }",
        "let mut w = ArrowWriter::try_new(&mut out, schema, None)?; { w.close()?; }",
        "let mut w = BufWriter::new(objects, path); copy(&mut w).await?; w.shutdown().await",
        "let mut w = csv::WriterBuilder::new().build(file); w.flush()?;",
        "let mut w = TableWriter::new(out, schema)?; w.finish().map(drop)",
        "let mut w = ZipWriter::new(&mut out); add(&mut w)?; w.finish().map_err(failed)?;",
        "let f = std::fs::File::create(path)?; let r = BufReader::new(f);",
        "// BufWriter::new(file)\nlet s = \"BufWriter::new(file)\";",
    ];
    for text in good {
        assert!(losses(&format!("fn f() {{ {text} }}")).is_empty(), "{text}");
    }
}
