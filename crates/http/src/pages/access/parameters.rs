//! Parameters of query strings and forms.

use url::form_urlencoded;

/// Returns the first value of a parameter in a query string or form, unless it is empty.
pub(crate) fn parameter(text: &[u8], name: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(text);
    pairs.find_map(|(key, value)| (key == name).then(|| value.into_owned())).filter(|value| !value.is_empty())
}

/// Writes parameters as a query string that begins with `?`, or nothing if there are none. Empty values are left out.
pub(crate) fn parameters(pairs: &[(&str, &str)]) -> String {
    let mut written = form_urlencoded::Serializer::new(String::new());
    for (name, value) in pairs.iter().filter(|(_, value)| !value.is_empty()) {
        written.append_pair(name, value);
    }
    let written = written.finish();
    if written.is_empty() { written } else { format!("?{written}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_encoded_and_read_back() {
        let query = parameters(&[("q", "a&b=c #1"), ("empty", ""), ("stream", "é")]);
        assert_eq!(query, "?q=a%26b%3Dc+%231&stream=%C3%A9");
        let query = query.trim_start_matches('?').as_bytes();
        assert_eq!(parameter(query, "q").as_deref(), Some("a&b=c #1"));
        assert_eq!(parameter(query, "empty"), None);
        assert_eq!(parameters(&[("q", "")]), "");
    }
}
