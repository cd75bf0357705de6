//! The metrics and options of a call, as a literal argument of the functions.

use datafusion::common::{Result, ScalarValue, exec_datafusion_err, exec_err};
use datafusion::logical_expr::ColumnarValue;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::metric::Metric;
use galeras_metrics::codebleu;
use galeras_metrics::text::{BleuOptions, BleuSmoothing, BleuTokenizer, RougeWords};

/// The implementation to follow where they differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ScoreMode {
    /// White space around texts is ignored, and words may have letters of any script.
    #[default]
    Correct,
    /// The numbers of sacrebleu, rouge_score and rapidfuzz.
    Compat,
    /// The same, with `codebleu` as CodeXGLUE's scripts compute it, instead of the package.
    Codexglue,
}

impl ScoreMode {
    /// Returns true if white space around a text is ignored.
    pub(super) fn strips(self) -> bool {
        self == Self::Correct
    }

    /// The implementation that `codebleu` follows.
    pub(super) fn codebleu(self) -> codebleu::CodeBleuMode {
        match self {
            Self::Correct | Self::Compat => codebleu::CodeBleuMode::Published,
            Self::Codexglue => codebleu::CodeBleuMode::CodeXGlue,
        }
    }

    pub(super) fn words(self) -> RougeWords {
        match self {
            Self::Correct => RougeWords::Unicode,
            Self::Compat | Self::Codexglue => RougeWords::Ascii,
        }
    }
}

/// The tokenizer of BLEU, by sacrebleu's names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Tokenize {
    /// The WMT tokenizer: words and punctuation.
    #[default]
    #[serde(rename = "13a")]
    Tok13a,
    /// At white space.
    None,
    /// Words and all of Unicode's punctuation and symbols.
    Intl,
    /// Characters.
    Char,
}

/// The smoothing of BLEU for orders without a match, by sacrebleu's names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BleuSmooth {
    /// 1/2 replaces the first zero, 1/4 the second and so on.
    #[default]
    Exp,
    /// 0.1 replaces zero matches.
    Floor,
    /// 1 is added to the matches and n-grams of orders 2 to 4.
    AddK,
    /// Nothing: the score is 0.
    None,
}

/// The metrics and options of a call: a literal argument of the functions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScoreSpec {
    /// The scores.
    pub metrics: Vec<Metric>,
    /// The implementation to follow.
    pub mode: ScoreMode,
    /// How BLEU splits texts.
    pub bleu_tokenize: Tokenize,
    /// The smoothing of BLEU.
    pub bleu_smooth: BleuSmooth,
    /// The shares of CodeBLEU's components.
    pub codebleu_weights: [f64; 4],
}

impl ScoreSpec {
    /// One score with all defaults.
    pub(super) fn only(metric: Metric) -> Self {
        Self {
            metrics: vec![metric],
            mode: ScoreMode::default(),
            bleu_tokenize: Tokenize::default(),
            bleu_smooth: BleuSmooth::default(),
            codebleu_weights: codebleu::EQUAL_WEIGHTS,
        }
    }

    /// Reads the spec from a literal argument.
    pub(super) fn of(argument: &ColumnarValue) -> Result<Self> {
        let ColumnarValue::Scalar(ScalarValue::Utf8(Some(json))) = argument else {
            return exec_err!(
                "the first argument of score_pair and corpus_scores must be a literal"
            );
        };
        serde_json::from_str(json).map_err(|error| exec_datafusion_err!("{error}"))
    }

    pub(super) fn bleu(&self) -> BleuOptions {
        let tokens = match self.bleu_tokenize {
            Tokenize::Tok13a => BleuTokenizer::Tok13a,
            Tokenize::None => BleuTokenizer::Whitespace,
            Tokenize::Intl => BleuTokenizer::Intl,
            Tokenize::Char => BleuTokenizer::Char,
        };
        // The parameters are sacrebleu's.
        let smoothing = match self.bleu_smooth {
            BleuSmooth::Exp => BleuSmoothing::Exp,
            BleuSmooth::Floor => BleuSmoothing::Floor(0.1),
            BleuSmooth::AddK => BleuSmoothing::AddK(1.0),
            BleuSmooth::None => BleuSmoothing::None,
        };
        BleuOptions { tokens, smoothing, effective_order: true }
    }
}
