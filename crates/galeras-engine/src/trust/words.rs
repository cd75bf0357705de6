//! Descriptions of actions that are safe on a terminal.

use galeras_base::terminal_escape::escape_all;
use galeras_operator::Access;

/// The action without its subject: `reads /etc/passwd, outside of …`.
pub fn phrase(access: &Access) -> String {
    match access {
        Access::Program { command, .. } => format!("runs a program: `{}`", escape_all(command)),
        Access::Variable { name, to } => {
            let open = if to.is_encrypted() { "" } else { ", unencrypted" };
            let (name, to) = (escape_all(name), escape_all(&to.to_string()));
            format!("sends the value of the environment variable {name} to {to}{open}")
        }
        Access::Host { to } => format!("connects to {}", escape_all(&to.to_string())),
        Access::Read { path } => {
            let path = escape_all(&path.to_string_lossy());
            format!("reads {path}, outside of the workflow's folder and the current one")
        }
        Access::Write { path } => {
            let path = escape_all(&path.to_string_lossy());
            format!("writes {path}, outside of the folder for outputs")
        }
    }
}

/// A command, line by line.
pub fn program_lines(command: &str) -> Vec<String> {
    command.trim_end().split('\n').map(escape_all).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_the_terminal() {
        let command = "echo a\x1b[2K\r\n\tb\u{202e}".to_string();
        assert_eq!(program_lines(&command), ["echo a\\u{1b}[2K\\r", "\\tb\\u{202e}"]);
        let access = Access::Program { command, folder: "/".into(), files: Vec::new() };
        assert!(!phrase(&access).chars().any(char::is_control), "{}", phrase(&access));
    }
}
