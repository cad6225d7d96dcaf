//! The password file of libpq: lines of `host:port:database:user:password`, with `*` for any value. A backslash escapes
//! a colon or a backslash.

/// Returns the password of the first line that fits.
pub(crate) fn find(text: &str, wanted: &PasswordQuery<'_>) -> Option<String> {
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = fields(line);
        let [host, port, database, user, password] = fields.as_slice() else { return None };
        let port_wanted = wanted.port.to_string();
        let pairs = [
            (host, wanted.host),
            (port, port_wanted.as_str()),
            (database, wanted.database),
            (user, wanted.user),
        ];
        let fits = pairs.iter().all(|(pattern, value)| pattern.as_str() == "*" || pattern.as_str() == *value);
        fits.then(|| password.clone())
    })
}

/// Connection that needs a password.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PasswordQuery<'a> {
    /// Host; `localhost` for a folder of sockets.
    pub(crate) host: &'a str,
    pub(crate) port: u16,
    pub(crate) database: &'a str,
    pub(crate) user: &'a str,
}

fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        // The password is the rest of the line.
        let is_separator = character == ':' && fields.len() < 5;
        match (character, fields.last_mut()) {
            _ if is_separator => fields.push(String::new()),
            ('\\', Some(last)) => last.extend(characters.next()),
            (other, Some(last)) => last.push(other),
            (_, None) => {}
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_line_that_fits_has_the_password() {
        let file = "# comment:1:d:u:no\nother:5432:d:u:wrong\nh:5432:d\nh:*:a\\:b:u:p\\:q\\\\r\n*:5432:*:u:any:more\n";
        let wanted = PasswordQuery { host: "h", port: 5432, database: "a:b", user: "u" };
        assert_eq!(find(file, &wanted).as_deref(), Some("p:q\\r"));
        assert_eq!(find(file, &PasswordQuery { database: "x", ..wanted }).as_deref(), Some("any:more"));
        assert_eq!(find(file, &PasswordQuery { user: "x", ..wanted }), None);
    }
}
