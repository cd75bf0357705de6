//! How often a query reads a table when every name of `WITH` stands for its whole query: that is how
//! it is planned, so that forty names, each of which reads the one before twice, are a million million
//! reads.
//!
//! Does not live here: how deep a query is (`sql_depth`), and which clauses mean nothing (`sql_ignored`).

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{ObjectName, Query, Visit, Visitor};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;

use super::sql_depth::check_sql_depth;
use super::sql_ignored::check_clauses;
use galeras_operator::ArgError;
use galeras_workflow::code::Code;

/// The most reads of tables that a query is planned with.
pub const MAX_SQL_READS: u64 = 2_000;

/// How deep queries and brackets may nest for the parser; the planner allows fewer.
const PARSER_DEPTH: usize = 100;

/// Refuses a query (at `path`) that is too deep to be planned, reads tables too often, or has a clause
/// that would be passed over.
///
/// # Errors
/// An error with the code `sql-limit` or `sql`.
pub fn check_query(sql: &str, path: &str) -> Result<(), ArgError> {
    check_sql_depth(sql, path)?;
    // What is no SQL is reported by the planner, which knows more about it.
    let parser = Parser::new(&GenericDialect {}).with_recursion_limit(PARSER_DEPTH);
    let parsed = parser.try_with_sql(sql).and_then(|mut parser| parser.parse_statements());
    let Ok(statements) = parsed else { return Ok(()) };
    check_clauses(&statements, path)?;
    let mut reads = Reads { queries: vec![Frame::default()] };
    let _ = statements.visit(&mut reads);
    let reads = reads.queries.first().map_or(0, |all| all.reads);
    if reads <= MAX_SQL_READS {
        return Ok(());
    }
    let often = match reads {
        u64::MAX => "without end".to_string(),
        reads => format!("{reads} times"),
    };
    let message = format!(
        "the query reads tables {often}, if each name of WITH is the query that it stands for; at \
         most {MAX_SQL_READS} reads can be planned"
    );
    let help = "compute what is read again and again in a step before";
    Err(ArgError::new(path, Code::SqlLimit, message).help(help))
}

/// A query while its parts are visited: those of WITH come first, in their order.
#[derive(Default)]
struct Frame {
    /// The names of WITH that are still to come, the next one last.
    coming: Vec<String>,
    /// Names with the reads that each stands for.
    named: Vec<(String, u64)>,
    reads: u64,
}

struct Reads {
    /// The queries that are being visited, from the outside.
    queries: Vec<Frame>,
}

