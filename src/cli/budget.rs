//! `fetchwell budget`: measures every budget on fixtures.

use std::sync::Arc;

use clap::Args;
use fetchwell_core::fit::{Protection, budget, count_tokens};
use fetchwell_core::record::RecordData;
use fetchwell_core::saturate::saturated;
use fetchwell_core::terminal::Line;
use fetchwell_lab::recorded::{
    RecordedSource, fat_records_reply, fat_search_reply, long_record_reply, wide_schema_reply,
};
use fetchwell_mcp::{instructions, tool_list_json};
use fetchwell_tools::{DEFAULT_CALL_DEADLINE, Profile, ToolError, Toolbox};
use serde::Serialize;
use serde_json::{Value, json};

use super::print::{BAD, GOOD, Printer, grouped};
use crate::app::failure::Failure;
use crate::app::open::{runtime, toolbox};

/// Measure every budget on fixtures; exit with 1 if one is exceeded.
#[derive(Debug, Args)]
pub(super) struct Budget {}

/// Budget with the measured value.
#[derive(Debug, Serialize)]
struct Row {
    surface: &'static str,
    unit: &'static str,
    measured: usize,
    tokens: usize,
    budget: usize,
    headroom: i64,
    ok: bool,
}

impl Row {
    fn bytes(surface: &'static str, json: &str, budget: usize) -> Self {
        Self::new(surface, "bytes", json.len(), count_tokens(json), budget)
    }

    fn new(surface: &'static str, unit: &'static str, measured: usize, tokens: usize, budget: usize) -> Self {
        let signed = |size: usize| saturated::<i64>(size);
        let headroom = signed(budget) - signed(measured);
        Self { surface, unit, measured, tokens, budget, headroom, ok: measured <= budget }
    }
}

impl Budget {
    pub(super) fn run(self, printer: Printer) -> Result<(), Failure> {
        let mut rows = constant_rows();
        rows.extend(runtime()?.block_on(answer_rows())?);
        if printer.json {
            printer.value(&rows);
        } else {
            print_table(printer, &rows);
        }
        match rows.iter().filter(|row| !row.ok).count() {
            0 => Ok(()),
            over => Err(Failure::new(format!("{over} over budget"))),
        }
    }
}

fn print_table(printer: Printer, rows: &[Row]) {
    let heading = ["surface", "measured", "unit", "tokens", "budget", "headroom", ""];
    let heading = heading.map(|name| Line::from(name.to_owned())).to_vec();
    let size = |size: usize| grouped(saturated::<u64>(size));
    let cells = rows.iter().map(|row| {
        let over = if row.headroom < 0 { "-" } else { "" };
        let (style, mark) = if row.ok { (GOOD, "ok") } else { (BAD, "over") };
        let cells = [
            row.surface.to_owned(),
            size(row.measured),
            row.unit.to_owned(),
            size(row.tokens),
            size(row.budget),
            format!("{over}{}", grouped(row.headroom.unsigned_abs())),
        ];
        let mark = Line::default().styled(style, mark);
        cells.map(Line::from).into_iter().chain([mark]).collect()
    });
    printer.table(&std::iter::once(heading).chain(cells).collect::<Vec<_>>());
}

/// Measures the texts that a client reads before its first call.
fn constant_rows() -> Vec<Row> {
    let standard = tool_list_json(Profile::Standard);
    let tools = Profile::Standard.tools();
    let longest = |size: fn(&fetchwell_tools::ToolSpec) -> usize| tools.iter().map(size).max().unwrap_or(0);
    let description = longest(|tool| tool.description.chars().count());
    let schema = longest(|tool| tool.input_schema.len());
    vec![
        Row::bytes("tools/list", standard, budget::TOOLS_LIST),
        Row::bytes("tools/list, openai", tool_list_json(Profile::OpenAi), budget::TOOLS_LIST_OPENAI),
        Row::bytes("tools/list, docs", tool_list_json(Profile::Docs), budget::TOOLS_LIST_DOCS),
        Row::new("longest description", "chars", description, 0, budget::TOOL_DESCRIPTION_CHARS),
        Row::new("largest input schema", "bytes", schema, 0, budget::TOOL_INPUT_SCHEMA),
        Row::bytes("instructions", instructions(Profile::Standard), budget::INSTRUCTIONS),
        Row::bytes("instructions, openai", instructions(Profile::OpenAi), budget::INSTRUCTIONS),
        Row::bytes("instructions, docs", instructions(Profile::Docs), budget::INSTRUCTIONS),
    ]
}

