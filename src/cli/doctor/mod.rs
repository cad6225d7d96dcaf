//! `fetchwell doctor`: checks the configured sources and suggests remedies.
//!
//! * `check`: the result of one check
//! * `checks`: the checks of one source
//! * `collisions`: checks across sources, `imports`: the check of a store's imports

mod check;
mod checks;
mod collisions;
mod imports;

use std::path::Path;

use clap::Args;
use fetchwell_core::terminal::Line;
use fetchwell_embedding::{ModelIdentity, PROBE_TEXT, probe_vector};
use fetchwell_http::TlsSettings;
use fetchwell_source::contract::VectorError;
use fetchwell_sqlite::{VectorIndex, check_vectors, vector_status};
use fetchwell_state::StateError;
use fetchwell_state::cursor::{KeyMismatch, compare_shared_keys};
use fetchwell_state::redis::{RedisStatus, RedisUrl};
use futures_util::future::join_all;

use self::check::Check;
use self::checks::{SourceChecks, examine};
use self::collisions::collisions;
use self::imports::check_imports;
use super::print::{BAD, FAINT, GOOD, Printer, STRONG, UNSURE};
use crate::app::circuits::reported;
use crate::app::embedding::{dimension_problems, embedded_streams, open_embedding_model};
use crate::app::failure::Failure;
use crate::app::open::runtime;
use crate::app::rerank::open_configured_reranker;
use crate::app::settings::SourceArgs;
use crate::app::state::{SharedStateArgs, StateArgs};
use crate::config::{Environment, FileSettings, SourceSettings};

/// Check the configured sources, and print a remedy for each problem.
#[derive(Debug, Args)]
pub(super) struct Doctor {
    #[command(flatten)]
    source: SourceArgs,

    #[command(flatten)]
    state: StateArgs,

    #[command(flatten)]
    shared: SharedStateArgs,
}

impl Doctor {
    pub(super) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        let checks = self.checks(environment)?;
        let wrong = checks.iter().filter(|check| !check.ok).count();
        if printer.json {
            printer.value(&checks);
        } else {
            print_text(printer, &checks);
        }
        match wrong {
            0 => Ok(()),
            1 => Err(Failure::new("1 check failed; apply its remedy and run `fetchwell doctor` again")),
            more => Err(Failure::new(format!(
                "{more} checks failed; apply the first remedy and run `fetchwell doctor` again"
            ))),
        }
    }

    /// Checks all sources concurrently, so that one that does not answer delays no other.
    fn checks(self, environment: &Environment) -> Result<Vec<Check>, Failure> {
        let settings = match self.source.settings(environment) {
            Ok(settings) => settings,
            Err(failure) => return Ok(vec![Check::for_all("settings", Err(failure.message))]),
        };
        let examined = settings.sources.iter().map(|source| examine(source, environment));
        let examined: Vec<SourceChecks> = runtime()?.block_on(join_all(examined));
        let imports = settings.sources.iter().zip(&examined);
        let imports = imports.map(async |(source, examined)| {
            // A database that cannot be read has a check of its own.
            let is_unread = source.place.database().is_some() && examined.schema.is_none();
            if is_unread { None } else { check_imports(&settings, source, environment).await }
        });
        let imports: Vec<Option<Check>> = runtime()?.block_on(join_all(imports));
        let vectors: Vec<Check> = settings.sources.iter().filter_map(damaged_vectors).collect();
        let together = collisions(&settings.sources, &examined);
        let tls = settings.tls.as_ref().map(check_tls);
        let embedding = settings.embedding.as_ref().map(|configured| {
            let opened = open_embedding_model(configured, environment);
            let probed = opened.and_then(|model| {
                if let Some(problem) = dimension_problems(&settings, model.dimensions()).pop() {
                    return Err(Failure::new(problem));
                }
                let probe = runtime()?.block_on(probe_vector(&*model))?.into();
                Ok(ModelIdentity { id: model.id().into(), probe })
            });
            let found = probed.map(|model| format!("answers{}", problems_of_vectors(&settings, &model)));
            let found = found.map_err(|failure| failure.message);
            Check::for_all("embedding", found).warning(Some(configured.settings.disclosure()))
        });
        let rerank = settings.rerank.as_ref().map(|configured| {
            let opened = open_configured_reranker(configured, environment);
            let probed = opened.and_then(|reranker| {
                let passages = [PROBE_TEXT.to_owned()];
                let scores = runtime()?.block_on(reranker.scores("does this model answer", &passages));
                scores.map(drop).map_err(|error| Failure::new(error.to_string()))
            });
            let found = probed.map(|()| "answers".to_owned()).map_err(|failure| failure.message);
            Check::for_all("rerank", found).warning(Some(configured.settings.disclosure()))
        });
        let state = self.state.server_directory(settings.state_dir).ok().flatten();
        let shared = check_shared_state(self.shared, settings.state.as_ref(), state.as_deref(), environment)?;
        let circuits = state.map(|state| reported(&state)).unwrap_or_default();
        let left_alone = circuits.into_iter().map(|circuit| {
            let found = "a running server does not call a source".to_owned();
            Check::for_all("circuit", Ok(found)).warning(Some(circuit))
        });
        Ok(examined
            .into_iter()
            .flat_map(|source| source.checks)
            .chain(imports.into_iter().flatten())
            .chain(vectors)
            .chain(together)
            .chain(tls)
            .chain(embedding)
            .chain(rerank)
            .chain(shared)
            .chain(left_alone)
            .collect())
    }
}

