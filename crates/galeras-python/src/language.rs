//! tree-sitter-python with its table of parse actions expanded, so that entries are looked up
//! instead of searched.
//!
//! A generated parser stores the rows of most states as short lists. tree-sitter searches them for
//! every token and, during error recovery, for every possible token. Its runtime also accepts full
//! rows: the first `large_state_count` states have them. Here all states do, in 1.5 MB. Trees are
//! the same; code parses in 0.9 of the time, text with errors in 0.6 (bench `features` on Python's
//! library).
//!
//! The struct below is the one that generated parsers hand to the runtime. The ABI version fixes
//! its layout. A grammar with another version, or one that contradicts the runtime, is used as
//! generated.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::sync::LazyLock;

use tree_sitter::ffi::TSLanguage;
use tree_sitter::{Language, LanguageMetadata};

/// The ABI version whose layout [`GeneratedLanguage`] has.
const ABI: usize = 15;

/// `TSLanguage` of `tree_sitter/parser.h`, as every generated parser defines it.
#[repr(C)]
#[derive(Clone, Copy)]
struct GeneratedLanguage {
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
    /// For each large state, the entries of every symbol.
    parse_table: *const u16,
    /// For each other state: the number of groups; for each group its entry, the number of its
    /// symbols, and the symbols.
    small_parse_table: *const u16,
    /// The start of each state in the small table.
    small_parse_table_map: *const u32,
    /// Actions, names, fields, aliases and lexing, which are copied.
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

pub(crate) fn language() -> &'static Language {
    static LANGUAGE: LazyLock<Language> = LazyLock::new(|| {
        let plain = Language::from(tree_sitter_python::LANGUAGE);
        laid_out(&plain).unwrap_or(plain)
    });
    &LANGUAGE
}

/// The number of a named kind of node. A search by name compares all names.
pub(crate) fn kind_id(name: &str) -> u16 {
    language().id_for_node_kind(name, true)
}

/// The number of a field; 0, which no field has, for an unknown one.
pub(crate) fn field_id(name: &str) -> u16 {
    language().field_id_for_name(name).map_or(0, u16::from)
}

/// A property of every kind of node, by its number; a name may have several numbers. `of` takes the
/// number, the name, and whether the kind is named.
pub(crate) fn for_kinds<T>(of: impl Fn(u16, &'static str, bool) -> T) -> Vec<T> {
    let language = language();
    let kinds = u16::try_from(language.node_kind_count()).unwrap_or(u16::MAX);
    let name = |id| language.node_kind_for_id(id).unwrap_or_default();
    (0..kinds).map(|id| of(id, name(id), language.node_kind_is_named(id))).collect()
}

fn numbers(version: &LanguageMetadata) -> [u8; 3] {
    [version.major_version, version.minor_version, version.patch_version]
}

/// The parser's struct, or `None` if its layout is not the known one.
fn generated(language: &Language) -> Option<GeneratedLanguage> {
    if language.abi_version() != ABI {
        return None;
    }
    let raw = language.clone().into_raw().cast::<GeneratedLanguage>();
    // SAFETY: the pointer is to a static of a generated parser, which lives as long as the program
    // and has this layout in this ABI version.
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

/// The same grammar with all rows expanded.
fn laid_out(language: &Language) -> Option<Language> {
    let generated = generated(language)?;
    let [symbols, states] = [generated.symbol_count, generated.state_count].map(|n| n as usize);
    // Aliases have kinds but are not symbols; their entries end up after the row.
    let mut table = vec![0; symbols * states + generated.alias_count as usize];
    let large = generated.large_state_count as usize;
    // SAFETY: the table has a row of every symbol for each large state.
    let full = unsafe { std::slice::from_raw_parts(generated.parse_table, symbols * large) };
    table[..full.len()].copy_from_slice(full);
    for (state, row) in table.chunks_exact_mut(symbols).take(states).enumerate().skip(large) {
        // SAFETY: the map has an entry for each state that is not large.
        let place = unsafe { generated.small_parse_table_map.add(state - large).read() };
        let mut at = place as usize;
        let mut next = || {
            // SAFETY: the counts at the start of a state and its groups give the number of values
            // that follow.
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
    let copy = GeneratedLanguage {
        large_state_count: generated.state_count,
        parse_table: table.leak().as_ptr(),
        ..generated
    };
    let raw = std::ptr::from_ref(Box::leak(Box::new(copy))).cast::<TSLanguage>();
    // SAFETY: a language with its version's layout, in memory that is never freed.
    Some(unsafe { Language::from_raw(raw) })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use std::collections::BTreeSet;

    use tree_sitter::{Node, Parser, Tree};

    use super::*;
    use crate::library::python_files;
    use crate::parse::nodes;

    #[test]
    fn every_state_has_the_entries_that_were_generated() {
        let (plain, laid_out) = (Language::from(tree_sitter_python::LANGUAGE), language());
        assert_ne!(plain, *laid_out);
        let symbols = u16::try_from(generated(&plain).unwrap().symbol_count).unwrap();
        let states = u16::try_from(plain.parse_state_count()).unwrap();
        for state in 0..states {
            let lookahead =
                |language: &Language| language.lookahead_iterator(state).unwrap().collect();
            let [one, other]: [BTreeSet<u16>; 2] = [&plain, laid_out].map(lookahead);
            assert_eq!(one, other, "{state}");
            for symbol in 0..symbols {
                let next = |language: &Language| language.next_state(state, symbol);
                assert_eq!(next(&plain), next(laid_out), "{state} {symbol}");
            }
        }
    }

    /// All properties of each node, in document order.
    fn properties(tree: &Tree) -> Vec<(u16, u16, std::ops::Range<usize>, [bool; 4])> {
        let of = |node: Node| {
            let flags = [node.is_error(), node.is_missing(), node.is_extra(), node.is_named()];
            (node.kind_id(), node.parse_state(), node.byte_range(), flags)
        };
        nodes(tree.root_node()).map(of).collect()
    }

    fn trees(text: &str) -> [Tree; 2] {
        [tree_sitter_python::LANGUAGE.into(), language().clone()].map(|language: Language| {
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
            // Whole and cut in two: error recovery asks for other entries.
            let half = text.floor_char_boundary(text.len() / 2);
            for text in [&text, &text[..half], &text[half..]] {
                let [one, other] = trees(text);
                assert_eq!(properties(&one), properties(&other), "{}", path.display());
                errors += usize::from(one.root_node().has_error());
            }
            files += 1;
        }
        assert!(files > 300 && errors > 100, "{files} files, {errors} texts with errors");
    }
}
