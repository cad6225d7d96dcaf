//! Notifications: log messages, progress, and changes of lists.

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam};
use rmcp::service::{RequestContext, SubscriptionContext};
use serde_json::json;
use tokio::sync::broadcast;

use super::supports_cache_hints;

/// Pause between two notifications, so that a client can receive them one by one.
const PAUSE: Duration = Duration::from_millis(50);

/// Logs three messages to clients with a revision that sets the log level once.
pub(super) async fn log(context: &RequestContext<RoleServer>) {
    if supports_cache_hints(context) {
        return log_where_asked(context).await;
    }
    for text in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        say(context, LoggingLevel::Info, text).await;
        tokio::time::sleep(PAUSE).await;
    }
}

/// Logs one message if the request sets a log level.
pub(super) async fn log_where_asked(context: &RequestContext<RoleServer>) {
    if let Some(level) = context.meta.log_level() {
        say(context, level, "Tool execution started").await;
    }
}

async fn say(context: &RequestContext<RoleServer>, level: LoggingLevel, text: &str) {
    let message = LoggingMessageNotificationParam::new(level, json!(text));
    if let Err(error) = context.peer.notify_logging_message(message).await {
        tracing::debug!(%error, "a log message");
    }
}

/// Reports progress three times if the request has a progress token.
pub(super) async fn progress(context: &RequestContext<RoleServer>) {
    for percent in [0.0, 50.0, 100.0] {
        if let Some(token) = context.meta.get_progress_token() {
            let progress = ProgressNotificationParam::new(token, percent).with_total(100.0);
            if let Err(error) = context.peer.notify_progress(progress).await {
                tracing::debug!(%error, "progress");
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

#[derive(Debug, Clone, Copy)]
enum ChangedList {
    Tools,
    Prompts,
}

/// A broadcast of list changes to all subscriptions. The lists do not really change.
#[derive(Debug, Clone)]
pub(super) struct Changes(broadcast::Sender<ChangedList>);

impl Default for Changes {
    fn default() -> Self {
        Self(broadcast::Sender::new(16))
    }
}

impl Changes {
    pub(super) fn tools(&self) {
        // Sending fails if there is no subscription.
        let _ = self.0.send(ChangedList::Tools);
    }

    pub(super) fn prompts(&self) {
        let _ = self.0.send(ChangedList::Prompts);
    }

    /// Forwards changes until the subscription ends. Its sink drops changes that it did not subscribe to.
    pub(super) async fn forward(&self, subscription: &SubscriptionContext) {
        let mut changes = self.0.subscribe();
        loop {
            let changed = tokio::select! {
                () = subscription.cancelled() => return,
                changed = changes.recv() => changed,
            };
            let sent = match changed {
                Ok(ChangedList::Tools) => subscription.sink().notify_tool_list_changed().await,
                Ok(ChangedList::Prompts) => subscription.sink().notify_prompt_list_changed().await,
                Err(broadcast::error::RecvError::Lagged(_)) => Ok(()),
                Err(broadcast::error::RecvError::Closed) => return,
            };
            if let Err(error) = sent {
                tracing::debug!(%error, "a change of a list");
            }
        }
    }
}
