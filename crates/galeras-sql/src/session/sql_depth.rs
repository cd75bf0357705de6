//! Refuses SQL that is nested too deeply, by its tokens alone.
//!
//! The parser reads `a OR b OR c …` in a loop, but the expression is as deep as the chain is long.
//! The code that drops, compares or evaluates it recurses, so a chain that is too long would overflow
//! the stack of a thread, which ends the process. (DataFusion protects only the planning.)

use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

use galeras_operator::ArgError;
use galeras_workflow::code::Code;

/// The most operators and keywords in an expression or a query, those in its brackets included and
/// lists counted by their longest item. No expression is deeper. Without optimisation a level takes up
/// to 40 kB of the stack.
pub const MAX_SQL_DEPTH: usize = 2_000;

/// Refuses SQL (at `path`) that is too deep to be planned.
///
/// # Errors
/// An error with the code `sql-limit`.
pub(super) fn check_sql_depth(sql: &str, path: &str) -> Result<(), ArgError> {
    // Syntax errors are reported by the parser, which knows more about them.
    let Ok(tokens) = Tokenizer::new(&GenericDialect {}, sql).tokenize() else { return Ok(()) };
    let depth = depth(&tokens);
    if depth <= MAX_SQL_DEPTH {
        return Ok(());
    }
    let message = format!(
        "the SQL is a chain of {depth} operators and keywords; at most {MAX_SQL_DEPTH} can be planned"
    );
    let help = "compare with a list (`x IN (1, 2, 3)`), join with a table of the values, or \
                compute a part in a step before";
    Err(ArgError::new(path, Code::SqlLimit, message).help(help))
}

/// The tokens between two commas, or in a pair of brackets.
#[derive(Default)]
struct Level {
    /// Operators and keywords since the last comma.
    chain: usize,
    /// The longest chain before that.
    longest: usize,
    /// Commas after `FROM` join tables, so they do not end a chain.
    from: bool,
    /// It has the keyword of a query.
    query: bool,
    /// The depths of queries in brackets, each of which may read the one before
    /// (`WITH a AS (…), b AS (…)`).
    queries: usize,
}

impl Level {
    fn depth(&self) -> usize {
        1 + self.chain.max(self.longest) + self.queries
    }
}

/// An upper bound of the depth of an expression or a query.
fn depth(tokens: &[Token]) -> usize {
    let mut levels = vec![Level::default()];
    let close = |levels: &mut Vec<Level>| {
        if levels.len() > 1
            && let (Some(inner), Some(outer)) = (levels.pop(), levels.last_mut())
        {
            let whole = if inner.query { &mut outer.queries } else { &mut outer.chain };
            *whole += inner.depth();
        }
    };
    for token in tokens {
        let Some(level) = levels.last_mut() else { break };
        match token {
            Token::LParen | Token::LBracket | Token::LBrace => levels.push(Level::default()),
            Token::RParen | Token::RBracket | Token::RBrace => close(&mut levels),
            Token::Comma if !level.from => {
                level.longest = level.longest.max(std::mem::take(&mut level.chain));
            }
            // The branches of a CASE are side by side.
            Token::Word(word)
                if matches!(
                    word.keyword,
                    Keyword::NoKeyword
                        | Keyword::AS
                        | Keyword::WHEN
                        | Keyword::THEN
                        | Keyword::ELSE
                        | Keyword::END
                ) => {}
            Token::Word(word) => {
                level.from |= word.keyword == Keyword::FROM;
                level.query |= matches!(word.keyword, Keyword::SELECT | Keyword::TABLE);
                level.chain += 1;
            }
            Token::Whitespace(_)
            | Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::DoubleQuotedString(_) => {}
            _ => level.chain += 1,
        }
    }
    while levels.len() > 1 {
        close(&mut levels);
    }
    levels.pop().map_or(0, |level| level.depth())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn depth_of(sql: &str) -> usize {
        depth(&Tokenizer::new(&GenericDialect {}, sql).tokenize().unwrap())
    }

    fn chain(part: &str, operator: &str, parts: usize) -> String {
        vec![part; parts].join(operator)
    }

    #[test]
    fn a_chain_is_as_deep_as_it_is_long() {
        for (part, operator) in [
            ("x", " OR "),
            ("x", " + "),
            ("x", " || "),
            ("x", " ILIKE "),
            ("when", " OR "),
            ("x", " OR case OR "),
            ("x", "::int OR "),
            ("SELECT x FROM t", " UNION ALL "),
            ("SELECT x, y FROM t", " EXCEPT "),
            ("t", " JOIN "),
            ("-(x + ", ""),
            ("x[1", ""),
            ("count(*) OVER (PARTITION BY x, y)", " + "),
            ("x END", " OR "),
        ] {
            assert!(depth_of(&chain(part, operator, 500)) >= 500, "{part}{operator}");
        }
        let tables = format!("SELECT 1 FROM {}", chain("t", ", ", 500));
        assert!(depth_of(&tables) >= 500);
        let with: Vec<String> =
            (1..500).map(|i| format!("a{i} AS (SELECT * FROM a{})", i - 1)).collect();
        assert!(depth_of(&format!("WITH {} SELECT 1", with.join(", "))) >= 499);
        let nested = format!("{} OR ({})", chain("x", " OR ", 400), chain("y", " AND ", 400));
        assert!(depth_of(&nested) >= 798);
    }

    #[test]
    fn lists_and_texts_are_not_deep() {
        let columns: Vec<String> = (0..5_000).map(|i| format!("x + {i} AS c{i}")).collect();
        assert!(depth_of(&format!("SELECT {} FROM t WHERE a AND b", columns.join(", "))) < 12);
        let list: Vec<String> = (0..50_000).map(|i| i.to_string()).collect();
        assert!(depth_of(&format!("x IN ({})", list.join(", "))) < 10);
        let rows = vec!["(1, 'a')"; 5_000].join(", ");
        assert!(depth_of(&format!("SELECT * FROM (VALUES {rows})")) < 12);
        let cases: String = (0..1_900).map(|i| format!(" WHEN x = {i} THEN y")).collect();
        assert!(depth_of(&format!("CASE{cases} ELSE 0 END > 1")) < MAX_SQL_DEPTH);
        let text = chain("x", " OR ", 2_000);
        assert!(depth_of(&format!("a = '{text}' -- {text}")) < 5);
        assert!(depth_of(")))]]}} END END ((( CASE CASE") < 20);
        assert!(depth_of("") < 3);
    }

    #[test]
    fn the_limit_is_named() {
        let error = check_sql_depth(&chain("x", " OR ", 10_000), "query").unwrap_err();
        assert_eq!((error.code, error.path.as_str()), (Code::SqlLimit, "query"));
        assert!(error.message.contains("at most 2000 can be planned"), "{}", error.message);
    }
}
