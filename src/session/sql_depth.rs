//! How deep a text of SQL nests, told from its tokens alone.
//!
//! A parser reads `a OR b OR c …` in a loop, but what it makes is as deep as the chain is long, and
//! everything after it recurses: planning, optimising, evaluating, dropping. A chain that is too
//! long would overflow the stack of a thread, which ends the process. So it is refused before it
//! is parsed.
//!
//! The number is an upper bound: it never says less than the depth that an expression gets.

use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

use crate::code::Code;
use crate::operator::ArgError;

/// The deepest SQL that is planned, in operators, joins and parts of unions.
pub const MAX_SQL_DEPTH: usize = 1_000;

/// Refuses SQL (at `path`) that is too deep to be planned.
///
/// # Errors
/// An error with the code `sql-limit`.
pub fn check_sql_depth(sql: &str, path: &str) -> Result<(), ArgError> {
    // What is no SQL is reported by the parser, which knows more about it.
    let Ok(tokens) = Tokenizer::new(&GenericDialect {}, sql).tokenize() else { return Ok(()) };
    let depth = depth(&tokens);
    if depth <= MAX_SQL_DEPTH {
        return Ok(());
    }
    let message = format!(
        "the SQL is {depth} operators, joins and parts of unions deep; at most {MAX_SQL_DEPTH} can \
         be planned"
    );
    let help = "compare with a list (`x IN (1, 2, 3)`), join with a table of the values, or \
                compute a part in a step before";
    Err(ArgError::new(path, Code::SqlLimit, message).help(help))
}

/// What stands between a pair of brackets, or in all of the text.
#[derive(Default)]
struct Level {
    /// `OR`s, and the most `AND`s and other operators between two of them.
    ors: usize,
    ands: Longest,
    others: Longest,
    /// The deepest brackets within the expression at hand.
    inner: usize,
    /// The deepest expression that is complete.
    deepest: usize,
    /// Whether commas separate tables.
    from: bool,
    joins: Longest,
    /// `UNION` and the like.
    sets: usize,
    /// Queries in brackets, each of which may read the one before (`WITH a AS (…), b AS (…)`).
    queries: usize,
    /// Whether a query begins in here.
    selects: bool,
}

/// The length of a chain, and that of the longest one so far.
#[derive(Default)]
struct Longest {
    now: usize,
    most: usize,
}

impl Longest {
    fn add(&mut self) {
        self.now += 1;
        self.most = self.most.max(self.now);
    }
}

impl Level {
    /// An expression ends here.
    fn end_expression(&mut self) {
        let depth = self.ors + self.ands.most + self.others.most + self.inner;
        self.deepest = self.deepest.max(depth);
        (self.ors, self.inner) = (0, 0);
        (self.ands, self.others) = (Longest::default(), Longest::default());
    }

    fn depth(mut self) -> usize {
        self.end_expression();
        1 + self.deepest + self.joins.most + self.sets + self.queries
    }

    fn word(&mut self, word: Keyword) {
        match word {
            Keyword::OR | Keyword::XOR => {
                self.ors += 1;
                (self.ands.now, self.others.now) = (0, 0);
            }
            Keyword::AND => {
                self.ands.add();
                self.others.now = 0;
            }
            Keyword::UNION | Keyword::INTERSECT | Keyword::EXCEPT | Keyword::MINUS => {
                self.end_expression();
                self.sets += 1;
                self.from = false;
            }
            Keyword::SELECT => {
                self.end_expression();
                self.joins.now = 0;
                self.from = false;
                self.selects = true;
            }
            Keyword::FROM => {
                self.end_expression();
                self.from = true;
            }
            Keyword::JOIN => {
                self.end_expression();
                self.joins.add();
            }
            Keyword::ON | Keyword::USING | Keyword::WHEN | Keyword::THEN | Keyword::ELSE => {
                self.end_expression();
            }
            Keyword::WHERE
            | Keyword::GROUP
            | Keyword::HAVING
            | Keyword::ORDER
            | Keyword::QUALIFY
            | Keyword::LIMIT
            | Keyword::VALUES => {
                self.end_expression();
                self.from = false;
            }
            Keyword::NOT
            | Keyword::IS
            | Keyword::IN
            | Keyword::BETWEEN
            | Keyword::LIKE
            | Keyword::ILIKE
            | Keyword::RLIKE
            | Keyword::REGEXP
            | Keyword::SIMILAR
            | Keyword::AT
            | Keyword::COLLATE
            | Keyword::DIV
            | Keyword::OVERLAPS
            | Keyword::INTERVAL => self.others.add(),
            _ => {}
        }
    }
}

