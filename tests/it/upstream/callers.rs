//! Commands beside sources that each caller signs in to.

use serde_json::Value;

use crate::support::{binary, demo_store, stderr, stdout, text};

#[test]
fn sources_of_callers_are_named_only_where_they_would_be_read() {
    let (folder, _store) = demo_store();
    let config = folder.path().join("fetchwell.toml");
    let tables = [
        "public_url = \"https://records.example.com\"\n",
        "[auth]\nissuer = \"https://login.example.com\"\n",
        "[[auth.token]]\nname = \"ann\"\nsha256 = \"000000000000000000000000000000000000000000000000000000000000000a\"\n",
        "[[source]]\nname = \"demo\"\nstore = \"demo.db\"\n",
        "[[source]]\nname = \"wiki\"\nmcp = \"https://wiki.example.com/mcp\"\ncredential = \"caller\"\n",
        "[[source]]\nname = \"mail\"\nurl = \"https://mail.example.com\"\ncredential = \"caller\"\n",
    ];
    std::fs::write(&config, tables.concat()).unwrap();
    let run =
        |arguments: &[&str]| binary().args(arguments).args(["--config", text(&config)]).output().unwrap();
    let searched = stdout(&run(&["search", "invoice", "--json"]));
    let searched: Value = serde_json::from_str(&searched).unwrap();
    let id = searched["results"][0]["id"].as_str().unwrap();
    let connection = id.split('/').next().unwrap();
    for (arguments, named) in [
        (&["search", "invoice"][..], 1),
        (&["connections"], 1),
        (&["search", "invoice", "--connection-id", connection], 0),
        (&["fetch", id], 0),
    ] {
        let output = run(arguments);
        stdout(&output);
        for source in ["wiki", "mail"] {
            let part = format!("the source `{source}` did not answer (reauthorize); ");
            assert_eq!(stderr(&output).matches(&part).count(), named, "{arguments:?}: {output:?}");
        }
        assert_eq!(stderr(&output).lines().count(), 2 * named, "{arguments:?}: {output:?}");
    }
}
