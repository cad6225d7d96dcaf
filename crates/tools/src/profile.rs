//! Profiles: lists of tools for a kind of client.

/// A list of tools for a kind of client. A flag or the path of a request chooses it; fetchwell never looks at the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Profile {
    /// All tools with all their arguments.
    #[default]
    Standard,
    /// Exactly `search(query)` and `fetch(id)`, as ChatGPT's deep research requires.
    OpenAi,
    /// Document search: `search_docs`, `get_document` and `list_categories`.
    Docs,
}
