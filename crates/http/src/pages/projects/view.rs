//! HTML of projects, documents and chunks.

use fetchwell_source::documents::{Category, CategoryCount, Document, DocumentChunk};
use fetchwell_tools::documents::FoundProject;
use maud::{Markup, html};

use super::paths::{project_path, record_path};
use crate::pages::access::parameters;
use crate::pages::layout::{quantity, sentence, time};

/// A page of documents.
pub(super) struct DocumentPage<'a> {
    pub(super) found: &'a FoundProject,
    pub(super) documents: &'a [Document],
    pub(super) categories: &'a [CategoryCount],
    /// Category of the documents; `None` for all.
    pub(super) category: Option<Category>,
    pub(super) is_first: bool,
    pub(super) has_more: bool,
}

/// A page of chunks.
pub(super) struct ChunkList<'a> {
    pub(super) found: &'a FoundProject,
    pub(super) document: &'a Document,
    pub(super) chunks: &'a [DocumentChunk],
    /// Path of the page of the document's record.
    pub(super) record: Option<String>,
    /// Number of the first chunk.
    pub(super) first: u32,
    /// Number of chunks on a page.
    pub(super) size: u32,
    pub(super) has_more: bool,
}

/// Renders the list of projects with the number of documents of each category.
pub(super) fn projects(rows: &[(FoundProject, Vec<CategoryCount>)]) -> Markup {
    html! {
        h1 { "Document projects" }
        @if rows.is_empty() {
            p { "There are no projects. Create one with " code { "fetchwell project create SLUG" } "." }
        } @else {
            div class="scroll" tabindex="0" role="group" aria-label="Projects" {
                table {
                    thead { tr { th scope="col" { "Project" } th scope="col" { "Slug" } th scope="col" class="number" { "Documents" } th scope="col" class="number" { "Version" } th scope="col" { "Changed" } } }
                    tbody {
                        @for (found, categories) in rows {
                            tr {
                                th scope="row" { a href=(project_path(found)) { bdi lang="" { (found.project.name) } } }
                                td { code { (found.connection.as_str()) } }
                                td class="number" { (quantity(total(categories))) }
                                td class="number" { (found.project.corpus_version) }
                                td { (time(&found.project.updated_at)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Renders a page of documents in the order of their paths.
pub(super) fn documents(page: &DocumentPage<'_>) -> Markup {
    let project = project_path(page.found);
    let category = page.category.as_ref().map(Category::as_str).unwrap_or_default();
    let search = format!("/{}", parameters(&[("account", page.found.connection.as_str())]));
    html! {
        h1 { bdi lang="" { (page.found.project.name) } }
        p class="meta soft" {
            span { (quantity(total(page.categories))) " documents" }
            span { "version " (page.found.project.corpus_version) }
            span { "changed " (time(&page.found.project.updated_at)) }
            span { a href=(search) { "Search this project" } }
        }
        nav class="pages" aria-label="Categories" {
            a href=(project) aria-current=[category.is_empty().then_some("page")] { "All" }
            @for known in page.categories {
                a href={ (project) (parameters(&[("category", known.category.as_str())])) } aria-current=[(known.category.as_str() == category).then_some("page")] {
                    (known.category.as_str()) " (" (quantity(known.documents)) ")"
                }
            }
        }
        @if page.documents.is_empty() { p { "There are no documents here." } }
        @else {
            div class="scroll" tabindex="0" role="group" aria-label="Documents" {
                table {
                    thead { tr { th scope="col" { "Path" } th scope="col" { "Title" } th scope="col" { "Category" } th scope="col" { "Changed" } th scope="col" { "Chunks" } } }
                    tbody { @for document in page.documents { (document_row(page.found, &project, document)) } }
                }
            }
        }
        nav class="pages" aria-label="Pages of documents" {
            @if !page.is_first { a href={ (project) (parameters(&[("category", category)])) } { "First page" } }
            @if let Some(last) = page.documents.last().filter(|_| page.has_more) {
                a href={ (project) (parameters(&[("category", category), ("after", last.path.as_str())])) } rel="next" { "Next page" }
            }
            a href="/projects" { "All projects" }
        }
    }
}

fn document_row(found: &FoundProject, project: &str, document: &Document) -> Markup {
    let path = html! { bdi lang="" { (document.path.as_str()) } };
    html! {
        tr {
            th scope="row" class="path" {
                @match record_path(found, document.id) {
                    Some(record) => a href=(record) { (path) },
                    None => (path),
                }
            }
            td dir="auto" lang="" { (document.title.as_deref().unwrap_or_default()) }
            td { (document.category.as_str()) }
            td { (time(&document.updated_at)) }
            td { a href={ (project) "/" (document.id) } aria-label={ "Chunks of " (document.path.as_str()) } { "Chunks" } }
        }
    }
}

/// Renders chunks of a document. Together they are its text.
pub(super) fn chunks(list: &ChunkList<'_>) -> Markup {
    let project = project_path(list.found);
    let own = format!("{project}/{}", list.document.id);
    let from = |first: u32| format!("{own}?from={first}");
    html! {
        h1 dir="auto" lang="" { (list.document.title.as_deref().unwrap_or(list.document.path.as_str())) }
        p class="meta soft" {
            span { bdi lang="" { (list.document.path.as_str()) } }
            span { (list.document.category.as_str()) }
            span { "changed " (time(&list.document.updated_at)) }
        }
        @if list.chunks.is_empty() { p { "There are no chunks here." } }
        @for chunk in list.chunks {
            section class="text" id={ "chunk-" (chunk.chunk_index) } {
                h2 { "Chunk " (chunk.chunk_index) }
                p class="meta soft" {
                    @if !chunk.metadata.heading_path.is_empty() { span { bdi lang="" { (chunk.metadata.heading_path) } } }
                    span { (chunk.token_count) " tokens" }
                    span { "bytes " (chunk.metadata.start) " to " (chunk.metadata.end) }
                }
                pre class="plain" dir="auto" lang="" { "\n" (chunk.content) }
            }
        }
        nav class="pages" aria-label="This document" {
            @if list.first > 0 { a href=(from(list.first.saturating_sub(list.size))) rel="prev" { "Previous chunks" } }
            @if list.has_more { a href=(from(list.first.saturating_add(list.size))) rel="next" { "Next chunks" } }
            @if let Some(record) = &list.record { a href=(record) { "Whole document" } }
            a href=(project) { "All documents" }
        }
    }
}

/// Renders a page that cannot be shown.
pub(super) fn failure(problem: &str) -> Markup {
    html! {
        h1 { "It cannot be shown" }
        p { (sentence(problem)) }
        p { a href="/projects" { "All projects" } }
    }
}

fn total(categories: &[CategoryCount]) -> u64 {
    categories.iter().map(|category| category.documents).sum()
}
