//! A factor whose levels have a constant each, and how many constants several factors have.

/// The levels of a factor.
pub(super) struct Factor<'a> {
    /// The level of each row.
    pub(super) codes: &'a [u32],
    /// One over the rows of each level; zero for a code without rows.
    pub(super) inverse_counts: Vec<f64>,
    pub(super) levels: usize,
}

impl<'a> Factor<'a> {
    pub(super) fn new(codes: &'a [u32]) -> Self {
        let size = codes.iter().max().map_or(0, |last| *last as usize + 1);
        let mut counts = vec![0.0; size];
        codes.iter().for_each(|code| counts[*code as usize] += 1.0);
        let levels = counts.iter().filter(|count| **count > 0.0).count();
        let inverse_counts =
            counts.into_iter().map(|count| if count > 0.0 { 1.0 / count } else { 0.0 }).collect();
        Self { codes, inverse_counts, levels }
    }

    /// Subtracts from each row the mean of its level.
    pub(super) fn take_out(&self, column: &mut [f64], sums: &mut Vec<f64>) {
        sums.clear();
        sums.resize(self.inverse_counts.len(), 0.0);
        for (code, value) in self.codes.iter().zip(column.iter()) {
            sums[*code as usize] += value;
        }
        sums.iter_mut().zip(&self.inverse_counts).for_each(|(sum, inverse)| *sum *= inverse);
        for (code, value) in self.codes.iter().zip(column) {
            *value -= sums[*code as usize];
        }
    }

    /// Whether each level lies within one group.
    pub(super) fn is_nested_in(&self, groups: &[u32]) -> bool {
        let mut known = vec![u32::MAX; self.inverse_counts.len()];
        self.codes.iter().zip(groups).all(|(code, group)| {
            let known = &mut known[*code as usize];
            let same = *known == u32::MAX || known == group;
            *known = *group;
            same
        })
    }

    /// The connected parts of the levels of two factors, of which two are tied by a row that has
    /// both: as many constants of the two say the same.
    fn parts(&self, other: &Factor<'_>) -> usize {
        let offset = self.inverse_counts.len();
        let mut parent: Vec<usize> = (0..offset + other.inverse_counts.len()).collect();
        fn root(parent: &mut [usize], mut at: usize) -> usize {
            while parent[at] != at {
                parent[at] = parent[parent[at]];
                at = parent[at];
            }
            at
        }
        let mut parts = self.levels + other.levels;
        for (left, right) in self.codes.iter().zip(other.codes) {
            let left = root(&mut parent, *left as usize);
            let right = root(&mut parent, offset + *right as usize);
            if left != right {
                parent[left.max(right)] = left.min(right);
                parts -= 1;
            }
        }
        parts
    }
}

/// How many constants factors have that do not follow from the others: exact for one and two
/// (Abowd, Creecy & Kramarz 2002); for each further factor as many are redundant as connected parts
/// with the one before it that has most, which is the count of reghdfe's pairwise method.
pub(super) fn constants(factors: &[&Factor<'_>]) -> usize {
    let mut total = 0;
    for (at, factor) in factors.iter().enumerate() {
        let redundant = factors[..at].iter().map(|before| before.parts(factor)).max();
        total += factor.levels - redundant.unwrap_or(0);
    }
    total
}
