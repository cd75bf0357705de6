//! Which file of a crate uses which, read from the paths in its code.
//!
//! A path that ends at the face of a module (`mod.rs`, `lib.rs`) counts for the file from which
//! the face takes the name. Faces themselves, tests and `main.rs` are no part of the graph.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::sources::SourceFile;
use crate::tokens::{Token, test_modules, tokens, without_comments_and_tests};

type ModulePath = Vec<String>;

/// How often a name may be passed on from face to face.
const MAX_HOPS: usize = 16;

/// A file of a crate as a module.
struct Module {
    file: PathBuf,
    face: bool,
    tokens: Vec<Token>,
    /// Name in this file -> the path inside of the crate that it stands for.
    names: BTreeMap<String, ModulePath>,
    /// The modules of which it takes all names.
    globs: Vec<ModulePath>,
    /// The items that it defines.
    items: BTreeSet<String>,
}

/// The modules of a crate.
pub(crate) struct CrateGraph {
    modules: BTreeMap<ModulePath, Module>,
}

/// File -> the files that it uses, each with the line of its first use.
pub(crate) type Edges = BTreeMap<PathBuf, BTreeMap<PathBuf, usize>>;

impl CrateGraph {
    /// The graph of the files below `src`, the folder of the crate's sources.
    pub(crate) fn new(src: &Path, files: &[SourceFile]) -> Self {
        let inside = |file: &&SourceFile| {
            let first = file.path.strip_prefix(src).ok().and_then(|rest| rest.to_str());
            first.is_some_and(|rest| rest != "main.rs")
        };
        let mut tests: Vec<ModulePath> = Vec::new();
        for file in files.iter().filter(inside) {
            let own = module_path(src, &file.path);
            tests.extend(test_modules(&file.text).into_iter().map(|name| joined(&own, &[name])));
        }
        let modules: BTreeMap<ModulePath, Module> = files
            .iter()
            .filter(inside)
            .map(|file| (module_path(src, &file.path), Module::new(file)))
            .filter(|(path, _)| !tests.iter().any(|test| path.starts_with(test)))
            .collect();
        let mut graph = Self { modules };
        graph.read_imports();
        graph
    }

    /// Reads the `use` declarations of every module.
    fn read_imports(&mut self) {
        let paths: Vec<ModulePath> = self.modules.keys().cloned().collect();
        for own in paths {
            let mut names = BTreeMap::new();
            let mut globs = Vec::new();
            for (mut path, alias) in imports(&self.modules[&own].tokens) {
                let all = path.last().is_some_and(|last| last == "*");
                if all {
                    path.pop();
                }
                let Some(inside) = self.inside_the_crate(&own, &path) else { continue };
                if all {
                    globs.push(inside);
                } else {
                    names.insert(alias, inside);
                }
            }
            let module = self.modules.get_mut(&own).unwrap();
            (module.names, module.globs) = (names, globs);
        }
    }

    /// The path from the root of the crate, unless it leads to another crate.
    fn inside_the_crate(&self, own: &ModulePath, path: &[String]) -> Option<ModulePath> {
        let module = &self.modules[own];
        let first = path.first()?;
        match first.as_str() {
            "crate" => Some(path[1..].to_vec()),
            "self" => Some(joined(own, &path[1..])),
            "super" => {
                let ups = path.iter().take_while(|part| *part == "super").count();
                let start = own.len().checked_sub(ups)?;
                Some(joined(&own[..start], &path[ups..]))
            }
            name => {
                let child = joined(own, &path[..1]);
                if self.modules.contains_key(&child) {
                    return Some(joined(own, path));
                }
                module.names.get(name).map(|start| joined(start, &path[1..]))
            }
        }
    }

    /// The file in which the last name of a path inside of the crate is defined.
    fn definition(&self, path: &[String], hops: usize) -> Option<&Module> {
        let depth = (0..=path.len()).rev().find(|n| self.modules.contains_key(&path[..*n]))?;
        let module = &self.modules[&path[..depth]];
        let Some(name) = path.get(depth) else { return Some(module) };
        if hops == 0 || module.items.contains(name) {
            return Some(module);
        }
        if let Some(start) = module.names.get(name) {
            return self.definition(&joined(start, &path[depth + 1..]), hops - 1);
        }
        let from_glob = module.globs.iter().find_map(|glob| {
            let source = self.definition(&joined(glob, &path[depth..]), hops - 1)?;
            source.items.contains(name).then_some(source)
        });
        Some(from_glob.unwrap_or(module))
    }

