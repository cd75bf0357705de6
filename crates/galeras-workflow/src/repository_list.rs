//! A list of repositories as one text, as in a param of type `repos`: `owner/name`, URLs and
//! folders with commas, or the path of a CSV file. Its paths can be moved to another folder.

/// The entries of a list with commas, without spaces around them.
pub fn repository_entries(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|entry| !entry.is_empty())
}

/// True if the text names a CSV file of repositories.
pub fn is_repository_file(list: &str) -> bool {
    list.trim().ends_with(".csv")
}

/// True for GitHub's `owner/name`. A path starts with a dot or a slash.
pub fn is_owner_and_name(text: &str) -> bool {
    let plain = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    match text.split_once('/') {
        Some((owner, name)) => {
            plain(owner) && plain(name) && !owner.starts_with('.') && name != "." && name != ".."
        }
        None => false,
    }
}

/// The same list with `moved` applied to every path. `exists` checks a path: a folder may have a
/// name like `host:path`.
pub fn with_moved_paths(
    list: &str,
    exists: impl Fn(&str) -> bool,
    moved: impl Fn(&str) -> String,
) -> String {
    if is_repository_file(list) {
        return moved(list.trim());
    }
    let is_path = |entry: &str| {
        let host = entry.split('/').next().is_some_and(|first| first.contains(':'));
        !entry.starts_with('-')
            && !entry.contains("://")
            && !is_owner_and_name(entry)
            && (!host || exists(entry))
    };
    if !repository_entries(list).any(is_path) {
        return list.to_string();
    }
    let entry = |entry: &str| if is_path(entry) { moved(entry) } else { entry.to_string() };
    repository_entries(list).map(entry).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shorthands_are_told_from_paths() {
        for text in ["psf/requests", "a-b/c.d_e", "0/1"] {
            assert!(is_owner_and_name(text), "{text}");
        }
        for text in ["./a", "../a", "/a/b", "a", "a/b/c", ".a/b", "a/..", "https://a/b", "a b/c"] {
            assert!(!is_owner_and_name(text), "{text}");
        }
    }

    #[test]
    fn only_paths_are_moved() {
        let moved = |list: &str| with_moved_paths(list, |_| false, |path| format!("<{path}>"));
        assert_eq!(moved(" ./a, psf/requests ,b/c/d"), "<./a>,psf/requests,<b/c/d>");
        for list in
            ["", " , ", "psf/requests, a/b", "https://a.b/c,git@host:x/y", "-x", "file:///x"]
        {
            assert_eq!(moved(list), list);
        }
        assert_eq!(moved("one,../two"), "<one>,<../two>");
        assert_eq!(moved(" a,b/list.csv "), "<a,b/list.csv>");
        let there = with_moved_paths("c:x,d:y", |path| path == "c:x", |path| format!("<{path}>"));
        assert_eq!(there, "<c:x>,d:y");
    }
}
