//! The tools as they are configured now.
//!
//! A change of the configuration puts others in their place; a call ends with those it began with.

use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::tools::Toolbox;

/// A toolbox that can be replaced while calls are answered.
#[derive(Debug, Clone)]
pub struct SharedToolbox(Arc<ArcSwap<Toolbox>>);

impl SharedToolbox {
    /// Starts with these tools.
    #[must_use]
    pub fn new(toolbox: Toolbox) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(toolbox)))
    }

    /// The tools for one call, from its start to its end.
    #[must_use]
    pub fn now(&self) -> Arc<Toolbox> {
        self.0.load_full()
    }

    /// Other tools, for the calls that come from now on.
    pub fn replace(&self, toolbox: Toolbox) {
        self.0.store(Arc::new(toolbox));
    }
}