/// Measures answers of tools to data that far exceeds the budgets.
async fn answer_rows() -> Result<Vec<Row>, Failure> {
    let prose = "Please pay the invoice number 2; the amount due is 20 EUR. ".repeat(848);
    let emoji: String = (0..12_000_u32).filter_map(|n| char::from_u32(0x1F300 + n * 7919 % 900)).collect();
    let fat = fixture(&prose)?;
    let dense = fixture(&emoji)?;
    let ask = |limit: Option<usize>| {
        let mut arguments = RecordData::from_iter([("query".to_owned(), Value::from("invoice"))]);
        arguments.extend(limit.map(|limit| ("limit".to_owned(), limit.into())));
        arguments
    };
    let read = || RecordData::from_iter([("id".to_owned(), "conn_1/mail:m1".into())]);
    let mut rows = Vec::new();
    for (surface, profile, limit, budget) in [
        ("search, fat, no limit", Profile::Standard, None, budget::SEARCH),
        ("search, fat, limit 20", Profile::Standard, Some(20), budget::search_with_limit(20)),
        ("search, fat, limit 100", Profile::Standard, Some(100), budget::search_with_limit(100)),
        ("search, fat, openai", Profile::OpenAi, None, budget::SEARCH_OPENAI),
    ] {
        rows.push(Row::bytes(surface, &answer(&fat, profile, "search", ask(limit)).await?, budget));
    }
    let list = |limit: Option<usize>| {
        let mut arguments = RecordData::from_iter([("stream".to_owned(), Value::from("mail"))]);
        arguments.extend(limit.map(|limit| ("limit".to_owned(), limit.into())));
        arguments
    };
    for (surface, tokens_surface, limit, bytes, max_tokens) in [
        (
            "query_records, fat, no limit",
            "query_records, fat, no limit",
            None,
            budget::RECORDS,
            budget::RECORDS_TOKENS,
        ),
        (
            "query_records, fat, limit 100",
            "query_records, fat, limit 100",
            Some(100),
            budget::DOCUMENT,
            budget::DOCUMENT_TOKENS,
        ),
    ] {
        let json = answer(&fat, Profile::Standard, "query_records", list(limit)).await?;
        let tokens = count_tokens(&json);
        rows.push(Row::bytes(surface, &json, bytes));
        rows.push(Row::new(tokens_surface, "tokens", tokens, tokens, max_tokens));
    }
    let overview = answer(&fat, Profile::Standard, "schema", RecordData::new()).await?;
    rows.push(Row::bytes("schema, 24 streams of 30 fields", &overview, budget::SCHEMA));
    let one = RecordData::from_iter([("stream".to_owned(), Value::from("stream_number_7"))]);
    let one = answer(&fat, Profile::Standard, "schema", one).await?;
    rows.push(Row::bytes("schema, a stream of 30 fields", &one, budget::SCHEMA));
    for (surface, tokens_surface, toolbox) in [
        ("fetch, 50,000 characters", "fetch, 50,000 characters", &fat),
        ("fetch, 12,000 emoji", "fetch, 12,000 emoji", &dense),
    ] {
        let json = answer(toolbox, Profile::Standard, "fetch", read()).await?;
        let tokens = count_tokens(&json);
        rows.push(Row::bytes(surface, &json, budget::DOCUMENT));
        rows.push(Row::new(tokens_surface, "tokens", tokens, tokens, budget::DOCUMENT_TOKENS));
    }
    let long_id = RecordData::from_iter([("id".to_owned(), Value::from("x".repeat(100_000)))]);
    rows.push(Row::bytes("error, an id of 100,000 bytes", &refusal(&fat, long_id).await?, budget::ERROR));
    let unknown =
        RecordData::from_iter([("\u{1}".repeat(5_000), json!(true)), ("id".to_owned(), "a:b".into())]);
    rows.push(Row::bytes("error, an unknown argument", &refusal(&fat, unknown).await?, budget::ERROR));
    Ok(rows)
}

fn fixture(text: &str) -> Result<Arc<Toolbox>, Failure> {
    let name = "fixture".parse().map_err(|error| Failure::usage(&error))?;
    let (search, record, records) = (fat_search_reply(), long_record_reply(text), fat_records_reply());
    let recorded = RecordedSource { name, search, record, records, schema: wide_schema_reply(24, 30) };
    toolbox(Arc::new(recorded), DEFAULT_CALL_DEADLINE, &Protection::default())
}

async fn answer(
    toolbox: &Toolbox,
    profile: Profile,
    tool: &str,
    arguments: RecordData,
) -> Result<String, Failure> {
    match toolbox.call(profile, tool, arguments).await {
        Some(Ok(payload)) => Ok(payload.json().to_owned()),
        Some(Err(error)) => Err(Failure::from_tool(&error)),
        None => Err(Failure::new(format!("there is no tool `{tool}`"))),
    }
}

async fn refusal(toolbox: &Toolbox, arguments: RecordData) -> Result<String, Failure> {
    match toolbox.call(Profile::Standard, "fetch", arguments).await {
        Some(Err(error)) => Ok(ToolError::body(&error).json()),
        _ => Err(Failure::new("a call that should be refused was answered")),
    }
}
