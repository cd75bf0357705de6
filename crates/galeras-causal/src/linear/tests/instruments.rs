//! Tests of overidentification and of Anderson and Rubin's sets, with the peers' numbers of
//! `tests/reference/regress_referee.py`.

use serde_json::Value;

use super::*;
use crate::Covariance::{Classic, Cr1, Hc1, Hc3};
use crate::column::indicator;
use crate::tests::{Table, json};

struct InstrumentStudy {
    peer: Value,
    outcome: Vec<f64>,
    treated: Vec<f64>,
    instruments: [Vec<f64>; 2],
    exogenous: Vec<f64>,
    clusters: Vec<u32>,
}

fn study(name: &str) -> InstrumentStudy {
    let peer = json("regress_referee.json")[name].clone();
    let table = Table::parse(peer["csv"].as_str().unwrap());
    let column = |name| table.column(name).to_vec();
    InstrumentStudy {
        outcome: column("y"),
        treated: indicator(&table.treated("arm")),
        instruments: [column("z"), column("w")],
        exogenous: column("x"),
        clusters: table.groups("place"),
        peer,
    }
}

impl InstrumentStudy {
    fn two_stage(&self, kind: Covariance) -> TwoStage {
        let [z, w] = &self.instruments;
        two_stage(&self.outcome, &self.treated, &[z, w], &[&self.exogenous], kind, self.codes())
            .unwrap()
    }

    fn set(&self, instruments: usize, kind: Covariance, alpha: f64) -> AndersonRubin {
        let all: Vec<&[f64]> = self.instruments.iter().map(Vec::as_slice).collect();
        let estimate = self.two_stage(kind).estimate;
        anderson_rubin(
            &self.outcome,
            &self.treated,
            &all[..instruments],
            &[&self.exogenous],
            kind,
            self.codes(),
            (estimate.value, estimate.standard_error),
            alpha,
        )
        .unwrap()
    }

    fn codes(&self) -> Option<&[u32]> {
        Some(&self.clusters)
    }
}

#[test]
fn instruments_that_disagree_are_found_by_sargan_and_hansen() {
    for name in ["valid", "invalid"] {
        let study = study(name);
        let classic = study.two_stage(Covariance::Classic);
        close(classic.estimate.value, &study.peer["estimate"], 1e-8);
        assert_eq!(classic.hansen, None, "Sargan's is that of equal variances");
        for (found, peer) in [
            (classic.sargan, "sargan"),
            (study.two_stage(Covariance::Hc1).hansen, "hansen"),
            (study.two_stage(Covariance::Cr2).hansen, "hansen_clustered"),
        ] {
            let (found, peer) = (found.unwrap(), &study.peer[peer]);
            close(found.chi_squared, &peer["chi2"], 1e-7);
            assert_eq!(found.degrees, 1);
            // The peer's p has no digits below 1e-16.
            assert!((found.p - peer["p"].as_f64().unwrap()).abs() < 1e-7);
            assert_eq!(found.p < 1e-6, name == "invalid");
        }
    }
}

#[test]
fn hansens_j_needs_more_clusters_than_instruments() {
    let mut study = study("valid");
    study.clusters = (0..2000).map(|row| row % 2).collect();
    assert_eq!(study.two_stage(Covariance::Cr1).hansen, None);
    study.clusters = (0..2000).map(|row| row % 3).collect();
    assert!(study.two_stage(Covariance::Cr1).hansen.is_some());
}

#[test]
fn anderson_and_rubins_sets_are_where_walds_test_of_the_peer_has_p_alpha() {
    for name in ["valid", "invalid"] {
        let study = study(name);
        for (instruments, peers) in [(2, "anderson_rubin"), (1, "anderson_rubin_z")] {
            for kind in [Classic, Hc1, Hc3, Cr1] {
                let peer = &study.peer[peers][kind.to_string()];
                let found = study.set(instruments, kind, 0.05);
                if (instruments, name) == (2, "invalid") {
                    assert!(peer.is_null() && found.set.is_empty(), "every effect is rejected");
                } else if !peer.is_null() {
                    let (low, high) = found.bounds().unwrap();
                    close(low, &peer["low"], 1e-7);
                    close(high, &peer["high"], 1e-7);
                    close(found.p_zero, &peer["p_zero"], 1e-7);
                }
            }
        }
    }
}

#[test]
fn a_weak_instrument_has_a_set_without_an_end() {
    let mut study = study("valid");
    // Shifted by one row, the instrument is unrelated to the treatment.
    study.instruments[0].rotate_right(1);
    let found = study.set(1, Covariance::Classic, 0.05);
    assert_eq!(found.bounds(), None);
    let ends: Vec<f64> = found.set.iter().flat_map(|part| [part.0, part.1]).collect();
    assert_eq!((ends[0], *ends.last().unwrap()), (f64::NEG_INFINITY, f64::INFINITY));
    // Two of them, by the search.
    study.instruments[1].rotate_right(1);
    let found = study.set(2, Covariance::Hc1, 0.05);
    assert_eq!(found.bounds(), None, "{found:?}");
}

#[test]
fn the_unit_of_the_outcome_is_that_of_the_set() {
    let mut study = study("valid");
    let (one, two) = (study.set(1, Covariance::Hc3, 0.1), study.set(2, Covariance::Cr3, 0.1));
    study.outcome.iter_mut().for_each(|y| *y = *y * 1e6 + 3e7);
    for (before, after) in
        [(one, study.set(1, Covariance::Hc3, 0.1)), (two, study.set(2, Covariance::Cr3, 0.1))]
    {
        let (before, after) = (before.bounds().unwrap(), after.bounds().unwrap());
        close(after.0, before.0 * 1e6, 1e-8);
        close(after.1, before.1 * 1e6, 1e-8);
    }
}