fn depth(tokens: &[Token]) -> usize {
    let mut levels = vec![Level::default()];
    let close = |levels: &mut Vec<Level>| {
        if levels.len() > 1
            && let Some(closed) = levels.pop()
            && let Some(outer) = levels.last_mut()
        {
            outer.queries += usize::from(closed.selects);
            outer.inner = outer.inner.max(closed.depth());
        }
    };
    for token in tokens {
        let Some(level) = levels.last_mut() else { break };
        match token {
            Token::LParen | Token::LBrace => levels.push(Level::default()),
            Token::LBracket => {
                level.others.add();
                levels.push(Level::default());
            }
            Token::RParen | Token::RBracket | Token::RBrace => close(&mut levels),
            Token::Comma => {
                level.end_expression();
                if level.from {
                    level.joins.add();
                }
            }
            Token::SemiColon => level.end_expression(),
            Token::Word(word) => match word.keyword {
                Keyword::CASE => levels.push(Level::default()),
                Keyword::END => close(&mut levels),
                keyword => level.word(keyword),
            },
            Token::EOF
            | Token::Number(..)
            | Token::Whitespace(_)
            | Token::SingleQuotedString(_)
            | Token::DoubleQuotedString(_)
            | Token::NationalStringLiteral(_)
            | Token::EscapedStringLiteral(_)
            | Token::UnicodeStringLiteral(_)
            | Token::HexStringLiteral(_)
            | Token::DollarQuotedString(_)
            | Token::Placeholder(_) => {}
            // An operator, whichever.
            _ => level.others.add(),
        }
    }
    while levels.len() > 1 {
        close(&mut levels);
    }
    levels.pop().map_or(0, Level::depth)
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
    fn chains_are_as_deep_as_they_are_long() {
        for operator in [" OR ", " AND ", " + ", " || ", " = ", " IS TRUE AND ", " ILIKE "] {
            let long = chain("x", operator, 2_000);
            assert!(check_sql_depth(&long, "").is_err(), "{operator}");
            let short = chain("x", operator, 300);
            assert!(check_sql_depth(&short, "").is_ok(), "{operator}");
        }
        assert!(depth_of(&format!("x{}", "::int".repeat(500))) > 500);
        assert!(depth_of(&format!("x{}", "[1]".repeat(500))) > 500);
        let query = |operator| chain("SELECT x FROM t", operator, 500);
        assert!(depth_of(&query(" UNION ALL ")) > 490);
        assert!(depth_of(&query(" EXCEPT ")) > 490);
        assert!(depth_of(&format!("SELECT 1 FROM {}", chain("t", ", ", 500))) > 490);
        assert!(depth_of(&format!("SELECT 1 FROM {}", chain("t", " JOIN ", 500))) > 490);
        let with: Vec<String> =
            (1..500).map(|i| format!("a{i} AS (SELECT * FROM a{})", i - 1)).collect();
        assert!(depth_of(&format!("WITH {} SELECT 1", with.join(", "))) > 490);
    }

    #[test]
    fn brackets_add_up_and_lists_do_not() {
        let nested = format!("{} OR ({})", chain("x", " OR ", 400), chain("y", " AND ", 400));
        assert!(depth_of(&nested) > 790);
        let first = format!("({}) + {}", chain("x", " OR ", 400), chain("y", " + ", 400));
        assert!(depth_of(&first) > 790);
        let columns: Vec<String> = (0..5_000).map(|i| format!("x + {i} AS c{i}")).collect();
        assert!(depth_of(&format!("SELECT {} FROM t WHERE a AND b", columns.join(", "))) < 10);
        let list: Vec<String> = (0..50_000).map(|i| i.to_string()).collect();
        assert!(depth_of(&format!("x IN ({})", list.join(", "))) < 10);
        let rows = vec!["(1, 'a')"; 5_000].join(", ");
        assert!(depth_of(&format!("SELECT * FROM (VALUES {rows})")) < 10);
        let cases: String = (0..5_000).map(|i| format!(" WHEN x = {i} THEN y + {i}")).collect();
        assert!(depth_of(&format!("CASE{cases} ELSE 0 END > 1")) < 10);
    }

    #[test]
    fn what_is_in_quotes_or_comments_does_not_count() {
        let text = chain("x", " OR ", 2_000);
        assert!(depth_of(&format!("a = '{text}' -- {text}")) < 5);
        assert!(depth_of(&format!("\"{text}\"")) < 5);
    }

    #[test]
    fn odd_brackets_end_nothing_and_the_limit_is_told() {
        assert!(depth_of(")))]]}} END END ((( CASE CASE") < 20);
        assert!(depth_of("") < 3);
        let error = check_sql_depth(&chain("x", " OR ", 10_000), "query").unwrap_err();
        assert_eq!((error.code, error.path.as_str()), (Code::SqlLimit, "query"));
        assert!(error.message.contains("deep; at most 1000 can be planned"), "{}", error.message);
    }
}
