//! Tests of the parser: both languages, errors with their positions, and hostile input.

use std::time::Instant;

use proptest::prelude::*;

use super::super::*;

fn edges(graph: &CausalGraph) -> String {
    let name = |node: usize| graph.names.get(node).map_or("*", String::as_str).to_owned();
    let edges: Vec<String> = (0..graph.size())
        .flat_map(|from| graph.children[from].iter().map(move |&to| (from, to)))
        .map(|(from, to)| format!("{}>{}", name(from), name(to)))
        .collect();
    edges.join(" ")
}

fn refused(text: &str) -> GraphError {
    CausalGraph::parse(text).unwrap_err()
}

#[test]
fn dot_is_read() {
    let text = "\u{feff}# from a preprocessor\r\nstrict digraph \"my graph\" {\r\n\
        rankdir=LR; graph [bgcolor=white] // comment\r\n node [shape=box, latent=no]; /* two\r\n lines */\
        A -> B; B -> {C \"D e\"}; U [latent=\"yes\", label=<a <b>x</b>>];\
        U -> A:n:sw -> C [color=\"#ff0000\"; weight=-1.5]\r\n\
        subgraph cluster_0 { node [latent=true]; V W } -> Z;\
        \"q\\\"x\" -> A; A -> B; }\r\n";
    let graph = CausalGraph::parse(text).unwrap();
    assert_eq!(graph.names(), ["A", "B", "C", "D e", "U", "V", "W", "Z", "q\"x"]);
    assert_eq!(edges(&graph), "A>B A>C B>C B>D e U>A V>Z W>Z q\"x>A");
    let latent: Vec<&String> = graph.names().iter().filter(|n| graph.is_latent(n)).collect();
    assert_eq!(latent, ["U", "V", "W"]);
    assert!(graph.contains("D e") && !graph.contains("D") && !graph.is_latent("D"));
    assert!(!graph.is_latent("Z"));
}

#[test]
fn edges_have_directions() {
    for (text, expected) in [
        ("digraph { a -> b [dir=back] }", "b>a"),
        ("digraph { a -> b [dir=\"both\"] }", "*>a *>b"),
        ("digraph { edge [dir=both] a -> b; { edge [dir=forward] a -> c } }", "a>c *>a *>b"),
        ("DiGraph{a->b->c a->c}", "a>b a>c b>c"),
        ("digraph { a -> {b -> c} [dir=back] }", "b>a b>c c>a"),
        ("dag{a->b->c<-d}", "a>b b>c d>c"),
        ("dag { \u{5909}\u{6570} -> \u{fc}.x_1 }", "\u{5909}\u{6570}>\u{fc}.x_1"),
        ("digraph {}", ""),
        ("digraph { {} -> a; a -> {}; {{{}}} ; }", ""),
        ("dag { a -> b a -> b b <-> a a <-> b }", "a>b *>a *>b"),
    ] {
        assert_eq!(edges(&CausalGraph::parse(text).unwrap()), expected, "{text}");
    }
    assert_eq!(refused("digraph { a -> b [dir=none] }").offset, 18);
    assert!(CausalGraph::parse("dag{}").unwrap().names().is_empty());
    assert_eq!(CausalGraph::parse("dag { a a; a }").unwrap().names(), ["a"]);
}

#[test]
fn dagitty_is_read() {
    let text = "dag \"smoking\" { bb=\"-0.5,-0.5,0.5,0.5\"\n X [exposure,pos=\"-1.2,0.3\"]\n\
        Y [outcome]\n U [latent] L [unobserved]; E [e] X -> Y X <-> Y ; U -> X; U -> Y\n\
        A -> B <- C {P Q} -> R; Y -> {S -> T}, node -> edge }";
    let graph = CausalGraph::parse(text).unwrap();
    assert!(graph.is_latent("U") && graph.is_latent("L") && !graph.is_latent("X"));
    assert_eq!(edges(&graph), "A>B C>B P>R Q>R S>T U>X U>Y X>Y Y>S Y>T node>edge *>X *>Y");
    assert!(!graph.names().iter().any(|name| name.contains('*')));
}

