//! The coverage of intervals, and the rejection rates of tests under the null hypothesis: `cargo
//! bench --bench coverage -- [DATA_SETS] [--only TEXT]...`.
//!
//! Draws data sets (2,000 for each cell by default) with a known effect and counts, for each
//! estimator, sample and outcome, the share of 95 % intervals that contain it; for each refuter and
//! test, the share of data sets in which it rejects a true hypothesis at 5 %. Prints the table;
//! with 2,000 data sets or more it also writes it to `docs/coverage.md`. With `--only` it has the
//! cells and tests whose names have every TEXT (`--only "20 rows" --only aipw --only count`), and
//! writes nothing. Exits with 1 if a share is outside its limits. Random numbers are SplitMix64's,
//! seeded by the cell and the number of the data set, so the table is the same on any number of
//! threads.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod estimators;
mod generalised;
mod grouped;
mod nulls;
mod random;
mod samples;
mod table;

use std::num::NonZero;
use std::thread;

fn main() {
    let (mut data_sets, mut only) = (2_000, Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--only" => only.push(arguments.next().expect("a text after --only")),
            // Cargo passes this to every benchmark.
            "--bench" => {}
            number => data_sets = number.parse().expect("a number of data sets, or --only TEXT"),
        }
    }
    let wanted = |name: &str| only.iter().all(|text| name.contains(text.as_str()));
    let intervals = estimators::intervals(data_sets, wanted);
    let rejections = nulls::rejections(data_sets, wanted);
    let text = table::table(data_sets, &intervals, &rejections);
    println!("{text}");
    if data_sets >= 2_000 && only.is_empty() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/coverage.md");
        std::fs::write(page, &text).unwrap();
    }
    let wrong = intervals.iter().any(|cell| !cell.holds())
        || rejections.iter().any(|rejected| !rejected.holds());
    std::process::exit(i32::from(wrong));
}

/// The results of `work` for each number below `count`, summed by `add` in any order.
fn sum<T: Send>(
    count: usize,
    empty: impl Fn() -> T + Sync,
    work: impl Fn(u64, &mut T) + Sync,
    add: impl Fn(&mut T, T),
) -> T {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let mut total = empty();
    let (empty, work) = (&empty, &work);
    thread::scope(|scope| {
        let part = |first: usize| {
            scope.spawn(move || {
                let mut part = empty();
                (first..count).step_by(threads).for_each(|number| work(number as u64, &mut part));
                part
            })
        };
        let parts: Vec<_> = (0..threads).map(part).collect();
        parts.into_iter().for_each(|part| add(&mut total, part.join().unwrap()));
    });
    total
}
