//! Tests of reading search strings and of cutting slices.

use super::*;
use crate::query::Bounds;
use crate::slice::Slice;

fn parsed(text: &str) -> Query {
    Query::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn back(text: &str) -> String {
    let query = parsed(text);
    query.with(query.stars, query.created)
}

#[test]
fn the_papers_query_stays_as_it_is_but_for_stars() {
    assert_eq!(
        back(PAPER),
        "language:Python fork:false size:>=30000 pushed:>2021-12-31 stars:>=1001"
    );
}

#[test]
fn all_forms_of_ranges_are_read() {
    for (text, low, high) in [
        (">7", Some(8), None),
        (">=7", Some(7), None),
        ("<7", None, Some(6)),
        ("<=7", None, Some(7)),
        ("7", Some(7), Some(7)),
        ("7..9", Some(7), Some(9)),
        ("7..*", Some(7), None),
        ("*..9", None, Some(9)),
        ("\"*..9\"", None, Some(9)),
        (">1 stars:<=5 Stars:2..9", Some(2), Some(5)),
    ] {
        assert_eq!(parsed(&format!("stars:{text}")).stars, Bounds::new(low, high), "{text}");
    }
}

#[test]
fn days_count_as_a_whole() {
    for (text, low, high) in [
        (">2021-12-31", Some("2022-01-01T00:00:00Z"), None),
        (">=2021-12-31", Some("2021-12-31T00:00:00Z"), None),
        ("<2021-12-31", None, Some("2021-12-30T23:59:59Z")),
        ("<=2021-12-31", None, Some("2021-12-31T23:59:59Z")),
        ("2021-12-31", Some("2021-12-31T00:00:00Z"), Some("2021-12-31T23:59:59Z")),
        ("2020-02-28..2020-02-29", Some("2020-02-28T00:00:00Z"), Some("2020-02-29T23:59:59Z")),
        (">2020-01-01T01:00:00+07:00", Some("2019-12-31T18:00:01Z"), None),
        ("2020-01-01T00:00:00Z..*", Some("2020-01-01T00:00:00Z"), None),
        ("*..2020-01-01T00:00:00Z", None, Some("2020-01-01T00:00:00Z")),
    ] {
        let seconds = |text: Option<&str>| text.map(|text| time::parse_time(text).unwrap());
        let created = parsed(&format!("x created:{text}")).created;
        assert_eq!(created, Bounds::new(seconds(low), seconds(high)), "{text}");
    }
    assert_eq!(
        back("a created:2020-01-01"),
        "a created:2020-01-01T00:00:00Z..2020-01-01T23:59:59Z"
    );
}

#[test]
fn everything_else_is_passed_through() {
    for text in [
        "\"stars:>5 created:x\" in:readme",
        "-stars:>5 -created:2020-01-01 NOT cats",
        "cats OR dogs topic:\"a b\" license:mit",
        "label:\"a \\\" stars:x\" é",
        "nostars:>5 ::",
    ] {
        assert_eq!(back(text), text);
        assert_eq!(back(&format!("  {text}\t\n")), text);
    }
}

#[test]
fn errors_say_where() {
    for (text, words) in [
        ("", "empty"),
        ("   ", "empty"),
        ("é stars:many", "`stars:many` at character 3"),
        ("stars:", "`stars:` at character 1"),
        ("stars:1,000", "not a range of stars"),
        ("stars:*..*", "not a range of stars"),
        ("stars:>=", "not a range of stars"),
        ("stars:+5", "not a range of stars"),
        ("stars:-5", "not a range of stars"),
        ("stars:99999999999999999999", "not a range of stars"),
        ("stars:>9223372036854775807", "not a range of stars"),
        ("stars:>=9223372036854775807", "not a range of stars"),
        ("stars:1..2..3", "not a range of stars"),
        ("stars:\"5", "quote at character 7"),
        ("created:2021-02-30", "not a range of dates"),
        ("created:yesterday", "not a range of dates"),
        ("created:>2020 created:<2020-06-01", "not a range of dates"),
        ("stars:>5 stars:<5", "`stars:<5` at character 10 matches nothing"),
        ("stars:9..5", "matches nothing"),
        ("a NOT stars:>5", "write -stars:"),
        ("a OR stars:>5", "joined with OR"),
        ("stars:>5 OR a", "joined with OR"),
    ] {
        let error = Query::parse(text).unwrap_err();
        assert_eq!(error.kind(), GithubErrorKind::InvalidQuery);
        assert!(error.to_string().contains(words), "{text}: {error}");
    }
}

#[test]
fn any_text_is_read_or_refused_and_a_text_that_was_read_stays() {
    let parts = "stars:|created:|\"| |>|=|<|..|*|5|2020-01-01|T|Z|00:00:00|+|-|OR|NOT|é|\\|x";
    let parts: Vec<&str> = parts.split('|').collect();
    let mut dice = Dice(7);
    let mut read = 0;
    for _ in 0..50_000 {
        let count = dice.below(9);
        let text: String =
            (0..count).map(|_| parts[dice.below(parts.len() as u64) as usize]).collect();
        if let Ok(query) = Query::parse(&text) {
            read += 1;
            let again = query.with(query.stars, query.created);
            if !again.is_empty() {
                let reread = parsed(&again);
                assert_eq!((reread.stars, reread.created), (query.stars, query.created), "{text}");
                assert_eq!(reread.with(reread.stars, reread.created), again);
            }
        }
    }
    assert!(read > 5_000, "{read}");
}

#[test]
fn both_parts_of_a_cut_are_smaller_and_make_up_the_whole() {
    let mut dice = Dice(3);
    let now = 1_800_000_000;
    for _ in 0..20_000 {
        let mut ends = |most: u64| {
            let low = i64::try_from(dice.below(most)).unwrap();
            let high = low + i64::try_from(dice.below(3) * dice.below(most)).unwrap();
            let open = dice.below(4);
            Bounds::new((open & 1 == 0).then_some(low), (open & 2 == 0).then_some(high))
        };
        let slice = Slice { stars: ends(5_000), created: ends(1_700_000_000) };
        let count = dice.below(101);
        let sample: Vec<_> = (0..count)
            .map(|_| found(dice.below(9_000), dice.below(1_800_000_000).cast_signed()))
            .collect();
        let total = dice.below(100_000);
        let Some([low, high]) = slice.split(total, &sample, now) else {
            assert_eq!(slice.stars.low.unwrap_or(0), slice.stars.high.unwrap());
            assert!(slice.created.high.is_some_and(|h| h <= slice.created.low.unwrap_or(0)));
            continue;
        };
        let (whole, low, high) = if low.stars == slice.stars {
            assert_eq!(high.stars, slice.stars);
            (slice.created, low.created, high.created)
        } else {
            assert_eq!((low.created, high.created), (slice.created, slice.created));
            (slice.stars, low.stars, high.stars)
        };
        assert_eq!((low.low, high.high), (whole.low, whole.high));
        assert_eq!(low.high.unwrap() + 1, high.low.unwrap());
        assert!(low.low.is_none_or(|l| l <= low.high.unwrap()), "{slice:?}");
        assert!(high.high.is_none_or(|h| h >= high.low.unwrap()), "{slice:?}");
    }
}