/// Checks that a server can use its certificate and its key.
fn check_tls(tls: &TlsSettings) -> Check {
    let TlsSettings { certificate, key } = tls;
    let found = tls.check().map(|()| {
        format!("the certificate {} and its key {} can be used", certificate.display(), key.display())
    });
    let found = found.map_err(|error| error.to_string());
    Check::for_all("tls", found).warning(tls.exposed_key_warning())
}

/// Checks the Redis that servers share, if there is one, and the keys of a state directory.
fn check_shared_state(
    shared: SharedStateArgs,
    configured: Option<&RedisUrl>,
    directory: Option<&Path>,
    environment: &Environment,
) -> Result<Vec<Check>, Failure> {
    let redis = match shared.open(configured, environment) {
        Ok(None) => return Ok(Vec::new()),
        Ok(Some(redis)) => redis,
        Err(failure) => return Ok(vec![Check::for_all("state", Err(failure.message))]),
    };
    let runtime = runtime()?;
    let checked = runtime.block_on(redis.check());
    let keys = match directory {
        Some(directory) if checked.is_ok() => {
            let compared = runtime.block_on(compare_shared_keys(directory, &redis));
            Some(Check::for_all("keys", agreement(compared)))
        }
        _ => None,
    };
    let evicts = |status: &RedisStatus| {
        let policy = status.eviction.as_deref().filter(|policy| *policy != "noeviction")?;
        Some(format!("its maxmemory-policy is {policy}: cursors and sessions can be lost before they expire"))
    };
    let warning = checked.as_ref().ok().and_then(evicts);
    let found = checked.map(|status| {
        let encryption = if status.is_encrypted { "encrypted" } else { "not encrypted" };
        format!("Redis {} at {}, {encryption}", status.version, redis.url())
    });
    let found = found.map_err(|error| error.to_string());
    Ok([Check::for_all("state", found).warning(warning)].into_iter().chain(keys).collect())
}

/// Describes the comparison of the keys of this machine with those of running servers.
fn agreement(compared: Result<Option<KeyMismatch>, StateError>) -> Result<String, String> {
    match compared {
        Ok(None) => Ok("no running server with this Redis has different keys".to_owned()),
        Ok(Some(mismatch)) => Err(mismatch.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

/// Returns the failed check of a store with vectors that cannot be used. A store that cannot be read has a check of its own.
fn damaged_vectors(source: &SourceSettings) -> Option<Check> {
    match check_vectors(source.place.file()?) {
        Ok(()) | Err(VectorError::Store(_)) => None,
        Err(error) => Some(Check::for_source(source, "vectors", Err(error.to_string()))),
    }
}

/// Returns a sentence for each store with vectors of another model than the configured one, or with records that lack
/// vectors, in the streams that the configuration shows. A store that cannot be read has a check of its own.
fn problems_of_vectors(settings: &FileSettings, model: &ModelIdentity) -> String {
    let problems = settings.sources.iter().filter_map(|source| {
        let path = source.place.file()?;
        let status = vector_status(path, &embedded_streams(settings, path)).ok()?;
        let stored = VectorIndex::new(path, 0).model().ok()?;
        if let Some(Err(problem)) = stored.map(|stored| stored.check(model)) {
            return Some(format!("; `{}` is searched by words: {problem}", source.name));
        }
        match status.current {
            None => Some(format!("; `{}` has no vectors yet", source.name)),
            Some(current) if current.missing_records > 0 => Some(format!(
                "; {} records of `{}` have no vectors yet",
                current.missing_records, source.name
            )),
            Some(_) => None,
        }
    });
    problems.collect()
}

fn print_text(printer: Printer, checks: &[Check]) {
    let many =
        checks.iter().any(|check| check.source != checks.first().and_then(|first| first.source.clone()));
    let mut before = None;
    for check in checks {
        if many && before != Some(&check.source) {
            let heading = check.source.as_deref().unwrap_or("all sources");
            printer.styled(Line::default().styled(STRONG, heading));
            before = Some(&check.source);
        }
        let (style, mark) = match (check.ok, &check.warning) {
            (true, None) => (GOOD, "ok   "),
            (true, Some(_)) => (UNSURE, "note "),
            (false, _) => (BAD, "wrong"),
        };
        let found = match &check.warning {
            None => check.found.clone(),
            Some(warning) => format!("{}; {warning}", check.found),
        };
        let name = format!(" {:<12} ", check.name);
        printer.styled(Line::default().styled(style, mark).text(name).styled(FAINT, found));
    }
}
