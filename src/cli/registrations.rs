//! Preregistration at the command line: `lock` registers the analyses that `prereg` names, and
//! `run` ends with a list of the estimates that match. `plan` stores and compares registrations;
//! `regress` knows which estimates they cover.

use std::path::Path;

use arrow::array::AsArray;
use arrow::compute::cast;
use arrow::datatypes::DataType;

use super::context::{Exit, Failure, cannot_write, fail, note};
use super::lock::only_writer;
use galeras_base::scratch::WholeFile;
use galeras_display::count;
use galeras_engine::plan::{LockFile, LockedAnalysis, Plan, lock_path};
use galeras_engine::runner::{RunError, StepManifests, open_port, stored_rows_of, survey};
use galeras_operator::{MAIN, Registration};
use galeras_sql::session::{column, session};
use galeras_store::{Store, timestamp};

/// The operator whose rows are answers.
const ANSWERS: &str = "generate";
/// The most deviations that are listed; the table has all of them.
const SAID: usize = 3;

/// Writes new analyses of `prereg` into the lock file; with `amend` also changed ones.
pub(super) async fn register(
    plan: &Plan,
    store: &Store,
    file: &Path,
    amend: bool,
) -> Result<(), Failure> {
    let path = lock_path(file);
    let _only = only_writer(&path).await;
    let lock = LockFile::beside(file);
    let mut lock = lock.map_err(|problem| fail(problem, Exit::Invalid))?;
    let states = survey(plan, store, None).await?;
    let mut changed = false;
    let registered = plan.steps.iter().enumerate().filter(|(_, step)| step.registration.is_some());
    for (at, step) in registered {
        let name = &step.name;
        let results = results_of(plan, store, at, |at| states[at].manifest.is_some()).await?;
        let analysis = LockedAnalysis::of(plan, at, timestamp(), results.is_none());
        let known = lock.analyses_of(&plan.file_name());
        let own: Vec<&LockedAnalysis> = known.iter().filter(|one| one.step == *name).collect();
        if let Some(before) = own.iter().find(|before| before.agrees_with(&analysis)) {
            note(&format!("{name} is registered since {}", before.at));
            continue;
        }
        if let (Some(last), false) = (own.last(), amend) {
            note(&format!(
                "{name} was registered at {}, and is another analysis now; the registration stays. \
                 To register it as it is, beside the earlier one: galeras lock --amend",
                last.at
            ));
            continue;
        }
        match results {
            None => note(&format!("{name} is registered, before there are results")),
            Some(results) => note(&format!(
                "{name} is registered, but there are results already ({results}): its estimates \
                 count as exploratory"
            )),
        }
        lock.register(analysis);
        changed = true;
    }
    if changed {
        WholeFile::write(&path, lock.render().as_bytes()).map_err(cannot_write(&path))?;
    }
    Ok(())
}

/// The stored results that an analysis uses, in words: answers from any source or, in a study
/// without answers, the table that it reads.
async fn results_of(
    plan: &Plan,
    store: &Store,
    step: usize,
    is_stored: impl Fn(usize) -> bool,
) -> Result<Option<String>, RunError> {
    let below = plan.with_ancestors(&[step]);
    let operator = |at: usize| plan.steps[at].operator.descriptor().name;
    let answers: Vec<usize> = below.into_iter().filter(|at| operator(*at) == ANSWERS).collect();
    let about: Vec<usize> = match answers.is_empty() {
        true => plan.steps[step].upstream().collect(),
        false => answers.clone(),
    };
    for at in about {
        let name = &plan.steps[at].name;
        if is_stored(at) {
            return Ok(Some(format!("step {name} is computed")));
        }
        // The answers are from an unfinished run, or to other prompts.
        if answers.contains(&at) {
            let rows = stored_rows_of(&plan.steps[at], store).await?;
            if rows > 0 {
                return Ok(Some(format!("{} answers of step {name}", count(rows))));
            }
        }
    }
    Ok(None)
}

/// Reports at the end of a run which estimates match their registration.
pub(super) async fn show_registrations(plan: &Plan, store: &Store, results: &StepManifests) {
    for (at, step) in plan.steps.iter().enumerate() {
        let Some(registration) = &step.registration else { continue };
        if results.get(at).is_none_or(Option::is_none) {
            continue;
        }
        match summary(plan, store, at, results).await {
            Ok(counts) => note(&sentence(&step.name, registration, &counts)),
            Err(error) => note(&format!("{}: {error}", step.name)),
        }
    }
}

/// The number of registered and unregistered estimates of a step, with reasons.
struct RegisteredCounts {
    registered: usize,
    others: usize,
    deviations: Vec<String>,
}

async fn summary(
    plan: &Plan,
    store: &Store,
    step: usize,
    results: &StepManifests,
) -> Result<RegisteredCounts, Box<dyn std::error::Error>> {
    let estimates = || open_port(&session(1), store, plan, step, MAIN, results);
    let registered = estimates()?.filter(column("registered"))?.count().await?;
    let others = estimates()?.filter(column("registered").is_false())?;
    let reasons = others.clone().select(vec![column("deviation")])?.distinct()?;
    let reasons =
        reasons.sort(vec![column("deviation").sort(true, false)])?.limit(0, Some(SAID + 1))?;
    let mut deviations = Vec::new();
    for batch in reasons.collect().await? {
        let texts = cast(batch.column(0), &DataType::Utf8)?;
        deviations.extend(texts.as_string::<i32>().iter().flatten().map(str::to_string));
    }
    Ok(RegisteredCounts { registered, others: others.count().await?, deviations })
}

fn sentence(step: &str, registration: &Registration, counts: &RegisteredCounts) -> String {
    let RegisteredCounts { registered, others, deviations } = counts;
    let all = registered + others;
    if registration.analyses.is_empty() {
        return format!("{step}: `prereg` names it, but it is not registered; see `galeras lock`");
    }
    let mut text = format!("{step}: {registered} of {all} estimates are as registered");
    if !deviations.is_empty() {
        let more = if deviations.len() > SAID { "; …" } else { "" };
        let said: Vec<&str> = deviations.iter().take(SAID).map(String::as_str).collect();
        text.push_str(&format!("; the others are exploratory ({}{more})", said.join("; ")));
    }
    text
}
