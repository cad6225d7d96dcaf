//! The rules of a store of documents as tests that every implementation runs.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_core::record::RecordData;
use fetchwell_source::SearchMode;
use fetchwell_source::contract::EMBEDDING_DIMENSIONS;
use fetchwell_source::documents::{
    Candidates, Category, CommitSummary, Document, DocumentChange, DocumentList, DocumentRef, DocumentSearch,
    DocumentStore, Feedback, GroupValue, NewDocument, NewProject, NewSearch, Project, ProjectRef,
    ProjectSettings, SearchGrouping, StageSender, Uuid, content_hash,
};
use serde_json::json;

/// Store whose projects a test can remove.
#[async_trait]
pub trait TestedStore: DocumentStore {
    /// Removes a project with its documents, chunks and history, as the command `project remove` does. Returns false if there
    /// is none.
    async fn remove_project(&self, project: Uuid) -> bool;
}

/// Runs all rules on an empty store.
pub async fn check(store: &dyn TestedStore) {
    projects_have_unique_slugs(store).await;
    documents_keep_their_ids(store).await;
    chunks_tile_the_text(store).await;
    commits_are_counted_once(store).await;
    lists_are_in_the_order_of_paths(store).await;
    projects_are_apart(store).await;
    searches_find_chunks(store).await;
    history_takes_feedback(store).await;
    a_removed_project_leaves_nothing(store).await;
}

/// Creates a project.
pub async fn project(store: &dyn DocumentStore, slug: &str) -> Project {
    store.create_project(&new_project(slug)).await.unwrap().unwrap()
}

/// Writes one document and returns it.
pub async fn put(store: &dyn DocumentStore, project: &Project, path: &str, text: &str) -> Document {
    let change = DocumentChange::Put(new_document(path, text));
    store.commit(project.id, vec![change]).await.unwrap().unwrap();
    at(store, project, path).await.unwrap()
}

/// Creates a search for the history.
pub fn new_search(query: &str) -> NewSearch {
    NewSearch {
        id: Uuid::random().unwrap(),
        query: query.to_owned(),
        query_embedding: Some(vec![0.5; EMBEDDING_DIMENSIONS].into()),
        result_ids: vec![Uuid::random().unwrap()],
        latency_ms: 7,
        cache_hit: false,
        caller: None,
    }
}

fn new_project(slug: &str) -> NewProject {
    let slug: fetchwell_source::documents::ProjectSlug = slug.parse().unwrap();
    let settings = ProjectSettings { history_days: Some(7), ..ProjectSettings::default() };
    NewProject { name: (&slug).into(), slug, settings }
}

fn new_document(path: &str, text: &str) -> NewDocument {
    NewDocument {
        path: path.parse().unwrap(),
        title: Some(format!("Title of {path}")),
        category: Category::general(),
        metadata: RecordData::new(),
        text: text.to_owned(),
    }
}

async fn at(store: &dyn DocumentStore, project: &Project, path: &str) -> Option<Document> {
    store.document(project.id, &DocumentRef::Path(path.parse().unwrap())).await.unwrap()
}

async fn commit(store: &dyn DocumentStore, project: &Project, changes: Vec<DocumentChange>) -> CommitSummary {
    store.commit(project.id, changes).await.unwrap().unwrap()
}

async fn reread(store: &dyn DocumentStore, project: &Project) -> Project {
    store.project(&ProjectRef::Id(project.id)).await.unwrap().unwrap()
}

async fn find(
    store: &dyn DocumentStore,
    project: &Project,
    text: &str,
    category: Option<&str>,
) -> Candidates {
    let category = category.map(|category| category.parse().unwrap());
    let mode = SearchMode::Lexical;
    let (text, topic) = (text.to_owned(), text.to_owned());
    let search = DocumentSearch { text, topic, category, mode, depth: 50 };
    store.search(project, &search, &StageSender::default()).await.unwrap()
}

async fn projects_have_unique_slugs(store: &dyn DocumentStore) {
    let created = project(store, "slugs").await;
    assert_eq!((created.name.as_str(), created.corpus_version), ("slugs", 1));
    assert_eq!(created.settings, new_project("slugs").settings);
    assert_eq!(store.create_project(&new_project("slugs")).await.unwrap(), None);
    let by_slug = store.project(&"slugs".parse().unwrap()).await.unwrap().unwrap();
    assert_eq!((&by_slug, &reread(store, &created).await), (&created, &created));
    assert_eq!(store.project(&"none".parse().unwrap()).await.unwrap(), None);
    assert!(store.projects().await.unwrap().contains(&created));
    assert_eq!(store.commit(Uuid::random().unwrap(), Vec::new()).await.unwrap(), None);
}

