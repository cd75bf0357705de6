//! Agreement of CodeBLEU with the peers' numbers, `tests/reference/codebleu.json`, and with the
//! paper's formulas, `codebleu_strict.json`.

use serde_json::Value;

use super::{CodeBleu, CodeBleuCounts, CodeBleuMode, CodeBleuScores, EQUAL_WEIGHTS};
use galeras_python::PythonParser;

fn reference() -> Value {
    serde_json::from_str(include_str!("../../../../tests/reference/codebleu.json")).unwrap()
}

fn score(mode: CodeBleuMode, pair: &Value) -> (CodeBleuScores, CodeBleuCounts) {
    let mut parser = PythonParser::new().unwrap();
    let mut scorer = CodeBleu::new(mode, EQUAL_WEIGHTS);
    let reference = scorer.reference(&mut parser, pair["reference"].as_str().unwrap()).unwrap();
    scorer.score(&mut parser, &reference, pair["hypothesis"].as_str().unwrap()).unwrap()
}

fn add(sum: &mut CodeBleuCounts, pair: &CodeBleuCounts) {
    for order in 0..4 {
        sum.matched[order] += pair.matched[order];
        sum.hypothesis_ngrams[order] += pair.hypothesis_ngrams[order];
    }
    for order in 0..3 {
        sum.reference_ngrams[order] += pair.reference_ngrams[order];
    }
    sum.pairs += pair.pairs;
    sum.hypothesis_tokens += pair.hypothesis_tokens;
    sum.reference_tokens += pair.reference_tokens;
    sum.matched_fifths += pair.matched_fifths;
    sum.hypothesis_fifths += pair.hypothesis_fifths;
    sum.reference_fifths += pair.reference_fifths;
    sum.matched_subtrees += pair.matched_subtrees;
    sum.reference_subtrees += pair.reference_subtrees;
    sum.matched_flow += pair.matched_flow;
    sum.reference_flow += pair.reference_flow;
}

/// Compares all components; k4black's names are long.
fn assert_equal(name: &str, ours: &CodeBleuScores, theirs: &Value) {
    for (short, long, ours) in [
        ("codebleu", "codebleu", ours.codebleu),
        ("ngram", "ngram_match_score", ours.ngram),
        ("weighted", "weighted_ngram_match_score", ours.weighted),
        ("syntax", "syntax_match_score", ours.syntax),
        ("dataflow", "dataflow_match_score", ours.dataflow.unwrap()),
    ] {
        let theirs = theirs.get(short).or_else(|| theirs.get(long)).unwrap().as_f64().unwrap();
        assert!((ours - theirs).abs() <= 1e-9, "{name} {short}: {ours}, not {theirs}");
    }
}

#[test]
fn the_goldens_are_met_in_both_modes() {
    let reference = reference();
    let goldens = reference["goldens"].as_object().unwrap();
    assert_eq!(goldens.len(), 15);
    let mut sum = CodeBleuCounts::default();
    for (name, pair) in goldens {
        let (compat, counts) = score(CodeBleuMode::Published, pair);
        assert_equal(name, &compat, &reference["notes"]["k4black"][name]);
        let (codexglue, _) = score(CodeBleuMode::CodeXGlue, pair);
        assert_equal(name, &codexglue, &reference["codexglue"][name]);
        if pair["reference"] != "" && pair["hypothesis"] != "" {
            add(&mut sum, &counts);
        }
    }
    let corpus = sum.scores(CodeBleuMode::Published, &EQUAL_WEIGHTS);
    assert_equal("corpus", &corpus, &reference["notes"]["corpus_of_non_empty"]);
}

