//! Files of clients that are missing, read-only, links, invalid, or have comments.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::Value;

use super::{Home, backup_of};
use crate::support::{import_records, stdout, text};

/// Creates a home folder with a store, and no records to find.
fn home() -> Home {
    let home = Home::new();
    fs::create_dir_all(home.path("data/fetchwell")).unwrap();
    import_records(
        &home.store(),
        "notes",
        "{\"stream\":\"notes\",\"key\":\"1\",\"data\":{\"title\":\"a\"}}\n",
    );
    home
}

/// Runs the command for Cursor. Returns its exit code and its report of the client.
fn configure(home: &Home) -> (Option<i32>, Value) {
    let output = home.setup(&["--no-import", "--client", "cursor", "--json"]);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    (output.status.code(), answer["clients"][0].clone())
}

fn mode(home: &Home, name: &str) -> u32 {
    fs::metadata(home.path(name)).unwrap().permissions().mode() & 0o777
}

const FILE: &str = ".cursor/mcp.json";

#[test]
fn a_missing_file_is_created() {
    let home = home();
    let (code, report) = configure(&home);
    assert_eq!((code, &report["state"]), (Some(0), &"created".into()), "{report}");
    assert!(report.get("backup").is_none(), "{report}");
    assert_eq!(mode(&home, FILE), 0o600);
    let file: Value = serde_json::from_str(&home.read(FILE)).unwrap();
    assert_eq!(file["mcpServers"]["fetchwell"]["args"][3], "--stdio");
    // An empty file is as good as none, and has a copy.
    home.write(FILE, "");
    let (_, report) = configure(&home);
    assert_eq!(report["state"], "changed");
    assert_eq!(fs::read_to_string(backup_of(&home.path(FILE))).unwrap(), "");
}

#[test]
fn comments_and_permissions_stay_and_copies_are_kept() {
    let home = home();
    let text_of = |command: &str| {
        format!(
            "// a\n{{\n  /* b */ \"mcpServers\": {{\n    \"fetchwell\": {{ \"command\": \"{command}\" }}, // c\n  }},\n}}\n"
        )
    };
    for (number, command) in ["old", "older"].iter().enumerate() {
        home.write(FILE, &text_of(command));
        fs::set_permissions(home.path(FILE), fs::Permissions::from_mode(0o640)).unwrap();
        let (code, report) = configure(&home);
        assert_eq!((code, &report["state"]), (Some(0), &"changed".into()), "{report}");
        let after = home.read(FILE);
        for comment in ["// a", "/* b */", "// c"] {
            assert!(after.contains(comment), "{after}");
        }
        assert_eq!(mode(&home, FILE), 0o640);
        let suffix = if number == 0 { "" } else { "-2" };
        let backup = format!("{FILE}.fetchwell-backup{suffix}");
        assert_eq!(report["backup"], text(&home.path(&backup)));
        assert_eq!((home.read(&backup), mode(&home, &backup)), (text_of(command), 0o640));
    }
    let (_, report) = configure(&home);
    assert_eq!(report["state"], "current");
}

#[test]
fn a_link_stays_one_and_its_target_is_changed() {
    let home = home();
    home.write("dotfiles/mcp.json", "{}");
    fs::create_dir_all(home.path(".cursor")).unwrap();
    symlink("../dotfiles/mcp.json", home.path(FILE)).unwrap();
    let shown = stdout(&home.setup(&["--no-import", "--client", "cursor"]));
    assert!(shown.contains("a link to ") && shown.contains("dotfiles/mcp.json, which is changed"), "{shown}");
    assert!(fs::symlink_metadata(home.path(FILE)).unwrap().is_symlink());
    assert!(home.read("dotfiles/mcp.json").contains("fetchwell"));
    assert!(home.path("dotfiles/mcp.json.fetchwell-backup").exists());
}