async fn documents_keep_their_ids(store: &dyn DocumentStore) {
    let project = project(store, "ids").await;
    let first = put(store, &project, "a/b.md", "one").await;
    assert_eq!((first.project_id, first.title.as_deref()), (project.id, Some("Title of a/b.md")));
    assert_eq!(first.content_hash, content_hash("one"));
    tokio::time::sleep(Duration::from_millis(5)).await;
    let second = put(store, &project, "a/b.md", "two").await;
    assert_eq!((second.id, &second.created_at), (first.id, &first.created_at));
    assert!(second.updated_at > first.updated_at, "{second:?}");
    assert_eq!(store.text(project.id, first.id).await.unwrap().as_deref(), Some("two"));
    let long = NewDocument { title: Some("é".repeat(501)), ..new_document("long.md", "x") };
    commit(store, &project, vec![DocumentChange::Put(long)]).await;
    assert_eq!(at(store, &project, "long.md").await.unwrap().title.unwrap().chars().count(), 500);
    let untitled = NewDocument { title: None, ..new_document("untitled.md", "x") };
    commit(store, &project, vec![DocumentChange::Put(untitled)]).await;
    assert_eq!(at(store, &project, "untitled.md").await.unwrap().title, None);
    let tags = json!({"tags": ["a"]}).as_object().unwrap().clone();
    let tagged = NewDocument { metadata: tags.clone(), ..new_document("tagged.md", "x") };
    commit(store, &project, vec![DocumentChange::Put(tagged)]).await;
    assert_eq!(at(store, &project, "tagged.md").await.unwrap().metadata, tags);
}

async fn chunks_tile_the_text(store: &dyn DocumentStore) {
    let project = project(store, "tiles").await;
    for text in [
        String::new(),
        "\u{FEFF}# Title\r\n\r\nText with é and 😀.\r\n".to_owned(),
        "# A\n\nOne two three four five six seven.\n\n".repeat(300),
    ] {
        let document = put(store, &project, "a.md", &text).await;
        let chunks = store.chunks(project.id, document.id, 0..u32::MAX).await.unwrap();
        let whole: String = chunks.iter().map(|chunk| chunk.content.as_str()).collect();
        assert!(whole == text, "{} chunks", chunks.len());
        assert!(store.text(project.id, document.id).await.unwrap().unwrap() == text);
        for (number, chunk) in (0..).zip(&chunks) {
            assert_eq!(
                (chunk.chunk_index, chunk.document_id, chunk.project_id),
                (number, document.id, project.id)
            );
            let content: String = text
                .chars()
                .skip(chunk.metadata.start)
                .take(chunk.metadata.end - chunk.metadata.start)
                .collect();
            assert_eq!(content, chunk.content);
            assert!(chunk.token_count > 0);
        }
        let some = store.chunks(project.id, document.id, 1..3).await.unwrap();
        assert_eq!(some.as_slice(), chunks.get(1..3.min(chunks.len())).unwrap_or_default());
    }
}

async fn commits_are_counted_once(store: &dyn DocumentStore) {
    let project = project(store, "commits").await;
    let two = ["a.md", "b.md"].map(|path| DocumentChange::Put(new_document(path, path)));
    let first = commit(store, &project, two.to_vec()).await;
    assert_eq!((first.added, first.corpus_version), (2, 2));
    let chunks = store.chunks(project.id, at(store, &project, "a.md").await.unwrap().id, 0..9).await.unwrap();
    let again = commit(store, &project, two.to_vec()).await;
    assert_eq!(again, CommitSummary { corpus_version: 2, ..CommitSummary::default() });
    let mut renamed = new_document("a.md", "a.md");
    renamed.title = Some("Other".to_owned());
    let changed = commit(store, &project, vec![DocumentChange::Put(renamed)]).await;
    assert_eq!((changed.changed, changed.corpus_version), (1, 3));
    let same = store.chunks(project.id, at(store, &project, "a.md").await.unwrap().id, 0..9).await.unwrap();
    assert_eq!(same, chunks, "the chunks of equal text stay");
    let gone = DocumentChange::Delete("a.md".parse().unwrap());
    let deleted = commit(store, &project, vec![gone.clone()]).await;
    assert_eq!((deleted.deleted, deleted.corpus_version), (1, 4));
    assert_eq!(commit(store, &project, vec![gone]).await.corpus_version, 4);
    assert_eq!(at(store, &project, "a.md").await, None);
    let chunk = chunks.first().unwrap();
    assert!(store.passages(project.id, &[chunk.id]).await.unwrap().is_empty());
    assert_eq!(reread(store, &project).await.corpus_version, 4);
}

