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

use galeras_operator::ArgError;
use galeras_workflow::code::Code;

/// The deepest SQL that is planned, in operators, joins and parts of unions.
pub const MAX_SQL_DEPTH: usize = 1_000;

/// Refuses SQL (at `path`) that is too deep to be planned.
///
/// # Errors
/// An error with the code `sql-limit`.
pub(super) fn check_sql_depth(sql: &str, path: &str) -> Result<(), ArgError> {
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

/// Whether queries are given names (`WITH a AS (…)`): planning puts them in the place of their names,
/// however often.
pub(super) fn has_common_table(sql: &str) -> bool {
    let Ok(tokens) = Tokenizer::new(&GenericDialect {}, sql).tokenize() else { return false };
    let words = tokens.iter().filter(|token| !matches!(token, Token::Whitespace(_)));
    let keyword = |token: &Token| match token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.keyword),
        _ => None,
    };
    // `TIMESTAMP WITH TIME ZONE` is a type.
    let after = words.clone().skip(1).map(keyword).chain([None]);
    words
        .map(keyword)
        .zip(after)
        .any(|(word, next)| word == Some(Keyword::WITH) && next != Some(Keyword::TIME))
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
    /// Whether it is between CASE and END rather than in brackets.
    case: bool,
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

    /// A word that stands where no operand can.
    fn clause(&mut self, word: Keyword) {
        match word {
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
            Keyword::JOIN | Keyword::PIVOT | Keyword::UNPIVOT => {
                self.end_expression();
                self.joins.add();
            }
            Keyword::ON | Keyword::USING => self.end_expression(),
            // WHERE, BY of GROUP and ORDER, and the like.
            _ => {
                self.end_expression();
                self.from = false;
            }
        }
    }

    fn operator(&mut self, word: Keyword) {
        match word {
            Keyword::OR | Keyword::XOR => {
                self.ors += 1;
                (self.ands.now, self.others.now) = (0, 0);
            }
            Keyword::AND => {
                self.ands.add();
                self.others.now = 0;
            }
            _ => self.others.add(),
        }
    }
}

/// What stands before a token. A word where an operand is wanted is a name, whichever word it is: a
/// column may be called `when`, and must not look like the end of an expression.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// Something after which an expression or a clause may begin.
    Start,
    Operand,
    Operator,
    /// DISTINCT behind an operator: `a IS DISTINCT FROM b`, or a name.
    Distinct,
    Period,
}

/// What a word is.
enum Word {
    /// Between two operands, or behind one.
    Infix,
    /// In front of an operand.
    Prefix,
    /// The begin of a clause.
    Clause,
    /// Between the parts of CASE.
    Part,
    Case,
    End,
    Distinct,
    As,
    Name,
}

impl Word {
    fn of(keyword: Keyword) -> Self {
        match keyword {
            Keyword::OR
            | Keyword::XOR
            | Keyword::AND
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
            | Keyword::OVERLAPS => Self::Infix,
            Keyword::NOT | Keyword::INTERVAL => Self::Prefix,
            Keyword::SELECT
            | Keyword::UNION
            | Keyword::INTERSECT
            | Keyword::EXCEPT
            | Keyword::MINUS
            | Keyword::FROM
            | Keyword::JOIN
            | Keyword::PIVOT
            | Keyword::UNPIVOT
            | Keyword::ON
            | Keyword::USING
            | Keyword::WHERE
            | Keyword::BY
            | Keyword::HAVING
            | Keyword::QUALIFY
            | Keyword::LIMIT
            | Keyword::VALUES => Self::Clause,
            Keyword::WHEN | Keyword::THEN | Keyword::ELSE => Self::Part,
            Keyword::CASE => Self::Case,
            Keyword::END => Self::End,
            Keyword::DISTINCT => Self::Distinct,
            Keyword::AS => Self::As,
            _ => Self::Name,
        }
    }
}

/// The brackets that are open, and what stands before the token at hand.
struct Reading {
    levels: Vec<Level>,
    before: Before,
}

impl Reading {
    fn open(&mut self, level: Level) {
        self.levels.push(level);
        self.before = Before::Start;
    }

    fn close(&mut self) {
        if self.levels.len() > 1
            && let Some(closed) = self.levels.pop()
            && let Some(outer) = self.levels.last_mut()
        {
            outer.queries += usize::from(closed.selects);
            outer.inner = outer.inner.max(closed.depth());
        }
        self.before = Before::Operand;
    }

