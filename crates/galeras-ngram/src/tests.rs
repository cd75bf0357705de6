//! Tests of whole completions.

use super::*;

/// A small generator: tests need variety, not quality.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % n
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    /// Texts of few words, so that they share n-grams, and some words that only one has.
    fn text(&mut self, length: usize) -> String {
        const WORDS: [&str; 24] = [
            "a", "ab", "abc", " a", " ab", "(", ")", ".", " =", "==", "\n", "\n    ", " ", "  ",
            "\"", "'''", "1", " 1.5", "return", " if", "ñ", "💥", "self", "\r\n\t",
        ];
        let mut text = String::new();
        for _ in 0..self.below(length) {
            match self.below(12) {
                0 => text.push_str(&format!("own{}", self.below(60))),
                _ => text.push_str(self.pick(&WORDS)),
            }
        }
        text
    }
}

fn train(order: usize, texts: &[&str]) -> NgramModel {
    NgramModel::train(order, texts).unwrap()
}

fn complete(
    model: &NgramModel,
    prompt: NgramPrompt<'_>,
    settings: CompletionSettings<'_>,
) -> Completion {
    model.complete(&mut CompletionBuffers::default(), &prompt, &settings)
}

fn drawn(temperature: f64, seed: u64) -> CompletionSettings<'static> {
    CompletionSettings { temperature, seed, ..CompletionSettings::default() }
}

/// The most probable completion.
fn greedy(model: &NgramModel, prompt: NgramPrompt<'_>) -> Completion {
    complete(model, prompt, CompletionSettings::default())
}

fn code(code: &str) -> NgramPrompt<'_> {
    NgramPrompt { code, ..NgramPrompt::default() }
}

const METHODS: [&str; 6] = [
    "def size(self):\n    return len(self.items)",
    "def first(self):\n    return self.items[0]",
    "def add(self, item):\n    self.items.append(item)\n    return self",
    "def clear(self):\n    self.items.clear()\n    return self",
    "def load(path):\n    with open(path) as f:\n        return f.read()",
    "def save(path, text):\n    with open(path, 'w') as f:\n        f.write(text)",
];

#[test]
fn leaving_texts_out_equals_training_without_them() {
    let mut random = Random(7);
    let mut scratch = CompletionBuffers::default();
    let (mut different, mut healed) = (0, 0);
    for round in 0..400 {
        let mut texts: Vec<String> = (0..2 + random.below(12)).map(|_| random.text(40)).collect();
        let again = texts[random.below(texts.len())].clone();
        texts.extend(vec![again; 1 + random.below(4)]);
        let mut own: Vec<String> =
            (0..random.below(4)).map(|_| texts[random.below(texts.len())].clone()).collect();
        own.push("never trained on".into());
        let mut left: Vec<&str> = texts.iter().map(String::as_str).collect();
        for text in &own {
            if let Some(at) = left.iter().position(|other| other == text) {
                left.remove(at);
            }
        }
        let all: Vec<&str> = texts.iter().map(String::as_str).collect();
        let order = 2 + random.below(7);
        let (with, without) = (train(order, &all), train(order, &left));
        // One by one, or equal ones together.
        let mut own: Vec<(&str, u32)> = own.iter().map(|text| (text.as_str(), 1)).collect();
        if round % 2 == 0 {
            own.sort_unstable();
            own = own
                .chunk_by(|a, b| a.0 == b.0)
                .map(|same| (same[0].0, same.len() as u32))
                .collect();
        }
        for seed in 0..6 {
            let source = all[random.below(all.len())];
            let cut = source.floor_char_boundary(random.below(source.len() + 1));
            let other = random.text(30);
            let context = [&source[..cut], "", &other][random.below(3)];
            let prompt = NgramPrompt { context, code: &source[..cut], own: &own };
            let temperature = [0.0, 0.7, 1.0, 2.0][random.below(4)];
            let settings = CompletionSettings { temperature, max_tokens: 30, stop: &[], seed };
            let here = with.complete(&mut scratch, &prompt, &settings);
            let there =
                without.complete(&mut scratch, &NgramPrompt { own: &[], ..prompt }, &settings);
            assert_eq!(here, there, "{round} {prompt:?} {settings:?}");
            let counted =
                with.complete(&mut scratch, &NgramPrompt { own: &[], ..prompt }, &settings);
            different += u32::from(counted != here);
            healed += u32::from(!here.text.is_empty());
        }
    }
    assert!(different > 300 && healed > 1000, "{different} {healed}");
}

