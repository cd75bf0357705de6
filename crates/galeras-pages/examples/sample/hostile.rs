//! Texts that attack a page.

/// Ends elements, and runs if it could.
pub(crate) const SCRIPT: &str = "</script><script>window.attacked = 1</script><img src=x onerror=\"window.attacked = 2\">\n]]> --> </pre></code></textarea></template>\n<svg onload=window.attacked=3><style>* { display: none }</style>\n{{ 7 * 7 }} {% raw %} &lt;b&gt;";

/// Reorders the text around it (CVE-2021-42574).
pub(crate) const RTL: &str = "def check(user):\n    if user != \"user\u{202e} \u{2066}# admin only\u{2069} \u{2066}\":\n        raise PermissionError\n    name = \"שלום\"\n    zero\u{200b}width = 1\n    return name\n";

/// Colours, rings and clears a terminal, with a NUL.
pub(crate) const ESC: &str = "\u{1b}[31mred\u{1b}[0m \u{7} \u{0} \u{9b}2J";
