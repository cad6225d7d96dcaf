//! A source with the context of one call.
//!
//! The tools and the HTTP APIs read a `BoundSource`, so that every read of a request has the context that was created for
//! it, and none of them passes it on. It reports what a call read to the audit log, if there is one.
//!
//! * `reads`: reports of records that were read

mod reads;

use fetchwell_callers::CallContext;
use fetchwell_core::handle::{ConnectionId, RecordAddress, SourceName};
use fetchwell_core::record::{HitId, Record, Schema, Unavailable, Window};
use fetchwell_telemetry::{CallAudit, ReadKind};

pub use self::reads::RecordReads;

use super::documents::DocumentStores;
use super::{
    AggregateAnswer, AggregateQuery, Change, ChangesOrigin, RecordQuery, RecordsPage, RecordsQuery,
    SearchPage, SearchQuery, SourceError, Sources, StreamAnswer, StreamQuery, WindowQuery,
};

/// A source that is read in the context of one call. Clones share the source.
#[derive(Debug, Clone)]
pub struct BoundSource {
    sources: Sources,
    context: CallContext,
    /// Audit of the call; `None` without an audit log.
    audit: Option<CallAudit>,
}

impl BoundSource {
    /// Binds a source to the context of a call.
    #[must_use]
    pub fn new(sources: impl Into<Sources>, context: CallContext) -> Self {
        Self { sources: sources.into(), context, audit: None }
    }

    /// Returns the same source in the context of another call.
    #[must_use]
    pub fn with_context(&self, context: CallContext) -> Self {
        Self { context, ..self.clone() }
    }

    /// Returns the same source, which reports what is read to the audit of a call.
    #[must_use]
    pub fn audited_by(&self, audit: Option<CallAudit>) -> Self {
        Self { audit, ..self.clone() }
    }

    /// Returns the reports of the call about what it read.
    #[must_use]
    pub fn reads(&self) -> RecordReads {
        let caller = self.audit.as_ref().and_then(|_| self.context.caller_name());
        RecordReads::new(self.audit.clone(), caller)
    }

    /// Reports a record that was read, or answered from a cache.
    pub fn report_record(&self, kind: ReadKind, address: &RecordAddress) {
        self.report_records(kind, &[address]);
    }

    fn report_records(&self, kind: ReadKind, addresses: &[&RecordAddress]) {
        let reads = self.reads();
        if reads.is_audited() {
            let source_of = |address: &RecordAddress| self.sources.source_of(address.connection.as_ref());
            reads.records(kind, addresses.iter().map(|address| (*address, source_of(address))));
        }
    }

    /// Returns the context of the call.
    #[must_use]
    pub fn context(&self) -> &CallContext {
        &self.context
    }

    /// Returns the source, which other calls share.
    #[must_use]
    pub fn shared(&self) -> &Sources {
        &self.sources
    }

    /// Returns the source of a name, in the same context: a member of a federation, or the single source itself.
    #[must_use]
    pub fn named(&self, name: &SourceName) -> Option<Self> {
        let sources = self.sources.named(name)?;
        Some(Self { sources, ..self.clone() })
    }

    /// Returns true for a federation. Its own errors name no source.
    #[must_use]
    pub fn is_federation(&self) -> bool {
        self.sources.is_federation()
    }

    /// Delegates to [`Source::name`](super::Source::name).
    #[must_use]
    pub fn name(&self) -> &SourceName {
        self.sources.source().name()
    }

    /// Delegates to [`Source::identity`](super::Source::identity).
    #[must_use]
    pub fn identity(&self) -> String {
        self.sources.source().identity()
    }

    /// Delegates to [`Source::hides_streams`](super::Source::hides_streams).
    #[must_use]
    pub fn hides_streams(&self) -> bool {
        self.sources.source().hides_streams()
    }

    /// Delegates to [`Source::health`](super::Source::health).
    ///
    /// # Errors
    ///
    /// See [`SourceError`].
    pub async fn health(&self) -> Result<Vec<Unavailable>, SourceError> {
        self.sources.source().health().await
    }

    /// Delegates to [`Source::schema`](super::Source::schema).
    ///
    /// # Errors
    ///
    /// See [`SourceError`].
    pub async fn schema(&self) -> Result<Schema, SourceError> {
        self.sources.source().schema(&self.context).await
    }