#[test]
fn errors_have_positions() {
    for (text, offset, message) in [
        ("", 0, "the graph is empty"),
        ("  \n", 3, "the graph is empty"),
        ("X -> Y", 0, "expected `digraph` or `dag`, found `X`"),
        ("{ X -> Y }", 0, "expected `digraph` or `dag`, found `{`"),
        ("graph { a -- b }", 0, "`graph` is not a directed acyclic graph"),
        ("pdag { a -- b }", 0, "`pdag` is not a directed acyclic graph"),
        ("digraph a b {", 10, "expected `{`, found `b`"),
        ("digraph { a -- b }", 12, "this edge has no direction"),
        ("dag { a @-@ b }", 8, "this edge has no direction"),
        ("digraph { a -> a }", 12, "an edge leads from a node to itself"),
        ("digraph { {a b} -> {b c} }", 16, "an edge leads from a node to itself"),
        ("dag { a <-> a }", 8, "an edge leads from a node to itself"),
        ("digraph { a -> b; b -> a }", 20, "the graph has a cycle: a -> b -> a"),
        (
            "digraph { b -> c -> a -> b; z -> b; c -> y }",
            22,
            "the graph has a cycle: a -> b -> c -> a",
        ),
        ("digraph { a -> b", 8, "this `{` is not closed"),
        ("digraph { a -> { b }", 8, "this `{` is not closed"),
        ("digraph { a } }", 14, "unexpected `}` after the graph's last `}`"),
        ("digraph { a } digraph { b }", 14, "unexpected `digraph` after the graph's last `}`"),
        ("digraph { a -> }", 12, "this arrow has no node on its right"),
        ("digraph { a -> ; b }", 12, "this arrow has no node on its right"),
        ("digraph { -> a }", 10, "this arrow has no node on its left"),
        ("digraph { a -> -> b }", 15, "there is no node between two arrows"),
        ("digraph { a-b }", 11, "unexpected character `-`"),
        ("digraph { a \0 }", 12, "unexpected character `\\0`"),
        ("digraph { \"a\0b\" }", 12, "a name holds a NUL character"),
        ("digraph { \"a }", 10, "this quote is not closed"),
        ("digraph { /* a }", 10, "this comment is not closed"),
        ("digraph { a [label=<b }", 19, "this `<` is not closed"),
        ("digraph { a [latent=perhaps] }", 13, "`latent` must be `yes` or `no`, found `perhaps`"),
        ("digraph { a [latent", 19, "expected an attribute or `]`, found the end of the text"),
        ("digraph { a [latent=] }", 20, "expected a value after `=`, found `]`"),
        ("digraph { [latent] }", 10, "these attributes follow no node and no edge"),
        ("digraph { a [x] -> b }", 16, "attributes belong at the end of a statement"),
        ("digraph { node -> b }", 10, "`node` is a keyword of DOT"),
        ("digraph { subgraph s }", 10, "expected `{` after `subgraph`"),
        ("digraph { \"\" -> b }", 10, "a name is empty"),
        ("digraph { -1 -> b }", 10, "`-1` is not a name"),
        ("dag { a:b -> c }", 7, "unexpected `:`"),
    ] {
        let error = refused(text);
        assert_eq!((error.message.as_str(), error.offset), (message, offset), "{text}");
    }
    assert!(refused("digraph { n-ast -> b }").help.unwrap().contains("double quotes"));
}