#[test]
fn the_order_of_the_texts_has_no_influence() {
    let mut random = Random(3);
    let texts: Vec<String> = (0..60).map(|_| random.text(60)).collect();
    let mut texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let own: Vec<(&str, u32)> = texts[..3].iter().map(|text| (*text, 1)).collect();
    let model = train(5, &texts);
    texts.reverse();
    texts.rotate_left(17);
    let shuffled = train(5, &texts);
    for seed in 0..100 {
        let context = random.text(40);
        for temperature in [0.0, 0.5, 1.0] {
            let prompt = NgramPrompt { context: &context, code: &context, own: &own };
            let settings = drawn(temperature, seed);
            assert_eq!(complete(&model, prompt, settings), complete(&shuffled, prompt, settings));
        }
    }
}

#[test]
fn duplicates_count_in_proportion() {
    let (once, thrice) = (train(8, &METHODS), train(8, &[METHODS; 3].concat()));
    assert_eq!((once.texts(), thrice.texts()), (6, 18));
    for seed in 0..50 {
        for temperature in [0.0, 1.0] {
            let (prompt, settings) = (code("def "), drawn(temperature, seed));
            assert_eq!(complete(&once, prompt, settings), complete(&thrice, prompt, settings));
        }
    }
    let own = [(METHODS[0], 2)];
    let prompt = NgramPrompt { own: &own, ..code("def size(self):\n    return") };
    assert_eq!(greedy(&once, prompt).text, " self.items[0]");
    assert_eq!(greedy(&thrice, prompt).text, " len(self.items)");
}

#[test]
fn greedy_takes_the_most_frequent_and_of_equals_the_least_text() {
    let model = train(3, &["x = b", "x = a", "x = c", "x = c"]);
    for (own, text) in [(&[][..], " c"), (&[("x = c", 1)][..], " a")] {
        for seed in 0..5 {
            let done = complete(&model, NgramPrompt { own, ..code("x =") }, drawn(0.0, seed));
            assert_eq!((done.text.as_str(), done.tokens), (text, 1));
            assert_eq!(done.finish_reason, Finish::Stop);
        }
    }
    for (temperature, expected) in [(1.0, 120..180), (0.5, 180..240), (100.0, 85..125)] {
        let draw = |seed| complete(&model, code("x ="), drawn(temperature, seed)).text;
        let count = (0..300).map(draw).filter(|text| text == " c").count();
        assert!(expected.contains(&count), "{temperature}: {count}");
    }
}

#[test]
fn code_may_end_inside_of_a_word() {
    let model = train(8, &METHODS);
    let greedy = |prompt| greedy(&model, prompt);
    let done = greedy(code("def first(self):\n    return self.it"));
    assert_eq!((done.text.as_str(), done.tokens), ("ems[0]", 4));
    // Also inside an operator, a space and an indentation.
    assert_eq!(greedy(code("def first(self):\n ")).text, "   return self.items[0]");
    assert_eq!(greedy(code("def first(self):\n    return ")).text, "self.items[0]");
    // A whole word is also a prefix of itself.
    assert_eq!(greedy(code("def first(self):\n    return self")).text, ".items[0]");
    // An unknown context: any word with this prefix. An unknown prefix counts as a name, and tokens
    // that follow names follow it.
    assert!(greedy(code("a b.app")).text.starts_with("end(item)"));
    assert!(greedy(code("a b c xyz")).text.starts_with(['(', '.', ')', ',', ':', '[']));
    assert!(greedy(code("zzz ((( 7")).tokens > 0);
}

#[test]
fn the_prompt_changes_what_is_written() {
    let texts = [
        "def f(self):\n    self.alpha()",
        "def f(self):\n    self.alpha()",
        "def f(self):\n    self.beta()",
    ];
    let model = train(6, &texts);
    let start = "def f(self):\n    self.";
    for (context, end, text) in [
        ("", "", "alpha()"),
        ("Call beta, please.", "", "beta()"),
        // Names that the model never saw come from phrases of the prompt.
        ("def f(self):\n    self.gamma()", "", "gamma()"),
        // The end of the conversation after the code is not evidence of what comes next.
        (start, "", "alpha()"),
        ("def f(self):\n    self.al\n```", "al", "pha()"),
    ] {
        let code = [start, end].concat();
        let prompt = NgramPrompt { context, ..self::code(&code) };
        assert_eq!(greedy(&model, prompt).text, text, "{context:?}");
    }
}