async fn lists_are_in_the_order_of_paths(store: &dyn DocumentStore) {
    let project = project(store, "lists").await;
    let document = |path: &str, category: &str| {
        let category = category.parse().unwrap();
        DocumentChange::Put(NewDocument { category, ..new_document(path, path) })
    };
    let changes =
        vec![document("c.md", "research"), document("a.md", "general"), document("b.md", "research")];
    commit(store, &project, changes).await;
    let list = async |category: Option<&str>, after: Option<&str>| {
        let category = category.map(|category| category.parse().unwrap());
        let list = DocumentList { category, after: after.map(|path| path.parse().unwrap()), limit: 2 };
        let documents = store.documents(project.id, &list).await.unwrap();
        documents.iter().map(|document| document.path.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(list(None, None).await, ["a.md", "b.md"]);
    assert_eq!(list(None, Some("b.md")).await, ["c.md"]);
    assert_eq!(list(Some("research"), None).await, ["b.md", "c.md"]);
    let categories = store.categories(project.id).await.unwrap();
    let counts: Vec<(&str, u64)> =
        categories.iter().map(|count| (count.category.as_str(), count.documents)).collect();
    assert_eq!(counts, [("general", 1), ("research", 2)]);
}

async fn projects_are_apart(store: &dyn DocumentStore) {
    let (one, other) = (project(store, "apart-1").await, project(store, "apart-2").await);
    let of_one = put(store, &one, "same.md", "the zebra of one").await;
    let of_other = put(store, &other, "same.md", "the zebra of the other").await;
    assert_ne!(of_one.id, of_other.id);
    assert_eq!(store.document(one.id, &DocumentRef::Id(of_other.id)).await.unwrap(), None);
    assert_eq!(store.text(one.id, of_other.id).await.unwrap(), None);
    assert!(store.chunks(one.id, of_other.id, 0..9).await.unwrap().is_empty());
    let found = find(store, &other, "zebra", None).await.chunks;
    let ids: Vec<Uuid> = found.iter().map(|candidate| candidate.chunk).collect();
    assert_eq!(ids.len(), 1);
    assert!(store.passages(one.id, &ids).await.unwrap().is_empty());
    let passages = store.passages(other.id, &ids).await.unwrap();
    assert_eq!(passages.first().unwrap().document, of_other);
}

async fn searches_find_chunks(store: &dyn DocumentStore) {
    let project = project(store, "searches").await;
    assert!(find(store, &project, "anything", Some("research")).await.chunks.is_empty());
    let filler = "Nothing of interest is said in this sentence at all.\n\n".repeat(60);
    let text = format!("# Guide\n\n{filler}## Tokens\n\nJWT tokens expire after an hour.\n\n{filler}");
    put(store, &project, "guide.md", &text).await;
    let other = NewDocument {
        category: "research".parse().unwrap(),
        ..new_document("other.md", "A note on tokens, and nothing else.")
    };
    let version = commit(store, &project, vec![DocumentChange::Put(other)]).await.corpus_version;
    let found = find(store, &project, "when do JWT tokens expire", None).await;
    assert_eq!(found.corpus_version, version);
    let ids: Vec<Uuid> = found.chunks.iter().map(|candidate| candidate.chunk).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "no chunk is found twice");
    let passages = store.passages(project.id, &ids).await.unwrap();
    assert_eq!(passages.iter().map(|passage| passage.chunk.id).collect::<Vec<_>>(), ids);
    let first = passages.first().unwrap();
    assert!(first.chunk.content.contains("JWT tokens expire"), "{first:?}");
    assert!(first.chunk.chunk_index > 0);
    for pair in found.chunks.windows(2) {
        assert!(pair[0].score >= pair[1].score && pair[1].score >= 0.0 && pair[0].score <= 1.0, "{found:?}");
    }
    let narrow = find(store, &project, "tokens", Some("research")).await.chunks;
    let narrow: Vec<Uuid> = narrow.iter().map(|candidate| candidate.chunk).collect();
    let only = store.passages(project.id, &narrow).await.unwrap();
    assert_eq!(only.iter().map(|passage| passage.document.path.as_str()).collect::<Vec<_>>(), ["other.md"]);
    assert!(find(store, &project, "tokens", Some("process")).await.chunks.is_empty());
    assert!(find(store, &project, "???", None).await.chunks.is_empty());
}

async fn history_takes_feedback(store: &dyn DocumentStore) {
    let project = project(store, "history").await;
    let (first, second) = (new_search("first"), new_search("second"));
    store.remember_search(project.id, &first).await.unwrap();
    tokio::time::sleep(Duration::from_millis(5)).await;
    store.remember_search(project.id, &second).await.unwrap();
    let history = store.history(project.id, 10).await.unwrap();
    assert_eq!(history.iter().map(|search| search.query.as_str()).collect::<Vec<_>>(), ["second", "first"]);
    let newest = history.first().unwrap();
    assert_eq!((newest.id, &newest.result_ids, newest.feedback), (second.id, &second.result_ids, None));
    assert!(store.set_feedback(second.id, None, Some(Feedback::NotHelpful)).await.unwrap());
    let of_second = async || store.history(project.id, 1).await.unwrap().pop().unwrap().feedback;
    assert_eq!(of_second().await, Some(Feedback::NotHelpful));
    assert!(store.set_feedback(second.id, None, None).await.unwrap());
    assert_eq!(of_second().await, None);
    assert!(!store.set_feedback(Uuid::random().unwrap(), None, None).await.unwrap());
    assert!(
        store.set_feedback(second.id, Some("ann"), None).await.unwrap(),
        "a search of no caller takes any"
    );
    let of_ann = NewSearch { caller: Some("ann".to_owned()), ..new_search("third") };
    store.remember_search(project.id, &of_ann).await.unwrap();
    for (caller, expect) in [(None, false), (Some("bob"), false), (Some("ann"), true)] {
        assert_eq!(store.set_feedback(of_ann.id, caller, Some(Feedback::Helpful)).await.unwrap(), expect);
    }
    assert_eq!(reread(store, &project).await.corpus_version, 1, "a search is no change of the corpus");
    store
        .remember_search(project.id, &NewSearch { cache_hit: true, latency_ms: 90, ..new_search("fourth") })
        .await
        .unwrap();
    let groups = async |by| {
        let groups = store.search_groups(project.id, by).await.unwrap().into_iter();
        groups
            .map(|group| (group.value, group.count, group.latency_ms.p50, group.latency_ms.p95))
            .collect::<Vec<_>>()
    };
    let flag = GroupValue::Flag;
    assert_eq!(groups(SearchGrouping::CacheHit).await, [(flag(false), 3, 7, 7), (flag(true), 1, 90, 90)]);
    let helpful = GroupValue::Text("helpful".to_owned());
    assert_eq!(groups(SearchGrouping::Feedback).await, [(GroupValue::None, 3, 7, 90), (helpful, 1, 7, 7)]);
    let days = groups(SearchGrouping::Day).await;
    let day = store.history(project.id, 1).await.unwrap().pop().unwrap().created_at;
    assert_eq!(days.first().unwrap().0, GroupValue::Text(day.get(..10).unwrap().to_owned()));
    // The searches may be on both sides of midnight.
    assert_eq!(days.iter().map(|day| day.1).sum::<u64>(), 4);
}

async fn a_removed_project_leaves_nothing(store: &dyn TestedStore) {
    let removed = project(store, "removed").await;
    let document = put(store, &removed, "a.md", "text").await;
    let search = new_search("x");
    store.remember_search(removed.id, &search).await.unwrap();
    assert!(store.remove_project(removed.id).await);
    assert!(!store.remove_project(removed.id).await);
    assert_eq!(store.project(&"removed".parse().unwrap()).await.unwrap(), None);
    assert_eq!(store.document(removed.id, &DocumentRef::Id(document.id)).await.unwrap(), None);
    assert!(store.history(removed.id, 9).await.unwrap().is_empty());
    assert!(!store.set_feedback(search.id, None, None).await.unwrap());
    let again = project(store, "removed").await;
    assert_ne!(again.id, removed.id);
    assert_eq!(at(store, &again, "a.md").await, None);
}