    fn word(&mut self, keyword: Keyword) {
        let Some(level) = self.levels.last_mut() else { return };
        let before = std::mem::replace(&mut self.before, Before::Operand);
        match (Word::of(keyword), before) {
            (_, Before::Period) => {}
            (Word::Infix, Before::Operand | Before::Distinct) => {
                level.operator(keyword);
                self.before = Before::Operator;
            }
            // `x NOT IN (1, 2)` has one in front of the other.
            (Word::Prefix, _) => {
                level.others.add();
                self.before = Before::Operator;
            }
            (Word::Clause, Before::Distinct) if keyword == Keyword::FROM => {
                self.before = Before::Operator;
            }
            (Word::Clause, Before::Operand | Before::Start) => {
                level.clause(keyword);
                self.before = Before::Start;
            }
            (Word::Part, Before::Operand | Before::Start) if level.case => {
                level.end_expression();
                self.before = Before::Start;
            }
            (Word::Case, Before::Start | Before::Operator) => {
                self.open(Level { case: true, ..Level::default() });
            }
            (Word::End, Before::Operand) if level.case => self.close(),
            (Word::Distinct, Before::Operator) => self.before = Before::Distinct,
            (Word::Distinct, _) => self.before = before,
            (Word::As, Before::Operand) => self.before = Before::Start,
            _ => {}
        }
    }

    fn token(&mut self, token: &Token) {
        let Some(level) = self.levels.last_mut() else { return };
        match token {
            Token::LParen | Token::LBrace => self.open(Level::default()),
            Token::LBracket => {
                level.others.add();
                self.open(Level::default());
            }
            Token::RParen | Token::RBracket | Token::RBrace => {
                // What looked like the begin of CASE was a name.
                while self.levels.len() > 2 && self.levels.last().is_some_and(|level| level.case) {
                    self.close();
                }
                self.close();
            }
            Token::Comma => {
                level.end_expression();
                if level.from {
                    level.joins.add();
                }
                self.before = Before::Start;
            }
            Token::SemiColon => {
                level.end_expression();
                self.before = Before::Start;
            }
            Token::Period => self.before = Before::Period,
            // All columns, of a table or of all.
            Token::Mul if matches!(self.before, Before::Start | Before::Period) => {
                self.before = Before::Operand;
            }
            Token::Word(word) if word.quote_style.is_none() => self.word(word.keyword),
            Token::EOF | Token::Whitespace(_) => {}
            Token::Word(_)
            | Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::DoubleQuotedString(_)
            | Token::NationalStringLiteral(_)
            | Token::EscapedStringLiteral(_)
            | Token::UnicodeStringLiteral(_)
            | Token::HexStringLiteral(_)
            | Token::DollarQuotedString(_)
            | Token::Placeholder(_) => self.before = Before::Operand,
            // An operator, whichever.
            _ => {
                level.others.add();
                self.before = Before::Operator;
            }
        }
    }
}

fn depth(tokens: &[Token]) -> usize {
    let mut reading = Reading { levels: vec![Level::default()], before: Before::Start };
    tokens.iter().for_each(|token| reading.token(token));
    while reading.levels.len() > 1 {
        reading.close();
    }
    reading.levels.pop().map_or(0, Level::depth)
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
    fn a_word_where_an_operand_is_wanted_is_a_name() {
        let names = [
            "when", "then", "on", "from", "limit", "where", "values", "select", "union", "or",
            "and", "is", "in", "end", "case", "by", "t.when", "t.or", "\"or\"",
        ];
        for name in names {
            for operator in [" OR ", " AND ", " + ", " IS DISTINCT FROM "] {
                let run = vec!["b"; 400].join(operator);
                let chain = vec![run; 4].join(&format!("{operator}{name}{operator}"));
                assert!(check_sql_depth(&chain, "").is_err(), "{name}{operator}");
            }
        }
        let counts = vec!["count(*) OVER (PARTITION BY x ORDER BY y)"; 1_200].join(" + ");
        assert!(check_sql_depth(&format!("SELECT {counts} FROM t"), "").is_err());
        let pivots = " PIVOT(sum(a) FOR b IN ('x'))".repeat(1_200);
        assert!(check_sql_depth(&format!("SELECT * FROM t{pivots}"), "").is_err());
        let within = vec!["f(x) WITHIN GROUP (ORDER BY y)"; 1_200].join(" + ");
        assert!(check_sql_depth(&format!("SELECT {within} FROM t"), "").is_err());
    }

    #[test]
    fn queries_with_names_are_told_from_types_with_a_zone() {
        assert!(has_common_table("x IN (WITH a AS (SELECT 1) SELECT * FROM a)"));
        assert!(!has_common_table("x::timestamp with time zone > y AND \"with\" = 'with'"));
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
