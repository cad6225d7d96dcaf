//! The command line: one file per command.
//!
//! Commands print results to standard output through `print`, as text or with `--json` as one JSON value; problems go
//! to standard error with their remedy. The wiring that commands share is in `app`.
//!
//! * `serve`, `demo`: the server, and the sample data
//! * `search`, `fetch`, `connections`, `project`: reads of records, projects of documents
//! * `setup`: the first imports and the clients of this machine
//! * `source`, `config`, `client_config`, `doctor`, `token`: sources, configuration files, clients, checks, static tokens
//! * `import`, `sync`, `store`, `backup`, `embeddings`: imports and what stores have; `read_pdf`: the process of a document
//! * `telemetry`, `cursor`, `tokens`, `budget`, `bench`, `eval`: recorded calls, cursors, token counts, measurements
//! * `generated`: completion scripts of shells, manual pages
//! * `print`, `mode`, `probe`, `rejections`: output, `--mode`, the schema of a source, the output of imports
//! * `usage_error`: errors of the command line

mod backup;
mod bench;
mod budget;
mod client_config;
mod config;
mod connections;
mod cursor;
pub(crate) mod demo;
mod doctor;
mod embeddings;
mod eval;
mod fetch;
mod generated;
mod import;
mod mode;
mod print;
mod probe;
mod project;
mod read_pdf;
mod rejections;
mod search;
mod serve;
mod setup;
mod source;
mod store;
mod sync;
mod telemetry;
mod token;
mod tokens;
mod usage_error;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use fetchwell_core::terminal::{self, escape_line};
use fetchwell_state::cursor::Skew;
use fetchwell_telemetry::{InvalidLogFormat, LogFormat, start_logging};
use serde_json::json;

use self::print::Printer;
use self::usage_error::with_possible_values;
use crate::app::failure::Failure;
use crate::config::{Environment, LOG_FORMAT_VARIABLE, environment};

/// Search and read records across connected accounts, for ChatGPT, Claude, Codex and any MCP client.
#[derive(Debug, Parser)]
#[command(name = "fetchwell", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,

    /// Print JSON instead of text.
    #[arg(long, global = true)]
    json: bool,

    /// The log level or filter for standard error, in the syntax of `RUST_LOG`.
    #[arg(long, global = true, value_name = "FILTER")]
    log: Option<String>,

    /// The log format: text, or json for one JSON object per line [default: `FETCHWELL_LOG_FORMAT`, or text]
    #[arg(long, global = true, value_name = "FORMAT")]
    log_format: Option<LogFormat>,

    /// Set the clock that cursors are measured by ahead or back, such as +601s or -1h, to see what happens then. It
    /// leaves its mark in the state directory: a time that was seen is never before.
    #[arg(long, global = true, hide = true, value_name = "OFFSET", allow_hyphen_values = true)]
    clock: Option<Skew>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Serve),
    Demo(demo::Demo),
    Setup(setup::Setup),
    Add(sync::Add),
    Sync(sync::Sync),
    Import(import::Import),
    Backup(backup::Backup),
    Restore(backup::Restore),
    Store(store::Store),
    Export(store::Export),
    Remove(store::Remove),
    Project(project::Project),
    Source(source::Source),
    Connections(connections::Connections),
    Search(search::Search),
    Fetch(fetch::Fetch),
    Embeddings(embeddings::Embeddings),
    Budget(budget::Budget),
    Token(token::Token),
    Tokens(tokens::Tokens),
    Bench(bench::Bench),
    Doctor(doctor::Doctor),
    Eval(eval::Eval),
    Cursor(cursor::Cursor),
    Telemetry(telemetry::Telemetry),
    Config(config::Config),
    ClientConfig(client_config::ClientConfig),
    Bundle(client_config::Bundle),
    Completions(generated::Completions),
    Man(generated::Man),
    ReadPdf(read_pdf::ReadPdf),
}

/// Returns the log format from the command line, otherwise from the environment.
fn log_format(said: Option<LogFormat>, environment: &Environment) -> Result<LogFormat, Failure> {
    let of_environment = || environment.log_format.as_deref().map(str::parse).transpose();
    match said {
        Some(format) => Ok(format),
        None => of_environment()
            .map(Option::unwrap_or_default)
            .map_err(|error: InvalidLogFormat| Failure::usage(&format!("{LOG_FORMAT_VARIABLE}: {error}"))),
    }
}

