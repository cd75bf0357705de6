//! The search: it lists every slice of a query, cuts an incomplete slice in two, and joins the results.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::client::{Answer, GithubClient};
use super::error::{GithubError, GithubErrorKind};
use super::journal::{Journal, Outcome};
use super::query::Query;
use super::repository::{GithubRepository, Page};
use super::slice::Slice;

/// The most results of a query that GitHub lists.
const LISTED: u64 = 1_000;
/// GitHub's largest page.
const PAGE: u64 = 100;
/// The most requests for an incomplete answer, or an incomplete list.
const ROUNDS: u32 = 3;
/// The most cuts of a slice that is small enough but stays incomplete.
const STUBBORN_CUTS: u32 = 2;
/// The most cuts on the way to a slice: far more than stars and seconds need.
const DEEPEST: u32 = 200;
/// The most slices of a search. At 30 requests a minute, they would take days.
const MOST_SLICES: u64 = 200_000;

/// A message for the user during a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchNotice {
    /// The search pauses.
    Waiting {
        /// The wait in seconds.
        seconds: u64,
        /// The reason: “GitHub's rate limit is used up”.
        reason: String,
    },
    /// A slice is finished, or was found finished in the journal.
    Progress {
        /// Distinct repositories found so far.
        found: u64,
        /// Repositories that match the query, by GitHub's first count.
        total: u64,
    },
    /// GitHub counts more (or fewer) repositories than it lists, after several tries.
    Incomplete {
        /// The query of the slice.
        query: String,
        /// GitHub's count.
        expected: u64,
        /// The repositories that it lists.
        found: u64,
    },
}

/// Takes the notices of a search.
pub type SearchNotify<'a> = &'a (dyn Fn(SearchNotice) + Send + Sync);

/// GitHub's ranking of repositories, the highest or newest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sort {
    /// Stars.
    Stars,
    /// Forks.
    Forks,
    /// Open issues with the label “help wanted” or “good first issue”. GitHub does not report their
    /// number, so a limit of more than 1,000 is not possible.
    HelpWantedIssues,
    /// The last change.
    Updated,
}

impl Sort {
    /// The name in GitHub's API: `help-wanted-issues`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stars => "stars",
            Self::Forks => "forks",
            Self::HelpWantedIssues => "help-wanted-issues",
            Self::Updated => "updated",
        }
    }
}

/// A search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Search {
    /// The search string in GitHub's syntax.
    pub query: String,
    /// The ranking for `limit`. By default GitHub's best match for up to 1,000 repositories, and stars for
    /// more. Without a limit it has no effect.
    pub sort: Option<Sort>,
    /// The number of repositories wanted; all without it.
    pub limit: Option<u64>,
}

impl Search {
    /// Returns true if GitHub's own ranking selects the repositories.
    fn is_ranked(&self) -> bool {
        self.limit.is_some_and(|limit| limit <= LISTED)
    }

    /// Checks the search without a request.
    ///
    /// # Errors
    /// [`GithubErrorKind::InvalidQuery`] if the search ranks more than 1,000 repositories by
    /// [`Sort::HelpWantedIssues`].
    pub fn check(&self) -> Result<(), GithubError> {
        let by_hand = self.limit.is_some() && !self.is_ranked();
        if by_hand && self.sort == Some(Sort::HelpWantedIssues) {
            return Err(GithubError::invalid(format!(
                "help-wanted-issues ranks at most {LISTED} repositories: GitHub does not report how \
                 many such issues a repository has"
            )));
        }
        Ok(())
    }
}

