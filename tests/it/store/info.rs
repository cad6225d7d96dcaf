//! `fetchwell store info`.

use serde_json::{Value, json};

use crate::support::{demo_store, fetchwell, stdout, text};

#[test]
fn store_info_counts_connections_streams_and_bytes() {
    let (_folder, store) = demo_store();
    stdout(&fetchwell(["search", "invoice", "--store", text(&store)]));
    let info: Value =
        serde_json::from_str(&stdout(&fetchwell(["store", "info", "--store", text(&store), "--json"])))
            .unwrap();
    assert_eq!((&info["records"], &info["version"], &info["format"]), (&json!(14), &json!(14), &json!(2)));
    assert_eq!(info["connections"].as_array().unwrap().len(), 2);
    let records: u64 = info["connections"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|connection| connection["streams"].as_array().unwrap())
        .map(|stream| stream["records"].as_u64().unwrap())
        .sum();
    assert_eq!(records, 14);
    assert_eq!(info["bytes"]["records"], std::fs::metadata(&store).unwrap().len());
    let index: u64 = std::fs::read_dir(store.with_file_name("demo.db-index"))
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum();
    assert_eq!(info["bytes"]["index"], index);
    let shown = stdout(&fetchwell(["store", "info", "--store", text(&store)]));
    assert!(shown.contains("14 records") && shown.contains("cin_home  Home"), "{shown}");
}
