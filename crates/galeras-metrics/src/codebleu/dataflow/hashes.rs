//! The data flow of a text as hashes that do not depend on names.
//!
//! Here: numbering names and hashing items. Not here: how the items come about.

use super::super::symbols::Mix;
use super::super::syntax::Shape;
use super::state::{ABSENT, Flow, MAX_WORK};

impl Flow {
    /// Writes the items, with numbers for names.
    pub(super) fn write(&mut self, shape: &Shape, items: &mut Vec<u128>) {
        let mut numbered = 0;
        let mut depth = 0;
        let mut last = None;
        for (token, item) in self.items.iter().enumerate() {
            depth += self.marks[token];
            if item.relation == ABSENT || depth == 0 {
                continue;
            }
            let mut number = |name: u32| {
                let number = &mut self.numbers[name as usize];
                if *number == 0 {
                    numbered += 1;
                    *number = numbered;
                }
                u64::from(*number)
            };
            let name = shape.tokens[token].name;
            let origins = match last {
                // The left of one assignment: the same origins, already numbered.
                Some((from, to, distinct, hash))
                    if (from, to, distinct) == (item.from, item.to, item.distinct)
                        && from < to
                        && !item.own =>
                {
                    hash
                }
                _ => {
                    let mut mix = Mix::new(0);
                    if item.own {
                        mix.word(number(name));
                    } else {
                        self.work += (item.to - item.from) as usize;
                        if self.work > MAX_WORK {
                            return;
                        }
                        self.round += 1;
                        for origin in item.from..item.to {
                            let name = shape.tokens[origin as usize].name;
                            let met = &mut self.met[name as usize];
                            if !item.distinct || *met != self.round {
                                *met = self.round;
                                mix.word(number(name));
                            }
                        }
                    }
                    mix.finish()
                }
            };
            last = Some((item.from, item.to, item.distinct, origins)).filter(|_| !item.own);
            let mut mix = Mix::new(u64::from(item.relation));
            mix.add(origins, 2);
            mix.word(number(name));
            items.push(mix.finish());
        }
    }
}
