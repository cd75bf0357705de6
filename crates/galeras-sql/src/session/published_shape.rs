//! The shape of the published Galeras files: maps our columns to their keys.
//!
//! A published row is a data point: the code without its docstring is `code`, the docstring with
//! its counts a mapping `documentation`, and each treatment has a mapping of the prompt and the
//! prediction. Our rows are answers under one treatment, so several are joined.

use arrow::array::AsArray;
use arrow::datatypes::Schema;
use datafusion::dataframe::DataFrame;
use datafusion::error::Result;
use datafusion::execution::context::SessionContext;

/// A shape of rows that an output can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputShape {
    /// That of the published Galeras files.
    Galeras,
}

/// Why a table cannot be given a shape.
#[derive(Debug, thiserror::Error)]
pub enum ShapeError {
    /// Its rows are not what the shape has.
    #[error("{0}")]
    Rows(String),
    /// The query failed.
    #[error(transparent)]
    Query(#[from] datafusion::error::DataFusionError),
}

/// The columns that are copied, in the order of the published files: before `code`, and from
/// `ast_errors` on.
const PLAIN: [&str; 6] = ["commit_id", "repo", "path", "file_name", "fun_name", "commit_message"];
const COUNTS: [&str; 10] = [
    "n_ast_errors",
    "ast_levels",
    "n_whitespaces",
    "n_words",
    "vocab_size",
    "complexity",
    "nloc",
    "token_counts",
    "n_ast_nodes",
    "n_identifiers",
];
/// The other columns that every table needs.
const MORE: [&str; 5] = ["id", "code_no_docstring", "docstring", "url", "ast_errors"];
/// The columns that a table with a column `treatment` needs.
const TREATED: [&str; 6] =
    ["snippet_id", "template", "prompt", "prompt_size", "p_n_whitespaces", "p_vocab_size"];

impl OutputShape {
    /// The names of the shapes.
    pub const NAMES: [&'static str; 1] = ["galeras"];

    /// The shape of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        (name == Self::NAMES[0]).then_some(Self::Galeras)
    }

    /// The name.
    pub fn name(self) -> &'static str {
        Self::NAMES[0]
    }

    /// The columns that it needs and a table of this schema does not have.
    pub fn missing(self, schema: &Schema) -> Vec<&'static str> {
        let there = |name: &str| schema.field_with_name(name).is_ok();
        let treated: &[&str] = if there("treatment") { &TREATED } else { &[] };
        let all = PLAIN.iter().chain(&COUNTS).chain(&MORE).chain(treated);
        all.copied().filter(|name| !there(name)).collect()
    }

    /// The rows of `table` in this shape, in the order of the data points' ids.
    ///
    /// # Errors
    /// If a data point has several answers under a treatment, or a treatment the name of a key.
    pub async fn apply(
        self,
        session: &SessionContext,
        table: DataFrame,
    ) -> Result<DataFrame, ShapeError> {
        let there = |name: &str| table.schema().as_arrow().field_with_name(name).is_ok();
        let (treated, cut) = (there("treatment"), there("random_cut"));
        let predicted = there("prediction");
        session.register_table("shaped", table.into_view())?;
        let arms = if treated { arms(session).await? } else { Vec::new() };
        let point = if treated { "snippet_id" } else { "id" };
        Ok(session.sql(&query(point, cut, treated.then_some((&arms, predicted)))).await?)
    }
}

/// The treatments, after a look at whether they can be keys of one row.
async fn arms(session: &SessionContext) -> Result<Vec<String>, ShapeError> {
    let texts = |batches: Vec<arrow::array::RecordBatch>| -> Vec<String> {
        let columns = batches.iter().map(|batch| batch.column(0).as_string::<i32>());
        columns.flatten().flatten().map(str::to_string).collect()
    };
    let ask = "SELECT DISTINCT treatment FROM shaped ORDER BY treatment";
    let arms = texts(session.sql(ask).await?.collect().await?);
    let several = "SELECT one FROM (SELECT concat(snippet_id, ' under ', treatment) AS one, \
                   count(*) AS answers FROM shaped GROUP BY snippet_id, treatment) \
                   WHERE answers > 1 ORDER BY one LIMIT 1";
    if let Some(one) = texts(session.sql(several).await?.collect().await?).first() {
        return Err(ShapeError::Rows(format!(
            "the published shape has one answer of a data point under a treatment, and there are \
             several of {one}: choose a sample and a model before"
        )));
    }
    let keys = || PLAIN.iter().chain(&COUNTS).chain(&MORE).chain(&OTHERS);
    match arms.iter().find(|arm| keys().any(|key| key == arm)) {
        Some(arm) => Err(ShapeError::Rows(format!(
            "a treatment is called `{arm}`, as another key of the published shape is"
        ))),
        None => Ok(arms),
    }
}