/// Prints help or the error of a command line. The message quotes arguments, so it is generated again from escaped
/// ones.
fn print_help(error: &clap::Error, arguments: &[OsString]) {
    let escaped = arguments.iter().map(|argument| String::from(escape_line(&argument.to_string_lossy())));
    let escaped: Vec<String> = escaped.collect();
    match Cli::try_parse_from(&escaped) {
        Err(error) => terminal::help(&with_possible_values(error, Cli::command(), &escaped)),
        // The escaped command line is valid, so the original message is printed.
        Ok(_) => print::problem(&error.render().to_string().trim_start_matches("error: ")),
    }
}

/// Runs the command line and returns its exit code.
#[must_use]
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => {
            print_help(&error, &arguments);
            let code = u8::try_from(error.exit_code()).unwrap_or(2);
            return ExitCode::from(end_output(code, 1));
        }
    };
    let printer = Printer { json: cli.json };
    let skew = cli.clock.unwrap_or_default();
    let environment = environment();
    let filter = cli.log.or(environment.log.clone());
    // Many clients show what a server that they started writes to standard error.
    let default = match &cli.command {
        Command::Serve(serve) if !serve.is_stdio() => "info",
        _ => "warn",
    };
    let output_error = if matches!(cli.command, Command::Search(_)) { search::ERROR } else { 1 };
    let format = log_format(cli.log_format, &environment);
    let done = format
        .and_then(|format| {
            start_logging(filter.as_deref().unwrap_or(default), format)
                .map_err(|error| Failure::usage(&error))
        })
        .and_then(|()| match cli.command {
            Command::Serve(command) => command.run(&environment, skew),
            Command::Demo(command) => command.run(printer),
            Command::Setup(command) => command.run(printer, &environment),
            Command::Add(command) => command.run(printer, &environment),
            Command::Sync(command) => command.run(printer, &environment),
            Command::Import(command) => command.run(printer, &environment),
            Command::Backup(command) => command.run(printer, &environment),
            Command::Restore(command) => command.run(printer, &environment),
            Command::Store(command) => command.run(printer, &environment),
            Command::Export(command) => command.run(printer, &environment),
            Command::Remove(command) => command.run(printer, &environment),
            Command::Project(command) => command.run(printer, &environment),
            Command::Source(command) => command.run(printer, &environment),
            Command::Connections(command) => command.run(printer, &environment),
            Command::Search(command) => command.run(printer, &environment),
            Command::Fetch(command) => command.run(printer, &environment),
            Command::Embeddings(command) => command.run(printer, &environment),
            Command::Budget(command) => command.run(printer),
            Command::Token(command) => command.run(printer),
            Command::Tokens(command) => command.run(printer),
            Command::Bench(command) => command.run(printer),
            Command::Doctor(command) => command.run(printer, &environment),
            Command::Eval(command) => command.run(printer, &environment),
            Command::Cursor(command) => command.run(printer, skew),
            Command::Telemetry(command) => command.run(printer),
            Command::Config(command) => command.run(printer, &environment),
            Command::ClientConfig(command) => command.run(printer, &environment),
            Command::Bundle(command) => command.run(printer),
            Command::Completions(command) => command.run(Cli::command(), printer),
            Command::Man(command) => command.run(Cli::command(), printer),
            Command::ReadPdf(command) => command.run(printer),
        });
    fetchwell_upstream::stop_servers();
    let code = match done {
        Ok(()) => 0,
        Err(failure) => report(&failure, printer),
    };
    ExitCode::from(end_output(code, output_error))
}

/// Prints a failure and returns its exit code. With `--json`, the sources because of which the command failed are its output.
fn report(failure: &Failure, printer: Printer) -> u8 {
    if printer.json && !failure.unavailable.is_empty() {
        printer.value(&json!({"unavailable": failure.unavailable}));
    }
    if !failure.message.is_empty() {
        print::problem(failure);
    }
    failure.exit_code
}

/// Completes standard output. Returns the exit code, which is `failed` if a result could not be written and nothing else
/// failed.
fn end_output(code: u8, failed: u8) -> u8 {
    // After a failure the results are incomplete anyway.
    if code == 0 {
        terminal::flush_output();
    }
    let Some(problem) = terminal::output_problem() else { return code };
    print::problem(&format_args!(
        "standard output cannot be written ({problem}); results are missing from it"
    ));
    if code == 0 { failed } else { code }
}
