//! Data points of the sample.

use serde_json::{Value, json};

use crate::hostile;

const REFERENCE: &str = r#"def merge_setting(request_setting, session_setting, dict_class=OrderedDict):
    """Determine the setting of a request, merged with that of its session."""
    if session_setting is None:
        return request_setting
    if request_setting is None:
        return session_setting

    # Bypass if not a dictionary (e.g. verify)
    if not (isinstance(session_setting, Mapping) and isinstance(request_setting, Mapping)):
        return request_setting

    merged_setting = dict_class(to_key_val_list(session_setting))
    merged_setting.update(to_key_val_list(request_setting))
    none_keys = [k for (k, v) in merged_setting.items() if v is None]
    for key in none_keys:
        del merged_setting[key]
    return merged_setting
"#;

const ANSWER: &str = r#"def merge_setting(request_setting, session_setting, dict_class=OrderedDict):
    """Determine the setting of a request, merged with that of its session."""
    if session_setting is None:
        return request_setting
    if request_setting is None:
        return session_setting

    # Bypass if not a dictionary (e.g. verify)
    if not isinstance(session_setting, dict):
        return request_setting

    merged_setting = dict_class(session_setting)
    merged_setting.update(request_setting)
    return {key: value for key, value in merged_setting.items() if value is not None}
"#;

const BROKEN: &str = "def f(x:\n    return [x for x in (1, 2\n  class @@@\n\"\"\"never closed\n";

pub(crate) fn section() -> Value {
    let mut points: Vec<Value> = Vec::new();
    for i in 0_u64..100 {
        let (title, reference, answer) = match i {
            0 => ("sessions.py: merge_setting", REFERENCE.to_string(), ANSWER.to_string()),
            1 => ("broken code", REFERENCE.to_string(), BROKEN.to_string()),
            2 => (
                "<script>window.attacked = 4</script>",
                hostile::SCRIPT.to_string(),
                format!("{}more", hostile::SCRIPT),
            ),
            3 => {
                ("direction marks", hostile::RTL.to_string(), hostile::RTL.replace('\u{202e}', ""))
            }
            4 => (
                "terminal codes",
                hostile::ESC.to_string(),
                format!("print({:?})\n{}", "é", hostile::ESC),
            ),
            5 => (
                "a line of a megabyte",
                "x = 1\n".to_string(),
                format!("x = '{}'\ny = 2\n", "ab ".repeat(350_000)),
            ),
            6 => (
                "a long line that is kept",
                "x = 1\n".to_string(),
                format!("x = '{}'\ny = 2\n", "cd ".repeat(20_000)),
            ),
            7 => ("no answer", "return 1\n".to_string(), String::new()),
            _ => (
                "utils.py: function",
                REFERENCE.replace("key", &format!("key_{i}")),
                ANSWER.replace("value", &format!("item_{i}")),
            ),
        };
        let score = |factor: f64| (i as f64 * factor).fract();
        points.push(json!({
            "id": format!("{:032x}", u128::from(i) * 0xc2b2_ae3d_27d4_eb4f_u128),
            "title": if i < 8 { title.to_string() } else { format!("{title}_{i}") },
            "groups": [
                { "name": "model", "value": if i % 2 == 0 { "tiny-coder-1b" } else { "small-coder-3b" } },
                { "name": "treatment", "value": if i % 4 < 2 { "zero_shot" } else { "few_shot" } } ],
            "scores": [{ "metric": "codebleu", "value": score(0.618_033_9) }, { "metric": "bleu", "value": if i == 7 { None } else { Some(score(0.414_213_5)) } }],
            "prompt": [
                { "role": "system", "content": "You complete Python methods. Answer with code only." },
                { "role": "user", "content": format!("Complete the method:\n\n{}", &REFERENCE[..200]) } ],
            "answer": answer, "reference": reference,
            "texts": [{ "name": "Given up to the cut", "value": &REFERENCE[..300] }],
            "trace": [
                { "step": "scored", "id": format!("{i:08x}"), "text": "" },
                { "step": "mined", "id": "", "text": "psf/requests at 0e322af8, src/requests/sessions.py, lines 61 to 91",
                  "url": if i == 2 { "javascript:window.attacked = 5" } else { "https://github.com/psf/requests/blob/0e322af8/src/requests/sessions.py#L61-L91" } } ],
        }));
    }
    json!({ "kind": "rows", "title": "Answers beside references", "caption": "", "points": points, "total": 12_000,
        "choice": "a sample of 100, drawn by their ids", "source": "scored" })
}
