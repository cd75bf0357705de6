//! GitHub's search strings, evaluated on the repositories of the test server.
//!
//! Written on its own, so that it does not repeat mistakes of the program. Times are compared
//! as texts: those of repositories and queries have to be in UTC.

use super::Repo;

type Test = Box<dyn Fn(&Repo) -> bool>;

pub(crate) struct Query(Vec<Test>);

impl Query {
    /// Reads a search string, or returns GitHub's error.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut tests: Vec<Test> = Vec::new();
        let mut forks = "false";
        for word in text.split_whitespace() {
            let (not, plain) = match word.strip_prefix('-') {
                Some(rest) => (true, rest),
                None => (false, word),
            };
            let (name, value) = plain.split_once(':').unwrap_or(("", plain));
            let value = value.trim_matches('"').to_string();
            let test: Test = match name {
                "stars" => number(&value, |repo| repo.stars)?,
                "forks" => number(&value, |repo| repo.forks)?,
                "size" => number(&value, |repo| repo.size)?,
                "created" => date(&value, |repo| &repo.created_at)?,
                "pushed" => date(&value, |repo| &repo.pushed_at)?,
                "language" => Box::new(move |repo| same(repo.language.as_ref(), &value)),
                "license" => Box::new(move |repo| same(repo.license.as_ref(), &value)),
                "archived" => Box::new(move |repo| repo.archived.to_string() == value),
                "fork" => {
                    forks = match value.as_str() {
                        "true" => "true",
                        "only" => "only",
                        "false" => "false",
                        _ => return Err(format!("{value} is not a value of fork")),
                    };
                    continue;
                }
                "" => Box::new(move |repo| repo.full_name.contains(&value)),
                _ => return Err(format!("The search contains the unknown qualifier {name}")),
            };
            tests.push(if not { Box::new(move |repo| !test(repo)) } else { test });
        }
        match forks {
            "false" => tests.push(Box::new(|repo| !repo.fork)),
            "only" => tests.push(Box::new(|repo| repo.fork)),
            _ => {}
        }
        if text.trim().is_empty() {
            return Err("missing".into());
        }
        Ok(Self(tests))
    }

    pub(crate) fn matches(&self, repo: &Repo) -> bool {
        self.0.iter().all(|test| test(repo))
    }
}

fn same(field: Option<&String>, value: &str) -> bool {
    field.is_some_and(|field| field.eq_ignore_ascii_case(value))
}

/// The comparisons of a value: operator and operand.
fn comparisons(value: &str) -> Vec<(&'static str, &str)> {
    for operator in [">=", "<=", ">", "<"] {
        if let Some(operand) = value.strip_prefix(operator) {
            return vec![(operator, operand)];
        }
    }
    match value.split_once("..") {
        Some((low, high)) => {
            [(">=", low), ("<=", high)].into_iter().filter(|(_, operand)| *operand != "*").collect()
        }
        None => vec![(">=", value), ("<=", value)],
    }
}

fn holds<T: PartialOrd + ?Sized>(left: &T, operator: &str, right: &T) -> bool {
    match operator {
        ">=" => left >= right,
        "<=" => left <= right,
        ">" => left > right,
        _ => left < right,
    }
}

fn number(value: &str, field: fn(&Repo) -> u64) -> Result<Test, String> {
    let mut parsed = Vec::new();
    for (operator, operand) in comparisons(value) {
        let operand: u64 = operand.parse().map_err(|_| format!("{value} is not a range"))?;
        parsed.push((operator, operand));
    }
    Ok(Box::new(move |repo| parsed.iter().all(|(op, right)| holds(&field(repo), op, right))))
}

fn date(value: &str, field: fn(&Repo) -> &String) -> Result<Test, String> {
    let mut parsed = Vec::new();
    for (operator, operand) in comparisons(value) {
        // A day is compared with days, a second with seconds.
        let right = operand.len() == 10 || (operand.len() == 20 && operand.ends_with('Z'));
        if !right {
            return Err(format!("{value} is not a range of dates in UTC"));
        }
        parsed.push((operator, operand.to_string()));
    }
    Ok(Box::new(move |repo| {
        parsed.iter().all(|(op, right)| holds(&field(repo)[..right.len()], op, right.as_str()))
    }))
}
