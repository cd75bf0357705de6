//! Estimates the remaining time of a run by simulating its schedule with the expected time of each
//! step.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The remaining work of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Rest {
    /// It has ended, is stored, or will not run.
    Nothing,
    /// It is being computed, for this many more seconds.
    Running(f64),
    /// It will be computed, for this many seconds, after its inputs.
    Waiting(f64),
}

/// Seconds until every step is done if `slots` are computed at once, in plan order as far as their
/// inputs allow. `upstream` are the steps that each one reads, which come before it.
pub(super) fn time_left(rest: &[Rest], upstream: &[Vec<usize>], slots: usize) -> f64 {
    let mut open = vec![0; rest.len()];
    let mut downstream: Vec<Vec<usize>> = vec![Vec::new(); rest.len()];
    let mut ready: BinaryHeap<Reverse<usize>> = BinaryHeap::new();
    let mut running: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    for (i, own) in rest.iter().enumerate() {
        match own {
            Rest::Nothing => {}
            Rest::Running(seconds) => running.push(Reverse((microseconds(*seconds), i))),
            Rest::Waiting(_) => {
                for u in upstream[i].iter().filter(|u| rest[**u] != Rest::Nothing) {
                    open[i] += 1;
                    downstream[*u].push(i);
                }
                if open[i] == 0 {
                    ready.push(Reverse(i));
                }
            }
        }
    }
    let mut now = 0;
    loop {
        while running.len() < slots.max(1)
            && let Some(Reverse(next)) = ready.pop()
        {
            if let Rest::Waiting(seconds) = rest[next] {
                running.push(Reverse((now + microseconds(seconds), next)));
            }
        }
        let Some(Reverse((end, ended))) = running.pop() else { break };
        now = end;
        for next in &downstream[ended] {
            open[*next] -= 1;
            if open[*next] == 0 {
                ready.push(Reverse(*next));
            }
        }
    }
    now as f64 / 1e6
}

fn microseconds(seconds: f64) -> u64 {
    (seconds.clamp(0.0, 1e9) * 1e6) as u64
}

#[cfg(test)]
mod tests {
    use super::Rest::{Nothing, Running, Waiting};
    use super::*;

    #[test]
    fn a_chain_takes_the_sum_of_its_steps() {
        let upstream = [vec![], vec![0], vec![1], vec![2]];
        let rest = [Nothing, Running(1.5), Waiting(2.0), Waiting(4.0)];
        assert_eq!(time_left(&rest, &upstream, 8), 7.5);
        assert_eq!(time_left(&rest, &upstream, 1), 7.5);
        assert_eq!(time_left(&[], &[], 1), 0.0);
        assert_eq!(time_left(&[Nothing, Nothing], &[vec![], vec![0]], 0), 0.0);
    }

    #[test]
    fn independent_steps_share_the_slots() {
        let upstream = vec![Vec::new(); 4];
        let rest = [Running(3.0), Waiting(1.0), Waiting(1.0), Waiting(1.0)];
        assert_eq!(time_left(&rest, &upstream, 1), 6.0);
        assert_eq!(time_left(&rest, &upstream, 2), 3.0);
        assert_eq!(time_left(&rest, &upstream, 4), 3.0);
        assert_eq!(time_left(&[Waiting(2.0); 4], &upstream, 3), 4.0);
    }

    #[test]
    fn a_step_waits_for_the_last_of_what_it_reads() {
        let upstream = [vec![], vec![], vec![0, 1, 1], vec![0]];
        let rest = [Running(1.0), Running(5.0), Waiting(2.0), Waiting(1.0)];
        assert_eq!(time_left(&rest, &upstream, 2), 7.0);
    }

    #[test]
    fn no_time_is_too_long_or_too_odd() {
        let upstream = [vec![], vec![0]];
        for seconds in [f64::NAN, -1.0] {
            assert_eq!(time_left(&[Running(seconds), Waiting(1.0)], &upstream, 1), 1.0);
        }
        assert!(time_left(&[Waiting(f64::INFINITY); 2], &upstream, 1) >= 1e9);
    }
}
