//! Input of users: ratings, models of tokenizers, items of `--allow`, filters of tables.

use std::collections::BTreeSet;
use std::fs;
use std::panic::catch_unwind;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use galeras_engine::trust::Allowance;
use galeras_operator::{Access, ServerAddress};
use galeras_ratings::{QuestionAgreement, Ratings};
use galeras_sql::functions::bpe::Bpe;
use galeras_sql::session::session;
use galeras_study::view::table_condition;

/// A sheet, lines of JSON and decisions, parted by lines of `%%`.
pub(crate) fn ratings(input: &[u8]) {
    let folder = super::folder().join("ratings");
    fs::create_dir_all(&folder).unwrap();
    let mut parts = input.splitn(2, |byte| *byte == 0);
    // Texts have no null: also try a file that is not UTF-8.
    let (texts, rest) = (crate::texts(parts.next().unwrap_or_default()), parts.next());
    for (at, name) in ["ada.csv", "ben.jsonl", "adjudicated.jsonl"].iter().enumerate() {
        let text = texts.get(at).map_or(&b""[..], |text| text.as_bytes());
        let bytes = if at == 1 { [text, rest.unwrap_or_default()].concat() } else { text.to_vec() };
        fs::write(folder.join(name), bytes).unwrap();
    }
    let questions = ["valid", "clear"];
    match Ratings::read(&folder, &questions) {
        Ok(ratings) => {
            let points: BTreeSet<&str> = ratings.points();
            for question in questions {
                for id in &points {
                    let answers = ratings.answers(id, question);
                    assert!(answers.len() <= ratings.raters.len());
                    let _ = ratings.decision(id, question);
                }
                let agreed = QuestionAgreement::of(&ratings, question, points.iter().copied(), 2);
                let share = |value: Option<f64>| value.is_none_or(|v| (0.0..=1.0).contains(&v));
                assert!(share(agreed.yes) && share(agreed.least_yes) && share(agreed.agreement));
            }
        }
        Err(errors) => {
            assert!(!errors.is_empty());
            assert!(errors.iter().all(|error| !error.to_string().is_empty()));
        }
    }
}

/// A `tokenizer.json`, and a text: the same text gives the same tokens, all of them known.
pub(crate) fn tokenizer_model(input: &[u8]) {
    let texts = crate::texts(input);
    let text = texts.get(1).map_or("def f(x):\n    return x\n", String::as_str);
    // A library that gives up is an error of the step, as it is for the program.
    let Ok(read) = catch_unwind(|| Bpe::from_json(&texts[0])) else { return };
    match read {
        Ok(model) => {
            let (mut ids, mut again) = (Vec::new(), Vec::new());
            for words_only in [true, false] {
                ids.clear();
                again.clear();
                if model.encode(text, words_only, &mut ids).is_ok() {
                    assert!(model.encode(text, words_only, &mut again).is_ok());
                    assert_eq!(ids, again);
                    let most = model.vocab_size();
                    assert!(ids.iter().all(|id| (*id as usize) < most), "{ids:?} of {most}");
                }
            }
            assert!(model.to_json().is_ok());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Items of `--allow`, one per line: as they are shown they mean the same; and addresses. Paths of
/// accesses are settled, so that nothing in them goes up.
pub(crate) fn allowed_access(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    for line in text.lines().take(20) {
        match Allowance::parse(line) {
            Ok(allowance) => {
                let shown = allowance.to_string();
                assert!(!shown.contains(',') && !shown.contains(char::is_control), "{shown:?}");
                assert_eq!(Allowance::parse(&shown), Ok(allowance), "{line:?} is {shown:?}");
            }
            Err(why) => assert!(!why.is_empty()),
        }
        if let Some(to) = ServerAddress::of(line) {
            assert!(!to.authority().is_empty());
            assert!(!(to.is_loopback() && to.is_public()), "{line:?}");
            let accesses = [
                Access::Host { to: to.clone() },
                Access::Variable { name: "TOKEN".into(), to },
                Access::Read { path: PathBuf::from("/").join(line.replace("..", "")) },
            ];
            for access in accesses {
                let item = Allowance::of(&access);
                assert!(item.covers(&access), "{item} does not cover {access:?}");
                let Access::Host { .. } = access else { continue };
                // Suggested items can be typed.
                let typed = Allowance::parse(&item.to_string());
                assert!(typed.is_ok_and(|typed| typed.covers(&access)), "{item} of {line:?}");
            }
        }
    }
}

/// A column, an operator and a value, a line each: the filter of a page is computed, or refused.
pub(crate) fn table_filter(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let mut lines = text.splitn(3, '\n');
    let (name, operator) = (lines.next().unwrap_or(""), lines.next().unwrap_or(""));
    let value = lines.next().unwrap_or("");
    let columns: [(&str, ArrayRef); 4] = [
        ("t", Arc::new(StringArray::from(vec![Some("50% Off"), Some("a_b"), None]))),
        ("n", Arc::new(Int64Array::from(vec![Some(i64::MIN), Some(2), None]))),
        ("x", Arc::new(Float64Array::from(vec![f64::NAN, 1.5, -0.0]))),
        ("b", Arc::new(BooleanArray::from(vec![Some(true), Some(false), None]))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let condition = match table_condition(&batch.schema(), name, operator, value) {
        Ok(None) => return,
        Ok(Some(condition)) => condition,
        Err(why) => return assert!(!why.is_empty()),
    };
    super::wait(async {
        let rows = session(1).read_batch(batch).unwrap().filter(condition).unwrap();
        let found: usize = rows.collect().await.unwrap().iter().map(RecordBatch::num_rows).sum();
        assert!(found <= 3);
    });
}
