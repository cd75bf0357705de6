//! The table as a page of the manual.

use std::fmt::Write;

use crate::estimators::Cell;
use crate::nulls::Rejections;
use crate::samples::{Outcome, Sample};

const HEAD: &str = "# Coverage

Written by `cargo bench -p galeras-causal --bench coverage`; do not edit.

";

const INTERVALS: &str = "How often 95 % intervals contain the true effect, per cent of the data \
sets in which the estimator gave one. In each cell the effect is the same for all rows, outcomes \
are linear in two covariates that load the coin of the treatment, and the estimators are those of \
`regress` with its defaults. A share of 2,000 has a standard error of 0.5. `refused` means that \
the estimator gives no number, *n* % that it refuses so many of the data sets. Intervals of \
`matching` and `stratification` are wide: their standard errors take the estimated score for \
known, which makes them too large (Abadie and Imbens 2016). In 20 rows those of `ols` and `lin`, by \
HC3, are a little wide (Long and Ervin 2000). An instrument with F < 10 counts as \
refused here; `regress` says that its interval may not hold. Estimators of risks, rates and \
shifts are under a treatment by a fair coin, for the outcomes that they are for.
";

const NULLS: &str = "
## Tests under their null

How often a test rejects at 5 % what is true.

| test | null | rejected, % |
|---|---|---|
";

pub(crate) fn table(data_sets: usize, cells: &[Cell], rejections: &[Rejections]) -> String {
    let mut text = format!("{HEAD}{data_sets} data sets for each cell. {INTERVALS}");
    for sample in Sample::ALL {
        let of_sample = || cells.iter().filter(move |cell| cell.sample == sample);
        let mut names: Vec<&str> = Vec::new();
        for cell in of_sample() {
            if !names.contains(&cell.estimator) {
                names.push(cell.estimator);
            }
        }
        if names.is_empty() {
            continue;
        }
        let _ = write!(text, "\n## {}\n\n| estimator |", sample.name());
        for outcome in Outcome::ALL {
            let _ = write!(text, " {} |", outcome.name());
        }
        text.push_str("\n|---|---|---|---|---|\n");
        for name in names {
            let _ = write!(text, "| {name} |");
            for outcome in Outcome::ALL {
                let of_name = |cell: &&Cell| cell.estimator == name && cell.outcome == outcome;
                let _ = write!(text, " {} |", of_sample().find(of_name).map_or("".into(), entry));
            }
            text.push('\n');
        }
    }
    if !rejections.is_empty() {
        text.push_str(NULLS);
    }
    for one in rejections {
        let mark = if one.holds() { "" } else { " **outside 3 to 7**" };
        let _ = writeln!(text, "| {} | {} | {:.1}{mark} |", one.test, one.null, one.share());
    }
    text
}

fn entry(cell: &Cell) -> String {
    if cell.is_refused() {
        return "refused".into();
    }
    let mut entry = format!("{:.1}", cell.share());
    if cell.refused > 0 {
        let refused = 100.0 * cell.refused as f64 / (cell.given + cell.refused) as f64;
        let _ = write!(entry, " ({refused:.0} % refused)");
    }
    if !cell.holds() {
        entry.push_str(" **outside 93 to 97**");
    }
    entry
}
