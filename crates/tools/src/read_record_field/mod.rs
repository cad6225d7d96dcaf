//! `read_record_field`: a piece of one long text field.
//!
//! * `spec`: the specification.
//! * `request`: typed arguments and their validation.
//! * `window`: characters from an offset, or around a match.
//! * `chunk`: a chunk of the field, with `unit` "chunk".

mod chunk;
mod request;
mod spec;
mod window;

pub use chunk::max_chunk_bytes;

use chunk::read_chunk;
use fetchwell_core::record::RecordData;
use request::{PieceRequest, Request, resolve};
use spec::READ_RECORD_FIELD;
use window::read_window;

use super::answer::Payload;
use super::arguments::parse;
use super::error::ToolError;
use super::tool::{Tool, ToolCall, ToolSpec};

/// The tool `read_record_field`.
pub(crate) struct ReadRecordField;

impl Tool for ReadRecordField {
    type Arguments = Request;

    const SPEC: ToolSpec = READ_RECORD_FIELD;

    async fn parse(_call: &ToolCall<'_>, arguments: RecordData) -> Result<Self::Arguments, ToolError> {
        resolve(parse(&READ_RECORD_FIELD, arguments)?)
    }

    async fn call(call: ToolCall<'_>, arguments: Self::Arguments) -> Result<Payload, ToolError> {
        let Request { named, piece } = arguments;
        let read = match piece {
            PieceRequest::Window(request) => read_window(call, request).await,
            PieceRequest::Chunk(request) => read_chunk(call.toolbox, request).await,
        };
        read.map_err(|error| error.with_record(&named))
    }
}
