//! The grammar of Python for parsing: that of tree-sitter-python, with its table of parse actions
//! laid out so that an entry is looked up instead of searched.
//!
//! Here: that one table, read from the memory of the generated parser. Not here: parsing (`parse`).
//!
//! A generated parser holds the rows of most states as short lists, which tree-sitter searches from
//! the front for every token, and while it recovers from an error for every token that there could
//! be. Its runtime takes rows that are laid out in full as well: the first `large_state_count`
//! states have them. Here all states do, in 1.5 MB; trees are the same, code parses in 0.9 of the
//! time and texts with errors in 0.6 of it (the bench `features` on Python's library).
//!
//! The struct below is the one that generated parsers hand to the runtime. Its layout is what the
//! ABI version stands for; what is another version, or does not agree with what the runtime says of
//! the grammar, is used as it was generated.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::sync::LazyLock;

use tree_sitter::ffi::TSLanguage;
use tree_sitter::{Language, LanguageMetadata};

/// The ABI version whose layout [`Generated`] has.
const ABI: usize = 15;

/// `TSLanguage` of `tree_sitter/parser.h`, as every generated parser defines it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Generated {
    abi_version: u32,
    symbol_count: u32,
    alias_count: u32,
    token_count: u32,
    external_token_count: u32,
    state_count: u32,
    large_state_count: u32,
    production_id_count: u32,
    field_count: u32,
    max_alias_sequence_length: u16,
    /// Of each large state the entries of all symbols.
    parse_table: *const u16,
    /// Of each other state: how many groups; of each group the entry, how many symbols have it, and
    /// these.
    small_parse_table: *const u16,
    /// Where in the small table the states begin.
    small_parse_table_map: *const u32,
    /// Actions, names, fields, aliases, lexing: taken over.
    pointers: [*const c_void; 12],
    keyword_capture_token: u16,
    external_scanner: [*const c_void; 7],
    primary_state_ids: *const c_void,
    name: *const c_void,
    reserved_words: *const c_void,
    max_reserved_word_set_size: u16,
    supertype_count: u32,
    supertypes: [*const c_void; 3],
    metadata: [u8; 3],
}

/// The grammar for [`tree_sitter::Parser::set_language`].
pub(crate) fn language() -> &'static Language {
    static LANGUAGE: LazyLock<Language> = LazyLock::new(|| {
        let plain = Language::from(tree_sitter_python::LANGUAGE);
        laid_out(&plain).unwrap_or(plain)
    });
    &LANGUAGE
}

fn numbers(version: &LanguageMetadata) -> [u8; 3] {
    [version.major_version, version.minor_version, version.patch_version]
}

/// What the runtime is handed; `None` if it is not of the layout that is known.
fn generated(language: &Language) -> Option<Generated> {
    if language.abi_version() != ABI {
        return None;
    }
    let raw = language.clone().into_raw().cast::<Generated>();
    // SAFETY: the pointer is that of a static of a generated parser, which lives as long as the
    // program and has this layout in this version of the ABI.
    let generated = unsafe { raw.read() };
    let kinds = generated.symbol_count + generated.alias_count;
    let agrees = kinds as usize == language.node_kind_count()
        && generated.state_count as usize == language.parse_state_count()
        && generated.field_count as usize == language.field_count()
        && generated.large_state_count <= generated.state_count
        && generated.supertype_count as usize == language.supertypes().len()
        && language.metadata().is_some_and(|version| generated.metadata == numbers(&version));
    agrees.then_some(generated)
}

