//! The grammar of tree-sitter-python, and the numbers of its kinds of nodes and fields.

use std::sync::LazyLock;

use tree_sitter::Language;

pub(crate) fn language() -> &'static Language {
    static LANGUAGE: LazyLock<Language> = LazyLock::new(|| tree_sitter_python::LANGUAGE.into());
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