/// The repositories that `search` finds, distinct by their id: ordered by `full_name`, or by
/// rank if the search has a limit (ties by id if it is more than 1,000).
///
/// A slice counts as complete when GitHub listed as many distinct repositories as it counts.
/// If it does not after three rounds, the slice is cut in two, at most twice. A part that is still
/// incomplete is used as it is, with a [`SearchNotice::Incomplete`]: GitHub's counts are sometimes off by
/// a few, and an error would make such searches impossible. Answers that GitHub itself marks as
/// incomplete are never used. If the slices together fall short of GitHub's first count (repositories
/// are deleted, or lose stars meanwhile), there is a [`SearchNotice::Incomplete`] for the whole query.
///
/// Slices are ordered by stars, so that a repository that gains stars meanwhile is found twice rather
/// than missed. Finished slices are kept in the folder `journal`, which is created if needed, and the
/// same search continues from there until the caller removes that folder.
///
/// Source: GitHub's documentation of its REST API, “Search repositories” and “Rate limits for the
/// REST API” (version 2022-11-28).
///
/// # Errors
/// [`GithubErrorKind::InvalidQuery`] if the query cannot be sliced or GitHub rejects it,
/// `Interrupted` if `cancel` is cancelled, `Denied` if the token is not accepted, `RateLimited`
/// if GitHub asks for more than an hour, `Transient` if it failed at every attempt, `Other` if
/// the journal cannot be written, a slice cannot be made small enough, or there are far more slices
/// than GitHub's counts explain. Finished slices stay in the journal, except in the last case.
pub async fn search(
    client: &GithubClient,
    search: &Search,
    journal: &Path,
    notify: SearchNotify<'_>,
    cancel: &CancellationToken,
) -> Result<Vec<GithubRepository>, GithubError> {
    let query = Query::parse(&search.query)?;
    search.check()?;
    let ranked = search.is_ranked();
    if search.limit == Some(0) {
        return Ok(Vec::new());
    }
    let journal = Journal::open(journal, client.base_url(), search)?;
    let mut run = Run { client, query, notify, cancel, journal };
    if let Some(limit) = search.limit.filter(|_| ranked) {
        return run.best(search.sort, limit).await;
    }
    let mut repositories: Vec<GithubRepository> = run.all().await?.into_values().collect();
    let Some(limit) = search.limit else {
        repositories.sort_by(|a, b| a.full_name.cmp(&b.full_name).then(a.id.cmp(&b.id)));
        return Ok(repositories);
    };
    repositories.sort_by(|a, b| {
        let order = match search.sort {
            Some(Sort::Forks) => b.forks.cmp(&a.forks),
            Some(Sort::Updated) => b.updated_at.cmp(&a.updated_at),
            _ => b.stars.cmp(&a.stars),
        };
        order.then(a.id.cmp(&b.id))
    });
    repositories.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(repositories)
}

/// The most slices of a search if none of them has more than `largest` repositories.
///
/// Slices with equally many cuts share no repository, and a slice that is cut has more than [`LISTED`]:
/// that bounds the number of cuts, and each makes two slices. An ordinary search needs a small part of
/// it; only counts that contradict each other need more.
pub(super) fn most_slices(largest: u64) -> u64 {
    let cut_side_by_side = largest / LISTED + 1;
    cut_side_by_side.saturating_mul(2 * u64::from(DEEPEST)).min(MOST_SLICES)
}

struct Run<'a> {
    client: &'a GithubClient,
    query: Query,
    notify: SearchNotify<'a>,
    cancel: &'a CancellationToken,
    journal: Journal,
}

/// A slice to list, and the number of cuts that led to it.
struct Task {
    slice: Slice,
    cuts: u32,
    stubborn: u32,
}

/// The pages of a slice: distinct repositories in GitHub's order.
struct Listing {
    total: u64,
    repositories: Vec<GithubRepository>,
    end: ListingEnd,
}

/// Why there are no further pages.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ListingEnd {
    Whole,
    /// There are more repositories than GitHub lists.
    TooMany,
    /// GitHub keeps marking its answer as incomplete.
    Incomplete,
}

