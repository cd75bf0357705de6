//! Any columns give a picture or a refusal, and a picture never holds NaN.

use galeras_figures::{Kind, Role, Scale, Spec, Takes, Values, draw};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use roxmltree::Document;

use crate::samples::{data_of, spec};

type Row = (Option<f64>, Option<f64>, Option<f64>, Option<String>, Option<String>, Option<String>);

fn number() -> impl Strategy<Value = Option<f64>> {
    prop_oneof![
        4 => (-10.0..10.0).prop_map(Some),
        1 => any::<f64>().prop_map(Some),
        1 => prop::sample::select(vec![0.0, -0.0, 1e308, -1e308, 5e-324, f64::NAN, f64::INFINITY]).prop_map(Some),
        1 => Just(None),
    ]
}

fn text() -> impl Strategy<Value = Option<String>> {
    prop_oneof![3 => "[a-d]".prop_map(Some), 1 => any::<String>().prop_map(Some), 1 => Just(None)]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48,
        failure_persistence: None,
        // The same tables every time: what is found is found for everybody.
        rng_seed: RngSeed::Fixed(21),
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_table_gives_a_picture_or_a_refusal(
        rows in prop::collection::vec((number(), number(), number(), text(), text(), text()), 0..24),
        width in prop::sample::select(vec![4.0, 8.0, 16.0, 60.0]),
        height in prop::option::of(2.0..40.0),
        log in any::<bool>(),
        optional in any::<bool>(),
    ) {
        let numbers = |f: fn(&Row) -> Option<f64>| Values::Numbers(rows.iter().map(f).collect());
        let texts = |f: fn(&Row) -> Option<String>| Values::Texts(rows.iter().map(f).collect());
        let data = data_of([
            ("p", numbers(|r| r.0)),
            ("q", numbers(|r| r.1)),
            ("low", numbers(|r| Some(r.1?.min(r.2?)))),
            ("high", numbers(|r| Some(r.1?.max(r.2?)))),
            ("a", texts(|r| r.3.clone())),
            ("b", texts(|r| r.4.clone())),
            ("c", texts(|r| r.5.clone())),
        ]);
        for kind in Kind::all() {
            let mut columns = Vec::new();
            for usage in kind.columns.iter().filter(|u| u.needed || optional) {
                let column = match (usage.role, usage.takes) {
                    (Role::Low, _) => "low",
                    (Role::High, _) => "high",
                    (Role::X, Takes::Number) => "p",
                    (_, Takes::Number) => "q",
                    (Role::X, _) => "a",
                    (Role::Y, _) => "b",
                    _ => "c",
                };
                columns.push(format!("{}={column}", usage.role));
            }
            let mut spec = Spec { width: Some(width), height, ..spec(*kind, &columns.join(", ")) };
            if log {
                spec.x_scale = ["histogram", "ecdf", "forest"].contains(&kind.name).then_some(Scale::Log);
                spec.y_scale = ["box", "violin", "scatter"].contains(&kind.name).then_some(Scale::Log);
            }
            if let Ok(picture) = draw(&spec, &data) {
                crate::labels::check(&format!("{kind}"), &picture.svg);
                let document = Document::parse(&picture.svg);
                prop_assert!(document.is_ok(), "{kind}: {document:?}");
                let shapes = document.unwrap();
                for node in shapes.descendants().filter(|n| n.is_element()) {
                    for attribute in node.attributes().filter(|a| a.name() != "aria-label" && a.name() != "font-family") {
                        let value = attribute.value();
                        prop_assert!(!value.contains("NaN") && !value.contains("inf"), "{kind}: {node:?}");
                        prop_assert!(value.len() < 20 || ["d", "viewBox", "transform", "xmlns"].contains(&attribute.name()), "{kind}: {node:?}");
                    }
                }
            }
        }
    }
}
