//! Addresses of pages, with escaped names.

use url::form_urlencoded::Serializer;

/// `PAGE?name=value&…`, without empty values.
pub(super) fn address(page: &str, values: &[(&str, &str)]) -> String {
    let mut query = Serializer::new(String::new());
    for (name, value) in values.iter().filter(|(_, value)| !value.is_empty()) {
        query.append_pair(name, value);
    }
    match query.finish() {
        query if query.is_empty() => page.to_string(),
        query => format!("{page}?{query}"),
    }
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn names_are_data() {
        let found =
            address("/table", &[("name", "gen[m=a].rejects"), ("sort", ""), ("v", "a&b=\"<")]);
        assert_eq!(found, "/table?name=gen%5Bm%3Da%5D.rejects&v=a%26b%3D%22%3C");
        assert_eq!(address("/", &[]), "/");
    }
}
