//! Suggested commands: they repeat the workflow, settings and store of the current command, and can
//! be pasted into a shell.

use std::path::Path;

use galeras_base::terminal_escape::shell_word;
use galeras_store::default_store;

/// `galeras VERB FILE`, with settings and store.
pub fn command(verb: &str, file: &str, set: &[String], cache: &str) -> String {
    command_about(verb, file, "", set, cache)
}

/// `galeras show FILE TABLE`, with settings and store.
pub fn show(file: &str, table: &str, set: &[String], cache: &str) -> String {
    command_about("show", file, table, set, cache)
}

fn command_about(verb: &str, file: &str, about: &str, set: &[String], cache: &str) -> String {
    let is_default = Path::new(cache) == default_store(Path::new(file));
    // The file's name could be taken for an option.
    let file = if file.starts_with('-') { format!("./{file}") } else { file.to_string() };
    let mut words = vec!["galeras".to_string(), verb.to_string(), shell_word(&file)];
    words.extend((!about.is_empty()).then(|| shell_word(about)));
    for setting in set {
        words.extend(["--set".to_string(), shell_word(setting)]);
    }
    if !is_default {
        words.extend(["--cache".to_string(), shell_word(cache)]);
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_pasted() {
        let set = ["n=5", "name=O'Hara; rm -rf x", "text=a\n\u{1b}[31m"].map(String::from);
        assert_eq!(
            command("run", "my flow.yaml", &set, "s3://b/c"),
            r"galeras run 'my flow.yaml' --set n=5 --set 'name=O'\''Hara; rm -rf x' --set $'text=a\n\x1b[31m' --cache s3://b/c"
        );
        let default = default_store(Path::new("-x.yaml")).to_string_lossy().into_owned();
        assert_eq!(command("run", "-x.yaml", &[], &default), "galeras run ./-x.yaml");
    }
}