/// Checks that a change shows no secret of the earlier file. The written file still has all of them.
#[track_caller]
fn check_redacted(client: &str, file: &str, before: &str, shown_parts: &[&str]) {
    let home = home();
    home.write(file, before);
    let arguments = ["--no-import", "--client", client];
    let dry = home.setup(&[&arguments[..], &["--dry-run", "--json"]].concat());
    let dry = String::from_utf8(dry.stdout).unwrap();
    assert_eq!(home.read(file), before);
    let shown = stdout(&home.setup(&arguments));
    for part in shown_parts {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    for secret in ["s3cret", "p4ss"] {
        assert!(!shown.contains(secret) && !dry.contains(secret), "{shown}{dry}");
        let count = |text: &str| text.matches(secret).count();
        assert_eq!(count(&home.read(file)), count(before), "{}", home.read(file));
    }
}

#[test]
fn a_change_shows_no_values_of_other_servers() {
    let others = r#""github":{"command":"gh","args":["--token","s3cret"],"env":{"T":"s3cret"},"headers":{"Authorization":"p4ss"}}"#;
    let added = ["\"args\": [", "--stdio"];
    check_redacted("cursor", FILE, &format!("{{\"mcpServers\":{{{others}}}}}"), &added);
    check_redacted("cursor", FILE, &format!("{{\"mcpServers\":{{{others}}}}} // p4ss"), &added);
    check_redacted("cursor", FILE, &format!("{{\"key\":\"p4ss\",\"mcpServers\":{{{others}}}}}\n"), &added);
    // The change includes the values between two keys that are replaced.
    let own = r#""fetchwell":{"command":"old","env":{"KEY":"p4ss"},"args":["serve"]}"#;
    for entries in [format!("{own},{others}"), format!("{others},{own}")] {
        check_redacted(
            "cursor",
            FILE,
            &format!("{{\"mcpServers\":{{{entries}}}}}"),
            &["old", "\"KEY\":\"…\""],
        );
    }
    check_redacted(
        "codex",
        ".codex/config.toml",
        "mcp_servers = { a = { env = { T = \"s3cret\" } }, fetchwell = { command = \"old\", env = { K = 'p4ss' }, args = [] } }\n",
        &["old", "K = \"…\""],
    );
    check_redacted(
        "codex",
        ".codex/config.toml",
        "[mcp_servers.fetchwell]\ncommand = \"old\"\n# p4ss\nenv.T = \"s3cret\"\nargs = []\n",
        &["- …old\"", "# …", "env.T = \"…\""],
    );
}

/// Checks that a file is refused with a code and a snippet, and that nothing changes.
#[track_caller]
fn check_refused(home: &Home, code: &str, part: &str) {
    let files = home.files();
    let (exit_code, report) = configure(home);
    assert_eq!((exit_code, &report["state"]), (Some(1), &"refused".into()), "{report}");
    assert_eq!(report["problem"]["code"], code, "{report}");
    assert!(report["problem"]["message"].as_str().unwrap().contains(part), "{report}");
    let snippet: Value = serde_json::from_str(report["problem"]["snippet"].as_str().unwrap()).unwrap();
    assert_eq!(snippet["mcpServers"]["fetchwell"]["args"][0], "serve");
    assert_eq!(home.files(), files);
    // The text names the file, the reason and the snippet.
    let output = home.setup(&["--no-import", "--client", "cursor"]);
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("is left as it is") && shown.contains("\"mcpServers\""), "{shown}");
    assert!(!shown.contains("s3cret"), "{shown}");
}

#[test]
fn files_that_cannot_be_changed_are_left_as_they_are() {
    for (before, code, part) in [
        ("{\"a\": \"s3cret\",\n  b}", "invalid_syntax", "in line 2"),
        ("[\"s3cret\"]", "unexpected_shape", "the whole in it is not an object"),
        ("{\"mcpServers\": [\"s3cret\"]}", "unexpected_shape", "`mcpServers`"),
        ("{\"mcpServers\": {\"fetchwell\": {\"url\": \"https://a\"}}}", "other_server", "at a URL"),
        ("{\"mcpServers\": {\"fetchwell\": {\"args\": [/* a */]}}}", "lossy", "lose comments"),
    ] {
        let home = home();
        home.write(FILE, before);
        check_refused(&home, code, part);
    }
    let read_only = home();
    read_only.write(FILE, "{}");
    fs::set_permissions(read_only.path(FILE), fs::Permissions::from_mode(0o444)).unwrap();
    check_refused(&read_only, "read_only", "read-only");
    let folder = home();
    fs::create_dir_all(folder.path(FILE)).unwrap();
    check_refused(&folder, "not_a_file", "not a file");
    let binary = home();
    binary.write(FILE, "");
    fs::write(binary.path(FILE), b"{\"a\": \"\xFF\"}").unwrap();
    check_refused(&binary, "not_utf8", "UTF-8");
    let dangling = home();
    fs::create_dir_all(dangling.path(".cursor")).unwrap();
    symlink("gone.json", dangling.path(FILE)).unwrap();
    check_refused(&dangling, "dangling_link", "gone.json, which does not exist");
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("mcp.json"), "{}").unwrap();
    let outside = home();
    fs::create_dir_all(outside.path(".cursor")).unwrap();
    symlink(elsewhere.path().join("mcp.json"), outside.path(FILE)).unwrap();
    check_refused(&outside, "outside_home", "outside of your home folder");
    assert_eq!(fs::read_to_string(elsewhere.path().join("mcp.json")).unwrap(), "{}");
}
