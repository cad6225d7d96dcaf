//! The work of the set-up page, which continues while pages are shown.

use std::sync::Arc;

use parking_lot::Mutex;

use super::actions::{SetupActions, SetupChoice, SetupOutcome, SetupPlan};

/// The actions of the page with their state. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct SetupWork {
    actions: Arc<dyn SetupActions>,
    progress: Arc<Mutex<Progress>>,
}

/// State of the work.
#[derive(Debug, Clone, Default)]
pub(super) enum Progress {
    /// Nothing was chosen yet.
    #[default]
    Open,
    /// The choice is being carried out.
    Running,
    /// The choice was carried out; with the results or an error message.
    Done(Result<SetupOutcome, String>),
}

impl SetupWork {
    pub(super) fn new(actions: Arc<dyn SetupActions>) -> Self {
        Self { actions, progress: Arc::default() }
    }

    /// Returns the state of the work.
    pub(super) fn progress(&self) -> Progress {
        self.change(|progress| progress.clone())
    }

    /// Forgets the results, so that the plan is shown again. Running work goes on.
    pub(super) fn reset(&self) {
        self.change(|progress| {
            if matches!(progress, Progress::Done(_)) {
                *progress = Progress::Open;
            }
        });
    }

    /// Returns the plan. It reads files, so it runs on a blocking thread.
    pub(super) async fn plan(&self) -> Result<SetupPlan, String> {
        let actions = Arc::clone(&self.actions);
        let found = tokio::task::spawn_blocking(move || actions.plan()).await;
        found.unwrap_or_else(|_panic| Err("internal error; report it".to_owned()))
    }

    /// Starts to carry out a choice. Returns false if an earlier one is being carried out.
    pub(super) fn start(&self, choice: SetupChoice) -> bool {
        let is_free = self.change(|progress| {
            let is_free = !matches!(progress, Progress::Running);
            *progress = Progress::Running;
            is_free
        });
        if is_free {
            let work = self.clone();
            tokio::spawn(async move {
                let actions = Arc::clone(&work.actions);
                let done = tokio::task::spawn_blocking(move || actions.apply(&choice)).await;
                let done = done.unwrap_or_else(|_panic| Err("internal error; report it".to_owned()));
                work.change(|progress| *progress = Progress::Done(done));
            });
        }
        is_free
    }

    fn change<Answer>(&self, change: impl FnOnce(&mut Progress) -> Answer) -> Answer {
        change(&mut self.progress.lock())
    }
}
