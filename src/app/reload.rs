//! Reloads a changed configuration file while calls are answered.
//!
//! A call ends with the settings that it began with. An invalid file changes nothing: settings are replaced
//! completely or not at all.

use std::sync::Arc;
use std::time::Instant;

use fetchwell_core::fit::Protection;
use fetchwell_core::saturate::saturated;
use fetchwell_http::{AuthMode, CurrentConfiguration, RateLimiter};
use fetchwell_telemetry::Telemetry;
use tokio::runtime::Handle;

use super::auth_mode::{authenticator_settings, caller_settings, has_sign_in, open_own};
use super::background::{BackgroundBuilds, StoreMaintenance};
use super::callers::SignInStorage;
use super::failure::Failure;
use super::imports::{BackgroundImports, create_import_stores};
use super::open::{OpenedSource, joined, reopen_sources};
use super::rerank::reranking;
use super::settings::ConfiguredSettings;
use crate::config::{Environment, FileChange, WatchHandle, keys_that_need_a_restart, reopens_sources, watch};

/// Running server with everything that a reload needs.
pub(crate) struct Reload {
    pub(crate) configured: ConfiguredSettings,
    pub(crate) environment: Environment,
    /// Open sources of `configured`.
    pub(crate) opened: Vec<OpenedSource>,
    pub(crate) served: AuthMode,
    pub(crate) rate_limiter: RateLimiter,
    pub(crate) telemetry: Telemetry,
    pub(crate) background: BackgroundBuilds,
    pub(crate) maintenance: StoreMaintenance,
    pub(crate) imports: BackgroundImports,
    /// Storage of the tokens of callers.
    pub(crate) sign_ins: SignInStorage,
    /// Configuration as operators see it.
    pub(crate) configuration: CurrentConfiguration,
}

impl Reload {
    /// Watches the file until the returned value is dropped. If the file cannot be watched, its settings stay in use.
    pub(crate) fn follow(mut self, runtime: Handle) -> Option<WatchHandle> {
        let file = self.configured.file.as_ref()?;
        let (path, text) = (file.path().to_owned(), file.text.clone());
        let watching = watch(&path, text, move |noticed| {
            // Opening a source may spawn tasks.
            let _inside = runtime.enter();
            self.handle_change(noticed);
        });
        match watching {
            Ok(watching) => Some(watching),
            Err(error) => {
                tracing::warn!("{error}");
                None
            }
        }
    }

    fn handle_change(&mut self, noticed: FileChange) {
        let refused = match noticed {
            FileChange::Text { text, at } => match self.apply(&text) {
                Ok(()) => return self.record_reload(at),
                Err(failure) => failure.message,
            },
            FileChange::Removed => "the configuration file was removed".to_owned(),
            FileChange::Unreadable(error) => error.to_string(),
        };
        self.telemetry.reload_refused();
        tracing::warn!("{refused}; the previous configuration stays in use");
    }

    fn record_reload(&self, at: Instant) {
        let took = at.elapsed();
        self.telemetry.reloaded(took);
        let latency_us = saturated::<u64>(took.as_micros());
        tracing::info!(latency_us, "configuration reloaded");
    }

