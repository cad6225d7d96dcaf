//! Builds of a configuration that hides streams.

use fetchwell_source::contract::{BuildMode, EmbeddedStreams};

use super::*;

/// Texts of the stream `secret` begin with word100.
#[tokio::test]
async fn hidden_streams_are_embedded_when_they_are_shown() {
    let shown = || EmbeddedStreams::only(vec!["notes".parse().unwrap()]);
    let (notes, model) = (Notes::new(6), BagOfWords::new("a"));
    notes.put("secret", 100..109);
    let missing = |streams: &EmbeddedStreams| {
        vector_status(&notes.store, streams).unwrap().current.map(|current| current.missing_records)
    };
    let estimate = estimate_build(&notes.store, &*model, BuildMode::Missing, &shown()).unwrap();
    assert_eq!((estimate.records, estimate.embedded), (6, 6));
    let done = notes.build_streams(&model, BuildMode::Missing, shown()).await.unwrap();
    assert_eq!((done.records, done.embedded, model.embedded()), (6, 6, 6));
    assert_eq!((missing(&shown()), missing(&EmbeddedStreams::default())), (Some(0), Some(9)));
    // Both streams change while one is hidden.
    notes.put("secret", 109..111);
    notes.write("secret", [(100, Change::Delete { deleted_at: None })]);
    notes.put("notes", 6..8);
    assert_eq!((missing(&shown()), missing(&EmbeddedStreams::default())), (Some(2), Some(13)));
    notes.build_streams(&model, BuildMode::Missing, shown()).await.unwrap();
    assert_eq!((model.embedded(), missing(&shown())), (8, Some(0)));
    let estimate = |model: &BagOfWords| {
        estimate_build(&notes.store, model, BuildMode::Missing, &EmbeddedStreams::default()).unwrap()
    };
    assert_eq!((estimate(&model).embedded, missing(&EmbeddedStreams::default())), (10, Some(10)));
    // The build that shows the stream is interrupted, and continues.
    let failing = BagOfWords::with("a", 4, 0);
    notes.build(&failing, BuildMode::Missing).await.unwrap_err();
    assert_eq!(missing(&EmbeddedStreams::default()), Some(6));
    assert_eq!(notes.build_streams(&model, BuildMode::Missing, shown()).await.unwrap().embedded, 0);
    notes.build(&model, BuildMode::Missing).await.unwrap();
    assert_eq!((model.embedded(), missing(&EmbeddedStreams::default())), (14, Some(0)));
    assert_eq!(notes.status().current.unwrap().chunks, 18);
    let best = notes.search(&model, "word108 topic3", &VectorScope::default());
    assert!(best[0].score > best[1].score, "{best:?}");
    // A record that changes while its stream is hidden loses its vector, and gets one later.
    notes.put_texts("secret", [(108, "something quite different".to_owned())]);
    notes.put("notes", 8..9);
    notes.build_streams(&model, BuildMode::Missing, shown()).await.unwrap();
    assert_eq!((model.embedded(), notes.status().current.unwrap().chunks), (15, 18));
    assert_eq!(notes.build(&model, BuildMode::Missing).await.unwrap().embedded, 1);
    assert_eq!(notes.status().current.unwrap().chunks, 19);
}
