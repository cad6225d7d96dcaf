//! The toolbox of all clients of a server without authentication.
//!
//! A changed configuration replaces it. A call keeps the toolbox that it began with.

use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::Toolbox;

/// A toolbox that can be replaced while calls are answered.
#[derive(Debug, Clone)]
pub struct SharedToolbox(Arc<ArcSwap<Toolbox>>);

impl SharedToolbox {
    /// Creates a shared toolbox.
    #[must_use]
    pub fn new(toolbox: Toolbox) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(toolbox)))
    }

    /// Returns the current toolbox, which a call keeps until its end.
    #[must_use]
    pub fn now(&self) -> Arc<Toolbox> {
        self.0.load_full()
    }

    /// Replaces the toolbox for all later calls.
    pub fn replace(&self, toolbox: Toolbox) {
        self.0.store(Arc::new(toolbox));
    }
}
