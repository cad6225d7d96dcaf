//! A server in this process for the benchmarks, over a store in a temporary folder.

use std::path::Path;
use std::sync::Arc;

use fetchwell_callers::CallContext;
use fetchwell_connectors::ImportError;
use fetchwell_core::handle::{Handle, StreamName};
use fetchwell_core::record::{Record, RecordData};
use fetchwell_http::InProcess;
use fetchwell_source::{BoundSource, Change, RecordQuery, RecordsQuery, Source};
use fetchwell_sqlite::SqliteStore;
use fetchwell_state::StateError;
use fetchwell_state::cursor::{Cursors, Skew};
use fetchwell_telemetry::Telemetry;
use fetchwell_tools::{DEFAULT_CALL_DEADLINE, SharedToolbox, Toolbox};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::app::failure::Failure;
use crate::app::open::{call, runtime};

/// Server in this process, over a store in a temporary folder.
pub(super) struct Server {
    pub(super) toolbox: Arc<Toolbox>,
    pub(super) routes: InProcess,
    pub(super) source: BoundSource,
    pub(super) runtime: Runtime,
    _folder: tempfile::TempDir,
}

impl Server {
    /// Starts a server over a store that `fill` writes.
    pub(super) fn start(fill: impl FnOnce(&Path) -> Result<u64, ImportError>) -> Result<Self, Failure> {
        let folder = tempfile::tempdir();
        let folder = folder.map_err(|error| Failure::new(format!("no temporary folder ({error})")))?;
        let path = folder.path().join("bench.db");
        fill(&path)?;
        let name = "bench".parse().map_err(|error| Failure::usage(&error))?;
        let source: Arc<dyn Source> = Arc::new(SqliteStore::open(name, &path)?);
        let cursors = Cursors::in_memory(Skew::default()).map_err(StateError::from)?;
        let toolbox = Toolbox::with_cursors(Arc::clone(&source), Arc::new(cursors), DEFAULT_CALL_DEADLINE);
        let toolbox = SharedToolbox::new(toolbox);
        let routes = InProcess::new(toolbox.clone(), Telemetry::default());
        let source = BoundSource::new(source, CallContext::default());
        Ok(Self { toolbox: toolbox.now(), routes, source, runtime: runtime()?, _folder: folder })
    }

    /// Returns the size in bytes of an `/api/v1` response.
    pub(super) async fn get(&self, target: &str) -> Result<usize, Failure> {
        match self.routes.get(target).await {
            Some((200, body)) => Ok(body.len()),
            Some((status, body)) => {
                let said = String::from_utf8_lossy(&body);
                Err(Failure::new(format!("{target} was answered with {status}: {said}")))
            }
            None => Err(Failure::new(format!("{target} was not answered"))),
        }
    }

    /// Returns the size in bytes of a tool's answer.
    pub(super) async fn call(&self, tool: &str, arguments: Value) -> Result<usize, Failure> {
        let Value::Object(arguments) = arguments else { return Err(Failure::new("no arguments")) };
        Ok(call(&self.toolbox, tool, arguments).await?.json().len())
    }

    /// Returns the size in bytes of a complete record as JSON.
    pub(super) async fn record(&self, id: &str) -> Result<usize, Failure> {
        let handle: Handle = id.parse().map_err(|error| Failure::usage(&error))?;
        let record = self.source.record(&RecordQuery::new(handle.address().clone())).await?;
        json_bytes(&[record])
    }

    /// Returns the size in bytes of the newest records of a stream as JSON.
    pub(super) async fn records(&self, stream: &StreamName, limit: usize) -> Result<usize, Failure> {
        let page = self.source.records(&RecordsQuery::new(stream.clone(), limit)).await?;
        let records = page.rows.into_iter().filter_map(|row| match row {
            Change::Present(record) => Some(*record),
            Change::Deleted { .. } => None,
        });
        json_bytes(&records.collect::<Vec<_>>())
    }
}

fn json_bytes(records: &[Record]) -> Result<usize, Failure> {
    let data: Vec<&RecordData> = records.iter().map(|record| &record.data).collect();
    let json = serde_json::to_string(&data);
    json.map(|json| json.len()).map_err(|error| Failure::new(error.to_string()))
}
