//! Texts that the model refuses: their records have no vectors, and the others are embedded.

use fetchwell_source::contract::{BuildMode, BuildProgress, VectorError};

use super::*;

/// Returns a model that refuses no word.
fn accepting(id: &str) -> Arc<BagOfWords> {
    let model = BagOfWords::with(id, usize::MAX, 0);
    Arc::new(BagOfWords { refuses: false, ..Arc::into_inner(model).unwrap() })
}

#[tokio::test]
async fn a_refused_text_does_not_keep_others_from_being_embedded() {
    let (notes, model) = (Notes::new(10), BagOfWords::new("a"));
    notes.put_texts("notes", [(3, format!("{REFUSED_WORD} three")), (8, format!("{REFUSED_WORD} eight"))]);
    let refused = |result: Result<BuildProgress, VectorError>| match result {
        Err(VectorError::RefusedRecords { records }) => records,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(notes.build(&model, BuildMode::Missing).await), 2);
    let status = notes.status().current.unwrap();
    assert_eq!((status.chunks, status.missing_records), (8, 2));
    // The next build tries them again. A refused text can be alone in its batch.
    notes.put_texts("notes", [(20, REFUSED_WORD.to_owned())]);
    assert_eq!(refused(notes.build(&model, BuildMode::Missing).await), 3);
    notes.put_texts("notes", [(3, "three again".to_owned())]);
    notes.write("notes", [(8, Change::Delete { deleted_at: None })]);
    assert_eq!(notes.status().current.unwrap().missing_records, 3);
    assert_eq!(refused(notes.build(&model, BuildMode::Missing).await), 1);
    let status = notes.status().current.unwrap();
    assert_eq!((status.chunks, status.missing_records), (9, 1));
    // Another service of the model accepts the text.
    let accepting = accepting("a");
    notes.build(&accepting, BuildMode::Missing).await.unwrap();
    let status = notes.status().current.unwrap();
    assert_eq!((accepting.embedded(), status.chunks, status.missing_records), (1, 10, 0));
}
