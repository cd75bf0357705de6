//! Tests of how many slices a search has: few of an honest server, and an end of any other.

use super::*;
use crate::query::Bounds;
use crate::search::most_slices;
use crate::slice::Slice;
use galeras_test_servers::github_api::GithubFault;

/// Stars, and seconds since 1970.
type Point = (u64, i64);

const NOW: i64 = 1_800_000_000;
const DAY: i64 = 86_400;

/// Pseudorandom numbers, the same every time.
fn dice(n: u64) -> u64 {
    let mut x = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (n >> 29);
    x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^ (x >> 32)
}

fn is_in(slice: &Slice, (stars, created): &Point) -> bool {
    let within = |bounds: Bounds, value: i64| {
        bounds.low.is_none_or(|low| low <= value) && bounds.high.is_none_or(|high| value <= high)
    };
    within(slice.stars, i64::try_from(*stars).unwrap()) && within(slice.created, *created)
}

/// How many slices of a server that counts truly there are, and how deep they are cut.
fn slices(points: Vec<Point>) -> (u64, u32) {
    let whole = Slice::whole(&Query::parse("r").unwrap());
    let (mut count, mut deepest, mut open) = (0, 0, vec![(whole, points, 0)]);
    while let Some((slice, mut points, depth)) = open.pop() {
        count += 1;
        deepest = deepest.max(depth);
        if points.len() <= 1_000 {
            continue;
        }
        // By stars; GitHub's order of those with equal stars is anybody's guess.
        points.sort_by_key(|(stars, created)| {
            (std::cmp::Reverse(*stars), dice(created.unsigned_abs()))
        });
        let sample: Vec<_> =
            points[..100].iter().map(|(stars, created)| found(*stars, *created)).collect();
        let parts = slice.split(points.len() as u64, &sample, NOW).expect("it can be cut");
        for part in parts {
            let inside = points.iter().copied().filter(|point| is_in(&part, point)).collect();
            open.push((part, inside, depth + 1));
        }
    }
    (count, deepest)
}

/// A time within twelve years, by chance.
fn anywhere(n: u64) -> i64 {
    1_300_000_000 + i64::try_from(dice(n) % 400_000_000).unwrap()
}

#[test]
fn no_honest_search_comes_near_the_most_slices() {
    let mut all: Vec<(String, Vec<Point>)> = Vec::new();
    for total in [1_001_u64, 2_002, 3_003] {
        for stars in [0, 5_000, 400_000] {
            let mut add = |what: &str, outliers: u64, created: &dyn Fn(u64) -> i64| {
                let mut points: Vec<Point> = (0..total).map(|n| (stars, created(n))).collect();
                points.extend((0..outliers).map(|n| (1_000_000 + n, anywhere(n))));
                all.push((format!("{total} with {stars} stars, {what}"), points));
            };
            let second = |n: u64| i64::try_from(n / 900).unwrap();
            add("at any time", 0, &anywhere);
            add("on one day", 0, &|n| 1_433_152_800 + i64::try_from(n * 7_919).unwrap() % DAY);
            add("in a few seconds", 99, &|n| 1_433_152_800 + second(n));
            add("at the first moment", 50, &|n| 1_191_196_800 + second(n));
            add("at the last moment", 0, &|n| NOW - second(n));
        }
        let power = (1..=total).map(|n| (1_000_000 / n, anywhere(n))).collect();
        all.push((format!("{total} by a power law"), power));
        let close = (1..=total).map(|n| (1_000_000 - n / 900, 1_433_152_800)).collect();
        all.push((format!("{total} with many stars"), close));
    }
    for (name, points) in all {
        let most = most_slices(points.len() as u64);
        let (count, deepest) = slices(points);
        assert!(count * 5 <= most, "{name}: {count} slices where {most} are the most");
        assert!(deepest * 2 <= 200, "{name}: {deepest} deep");
    }
}

#[test]
fn the_most_slices_have_a_most_themselves() {
    assert_eq!(most_slices(0), 400);
    assert_eq!(most_slices(1_001), 800);
    // Even when one repository in 50 were alone in a slice.
    assert!(most_slices(10_000_000) >= 10_000_000 / 50);
    assert_eq!(most_slices(u64::MAX), 200_000);
}

/// Returns true for a query of one second, which cannot be cut (time is cut after stars).
fn is_one_second(query: &str) -> bool {
    let created = query.split("created:").nth(1).and_then(|range| range.split_once(".."));
    created.is_some_and(|(low, high)| low == high)
}

#[tokio::test]
async fn counts_that_contradict_each_other_end_the_search() {
    let api = GithubApi::start(repos(70, |id| id % 10));
    api.script(|_, request| {
        // 1,001 in every range, and nothing in any second.
        let total = if is_one_second(request.param("q")) { 0 } else { 1_001 };
        let page = format!(r#"{{"total_count":{total},"incomplete_results":false,"items":[]}}"#);
        Some(GithubFault::Raw(200, Vec::new(), page))
    });
    let client = client(&api);
    let what = query("r stars:0..9 created:2015-01-01..2015-12-31");
    let journal = tempfile::tempdir().unwrap();
    let (kind, text) = run_with(&client, &what, journal.path()).await.error();
    assert_eq!(kind, GithubErrorKind::Other);
    assert!(text.contains("`r stars:0..9 created:2015-01-01T00:00:00Z.."), "{text}");
    assert!(text.contains("801 parts") && text.contains("1001 repositories"), "{text}");
    let asked = api.requests().len();
    assert!(asked <= 800, "{asked}");
    // Its counts are not believed later.
    api.script(|_, _| None);
    let ran = run_with(&client, &what, journal.path()).await;
    assert_eq!((ran.ids().len(), ran.incomplete()), (70, Vec::new()));
}