    /// Delegates to [`Source::document_stores`](super::Source::document_stores).
    ///
    /// # Errors
    ///
    /// See [`SourceError`].
    pub async fn document_stores(&self) -> Result<DocumentStores, SourceError> {
        self.sources.source().document_stores().await
    }

    /// Returns the id that answers print for the connection `own` of `source`: with `@SOURCE` where another source has the same id.
    pub async fn printed_connection(&self, source: &SourceName, own: &ConnectionId) -> ConnectionId {
        self.sources.printed_connection(source, own).await
    }

    /// Delegates to [`Source::version`](super::Source::version).
    ///
    /// # Errors
    ///
    /// See [`SourceError`].
    pub async fn version(&self, address: &RecordAddress) -> Result<Option<String>, SourceError> {
        self.sources.source().version(&self.context, address).await
    }

    /// Delegates to [`Source::stream`](super::Source::stream).
    ///
    /// # Errors
    ///
    /// See [`SourceError`].
    pub async fn stream(&self, query: &StreamQuery) -> Result<StreamAnswer, SourceError> {
        self.sources.source().stream(&self.context, query).await
    }

    /// Searches the source. The first hits are reranked if a reranker is configured.
    ///
    /// # Errors
    ///
    /// See [`SourceError`].
    pub async fn search(&self, query: &SearchQuery) -> Result<SearchPage, SourceError> {
        let page = self.sources.search(&self.context, query).await?;
        let reads = self.reads();
        if reads.is_audited() {
            reads.hits(page.hits.iter().map(|hit| {
                let connection = match &hit.id {
                    HitId::Record(address) => address.connection.as_ref(),
                    HitId::Opaque(_) | HitId::Nameless => None,
                };
                (hit, self.sources.source_of(connection))
            }));
        }
        Ok(page)
    }

    /// Delegates to [`Source::changes_origin`](super::Source::changes_origin).
    ///
    /// # Errors
    ///
    /// See [`SourceError`].
    pub async fn changes_origin(&self, query: &StreamQuery) -> Result<ChangesOrigin, SourceError> {
        self.sources.source().changes_origin(&self.context, query).await
    }

    /// Delegates to [`Source::records`](super::Source::records).
    ///
    /// # Errors
    ///
    /// See [`SourceError`].
    pub async fn records(&self, query: &RecordsQuery) -> Result<RecordsPage, SourceError> {
        let page = self.sources.source().records(&self.context, query).await?;
        let mut read: Vec<&RecordAddress> = Vec::with_capacity(page.rows.len());
        for row in &page.rows {
            if let Change::Present(record) = row {
                add_addresses(record, &mut read);
            }
        }
        self.report_records(ReadKind::List, &read);
        Ok(page)
    }

    /// Delegates to [`Source::record`](super::Source::record).
    ///
    /// # Errors
    ///
    /// See [`SourceError`].
    pub async fn record(&self, query: &RecordQuery) -> Result<Record, SourceError> {
        let record = self.sources.source().record(&self.context, query).await?;
        let mut read = Vec::new();
        add_addresses(&record, &mut read);
        self.report_records(ReadKind::Record, &read);
        Ok(record)
    }

    /// Delegates to [`Source::window`](super::Source::window).
    ///
    /// # Errors
    ///
    /// See [`SourceError`].
    pub async fn window(&self, query: &WindowQuery) -> Result<Window, SourceError> {
        let window = self.sources.source().window(&self.context, query).await?;
        self.report_record(ReadKind::Field, &query.address);
        Ok(window)
    }

    /// Delegates to [`Source::aggregate`](super::Source::aggregate).
    ///
    /// # Errors
    ///
    /// See [`SourceError`].
    pub async fn aggregate(&self, query: &AggregateQuery) -> Result<AggregateAnswer, SourceError> {
        self.sources.source().aggregate(&self.context, query).await
    }
}

/// Adds the addresses of a record and of the related records in it.
fn add_addresses<'a>(record: &'a Record, addresses: &mut Vec<&'a RecordAddress>) {
    addresses.push(&record.address);
    for related in record.expanded.iter().flat_map(|relation| &relation.records) {
        add_addresses(related, addresses);
    }
}

impl<Read: Into<Sources>> From<Read> for BoundSource {
    /// Binds a source to the context of no call.
    fn from(source: Read) -> Self {
        Self::new(source, CallContext::default())
    }
}