    fn apply(&mut self, text: &str) -> Result<(), Failure> {
        let settings = self.configured.reparse(text, &self.environment)?;
        create_import_stores(&settings)?;
        let before = &self.configured.settings;
        match (&self.served, &settings.auth) {
            (AuthMode::Unauthenticated(toolbox), _) => {
                let now = toolbox.now();
                // The source is kept, with its circuit breakers, caches and positions of lists.
                let source = if !reopens_sources(before, &settings) {
                    now.source().shared().clone()
                } else {
                    let opened = reopen_sources(&settings, &self.environment, &self.opened)?;
                    let source = joined(opened.clone(), settings.call_deadline)?;
                    self.opened = opened;
                    source
                        .reranked_by(reranking(&settings, &self.environment))
                        .with_search_history(settings.search_history)
                };
                let protection = reuse_if_equal(now.protection(), &settings.protection);
                toolbox.replace(now.succeeded_by(source, settings.call_deadline, protection));
            }
            (AuthMode::Authenticated(callers), Some(auth)) => {
                let authenticator = authenticator_settings(&settings, auth, &self.environment)?;
                let opened = open_own(&settings, Some(auth), &self.environment, &self.opened)?;
                let now = callers.settings();
                let protection = reuse_if_equal(&now.protection, &settings.protection);
                let storage = self.sign_ins.clone();
                let mut caller_settings =
                    caller_settings(&settings, auth, &self.environment, opened.clone(), storage)?;
                caller_settings.protection = protection;
                // Links that were issued stay valid; the public URL does not change at runtime.
                let pages = now.pages.as_ref();
                caller_settings.pages = pages.map(|pages| pages.with_sign_in(has_sign_in(Some(auth))));
                if !reopens_sources(before, &settings) {
                    caller_settings.sources = Arc::clone(&now.sources);
                }
                self.opened = opened;
                callers.replace(authenticator, caller_settings);
            }
            (AuthMode::Authenticated(_), None) => {
                let problem = "[auth] was removed, which a running server does not allow; restart fetchwell";
                return Err(Failure::new(problem.to_owned()));
            }
        }
        self.rate_limiter.replace(settings.rate_limit);
        self.background.follow(&settings);
        self.maintenance.follow(&settings);
        self.imports.follow(&settings);
        self.configuration.replace(self.configured.view(text));
        for key in keys_that_need_a_restart(before, &settings) {
            tracing::warn!(key, "takes effect at the next start");
        }
        // A setting that requires a restart is reported once, not at every later change.
        self.configured.settings = settings;
        Ok(())
    }
}

