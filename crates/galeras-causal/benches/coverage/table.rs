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
the estimator gives no number, *n* % that it refuses so many of the data sets. An instrument with \
F < 10 counts as refused here; `regress` says that its interval may not hold.

Estimators of risks, rates and shifts are under a treatment by a fair coin, of rows or of whole \
clusters, or with both arms in each unit, for the outcomes that they are for. `logistic`, \
`proportional_odds` (four levels, *ordered*) and McNemar's tests estimate ratios at equal \
covariates or within pairs: their outcomes are drawn from that model, and rows of a cluster are \
correlated through a shared normal variable. For `frontdoor` the covariates are unseen, and a \
mediator, of two values or *a number*, carries the whole effect. `ols, absorb` has one level for \
five rows, within the clusters if there are any, or for each unit; *pairs* has one for two rows, \
*30* and *100 levels* so many in all, *crossed* ten levels that each cluster has. The levels of \
rows load the coin and move the outcome. `mixed` is the operator of this name, by REML with \
Satterthwaite's degrees of freedom: the effect of the treatment with a random effect of each \
cluster, or with those of units and of five models that are crossed with them. With *slopes* \
the effect differs between units and has a random slope; *of units* is then the coefficient of a \
covariate that units have.

Where intervals cover too little, estimators refuse: `frontdoor` below 30 rows, absorbed effects \
below 35 degrees of freedom, and absorbed effects and `proportional_odds`, whose standard errors \
have no leverages, below 20 clusters if each of these lies in one arm.

Where they cover more than 97 %, they are wider than they need be. `matching` and \
`stratification` take the estimated score for known (Abadie and Imbens 2016). HC3 is wide in 20 \
rows: a little in `ols` and `lin` (Long and Ervin 2000), more in `logistic`; few rows push an odds \
ratio away from 1 and its standard error up with it, in `proportional_odds` too. \
`mcnemar` is exact, so that its intervals cover at least 95 % by construction, and in 20 pairs, of \
which some eight change, the mid-p interval is hardly shorter. Ratios in 20 pairs have a CR2 \
variance from few events; `negative_binomial` is for counts that vary more than Poisson's, and \
gives a number in the few sets only that do. A random slope that is hardly there costs \
`mixed, slopes` degrees of freedom in 20 units.
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
        text.push_str("\n|---|---|---|---|---|---|\n");
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