#[test]
fn stop_strings_end_the_text_also_across_tokens() {
    let model = train(6, &["a.b(c)\n    d💥💥e"]);
    for (stop, text, tokens) in [
        (&["(c"][..], "b", 3),
        (&["zz", "d", "c)\n"], "b(", 5),
        (&["", "💥e"], "b(c)\n    d💥", 9),
        (&["\n  "], "b(c)", 5),
        (&["b(c)"], "", 4),
        (&["a.b"], "b(c)\n    d💥💥e", 9),
    ] {
        let stop: Vec<String> = stop.iter().map(|stop| (*stop).into()).collect();
        let settings = CompletionSettings { stop: &stop, ..CompletionSettings::default() };
        let done = complete(&model, code("a."), settings);
        let expected = Completion { text: text.into(), tokens, finish_reason: Finish::Stop };
        assert_eq!(done, expected, "{stop:?}");
    }
}

#[test]
fn the_number_of_tokens_is_limited_and_counted() {
    let model = train(4, &["a a a a a a a a"]);
    for max_tokens in [0, 1, 5] {
        let settings = CompletionSettings { max_tokens, ..CompletionSettings::default() };
        let done = complete(&model, code("a"), settings);
        assert_eq!((done.tokens, done.finish_reason), (max_tokens, Finish::Length));
        assert_eq!(count_tokens(&done.text), max_tokens);
    }
    assert_eq!((Finish::Stop.as_str(), Finish::Length.as_str()), ("stop", "length"));
}

#[test]
fn a_model_without_texts_writes_nothing() {
    let settings = CompletionSettings { temperature: 1.0, ..CompletionSettings::default() };
    let nothing = Completion { text: String::new(), tokens: 0, finish_reason: Finish::Stop };
    let prompt = NgramPrompt { context: "def f():", code: "def f", own: &[("x", 1)] };
    for texts in [&[][..], &["x"]] {
        assert_eq!(complete(&train(6, texts), prompt, settings), nothing);
    }
    for texts in [&[""][..], &["", "\0"]] {
        assert!(complete(&train(6, texts), prompt, settings).tokens <= 256);
    }
}

#[test]
fn completions_are_pinned() {
    let model = train(6, &METHODS);
    let pins = [(0.0, 1), (0.8, 1), (1.0, 2), (1.0, 3), (1.7, 4)].map(|(temperature, seed)| {
        let prompt = NgramPrompt { context: "Read the path.", ..code("def ") };
        complete(&model, prompt, drawn(temperature, seed)).text
    });
    assert_eq!(
        pins,
        [
            "add(self, item):\n    self.items.append(item)\n    return self",
            "save(path, text):\n    with open(path, 'w') as f:\n        return f.read()",
            "size(self):\n    return len(self.items)",
            "size(self):\n    self.items.append(item)\n    return self",
            "load(path):\n    with open(path) as f:\n        f.write(text)",
        ]
    );
}

#[test]
fn equal_texts_are_left_out_in_the_time_of_one() {
    let texts = [&[METHODS[0]; 200_000][..], &METHODS].concat();
    let model = train(6, &texts);
    let without = train(6, &METHODS[1..]);
    let own = [(METHODS[0], u32::MAX), (METHODS[0], 1)];
    let mut scratch = CompletionBuffers::default();
    for seed in 0..2_000 {
        let settings = drawn(0.9, seed);
        let prompt = NgramPrompt { own: &own, ..code("def ") };
        let here = model.complete(&mut scratch, &prompt, &settings);
        if seed < 20 {
            assert_eq!(here, complete(&without, code("def "), settings));
        }
    }
}

#[test]
fn hostile_texts_take_no_more_than_their_length_deserves() {
    let repeated = "a ".repeat(300_000);
    let word = "b".repeat(1 << 20);
    // Five MB without a frequent token, and one with 200,000 short tokens.
    let long: String =
        (0..1_u64 << 17).map(|i| format!("{:039x}.", i * 7919 % 1_000_003)).collect();
    let signs = "(💥\r\t".repeat(50_000);
    let texts = [repeated.as_str(), &word, &long, &signs, "a b c"];
    let model = train(6, &texts);
    let mut scratch = CompletionBuffers::default();
    for (at, text) in texts.iter().enumerate() {
        for own in [&[][..], &[(texts[at], 1)]] {
            let prompt = NgramPrompt { context: text, code: text, own };
            let settings =
                CompletionSettings { temperature: 0.9, max_tokens: 20, stop: &[], seed: 1 };
            let done = model.complete(&mut scratch, &prompt, &settings);
            assert!(done.tokens <= 20);
        }
    }
}
