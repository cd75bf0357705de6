//! A slow brute-force check: lists every path and applies the definition of blocking.
//!
//! It shares no code with the tested functions. Nodes are 0..n, sets are bit masks.

/// A graph as an adjacency matrix, with its latent nodes.
#[derive(Clone, Debug)]
pub(super) struct Oracle {
    pub(super) n: usize,
    pub(super) edge: Vec<Vec<bool>>,
    pub(super) latent: u32,
}

type Bits = u32;

impl Oracle {
    /// `v` and its descendants.
    pub(super) fn below(&self, v: usize) -> Bits {
        let mut seen = 1 << v;
        loop {
            let mut next = seen;
            for a in 0..self.n {
                for b in 0..self.n {
                    if seen >> a & 1 == 1 && self.edge[a][b] {
                        next |= 1 << b;
                    }
                }
            }
            if next == seen {
                return seen;
            }
            seen = next;
        }
    }

    fn observed(&self) -> Bits {
        ((1 << self.n) - 1) & !self.latent
    }

    /// Every simple path between the two, regardless of the direction of its edges.
    pub(super) fn paths(&self, from: usize, to: usize) -> Vec<Vec<usize>> {
        let mut all = Vec::new();
        let mut path = vec![from];
        self.extend(to, &mut path, &mut all);
        all
    }

    fn extend(&self, to: usize, path: &mut Vec<usize>, all: &mut Vec<Vec<usize>>) {
        let last = path[path.len() - 1];
        if last == to {
            all.push(path.clone());
            return;
        }
        for next in 0..self.n {
            if !path.contains(&next) && (self.edge[last][next] || self.edge[next][last]) {
                path.push(next);
                self.extend(to, path, all);
                path.pop();
            }
        }
    }

    /// True if a path is open given a set: its colliders have a given descendant, its other inner
    /// nodes are not given.
    fn open(&self, path: &[usize], given: Bits) -> bool {
        path.windows(3).all(|t| {
            let collider = self.edge[t[0]][t[1]] && self.edge[t[2]][t[1]];
            if collider { self.below(t[1]) & given != 0 } else { given >> t[1] & 1 == 0 }
        })
    }

    fn any_open(&self, paths: &[Vec<usize>], given: Bits) -> bool {
        paths.iter().any(|path| self.open(path, given))
    }

    pub(super) fn separated(&self, a: usize, b: usize, given: Bits) -> bool {
        !self.any_open(&self.paths(a, b), given)
    }

    /// The subsets of `of` that `valid` takes.
    fn subsets(of: Bits, mut valid: impl FnMut(Bits) -> bool) -> Vec<Bits> {
        (0..=of).filter(|set| set & !of == 0).filter(|&set| valid(set)).collect()
    }

    pub(super) fn minimal(sets: &[Bits]) -> Vec<Bits> {
        let contains = |a: Bits, b: Bits| a != b && a & b == b;
        sets.iter().copied().filter(|&a| !sets.iter().any(|&b| contains(a, b))).collect()
    }

    pub(super) fn backdoor(&self, x: usize, y: usize) -> Vec<Bits> {
        let mut paths = self.paths(x, y);
        paths.retain(|path| self.edge[path[1]][x]);
        Self::subsets(self.observed() & !self.below(x) & !(1 << y), |set| {
            !self.any_open(&paths, set)
        })
    }

    pub(super) fn frontdoor(&self, x: usize, y: usize) -> Vec<Bits> {
        let directed: Vec<Vec<usize>> = self
            .paths(x, y)
            .into_iter()
            .filter(|path| path.windows(2).all(|two| self.edge[two[0]][two[1]]))
            .collect();
        if directed.is_empty() {
            return Vec::new();
        }
        let backdoors = |a: usize, b: usize| {
            let mut paths = self.paths(a, b);
            paths.retain(|path| path.len() > 1 && self.edge[path[1]][a]);
            paths
        };
        let from_x: Vec<_> = (0..self.n).map(|m| backdoors(x, m)).collect();
        let to_y: Vec<_> = (0..self.n).map(|m| backdoors(m, y)).collect();
        Self::subsets(self.observed() & !(1 << x) & !(1 << y), |set| {
            let members: Vec<usize> = (0..self.n).filter(|v| set >> v & 1 == 1).collect();
            // A path that leaves a member by an edge out of it is a causal path of the set.
            let of_the_set = |path: &[usize]| {
                !path.windows(2).any(|two| {
                    (set >> two[0] & 1 == 1 && self.edge[two[0]][two[1]])
                        || (set >> two[1] & 1 == 1 && self.edge[two[1]][two[0]])
                })
            };
            directed.iter().all(|path| path.iter().any(|v| set >> v & 1 == 1))
                && members.iter().all(|&m| !self.any_open(&from_x[m], 0))
                && members
                    .iter()
                    .all(|&m| !to_y[m].iter().any(|p| of_the_set(p) && self.open(p, 1 << x)))
        })
    }

    pub(super) fn instruments(&self, x: usize, y: usize) -> Vec<(usize, Vec<Bits>)> {
        let usable = self.observed() & !self.below(x) & !self.below(y);
        let mut found = Vec::new();
        for z in (0..self.n).filter(|z| usable >> z & 1 == 1) {
            let leaves_x = |path: &[usize]| {
                path.windows(2).any(|two| {
                    (two[0] == x && self.edge[x][two[1]]) || (two[1] == x && self.edge[x][two[0]])
                })
            };
            let mut to_y = self.paths(z, y);
            to_y.retain(|path| !leaves_x(path));
            // Relevance is tested in the whole graph here.
            let to_x = self.paths(z, x);
            let sets = Self::subsets(usable & !(1 << z), |set| {
                !self.any_open(&to_y, set) && self.any_open(&to_x, set)
            });
            if !sets.is_empty() {
                found.push((z, Self::minimal(&sets)));
            }
        }
        found
    }

    pub(super) fn independencies(&self) -> Vec<(usize, usize, Vec<Bits>)> {
        let mut found = Vec::new();
        let observed = self.observed();
        for a in (0..self.n).filter(|v| observed >> v & 1 == 1) {
            for b in (a + 1..self.n).filter(|v| observed >> v & 1 == 1) {
                let paths = self.paths(a, b);
                let sets = Self::subsets(observed & !(1 << a) & !(1 << b), |set| {
                    !self.any_open(&paths, set)
                });
                if !sets.is_empty() {
                    found.push((a, b, Self::minimal(&sets)));
                }
            }
        }
        found
    }
}
