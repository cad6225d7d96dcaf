//! Searches of a record server, in the modes that it has.
//!
//! * `with_meaning`: mode `auto`, which adds hits by meaning where the server declares such a search
//! * `explained`: the reasons for the places of hits
//! * `any_words`: searches for the words of a query one by one, on servers that need all of them

mod any_words;
mod explained;
mod with_meaning;

use fetchwell_source::query::{filter_hits, has_words, page_without_words};
use fetchwell_source::{
    QueryFault, SearchMode, SearchPage, SearchPosition, SearchQuery, SourceError, StageClock,
};

use self::explained::{explain_words, note_ranks};
use super::client::Client;
use super::params::Params;
use super::record_path::add_record_url;
use super::transport::parsed;
use super::{refused, wire};

/// Prefix of the server's cursor in the position of a lexical search that replaced another mode. The next page is
/// lexical too, even if the server supports the mode by then.
const BY_WORDS: &str = "lexical ";

/// Path of a server's metadata (RFC 9728).
const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

/// Maximum bytes of metadata that are parsed. Larger metadata declares nothing.
const MAX_METADATA_BYTES: usize = 256 * 1024;

impl Client<'_> {
    /// Searches in a mode, or by words if the server does not have it.
    pub(crate) async fn search(&self, query: &SearchQuery) -> Result<SearchPage, SourceError> {
        if !has_words(query) {
            return Ok(page_without_words(query));
        }
        let mut clock = StageClock::start(query.explains);
        let mut page = self.search_in_mode(query).await?;
        clock.end("server");
        if query.explains {
            explain_words(&mut page.hits, query);
            clock.end("hits");
            page.stages = clock.into_stages();
        }
        Ok(page)
    }

    async fn search_in_mode(&self, query: &SearchQuery) -> Result<SearchPage, SourceError> {
        match (query.mode, &query.position) {
            (SearchMode::Lexical, _) => self.search_by_words(query).await,
            (SearchMode::Auto, _) => self.search_with_meaning(query).await,
            (_, Some(position)) if position.0.starts_with(BY_WORDS) => {
                self.search_by_words_instead(query).await
            }
            // Pages of a hybrid search have no position, so this one was issued by an earlier release for a lexical
            // search.
            (SearchMode::Hybrid, Some(_)) => self.search_by_words_instead(query).await,
            // The server said before this search that it does not have the mode.
            (mode, None) if self.declared_modes().await.excludes(mode) => {
                self.search_by_words_instead(query).await
            }
            (mode, _) => match self.search_by(mode, query).await {
                Err(SourceError::InvalidQuery { fault: QueryFault::NotSupported, .. }) => {
                    self.search_by_words_instead(query).await
                }
                answer => answer,
            },
        }
    }

    /// Returns the search methods that the server declares. A server that declares none is asked by a search.
    async fn declared_modes(&self) -> wire::DeclaredModes {
        if let Some(known) = self.known.modes() {
            return known;
        }
        let reply = self.requests.get(METADATA_PATH, &Params::default()).await;
        let modes = match reply {
            Ok(reply) if reply.body.len() > MAX_METADATA_BYTES => wire::DeclaredModes::default(),
            Ok(reply) => parsed(reply.body, wire::declared_modes).await.unwrap_or_default(),
            Err(SourceError::Refused(_)) => wire::DeclaredModes::default(),
            // A server that does not answer now may answer the next search.
            Err(_) => return wire::DeclaredModes::default(),
        };
        self.known.keep_modes(modes);
        modes
    }

    async fn search_by(&self, mode: SearchMode, query: &SearchQuery) -> Result<SearchPage, SourceError> {
        let path = match mode {
            SearchMode::Auto | SearchMode::Lexical => "/v1/search",
            SearchMode::Semantic => "/v1/search/semantic",
            SearchMode::Hybrid => "/v1/search/hybrid",
        };
        let position = query.position.as_ref();
        let params = Params::default()
            .and("q", &query.text.plain_words())
            .and("limit", &query.limit)
            .connection(query.connection.as_ref())
            .each("streams", &query.streams)
            .filter(&query.filter)
            .each("cursor", position.map(|position| &position.0));
        let reply = self.requests.get(path, &params).await;
        let reply = reply.map_err(|error| refused::of_search(error, mode));
        let reply = self.explained(reply, query.connection.as_ref(), &query.streams).await?;
        let mut page = parsed(reply.body, wire::search_page).await?;
        page.hits.iter_mut().for_each(|hit| add_record_url(hit, self.requests.provider()));
        if query.explains {
            note_ranks(&mut page.hits);
        }
        // A cursor that leads to itself would be read forever.
        page.next = page.next.filter(|next| mode != SearchMode::Hybrid && position != Some(next));
        Ok(filter_hits(page, query))
    }

    async fn search_by_words_instead(&self, query: &SearchQuery) -> Result<SearchPage, SourceError> {
        let own = |position: &SearchPosition| {
            SearchPosition(position.0.strip_prefix(BY_WORDS).unwrap_or(&position.0).to_owned())
        };
        let position = query.position.as_ref().map(own);
        let page = self.search_by_words(&SearchQuery { position, ..query.clone() }).await?;
        let next = page.next.map(|next| SearchPosition(format!("{BY_WORDS}{}", next.0)));
        Ok(SearchPage { lexical_instead: true, next, ..page })
    }
}
