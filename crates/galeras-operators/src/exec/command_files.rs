//! The local files that a command runs or reads by name. They belong to its key, or a result would
//! stay after its own program was edited.
//!
//! Only words whose role is plain count: other files of a command may be what it writes.

/// The suffixes of programs in source code.
const SOURCES: [&str; 24] = [
    "awk", "bash", "c", "cpp", "do", "go", "java", "jl", "jq", "js", "lua", "m", "mjs", "php",
    "pl", "py", "r", "R", "rb", "rs", "sed", "sh", "sql", "ts",
];

enum Token {
    Word(String),
    /// `<`.
    Input,
    /// `>`.
    Output,
    /// The end of a simple command.
    End,
}

/// The names, as written: programs in source code, a program with a path, what `<` and `cat` read.
pub(super) fn named_files(command: &str) -> Vec<String> {
    let (mut named, mut written) = (Vec::new(), Vec::new());
    let mut program: Option<String> = None;
    let mut before = Token::End;
    for token in tokens(command) {
        match (&before, &token) {
            (_, Token::End) => program = None,
            (Token::Input, Token::Word(word)) => named.push(word.clone()),
            (Token::Output, Token::Word(word)) => written.push(word.clone()),
            (_, Token::Input | Token::Output) => {}
            (_, Token::Word(word)) => {
                let source = word.rsplit_once('.').is_some_and(|(_, end)| SOURCES.contains(&end));
                let runs = program.is_none() && word.contains('/');
                if source || runs || program.as_deref() == Some("cat") {
                    named.push(word.clone());
                }
                // `NAME=value` comes before the program.
                if program.is_none() && !word.contains('=') {
                    program = Some(word.clone());
                }
            }
        }
        before = token;
    }
    // Programs of the machine are not part of the study, and neither are files that it writes.
    named.retain(|name| !name.starts_with('/') && !written.contains(name));
    named
}

/// The words of a command for `sh`, without their quotes. Nothing is expanded.
fn tokens(command: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = command.chars();
    while let Some(c) = rest.next() {
        match c {
            '\'' => {
                let text = word.get_or_insert_default();
                text.extend(rest.by_ref().take_while(|c| *c != '\''));
            }
            '"' => {
                let text = word.get_or_insert_default();
                while let Some(c) = rest.next().filter(|c| *c != '"') {
                    text.push(if c == '\\' { rest.next().unwrap_or(c) } else { c });
                }
            }
            '\\' => word.get_or_insert_default().extend(rest.next()),
            '#' if word.is_none() => {
                rest.by_ref().take_while(|c| *c != '\n').for_each(drop);
                tokens.push(Token::End);
            }
            ' ' | '\t' | '\n' | ';' | '|' | '&' | '(' | ')' | '`' | '<' | '>' => {
                tokens.extend(word.take().map(Token::Word));
                match c {
                    ' ' | '\t' => {}
                    '<' => tokens.push(Token::Input),
                    '>' => tokens.push(Token::Output),
                    _ => tokens.push(Token::End),
                }
            }
            c => word.get_or_insert_default().push(c),
        }
    }
    tokens.extend(word.map(Token::Word));
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_and_what_is_surely_read_are_named() {
        for (command, wanted) in [
            ("python3 make.py data.csv out.csv", &["make.py"][..]),
            ("touch ran; cat a.csv b | ./tool -x c > d.py", &["a.csv", "b", "./tool"]),
            ("A=1 B=x.y env C=2 uv run 'my script.py' 2>&1", &["my script.py"]),
            ("cd x && Rscript \"y z.R\" < in.txt>out.txt", &["y z.R", "in.txt"]),
            ("sh a\\ b.sh # x.py\ncat c", &["a b.sh", "c"]),
            ("/usr/bin/python3 -c 'import x.py'", &["import x.py"]),
            ("echo $(bash sub.sh) `cat t`", &["sub.sh", "t"]),
            ("cat a > b; cat b; sh < c.sh >> log; cat log", &["a", "c.sh"]),
            ("printf '%s' ; cat", &[]),
            ("", &[]),
        ] {
            assert_eq!(named_files(command), wanted, "{command}");
        }
    }
}
