//! Addresses that a configuration may not have, or may not have with a password.

use std::path::Path;

use crate::config::check_text;

#[test]
fn addresses_that_serve_would_reject_are_rejected() {
    let url = "[[source]]\nname = \"a\"\nurl = \"x.example\"\n";
    for (text, expect) in [
        (
            "listen = \"0.0.0.0:7400\"\n".to_owned(),
            "1: listen: 0.0.0.0:7400 can be reached from other machines",
        ),
        ("listen = \"[::]:7400\"\n".to_owned(), "1: listen: [::]:7400 can be reached from other machines"),
        (
            url.replace("x.example", "https://ann:sekret@x.example"),
            "3: source[0].url: the URL contains a user name or a password",
        ),
        (
            "state = \"redis://:sekret@h\"\n".to_owned(),
            "1: state: the URL of `state` has a password that is not",
        ),
        ("state = \"memory\"\n".to_owned(), "1: state: the URL of `state` cannot be parsed"),
        (url.replace("x.example", "sekret@x.example"), "3: source[0].url: the URL contains a user name"),
    ] {
        let problem = check_text(&text, Path::new("c.toml")).unwrap_err().to_string();
        assert!(problem.starts_with(&format!("c.toml:{expect}")), "{text}{problem}");
        assert!(!problem.contains("sekret"), "{problem}");
    }
}