/// Returns the limits of answers, shared with the previous ones if they are equal.
fn reuse_if_equal(before: &Arc<Protection>, after: &Protection) -> Arc<Protection> {
    if **before == *after { Arc::clone(before) } else { Arc::new(after.clone()) }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tempfile::TempDir;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::app::callers::OpenServers;
    use crate::app::open::{AS_IT_IS, open_sources};
    use crate::app::settings::{PlaceArgs, SourceArgs};
    use crate::cli::demo::import_mail;
    use crate::config::DEFAULT_CACHE_ROOT;
    use fetchwell_source::{Source, Sources};
    use fetchwell_state::cursor::{Cursors, Skew};
    use fetchwell_tools::{SharedToolbox, Toolbox};

    const TWO: &str =
        "[[source]]\nname = \"a\"\nstore = \"a.db\"\n[[source]]\nname = \"b\"\nstore = \"b.db\"\n";
    const THIRD: &str = "[[source]]\nname = \"c\"\nstore = \"c.db\"\n";

    fn serving(text: &str) -> (TempDir, Reload) {
        serving_beside(text, None)
    }

    /// Starts serving a file, optionally with a store from a flag.
    fn serving_beside(text: &str, store: Option<&str>) -> (TempDir, Reload) {
        let folder = tempfile::tempdir().unwrap();
        for store in ["a.db", "b.db", "c.db"] {
            import_mail(&folder.path().join(store)).unwrap();
        }
        let file = folder.path().join("fetchwell.toml");
        std::fs::write(&file, text).unwrap();
        let place = PlaceArgs { store: store.map(|store| folder.path().join(store)), provider_url: None };
        let cache_root = Path::new(DEFAULT_CACHE_ROOT).into();
        let arguments = SourceArgs { place, config: Some(file), found_config: None, cache_root };
        let environment = Environment::default();
        let configured = arguments.configured(&environment).unwrap();
        let opened = open_sources(&configured.settings, &environment, AS_IT_IS).unwrap();
        let deadline = configured.settings.call_deadline;
        let toolbox =
            SharedToolbox::new(Toolbox::new(joined(opened.clone(), deadline).unwrap(), deadline).unwrap());
        let (rate_limiter, telemetry) = (RateLimiter::default(), Telemetry::default());
        let background =
            BackgroundBuilds::new(environment.clone(), telemetry.clone(), CancellationToken::new());
        let imports =
            BackgroundImports::new(Environment::default(), telemetry.clone(), CancellationToken::new());
        (
            folder,
            Reload {
                configured,
                environment,
                opened,
                served: AuthMode::Unauthenticated(toolbox),
                rate_limiter,
                telemetry,
                background,
                maintenance: StoreMaintenance::new(Environment::default(), CancellationToken::new()),
                imports,
                sign_ins: SignInStorage {
                    cursors: Arc::new(Cursors::in_memory(Skew::default()).unwrap()),
                    directory: None,
                    open: OpenServers::default(),
                },
                configuration: CurrentConfiguration::default(),
            },
        )
    }

    fn now(reload: &Reload) -> Arc<Toolbox> {
        let AuthMode::Unauthenticated(toolbox) = &reload.served else { panic!("callers are told apart") };
        toolbox.now()
    }

    fn asked(reload: &Reload) -> Sources {
        now(reload).source().shared().clone()
    }

    fn open(reload: &Reload) -> Vec<Arc<dyn Source>> {
        reload.opened.iter().map(|opened| Arc::clone(&opened.source)).collect()
    }

    #[test]
    fn unchanged_sources_stay_open() {
        let (_folder, mut reload) = serving(TWO);
        let (before, sources) = (asked(&reload), open(&reload));
        reload.apply(&format!("{TWO}[context_protection]\noutput_token_threshold = 3000\n")).unwrap();
        assert_eq!(now(&reload).protection().global.threshold, 3_000);
        assert!(before.is_same(&asked(&reload)), "what is asked is the very same");
        let shown = reload.configuration.get();
        assert!(shown.settings.iter().any(|setting| setting.value.as_deref() == Some("3000")), "{shown:?}");
        reload.apply(&format!("{THIRD}{TWO}")).unwrap();
        assert!(!before.is_same(&asked(&reload)));
        let after = open(&reload);
        assert!(
            after.len() == 3 && Arc::ptr_eq(&after[1], &sources[0]) && Arc::ptr_eq(&after[2], &sources[1])
        );
        // A single source stays open, too, and is no federation.
        reload.apply(THIRD).unwrap();
        assert!(asked(&reload).is_same(&Arc::clone(&after[0]).into()));
        reload.apply(&format!("call_deadline = \"3s\"\n{THIRD}")).unwrap();
        assert!(asked(&reload).is_same(&Arc::clone(&after[0]).into()));
        assert_eq!(now(&reload).call_deadline().as_secs(), 3);
    }

    #[test]
    fn empty_file_keeps_the_limits() {
        let limits = "[context_protection]\noutput_token_threshold = 3000\n";
        let (_folder, mut reload) = serving_beside(limits, Some("a.db"));
        for blank in ["", "\n", " \r\n\t\n", "\u{feff}", "\u{feff}\n"] {
            let refused = reload.apply(blank).unwrap_err().message;
            assert!(refused.contains("fetchwell.toml: the file is empty; add at least"), "{refused}");
        }
        assert_eq!(reload.configured.settings.protection.global.threshold, 3_000);
        // An empty file written by the user is a choice.
        reload.apply("# all as it comes\n").unwrap();
        assert_eq!(now(&reload).protection().global.threshold, 4_000);
    }

    /// Returns the number of applied and of refused reloads.
    fn counted(reload: &Reload) -> [u64; 2] {
        let text = reload.telemetry.exposition();
        ["applied", "refused"].map(|outcome| {
            let name = format!("fetchwell_config_reloads_total{{outcome=\"{outcome}\"}} ");
            text.lines().find_map(|line| line.strip_prefix(&name)).unwrap().parse().unwrap()
        })
    }

    #[test]
    fn invalid_file_changes_nothing() {
        let (_folder, mut reload) = serving(TWO);
        let (before, now) = (asked(&reload), Instant::now());
        for text in [
            "",
            "listen = 1\n",
            "[[source]]\nname = \"a\"\nstore = \"nowhere.db\"\n",
            "[context_protection]\nmax_page_size = 1\n",
        ] {
            reload.handle_change(FileChange::Text { text: text.to_owned(), at: now });
            assert!(before.is_same(&asked(&reload)), "{text}");
        }
        reload.handle_change(FileChange::Removed);
        assert_eq!(counted(&reload), [0, 5]);
        reload.handle_change(FileChange::Text { text: format!("{TWO}# the same\n"), at: now });
        assert_eq!(counted(&reload), [1, 5]);
        assert!(before.is_same(&asked(&reload)));
    }
}
