//! Limits of the messages that a server sends without being asked.
//!
//! Each request of a server is answered, and each notification is handled, in a task of its own: a server that sends millions
//! would fill the memory.

use rmcp::model::{JsonRpcMessage, ServerNotification};
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

/// Maximum number of requests, and of notices that the tools changed, of one session. It ends with the next one.
const MAX_MESSAGES: usize = 1_000;

/// Maximum number of other notifications of one session, which are not read.
const MAX_NOTIFICATIONS: usize = 100_000;

/// Transport that passes on answers, and few of the other messages.
pub(super) struct Limited<Inner> {
    inner: Inner,
    messages: usize,
    notifications: usize,
}

impl<Inner> Limited<Inner> {
    pub(super) fn new(inner: Inner) -> Self {
        Self { inner, messages: 0, notifications: 0 }
    }
}

impl<Inner: Transport<RoleClient>> Transport<RoleClient> for Limited<Inner> {
    type Error = Inner::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = self.inner.receive().await?;
            let is_counted = match &message {
                JsonRpcMessage::Request(_) => true,
                JsonRpcMessage::Notification(notification) => {
                    let changes = &notification.notification;
                    if !matches!(changes, ServerNotification::ToolListChangedNotification(_)) {
                        self.notifications += 1;
                        if self.notifications > MAX_NOTIFICATIONS {
                            return None;
                        }
                        continue;
                    }
                    true
                }
                JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => false,
            };
            self.messages += usize::from(is_counted);
            return (self.messages <= MAX_MESSAGES).then_some(message);
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}
