//! `fetchwell setup --page`: what is found, chosen and done, on a page with a key.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Stdio};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::{Home, backup_of};
use crate::support::{Answer, ask, fetchwell, post, stderr};

const CURSOR: &str = "{\n  // mine\n  \"mcpServers\": {\n    \"github\": { \"command\": \"gh\", \"env\": { \"TOKEN\": \"s3cret\" } }\n  }\n}\n";

/// A running command with its page.
pub(super) struct SetupPage {
    process: Child,
    address: String,
    /// Path with the key.
    pub(super) target: String,
    /// Stays open, because the command writes to it.
    _stderr: BufReader<ChildStderr>,
}

impl SetupPage {
    pub(super) fn start(home: &Home) -> Self {
        let mut process = home.command(&["setup", "--page"]).stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(process.stderr.take().unwrap());
        let url = stderr.by_ref().lines().map_while(Result::ok).find_map(|line| {
            let url = line.split(' ').find(|word| word.starts_with("http://localhost:"))?;
            Some(url.to_owned())
        });
        let url = url.unwrap();
        let (address, target) = url.trim_start_matches("http://").split_once('/').unwrap();
        let address = address.replace("localhost", "127.0.0.1");
        Self { process, address, target: format!("/{target}"), _stderr: stderr }
    }

    pub(super) fn get(&self, target: &str) -> Answer {
        ask(&self.address, "GET", target, &[])
    }

    /// Sends the form that the page shows, with other values of some fields.
    pub(super) fn submit(&self, origin: &str, fields: &[(&str, &str)]) -> Answer {
        let page = self.get(&self.target).text;
        let hidden = |name: &str| {
            let from = format!("name=\"{name}\" value=\"");
            page.split(&from).nth(1).unwrap().split('"').next().unwrap().to_owned()
        };
        let (key, plan) = (hidden("key"), hidden("plan"));
        let mut pairs = vec![("key", key.as_str()), ("plan", plan.as_str())];
        pairs.retain(|(name, _)| fields.iter().all(|(other, _)| other != name));
        pairs.extend(fields);
        let form: Vec<String> = pairs
            .iter()
            .map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC)))
            .collect();
        let headers: &[String] = if origin.is_empty() { &[] } else { &[format!("origin: {origin}")] };
        post(
            &self.address,
            "/setup",
            &headers.iter().map(String::as_str).collect::<Vec<_>>(),
            &form.join("&"),
        )
    }

    pub(super) fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits until the work is done, and returns its page.
    pub(super) fn wait(&self) -> String {
        let started = std::time::Instant::now();
        loop {
            let page = self.get(&self.target);
            assert_eq!(page.status, 200, "{page:?}");
            if !page.text.contains("are being imported") {
                return page.text;
            }
            assert!(page.header("refresh").is_some() && started.elapsed().as_secs() < 60, "{page:?}");
            std::thread::park_timeout(std::time::Duration::from_millis(50));
        }
    }
}

impl Drop for SetupPage {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn nothing_is_shown_or_done_without_the_key_and_from_other_sites() {
    let home = Home::with_records();
    home.write(".cursor/mcp.json", CURSOR);
    let files = home.files();
    let page = SetupPage::start(&home);
    for target in ["/setup", "/setup?key=", "/setup?key=wrong", "/", "/operator", "/mcp"] {
        let refused = page.get(target);
        assert!(refused.status == 403 && !refused.text.contains("Thunderbird"), "{target}: {refused:?}");
    }
    let shown = page.get(&page.target);
    assert_eq!(shown.status, 200);
    assert!(shown.header("content-security-policy").unwrap().contains("frame-ancestors 'none'"));
    for part in ["Thunderbird", "Obsidian", "imap-x-test", "mcp.json", "+", "&quot;fetchwell&quot;"] {
        assert!(shown.text.contains(part), "{part}: {}", shown.text);
    }
    assert!(!shown.text.contains("s3cret"), "tokens of other servers are not shown: {}", shown.text);
    for checkbox in ["value=\"vault\" checked>", "value=\"documents\">", "2 files: 2 markdown"] {
        assert!(shown.text.contains(checkbox), "{checkbox}: {}", shown.text);
    }
    for origin in ["", "https://evil.example", "null", "http://localhost:1"] {
        let refused = page.submit(origin, &[("client", "Cursor")]);
        assert_eq!(refused.status, 403, "{origin}: {refused:?}");
    }
    let refused = page.submit(&page.origin(), &[("key", "wrong"), ("client", "Cursor")]);
    assert_eq!(refused.status, 403);
    let host = ask(&page.address, "GET", &page.target, &["host: evil.example"]);
    assert_eq!(host.status, 403, "{host:?}");
    let proxied = ask(&page.address, "GET", &page.target, &["x-forwarded-for: 10.0.0.1"]);
    assert_eq!(proxied.status, 403, "{proxied:?}");
    assert_eq!(home.files(), files);
    assert!(!home.store().exists());
}

#[test]
fn what_is_chosen_is_done_and_nothing_else() {
    let home = Home::with_records();
    home.write(".cursor/mcp.json", CURSOR);
    let page = SetupPage::start(&home);
    // A plan that changed since it was shown is shown again.
    let changed = page.submit(&page.origin(), &[("plan", "0"), ("client", "Cursor"), ("import", "vault")]);
    assert!(changed.status == 409 && changed.text.contains("Nothing was done"), "{changed:?}");
    assert!(!home.store().exists() && home.read(".cursor/mcp.json") == CURSOR);

    let sent =
        page.submit(&page.origin(), &[("client", "Cursor"), ("import", "vault"), ("import", "no-such")]);
    assert_eq!((sent.status, sent.header("location")), (303, Some(page.target.as_str())), "{sent:?}");
    let done = page.wait();
    assert!(done.contains("vault: 1 added") && done.contains("Restart Cursor"), "{done}");
    assert!(home.read(".cursor/mcp.json").contains("fetchwell"));
    assert_eq!(std::fs::read_to_string(backup_of(&home.path(".cursor/mcp.json"))).unwrap(), CURSOR);
    assert!(!home.path(".codex/config.toml").exists(), "Codex was not chosen");

    // The same page again shows what is left.
    let again = page.get(&format!("{}&again=1", page.target)).text;
    assert!(again.contains("has fetchwell already") && again.contains(": imported"), "{again}");
    assert!(again.contains("value=\"imap-x-test\""), "{again}");
    assert_eq!(page.submit(&page.origin(), &[]).status, 303);
    assert!(page.wait().contains("Nothing was chosen"));
}

#[test]
fn the_page_excludes_the_flags_of_the_terminal() {
    for flag in ["--yes", "--dry-run", "--json"] {
        let refused = fetchwell(["setup", "--page", flag]);
        assert_eq!(refused.status.code(), Some(2), "{flag}: {}", stderr(&refused));
    }
}
