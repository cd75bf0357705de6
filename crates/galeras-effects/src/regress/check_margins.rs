//! What is wrong with margins and families of tests, found before anything runs.

use super::args::Args;
use super::margins::{EquivalenceTest, MarginUnits};
use galeras_operator::ArgError;
use galeras_workflow::code::Code;

/// Checks `equivalence` and `adjust_over`.
pub(super) fn check_margins(args: &Args, errors: &mut Vec<ArgError>) {
    for (at, member) in args.adjust_over.iter().enumerate() {
        if args.adjust_over[..at].contains(member) {
            let path = format!("adjust_over[{at}]");
            let error = ArgError::new(path, Code::ConflictingArguments, "it is listed twice");
            errors.push(error.help("remove one of them"));
        }
    }
    let Some(equivalence) = &args.equivalence else { return };
    let mut unknown = |path: String, name: &str| {
        if !args.outcomes.iter().any(|outcome| outcome == name) {
            let message = format!("`{name}` is not one of `outcomes`");
            errors.push(ArgError::new(path, Code::ConflictingArguments, message));
        }
    };
    for name in equivalence.margins.keys() {
        unknown(format!("equivalence.margins.{name}"), name);
    }
    for (at, name) in equivalence.lower_is_better.iter().enumerate() {
        unknown(format!("equivalence.lower_is_better[{at}]"), name);
    }
    let own = equivalence.margins.iter();
    let margins = own.map(|(name, margin)| (format!("equivalence.margins.{name}"), *margin));
    let shared = equivalence.margin.map(|margin| ("equivalence.margin".to_owned(), margin));
    for (path, margin) in margins.chain(shared) {
        if !(margin > 0.0 && margin.is_finite()) {
            errors.push(ArgError::new(path, Code::OutOfRange, "a margin must be above 0"));
        }
    }
    let mut conflict = |path: &str, message: &str, help: &str| {
        errors.push(ArgError::new(path, Code::ConflictingArguments, message).help(help));
    };
    if equivalence.margin.is_none() && equivalence.margins.is_empty() {
        let error = "`equivalence` needs a margin: how large an effect still counts as none";
        conflict("equivalence", error, "add `margin: <number>`, or `margins: { <outcome>: … }`");
    }
    if equivalence.units == MarginUnits::SdDifference && args.unit.is_none() {
        let help = "add `unit: <column>`, or use `sd`";
        conflict("equivalence.units", "differences within units need a `unit`", help);
    }
    if !equivalence.lower_is_better.is_empty() && equivalence.test == EquivalenceTest::Equivalence {
        let message = "`lower_is_better` is for `test: noninferiority`: equivalence has two sides";
        conflict("equivalence.lower_is_better", message, "remove it");
    }
    if args.alpha >= 0.5 {
        let message = "one-sided tests need an `alpha` below 0.5";
        errors.push(ArgError::new("alpha", Code::OutOfRange, message));
    }
}
