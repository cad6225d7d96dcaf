//! `fetchwell setup --model`: a model for search by meaning, from a hub on loopback.

use serde_json::Value;

use super::Home;
use crate::support::model_hub::{ModelHub, Mood, REPOSITORY, TOKEN};
use crate::support::{stderr, stdout, text};

#[test]
fn clients_search_by_meaning_with_an_installed_model() {
    let (hub, home) = (ModelHub::start(), Home::with_records());
    let setup = |arguments: &[&str]| {
        let mut command = home.command(&[&["setup", "--json"], arguments].concat());
        command.env("HF_ENDPOINT", &hub.hub.url).env("HF_TOKEN", TOKEN).output().unwrap()
    };
    let chosen = ["--import", "Vault", "--client", "cursor", "--model", "english"];
    // A plan downloads nothing, and a hub that fails leaves the rest of the work done.
    let planned = setup(&[&chosen[..], &["--dry-run"]].concat());
    assert!(stderr(&planned).contains("would install the English model"), "{planned:?}");
    hub.set(Mood::Status(503, "", Vec::new()));
    let failed = setup(&chosen);
    assert!(!failed.status.success() && stderr(&failed).contains("no model is installed"), "{failed:?}");
    assert!(home.read(".cursor/mcp.json").contains("--store"));
    hub.set(Mood::Healthy);
    let done: Value = serde_json::from_str(&stdout(&setup(&chosen))).unwrap();
    let folder = home.path("data/fetchwell/models").join(REPOSITORY.replace('/', "--"));
    assert_eq!(done["model"]["folder"], text(&folder), "{done}");
    let config = home.read(".config/fetchwell/config.toml");
    for part in [text(&folder), text(&home.store())] {
        assert!(config.contains(part), "{part}: {config}");
    }
    // A server of the store alone would not read the model.
    let client = home.read(".cursor/mcp.json");
    assert!(client.contains("--config") && !client.contains("--store"), "{client}");
    let found = stdout(&home.command(&["search", "boat", "--mode", "semantic", "--json"]).output().unwrap());
    assert!(found.contains("Trip"), "{found}");
    // The next run changes nothing.
    let files = home.files();
    let requests = hub.hub.requests().len();
    stdout(&setup(&["--import", "Vault", "--client", "cursor"]));
    assert_eq!((home.files(), hub.hub.requests().len()), (files, requests));
}
