//! `language_of(text)`: the natural language of a text.

use std::sync::Arc;

use super::function_doc::{FunctionDoc, RowFunction};
use arrow::array::{ArrayRef, AsArray, StringArray};
use arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::logical_expr::ScalarFunctionArgs;

/// The result if no language has a confidence of more than 0.9, in the word of the published files.
const UNKNOWN: &str = "UNKNOWN";

/// The codes of ISO 639-3 that the detector returns, with those of ISO 639-1.
const CODES: &str = "afr af aka ak amh am ara ar aze az bel be ben bn bul bg cat ca ces cs cmn zh \
    cym cy dan da deu de ell el eng en epo eo est et fin fi fra fr guj gu heb he hin hi hrv hr \
    hun hu hye hy ind id ita it jav jv jpn ja kan kn kat ka khm km kor ko lat la lav lv lit lt \
    mal ml mar mr mkd mk mya my nep ne nld nl nob no ori or pan pa pes fa pol pl por pt ron ro \
    rus ru sin si slk sk slv sl sna sn spa es srp sr swe sv tam ta tel te tgl tl tha th tuk tk \
    tur tr ukr uk urd ur uzb uz vie vi yid yi zul zu";

fn language_of(text: &str) -> &'static str {
    let Some(found) = whatlang::detect(text).filter(whatlang::Info::is_reliable) else {
        return UNKNOWN;
    };
    let mut codes = CODES.split_ascii_whitespace();
    codes.find(|code| *code == found.lang().code()).and_then(|_| codes.next()).unwrap_or(UNKNOWN)
}

/// The function over columns.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct LanguageOf;

impl RowFunction for LanguageOf {
    const DOC: FunctionDoc = FunctionDoc {
        name: "language_of",
        arguments: &[("text", "text")],
        returns: "text",
        summary: "the natural language of a text as an ISO 639-1 code (`en`), `UNKNOWN` if that is not sure",
        nulls: "null for a null",
        example: "language_of('Parse a URL into 6 components and return them as a named tuple with the fields that the user asked for.')",
        ..FunctionDoc::ROW
    };

    fn return_type() -> DataType {
        DataType::Utf8
    }

    fn invoke(args: &ScalarFunctionArgs) -> Result<ArrayRef> {
        let texts = args.args[0].to_array(args.number_rows)?;
        let languages: StringArray =
            texts.as_string::<i32>().iter().map(|text| text.map(language_of)).collect();
        Ok(Arc::new(languages))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The language of each text is known; a detector is not sure of short ones.
    #[test]
    fn languages_are_found_or_not_sure() {
        for (text, language) in [
            (
                "Parse a URL into 6 components and return them as a named tuple with the fields that the user asked for.",
                "en",
            ),
            ("Gibt die Anzahl der Zeilen zurück.", "de"),
            (
                "Calcule la moyenne de la liste passée en paramètre et renvoie un nombre flottant.",
                "fr",
            ),
            (
                "Calcula la media de la lista recibida y devuelve un número decimal con dos cifras.",
                "es",
            ),
            ("Retorna uma lista com todos os usuários cadastrados no banco de dados.", "pt"),
            ("返回文件的行数。", "zh"),
            ("ファイルの行数を返す。", "ja"),
            ("파일의 줄 수를 반환한다.", "ko"),
            ("Return the number of lines.", UNKNOWN),
            ("x", UNKNOWN),
            ("1 + 1 = 2", UNKNOWN),
            ("", UNKNOWN),
        ] {
            assert_eq!(language_of(text), language, "{text}");
        }
    }

    #[test]
    fn every_language_of_the_detector_has_a_code() {
        let known: Vec<&str> = CODES.split_ascii_whitespace().collect();
        let pairs: BTreeSet<&[&str]> = known.chunks(2).collect();
        assert_eq!(pairs.len(), whatlang::Lang::all().len());
        for lang in whatlang::Lang::all() {
            let pair = pairs.iter().find(|pair| pair[0] == lang.code());
            assert!(pair.is_some_and(|pair| pair[1].len() == 2), "{lang}");
        }
    }
}