/// The same grammar with all rows laid out.
fn laid_out(language: &Language) -> Option<Language> {
    let generated = generated(language)?;
    let [symbols, states] = [generated.symbol_count, generated.state_count].map(|n| n as usize);
    // The kinds of aliases, which are no symbols, come to lie behind the row.
    let mut table = vec![0; symbols * states + generated.alias_count as usize];
    let large = generated.large_state_count as usize;
    // SAFETY: the table has a row of all symbols for each large state.
    let full = unsafe { std::slice::from_raw_parts(generated.parse_table, symbols * large) };
    table[..full.len()].copy_from_slice(full);
    for (state, row) in table.chunks_exact_mut(symbols).take(states).enumerate().skip(large) {
        // SAFETY: the map has a place for each state that is not large.
        let place = unsafe { generated.small_parse_table_map.add(state - large).read() };
        let mut at = place as usize;
        let mut next = || {
            // SAFETY: from its place on a state has as many numbers as they say themselves.
            let number = unsafe { generated.small_parse_table.add(at).read() };
            at += 1;
            number
        };
        for _ in 0..next() {
            let entry = next();
            for _ in 0..next() {
                *row.get_mut(usize::from(next()))? = entry;
            }
        }
    }
    let copy = Generated {
        large_state_count: generated.state_count,
        parse_table: table.leak().as_ptr(),
        ..generated
    };
    let raw = std::ptr::from_ref(Box::leak(Box::new(copy))).cast::<TSLanguage>();
    // SAFETY: a language of the layout of its version, in memory that is never given back.
    Some(unsafe { Language::from_raw(raw) })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use proptest::prelude::*;
    use tree_sitter::{Node, Parser, Tree};

    use super::*;
    use crate::library::python_files;

    fn plain() -> Language {
        tree_sitter_python::LANGUAGE.into()
    }

    #[test]
    fn every_state_has_the_entries_that_were_generated() {
        let (plain, laid_out) = (plain(), language());
        assert_ne!(plain, *laid_out);
        let symbols = u16::try_from(generated(&plain).unwrap().symbol_count).unwrap();
        let states = u16::try_from(plain.parse_state_count()).unwrap();
        for state in 0..states {
            let lookahead = |language: &Language| {
                let mut symbols: Vec<u16> = language.lookahead_iterator(state).unwrap().collect();
                symbols.sort_unstable();
                symbols
            };
            assert_eq!(lookahead(&plain), lookahead(laid_out), "{state}");
            for symbol in 0..symbols {
                let next = |language: &Language| language.next_state(state, symbol);
                assert_eq!(next(&plain), next(laid_out), "{state} {symbol}");
            }
        }
    }

    /// Everything that a node says of itself, in document order.
    fn nodes(tree: &Tree) -> Vec<(u16, u16, std::ops::Range<usize>, [bool; 4])> {
        let mut cursor = tree.walk();
        let mut nodes = Vec::new();
        let of = |node: Node| {
            let flags = [node.is_error(), node.is_missing(), node.is_extra(), node.is_named()];
            (node.kind_id(), node.parse_state(), node.byte_range(), flags)
        };
        loop {
            nodes.push(of(cursor.node()));
            if cursor.goto_first_child() {
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return nodes;
                }
            }
        }
    }

    fn trees(text: &str) -> [Tree; 2] {
        [plain(), language().clone()].map(|language| {
            let mut parser = Parser::new();
            parser.set_language(&language).unwrap();
            parser.parse(text, None).unwrap()
        })
    }

    #[test]
    fn the_library_of_python_has_the_same_trees() {
        let (mut files, mut errors) = (0, 0);
        for (path, text) in python_files([]) {
            if text.len() > 32 << 10 {
                continue;
            }
            // Whole, and cut in two: the recovery from errors asks for other entries.
            let half = text.floor_char_boundary(text.len() / 2);
            for text in [&text, &text[..half], &text[half..]] {
                let [one, other] = trees(text);
                assert_eq!(nodes(&one), nodes(&other), "{}", path.display());
                errors += usize::from(one.root_node().has_error());
            }
            files += 1;
        }
        assert!(files > 300 && errors > 100, "{files} files, {errors} texts with errors");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn noise_has_the_same_trees(
            text in "((def f\\(|return |match |case |if |else|lambda |class |x|1|'|\"\"\"|=|:|\\(|\\)|\\[|\\{|,|\\*|\n|    |print |await |@|f'\\{)){0,40}",
        ) {
            let [one, other] = trees(&text);
            prop_assert_eq!(nodes(&one), nodes(&other));
        }
    }
}