/// With ordered sets and the linked grammar, all numbers are equal. Most of the published peer's
/// are these: those that depend neither on the grammar nor on the hash seed.
#[test]
fn every_pair_and_the_corpus_equal_the_peer_over_the_linked_grammar() {
    let reference = reference();
    let (mut sum, mut published) = (CodeBleuCounts::default(), 0);
    for (name, pair) in reference["pairs"].as_object().unwrap() {
        let (scores, counts) = score(CodeBleuMode::Published, pair);
        assert_equal(name, &scores, &reference["linked_in_order"][name]);
        add(&mut sum, &counts);
        let theirs = ["linked_in_order", "published_in_order", "published"];
        let [linked, ordered, found] = theirs.map(|of| &reference[of][name]);
        let is_stable =
            !reference["unstable"].as_array().unwrap().contains(&Value::from(name.as_str()));
        published += usize::from(is_stable && linked == ordered && found == ordered);
    }
    assert!(sum.pairs >= 150 && published >= 120, "{} {published}", sum.pairs);
    let corpus = sum.scores(CodeBleuMode::Published, &EQUAL_WEIGHTS);
    assert_equal("corpus", &corpus, &reference["linked_in_order"]["corpus"]);
}

/// The corpus scores of the program that the paper used, over the linked grammar.
#[test]
fn a_corpus_has_the_scores_of_codexglue() {
    let theirs: Value =
        serde_json::from_str(include_str!("../../../../tests/reference/codexglue.json")).unwrap();
    let pairs = reference()["pairs"].clone();
    let mut sum = CodeBleuCounts::default();
    for pair in pairs.as_object().unwrap().values() {
        add(&mut sum, &score(CodeBleuMode::CodeXGlue, pair).1);
    }
    assert_eq!(theirs["corpus"]["pairs"], sum.pairs);
    let ours = sum.scores(CodeBleuMode::CodeXGlue, &EQUAL_WEIGHTS);
    assert_equal("corpus", &ours, &theirs["corpus"]);
}

/// n-grams do not depend on the mode, except for the weighted ones.
#[test]
fn correct_differs_from_the_peer_as_documented() {
    let reference = reference();
    for (name, pair) in reference["goldens"].as_object().unwrap() {
        let (correct, counts) = score(CodeBleuMode::Strict, pair);
        let (compat, peers) = score(CodeBleuMode::Published, pair);
        assert_eq!(correct.ngram, compat.ngram, "{name}");
        assert!((correct.syntax - compat.syntax).abs() < 1e-9, "{name}");
        let flow = (counts.matched_flow, counts.reference_flow);
        if name == "unicode" {
            // The peers cut tokens after `ñ` at the wrong places.
            assert_eq!((flow, peers.reference_flow), ((5, 5), 2));
        } else {
            assert_eq!(flow, (peers.matched_flow, peers.reference_flow), "{name}");
        }
        assert_eq!(correct.dataflow.is_none(), counts.reference_flow == 0, "{name}");
    }
    let pair = |name: &str| score(CodeBleuMode::Strict, &reference["goldens"][name]).0;
    assert_eq!(pair("empty_hyp").codebleu, 0.0);
    assert_eq!(pair("dataflow_zero_match").dataflow, Some(0.0));
    assert!((pair("identical").codebleu - 1.0).abs() < 1e-12);
}

/// The components of many pairs, derived from the paper's formulas in Python.
#[test]
fn the_components_follow_the_papers_formulas() {
    let derived: Value =
        serde_json::from_str(include_str!("../../../../tests/reference/codebleu_strict.json"))
            .unwrap();
    let peers = reference();
    let mut trees = 0;
    for (pairs, wanted) in
        [(&derived["pairs"], &derived["own"]), (&peers["pairs"], &derived["peers"])]
    {
        for (name, pair) in pairs.as_object().unwrap() {
            let (scores, counts) = score(CodeBleuMode::Strict, pair);
            let wanted = &wanted[name];
            for (component, ours) in [("ngram", scores.ngram), ("weighted", scores.weighted)] {
                let derived = wanted[component].as_f64().unwrap();
                assert!(
                    (ours - derived).abs() < 1e-12,
                    "{name} {component}: {ours}, not {derived}"
                );
            }
            if let Some([matched, all]) = wanted["subtrees"].as_array().map(Vec::as_slice) {
                let found = (counts.matched_subtrees, counts.reference_subtrees);
                assert_eq!(
                    (matched.as_u64(), all.as_u64()),
                    (Some(found.0), Some(found.1)),
                    "{name}"
                );
                trees += 1;
            }
        }
    }
    assert!(trees >= 150, "{trees}");
}