    /// The edges between files that are no faces.
    pub(crate) fn edges(&self) -> Edges {
        let mut edges = Edges::new();
        for (own, module) in self.modules.iter().filter(|(_, module)| !module.face) {
            let imported = imports(&module.tokens).into_iter().map(|(path, _)| path);
            let line_of = |path: &[String]| {
                let first = module.tokens.iter().find(|token| Some(&token.text) == path.last());
                first.map_or(0, |token| token.line)
            };
            let imported = imported.map(|path| (line_of(&path), path));
            for (line, path) in imported.chain(paths_in_code(&module.tokens)) {
                let Some(path) = self.inside_the_crate(own, &path) else { continue };
                let Some(target) = self.definition(&path, MAX_HOPS) else { continue };
                if !target.face && target.file != module.file {
                    let uses = edges.entry(module.file.clone()).or_default();
                    uses.entry(target.file.clone()).or_insert(line);
                }
            }
        }
        edges
    }
}

impl Module {
    fn new(file: &SourceFile) -> Self {
        let name = file.path.file_name().unwrap().to_str().unwrap();
        let tokens = tokens(&without_comments_and_tests(&file.text));
        let kinds = ["fn", "struct", "enum", "trait", "type", "const", "static", "union"];
        let items = tokens
            .windows(2)
            .filter(|pair| kinds.contains(&pair[0].text.as_str()))
            .map(|pair| pair[1].text.clone())
            .collect();
        Self {
            file: file.path.clone(),
            face: ["mod.rs", "lib.rs"].contains(&name),
            tokens,
            names: BTreeMap::new(),
            globs: Vec::new(),
            items,
        }
    }
}

/// Whether a file holds tests by its place: `tests.rs`, `…_tests.rs`, or in a folder `tests`.
pub(crate) fn is_test(path: &Path) -> bool {
    let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
    let below = parts.iter().position(|part| *part == "src").unwrap_or(0);
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    parts[below..].contains(&"tests") || stem == "tests" || stem.ends_with("_tests")
}

fn module_path(src: &Path, file: &Path) -> ModulePath {
    let inside = file.strip_prefix(src).unwrap().with_extension("");
    let mut parts: ModulePath =
        inside.iter().map(|part| part.to_str().unwrap().to_string()).collect();
    if parts.last().is_some_and(|last| last == "mod" || last == "lib") {
        parts.pop();
    }
    parts
}

fn joined(start: &[String], rest: &[String]) -> ModulePath {
    [start, rest].concat()
}

/// The paths of all `use` declarations, each with the name that it gets in the file.
fn imports(tokens: &[Token]) -> Vec<(ModulePath, String)> {
    let mut imports = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        // `impl Trait + use<'a>` is no declaration.
        let next = tokens.get(at + 1).map(|token| token.text.as_str());
        at += 1;
        if tokens[at - 1].text == "use" && next != Some("<") {
            at = import_tree(tokens, at, &[], &mut imports);
        }
    }
    imports
}

/// Reads one tree of a `use` declaration; gives the place of the sign that ends it.
fn import_tree(
    tokens: &[Token],
    mut at: usize,
    prefix: &[String],
    imports: &mut Vec<(ModulePath, String)>,
) -> usize {
    let mut path = prefix.to_vec();
    let mut alias = None;
    while let Some(token) = tokens.get(at) {
        match token.text.as_str() {
            "::" => {}
            "{" => {
                while tokens.get(at).is_some_and(|token| token.text != "}") {
                    at = import_tree(tokens, at + 1, &path, imports);
                }
                return at + 1;
            }
            "as" => {
                alias = tokens.get(at + 1).map(|token| token.text.clone());
                at += 1;
            }
            "," | "}" | ";" => break,
            part => path.push(part.to_string()),
        }
        at += 1;
    }
    // `a::{self}` imports `a`.
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    if path.len() > prefix.len() || (path.len() == prefix.len() && alias.is_some()) || {
        tokens.get(at.wrapping_sub(1)).is_some_and(|token| token.text == "self")
    } {
        let name = alias.or_else(|| path.last().cloned()).unwrap_or_default();
        imports.push((path, name));
    }
    at
}

/// The paths of two and more parts in the code, with their lines.
fn paths_in_code(tokens: &[Token]) -> Vec<(usize, ModulePath)> {
    let is_word = |at: usize| {
        let first = tokens.get(at).and_then(|token| token.text.chars().next());
        first.is_some_and(|c| c.is_alphabetic() || c == '_')
    };
    let is = |at: usize, text: &str| tokens.get(at).is_some_and(|token| token.text == text);
    let mut paths = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let start = at;
        at += 1;
        if !is_word(start) || (start > 0 && (is(start - 1, "::") || is(start - 1, "."))) {
            continue;
        }
        let mut path = vec![tokens[start].text.clone()];
        while is(at, "::") && is_word(at + 1) {
            path.push(tokens[at + 1].text.clone());
            at += 2;
        }
        if path.len() > 1 {
            paths.push((tokens[start].line, path));
        }
    }
    paths
}
