//! `fetchwell embeddings build` and `rebuild`: embeds the records of a store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use fetchwell_core::terminal::output::note;
use fetchwell_embedding::EmbeddingModel;
use fetchwell_source::contract::{BuildMode, BuildProgress};
use fetchwell_source::vectors::{StoreVectors, build_vectors};
use serde_json::json;

use super::progress::{Progress, count};
use crate::app::embedding::{embedding_settings, open_embedding_model, vectors_of};
use crate::app::failure::Failure;
use crate::app::open::runtime;
use crate::app::stop;
use crate::cli::backup::StoreArgs;
use crate::cli::print::{Printer, grouped};
use crate::config::Environment;

/// Embed the records that have no vectors yet. An interrupted build continues where it stopped.
#[derive(Debug, Args)]
pub(super) struct Build {
    #[command(flatten)]
    args: BuildArgs,
}

/// Embed all records again, after the model behind a name has changed. The current vectors are used until the end.
#[derive(Debug, Args)]
pub(super) struct Rebuild {
    #[command(flatten)]
    args: BuildArgs,
}

/// The store, and the consent to send its text to a service.
#[derive(Debug, Args)]
struct BuildArgs {
    #[command(flatten)]
    store: StoreArgs,

    /// Send the text to an embedding service on another machine. Without it, only an estimate is printed.
    #[arg(long)]
    yes: bool,

    /// Print the estimate and embed nothing.
    #[arg(long)]
    dry_run: bool,
}

impl Build {
    pub(super) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        self.args.run(BuildMode::Missing, printer, environment)
    }
}

impl Rebuild {
    pub(super) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        self.args.run(BuildMode::All, printer, environment)
    }
}

impl BuildArgs {
    fn run(self, mode: BuildMode, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        let settings = self.store.settings(environment)?;
        let configured = embedding_settings(&settings)?;
        let vectors = vectors_of(&self.store.place_to_write(environment)?, &settings, environment)?;
        // The connections of a database belong to the runtime that opened them.
        let runtime = runtime()?;
        runtime.block_on(vectors.check())?;
        let model = open_embedding_model(configured, environment)?;
        let estimate = runtime.block_on(vectors.estimate(&*model, mode))?;
        let needs_consent = model.is_remote() && estimate.embedded > 0;
        if self.dry_run || needs_consent && !self.yes {
            print_estimate(printer, &configured.settings.disclosure(), estimate);
            if self.dry_run {
                return Ok(());
            }
            return Err(Failure::new(
                "nothing was sent; run the command again with --yes to embed these chunks",
            ));
        }
        let done = runtime.block_on(embed(&*vectors, model, mode, estimate))?;
        print_summary(printer, done);
        Ok(())
    }
}

/// Embeds what is missing until the end, or until the user stops it. Prints the progress.
pub(super) async fn embed(
    vectors: &dyn StoreVectors,
    model: Arc<dyn EmbeddingModel>,
    mode: BuildMode,
    estimate: BuildProgress,
) -> Result<BuildProgress, Failure> {
    let progress = Progress::begin(estimate.chunks, &*model);
    let stop = AtomicBool::new(false);
    let work = async {
        let mut build = vectors.open_build(model, mode).await?;
        let done = build_vectors(&mut *build, &stop, |done| progress.report(done)).await;
        progress.end();
        done
    };
    tokio::pin!(work);
    let signal = tokio::select! {
        done = &mut work => return Ok(done?),
        signal = stop::requested() => signal,
        never = progress.print_lines() => match never {},
    };
    stop.store(true, Ordering::Relaxed);
    // The batch in progress is stored first: it may be paid for. A second signal ends the program at once.
    tokio::select! {
        done = &mut work => done.map_err(|error| Failure::from(error).ended_by(signal)),
        again = stop::requested() => Err(Failure::stopped("stopped at once").ended_by(again)),
    }
}

pub(super) fn counted(number: usize) -> String {
    grouped(count(number))
}

fn print_estimate(printer: Printer, disclosure: &str, estimate: BuildProgress) {
    let BuildProgress { records, chunks, embedded, pieces } = estimate;
    if printer.json {
        printer.value(&json!({
            "estimate": { "records": records, "chunks": chunks, "to_embed": embedded, "tokens": pieces },
            "disclosure": disclosure,
        }));
        return;
    }
    note(&disclosure);
    printer.line(described(estimate));
}

/// Describes an estimate for people.
pub(super) fn described(estimate: BuildProgress) -> String {
    let BuildProgress { records, chunks, embedded, pieces } = estimate;
    format!(
        "{} changed records have {} chunks; {} of them have to be embedded, about {} tokens",
        counted(records),
        counted(chunks),
        counted(embedded),
        counted(pieces)
    )
}

fn print_summary(printer: Printer, done: BuildProgress) {
    let BuildProgress { records, chunks, embedded, pieces } = done;
    if printer.json {
        printer
            .value(&json!({ "records": records, "chunks": chunks, "embedded": embedded, "tokens": pieces }));
        return;
    }
    printer.line(format_args!(
        "{} changed records, {} chunks, {} embedded; the vectors are complete",
        counted(records),
        counted(chunks),
        counted(embedded)
    ));
}
