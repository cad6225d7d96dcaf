//! Mail addresses as they are written in headers: `Ann Example <ann@example.com>, Bob <bob@example.com>`.

/// Returns true if an address, or the name beside it, is in a text of addresses, in any case. Also compares two bare
/// addresses.
pub(super) fn is_same_address(text: &str, wanted: &str) -> bool {
    let is_bare = |text: &str| text.contains('@') && !text.contains([' ', '<', ',']);
    if is_bare(text) {
        return text.eq_ignore_ascii_case(wanted);
    }
    let mut rest = text;
    while let Some((name, after)) = rest.split_once('<') {
        let Some((address, after)) = after.split_once('>') else { return false };
        rest = after;
        let name = name.trim_start_matches([',', ';', ' ']).trim().trim_matches(['"', '\'']);
        if is_bare(address) && [address, name].iter().any(|part| is_same_text(part, wanted)) {
            return true;
        }
    }
    false
}

fn is_same_text(text: &str, wanted: &str) -> bool {
    !wanted.is_empty() && (text.eq_ignore_ascii_case(wanted) || text.to_lowercase() == wanted.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_found_by_itself_and_by_its_name() {
        let both = "\"Example, Ann\" <ann@example.com>, Björn <bob@example.com>";
        for wanted in ["ann@example.com", "ANN@example.com", "example, ann", "BJÖRN", "bob@example.com"] {
            assert!(is_same_address(both, wanted), "{wanted}");
        }
        for wanted in ["", "ann", "example.com", "Ann", "<", "ann@example.co", "@"] {
            assert!(!is_same_address(both, wanted), "{wanted}");
        }
        assert!(is_same_address("Ann@example.com", "ann@example.com"));
        for text in ["a < b > c", "x <b>", "no address", "<", "a <b@c", ""] {
            assert!(!is_same_address(text, "b"), "{text}");
            assert!(!is_same_address(text, ""), "{text}");
        }
    }
}