impl Run<'_> {
    /// All repositories, by id.
    async fn all(&mut self) -> Result<BTreeMap<u64, GithubRepository>, GithubError> {
        let mut by_id = BTreeMap::new();
        let (mut whole, mut missing) = (None, 0);
        let mut tasks = vec![Task { slice: Slice::whole(&self.query), cuts: 0, stubborn: 0 }];
        // The largest count of any slice, as the first one may be of an incomplete answer.
        let (mut slices, mut largest) = (1, 0);
        while let Some(task) = tasks.pop() {
            let outcome = match self.journal.get(&task.slice) {
                Some(outcome) => outcome.clone(),
                None => {
                    let outcome = self.finish(&task).await?;
                    self.journal.put(task.slice, outcome.clone())?;
                    outcome
                }
            };
            match outcome {
                Outcome::Done { total, repositories } => {
                    let listed = repositories.len() as u64;
                    if listed != total {
                        missing += total.saturating_sub(listed);
                        let query = self.query.with(task.slice.stars, task.slice.created);
                        (self.notify)(SearchNotice::Incomplete {
                            query,
                            expected: total,
                            found: listed,
                        });
                    }
                    // Of two results for one repository, the later one is newer.
                    by_id.extend(repositories.into_iter().map(|r| (r.id, r)));
                    let total = *whole.get_or_insert(total);
                    (self.notify)(SearchNotice::Progress { found: by_id.len() as u64, total });
                }
                Outcome::Split { total, parts } => {
                    whole.get_or_insert(total);
                    (slices, largest) = (slices + 2, total.max(largest));
                    if slices > most_slices(largest) {
                        // A search must not continue from contradictory counts.
                        self.journal.clear()?;
                        return Err(endless(&self.query, slices, largest));
                    }
                    let stubborn = task.stubborn + u32::from(total <= LISTED);
                    // The part with fewer stars is taken first.
                    let part = |slice| Task { slice, cuts: task.cuts + 1, stubborn };
                    tasks.extend(parts.into_iter().rev().map(part));
                }
            }
        }
        // The user must know if the parts do not add up to the whole.
        let (expected, got) = (whole.unwrap_or(0), by_id.len() as u64);
        if got + missing < expected {
            let query = self.query.with(self.query.stars, self.query.created);
            (self.notify)(SearchNotice::Incomplete { query, expected, found: got });
        }
        Ok(by_id)
    }

    /// Lists a slice, or cuts it.
    async fn finish(&self, task: &Task) -> Result<Outcome, GithubError> {
        let text = self.query.with(task.slice.stars, task.slice.created);
        let now = i64::try_from(self.client.now()).unwrap_or(i64::MAX);
        let cut = |total: u64, sample: &[GithubRepository]| {
            let parts = task.slice.split(total, sample, now).filter(|_| task.cuts < DEEPEST)?;
            Some(Outcome::Split { total, parts })
        };
        let mut union: BTreeMap<u64, GithubRepository> = BTreeMap::new();
        let (mut last, mut count) = (Vec::new(), 0);
        for _ in 0..ROUNDS {
            let Listing { total, repositories, end } =
                self.list(&text, Some(Sort::Stars), None).await?;
            match end {
                ListingEnd::Whole if repositories.len() as u64 == total => {
                    return Ok(Outcome::Done { total, repositories });
                }
                ListingEnd::Whole => {
                    count = total;
                    union.extend(repositories.iter().map(|r| (r.id, r.clone())));
                    last = repositories;
                }
                ListingEnd::TooMany => {
                    return cut(total, &repositories).ok_or_else(|| {
                        GithubError::other(format!(
                            "{total} repositories match `{text}`; GitHub lists {LISTED} of them \
                             and offers nothing to tell the others apart by"
                        ))
                    });
                }
                ListingEnd::Incomplete => {
                    let allowed = total > LISTED || task.stubborn < STUBBORN_CUTS;
                    let outcome = cut(total, &repositories).filter(|_| allowed);
                    return outcome.ok_or_else(|| unfinished(&text));
                }
            }
        }
        // Pages shift while they are read; together, the rounds may have seen everything.
        if union.len() as u64 != count && task.stubborn < STUBBORN_CUTS {
            last.truncate(100);
            if let Some(outcome) = cut(count, &last) {
                return Ok(outcome);
            }
        }
        Ok(Outcome::Done { total: count, repositories: union.into_values().collect() })
    }

    /// The first `limit` repositories, at most 1,000, in GitHub's order.
    async fn best(
        &mut self,
        sort: Option<Sort>,
        limit: u64,
    ) -> Result<Vec<GithubRepository>, GithubError> {
        let slice = Slice::whole(&self.query);
        let text = self.query.with(slice.stars, slice.created);
        let (mut total, mut best) = (0, Vec::new());
        if let Some(Outcome::Done { total: t, repositories }) = self.journal.get(&slice) {
            (total, best) = (*t, repositories.clone());
        } else {
            for _ in 0..ROUNDS {
                let listing = self.list(&text, sort, Some(limit)).await?;
                if listing.end == ListingEnd::Incomplete {
                    return Err(unfinished(&text));
                }
                (total, best) = (listing.total.min(limit), listing.repositories);
                if best.len() as u64 == total {
                    break;
                }
            }
            let outcome = Outcome::Done { total, repositories: best.clone() };
            self.journal.put(slice, outcome)?;
        }
        let found = best.len() as u64;
        if found != total {
            (self.notify)(SearchNotice::Incomplete { query: text, expected: total, found });
        }
        (self.notify)(SearchNotice::Progress { found, total });
        Ok(best)
    }

    /// Requests all pages of a query, or as many as have `limit` repositories.
    async fn list(
        &self,
        text: &str,
        sort: Option<Sort>,
        limit: Option<u64>,
    ) -> Result<Listing, GithubError> {
        let size = limit.map_or(PAGE, |limit| limit.min(PAGE));
        let wanted = usize::try_from(limit.unwrap_or(LISTED)).unwrap_or(usize::MAX);
        let (mut seen, mut repositories, mut total) = (HashSet::new(), Vec::new(), 0);
        let pages = limit.unwrap_or(LISTED).div_ceil(size).min(LISTED / size);
        for number in 1..=pages {
            let Answer { value: page, more } =
                self.page(&self.address(text, sort, size, number)).await?;
            total = page.total_count;
            repositories.extend(page.items.into_iter().filter(|r| seen.insert(r.id)));
            let end = if page.incomplete_results {
                ListingEnd::Incomplete
            } else if limit.is_none() && total > LISTED {
                ListingEnd::TooMany
            } else if more {
                continue;
            } else {
                break;
            };
            return Ok(Listing { total, repositories, end });
        }
        repositories.truncate(wanted);
        Ok(Listing { total, repositories, end: ListingEnd::Whole })
    }

    /// Requests one page, and again while GitHub marks it as incomplete; returns the last answer.
    async fn page(&self, url: &Url) -> Result<Answer<Page>, GithubError> {
        let mut round = 1;
        loop {
            let answer: Answer<Page> = self.client.get(url, self.notify, self.cancel).await?;
            if !answer.value.incomplete_results || round == ROUNDS {
                return Ok(answer);
            }
            let reason = "GitHub's answer is incomplete".to_string();
            self.client.wait(1 << round, reason, self.notify, self.cancel).await?;
            round += 1;
        }
    }

    fn address(&self, text: &str, sort: Option<Sort>, size: u64, number: u64) -> Url {
        let mut url = self.client.address("/search/repositories");
        let mut pairs = url.query_pairs_mut();
        pairs.append_pair("q", text);
        if let Some(sort) = sort {
            pairs.append_pair("sort", sort.name()).append_pair("order", "desc");
        }
        pairs.append_pair("per_page", &size.to_string()).append_pair("page", &number.to_string());
        drop(pairs);
        url
    }
}

fn endless(query: &Query, slices: u64, largest: u64) -> GithubError {
    let text = query.with(query.stars, query.created);
    GithubError::other(format!(
        "`{text}` is cut into {slices} parts and more would follow, although GitHub counts \
         {largest} repositories in the largest of them; its counts contradict each other, or are \
         too large: try again later, or search for less"
    ))
}

fn unfinished(text: &str) -> GithubError {
    let message = format!("GitHub answers `{text}` with incomplete results only; try again later");
    GithubError::new(GithubErrorKind::Transient, message)
}
