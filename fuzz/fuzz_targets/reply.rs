//! Whatever a record server answers, a call ends with an answer within its budget or with a typed error.
#![no_main]

use std::sync::{Arc, LazyLock};

use fetchwell_core::fit::budget;
use fetchwell_core::record::RecordData;
use fetchwell_lab::recorded::RecordedSource;
use fetchwell_source::{BoundSource, RecordsPosition, RecordsQuery, Start};
use fetchwell_tools::{DEFAULT_CALL_DEADLINE, Profile, Toolbox};
use libfuzzer_sys::fuzz_target;
use tokio::runtime::{Builder, Runtime};

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().enable_time().build().unwrap());

fuzz_target!(|body: &str| {
    let source = RecordedSource {
        name: "fuzz".parse().unwrap(),
        search: body.to_owned(),
        record: body.to_owned(),
        records: body.to_owned(),
        schema: String::new(),
    };
    let bound = BoundSource::from(source.clone());
    // No list is longer than requested, and any text as a position is handled.
    for start in [Start::First, Start::After(RecordsPosition(body.to_owned()))] {
        if let Ok(page) = RUNTIME.block_on(bound.records(&list(start))) {
            assert!(page.rows.len() <= 3);
        }
    }
    let toolbox = Toolbox::new(Arc::new(source), DEFAULT_CALL_DEADLINE).unwrap();
    let call = |tool, argument: &str, value: &str, most| {
        let arguments = RecordData::from_iter([(argument.to_owned(), value.into())]);
        match RUNTIME.block_on(toolbox.call(Profile::Standard, tool, arguments)).unwrap() {
            Ok(payload) => assert!(payload.json().len() <= most),
            Err(error) => assert!(error.body().json().len() <= budget::ERROR),
        }
    };
    call("search", "query", "x", budget::SEARCH);
    call("fetch", "id", "c/s:r", budget::DOCUMENT);
});

fn list(start: Start) -> RecordsQuery {
    RecordsQuery { start, ..RecordsQuery::new("s".parse().unwrap(), 3) }
}