impl Visitor for Reads {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let names = query.with.iter().flat_map(|with| &with.cte_tables);
        let mut coming: Vec<String> =
            names.map(|table| table.alias.name.value.to_lowercase()).collect();
        coming.reverse();
        self.queries.push(Frame { coming, ..Frame::default() });
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        if self.queries.len() > 1
            && let Some(query) = self.queries.pop()
            && let Some(outer) = self.queries.last_mut()
        {
            match outer.coming.pop() {
                Some(name) => outer.named.push((name, query.reads)),
                None => outer.reads = outer.reads.saturating_add(query.reads),
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        let name = relation.to_string().replace(['"', '`'], "").to_lowercase();
        // The same name may stand for several queries: the largest counts.
        let named = self.queries.iter().flat_map(|query| &query.named);
        let reads = named.filter(|(known, _)| *known == name).map(|(_, reads)| *reads).max();
        if let Some(query) = self.queries.last_mut() {
            query.reads = query.reads.saturating_add(reads.unwrap_or(1).max(1));
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(sql: &str) -> u64 {
        let statements = Parser::parse_sql(&GenericDialect {}, sql).unwrap();
        let mut reads = Reads { queries: vec![Frame::default()] };
        let _ = statements.visit(&mut reads);
        reads.queries[0].reads
    }

    fn doubling(names: usize) -> String {
        let with: Vec<String> = (1..=names)
            .map(|i| {
                format!("a{i} AS (SELECT x FROM a{} UNION ALL SELECT x FROM A{})", i - 1, i - 1)
            })
            .collect();
        format!("WITH a0 AS (SELECT x FROM t), {} SELECT x FROM \"a{names}\"", with.join(", "))
    }

    #[test]
    fn a_name_of_with_counts_as_the_query_that_it_stands_for() {
        assert_eq!(reads("SELECT 1"), 0);
        assert_eq!(reads("SELECT x FROM t, u JOIN v ON (SELECT count(*) FROM w) > 1"), 4);
        assert_eq!(reads("WITH a AS (SELECT * FROM t, t) SELECT * FROM a, a, u"), 5);
        assert_eq!(reads(&doubling(5)), 32);
        let inner = "SELECT x FROM (WITH a AS (SELECT x FROM t, t, t) SELECT * FROM a, a) AS d, a";
        assert_eq!(reads(inner), 7);
        let nested = "WITH a AS (WITH b AS (SELECT x FROM t, t) SELECT * FROM b, b), \
                      c AS (SELECT x FROM a, a) SELECT x FROM c, (SELECT x FROM a) AS d";
        assert_eq!(reads(nested), 12);
        let recursive = "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t WHERE n < 9) \
                         SELECT n FROM t";
        assert_eq!(reads(recursive), 1);
    }

    #[test]
    fn a_clause_that_would_mean_nothing_is_refused() {
        for (sql, clause) in [
            ("SELECT * FROM t TABLESAMPLE (1 ROWS)", "TABLESAMPLE"),
            ("SELECT * FROM t TABLESAMPLE BERNOULLI (10)", "TABLESAMPLE"),
            ("SELECT * FROM (SELECT * FROM t TABLESAMPLE SYSTEM (10)) AS d", "TABLESAMPLE"),
            ("SELECT * FROM t PREWHERE x = 1", "PREWHERE"),
            ("SELECT x FROM t START WITH x = 1 CONNECT BY PRIOR x = y", "CONNECT BY"),
            ("SELECT x, count(*) FROM t GROUP BY x WITH ROLLUP", "WITH ROLLUP"),
            ("SELECT x, count(*) FROM t GROUP BY x WITH TOTALS", "WITH ROLLUP"),
            ("SELECT * ILIKE '%i%' FROM t", "* ILIKE"),
            ("SELECT * FROM t PARTITION (p0)", "PARTITION"),
            ("SELECT * FROM t SETTINGS max_threads = 1", "SETTINGS"),
            ("SELECT * FROM t FOR UPDATE", "FOR UPDATE"),
            ("SELECT CAST('abcdef' AS VARCHAR(2)) AS v", "the length"),
            ("SELECT x::char(2) AS v FROM (SELECT 'abc' AS x) AS t", "the length"),
        ] {
            let error = check_query(sql, "query").unwrap_err();
            assert_eq!(error.code, Code::Sql, "{sql}");
            assert!(error.message.starts_with(clause), "{sql}: {}", error.message);
        }
        for sql in [
            "SELECT DISTINCT ON (x) x, y FROM t ORDER BY x, y",
            "SELECT * EXCLUDE (x) FROM t",
            "SELECT CAST(x AS VARCHAR) AS v, x::decimal(10, 2) AS d FROM t",
            "SELECT x, count(*) FROM t GROUP BY ROLLUP (x)",
            "FROM t SELECT x",
            "SELECT x FROM t ORDER BY x LIMIT 5 OFFSET 2",
        ] {
            assert_eq!(check_query(sql, "query").err().map(|error| error.message), None, "{sql}");
        }
    }

    #[test]
    fn a_query_that_reads_without_end_is_refused() {
        assert!(check_query(&doubling(10), "query").is_ok());
        for names in [11, 40, 200] {
            let error = check_query(&doubling(names), "query").unwrap_err();
            assert_eq!((error.code, error.path.as_str()), (Code::SqlLimit, "query"));
            assert!(error.message.contains("at most 2000 reads"), "{}", error.message);
        }
    }
}