#[test]
fn hostile_texts_end_quickly() {
    let deep = 100_000;
    let names: String = (0..100_000).map(|i| format!("n{i} ")).collect();
    let some: String = (0..3_000).map(|i| format!("n{i} ")).collect();
    let chain: String = (0..100_000).map(|i| format!("n{i}->n{};", i + 1)).collect();
    for (name, text, fine) in [
        ("braces", format!("digraph {{{}{}}}", "{".repeat(deep), "}".repeat(deep)), true),
        ("open", format!("digraph {{{}", "{".repeat(deep)), false),
        ("arrows", format!("digraph {{{}x{}}}", "{a->".repeat(deep), "}".repeat(deep)), false),
        ("nested", format!("dag {{{}{names}{}}}", "{".repeat(deep), "}".repeat(deep)), true),
        ("marked", format!("dag {{{}{names}{}}}", "{".repeat(deep), "}[x]".repeat(deep)), false),
        ("product", format!("dag {{ {{{names}}} -> {{ {} }} }}", names.replace('n', "m")), false),
        ("to none", format!("dag {{ {{{names}}} {} }}", "-> {}".repeat(deep)), true),
        ("repeated", format!("dag {{ a -> {{{some}}} {} }}", "[dir=back]".repeat(deep)), false),
        ("brackets", format!("digraph {{ a {} }}", "[".repeat(1_000_000)), false),
        ("blanks", format!("digraph {{ {} }}", " \n# \n".repeat(200_000)), true),
        ("comments", format!("digraph {{ {} }}", "/**/".repeat(250_000)), true),
        ("long name", format!("digraph {{ {} }}", "x".repeat(1_000_000)), true),
        (
            "long error",
            format!("digraph {} {} {{", "x".repeat(500_000), "y".repeat(500_000)),
            false,
        ),
        ("html", format!("digraph {{ a [label={}] }}", "<".repeat(1_000_000)), false),
        ("chain", format!("digraph {{ {chain} }}"), true),
        ("ring", format!("digraph {{ {chain} n100000 -> n0 }}"), false),
    ] {
        let started = Instant::now();
        let result = CausalGraph::parse(&text);
        let seconds = started.elapsed().as_secs_f64();
        assert!(seconds < 30.0, "{name}: {seconds} s");
        assert_eq!(result.is_ok(), fine, "{name}: {:?}", result.err());
        if let Err(error) = result {
            assert!(error.message.len() < 300 && error.offset <= text.len(), "{name}: {error:?}");
        }
    }
}

#[test]
fn a_long_chain_is_answered() {
    const LENGTH: usize = if cfg!(debug_assertions) { 2_000 } else { 20_000 };
    let last = format!("n{LENGTH}");
    let chain: String = (0..LENGTH).map(|i| format!("n{i}->n{};", i + 1)).collect();
    let graph =
        CausalGraph::parse(&format!("digraph {{ {chain} U[latent=yes]; U -> {{n0 n{LENGTH}}} }}"));
    let graph = graph.unwrap();
    let started = Instant::now();
    assert!(graph.d_separated(&["n0"], &[&last], &["n5", "U"]).unwrap());
    let found = identify(&graph, "n0", &last).unwrap();
    let Identification::Frontdoor { mediators, .. } = found.by else { panic!("{:?}", found.by) };
    assert_eq!(mediators, ["n1"]);
    let implied = graph.implied_independencies();
    assert!(!implied.complete);
    assert!(started.elapsed().as_secs_f64() < 200.0);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]
    #[test]
    fn no_text_panics(pieces in prop::collection::vec(prop::sample::select(vec![
        "a", "b", "c", "\"d\"", "->", "<-", "<->", "--", "{", "}", "[", "]", "=", ";", ",", ":",
        "latent", "dir", "both", "node", "edge", "subgraph", "\n", "//", "/*", "*/", "\"", "\\",
        "<", ">", "-", "@", "é", "\0", "#", " ",
    ]), 0..40), dagitty in any::<bool>()) {
        let kind = if dagitty { "dag {" } else { "digraph {" };
        let text = format!("{kind}{}}}", pieces.concat());
        if let Err(error) = CausalGraph::parse(&text) {
            prop_assert!(text.is_char_boundary(error.offset));
        }
    }

    #[test]
    fn no_bytes_panic(text in any::<String>()) {
        let _ = CausalGraph::parse(&text);
    }
}