/// Keys of the shape that no column has as a name.
const OTHERS: [&str; 6] = ["code", "documentation", "language", "d_id", "random_cut", "galeras_id"];

/// The characters at which Python's `str.split` splits, and DataFusion's `\s` does not, are ASCII.
const SPACE: &str = r"[\s\x1c-\x1f]";

/// The words of a text, as SQL.
fn words(text: &str) -> String {
    format!("regexp_count({text}, '[^\\s\\x1c-\\x1f]+')")
}

/// Its spaces.
fn spaces(text: &str) -> String {
    format!("char_length({text}) - char_length(replace({text}, ' ', ''))")
}

/// Its distinct words.
fn vocabulary(text: &str) -> String {
    let trimmed = format!("regexp_replace({text}, '^{SPACE}+|{SPACE}+$', '', 'g')");
    let words = format!("string_to_array(regexp_replace({trimmed}, '{SPACE}+', ' ', 'g'), ' ')");
    // A text without words has one, an empty one, for DataFusion.
    format!(
        "CASE WHEN {text} IS NULL THEN NULL WHEN regexp_count({text}, '[^\\s\\x1c-\\x1f]') = 0 THEN \
         CAST(0 AS bigint) ELSE CAST(cardinality(array_distinct({words})) AS bigint) END"
    )
}

/// A name as an SQL identifier.
fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text as an SQL literal.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The query that shapes the table `shaped`.
fn query(point: &str, cut: bool, treated: Option<(&Vec<String>, bool)>) -> String {
    // 53 bits, so that every reader of JSON keeps the number.
    let number = format!(
        "CAST(keyed_hash(0, 'published', {point}) / arrow_cast(2048, 'UInt64') \
         AS bigint)"
    );
    let plain = PLAIN.map(|name| format!("{name}, ")).concat();
    let counts = COUNTS.map(|name| format!("CAST({name} AS bigint) AS {name}, ")).concat();
    let documentation = format!(
        "named_struct('docstring', docstring, 'n_words', CAST({} AS bigint), 'vocab_size', {}, \
         'n_whitespaces', CAST({} AS bigint), 'language', language_of(docstring))",
        words("docstring"),
        vocabulary("docstring"),
        spaces("docstring"),
    );
    let random_cut = if cut { "random_cut, " } else { "" };
    let point_columns = format!(
        "{number} AS id, {plain}code_no_docstring AS code, {documentation} AS documentation, url, \
         'Python' AS language, array_to_string(ast_errors, '') AS ast_errors, {counts}{random_cut}\
         CASE WHEN docstring IS NOT NULL THEN {number} END AS d_id, {point} AS galeras_id"
    );
    let Some((arms, predicted)) = treated else {
        return format!("SELECT {point_columns} FROM shaped ORDER BY galeras_id");
    };
    let prediction = if predicted {
        format!(
            ", 'predicted', named_struct('prediction', prediction, 'n_words', \
             CAST({} AS bigint), 'n_whitespaces', CAST({} AS bigint), 'vocab_size', {})",
            words("prediction"),
            spaces("prediction"),
            vocabulary("prediction"),
        )
    } else {
        String::new()
    };
    let arm = format!(
        "named_struct('prompt', named_struct('template', template, 'p_n_words', \
         CAST(prompt_size AS bigint), 'n_whitespaces', CAST(p_n_whitespaces AS bigint), \
         'vocab_size', CAST(p_vocab_size AS bigint)){prediction})"
    );
    let mut columns = String::new();
    let mut joins = String::new();
    for (at, name) in arms.iter().enumerate() {
        columns.push_str(&format!(", a{at}.arm AS {}", identifier(name)));
        joins.push_str(&format!(
            " LEFT JOIN (SELECT snippet_id, arm FROM arms WHERE treatment = {}) AS a{at} \
             ON points.galeras_id = a{at}.snippet_id",
            literal(name)
        ));
    }
    format!(
        "WITH arms AS (SELECT snippet_id, treatment, {arm} AS arm FROM shaped), \
         firsts AS (SELECT *, row_number() OVER (PARTITION BY snippet_id ORDER BY treatment) \
         AS __place FROM shaped), \
         points AS (SELECT {point_columns} FROM firsts WHERE __place = 1) \
         SELECT points.*{columns} FROM points{joins} ORDER BY points.galeras_id"
    )
}
