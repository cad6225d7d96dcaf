//! The configuration as operators see it: the keys of the file, with values that cannot be secrets.

use std::sync::Arc;

use arc_swap::ArcSwap;

/// A key of the configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownSetting {
    /// Full key, such as `source[0].url`.
    pub key: String,
    /// Value without secrets, or `None` if it is hidden.
    pub value: Option<String>,
}

/// The configuration file without its secrets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConfigurationView {
    /// Path of the file, or `None` if the server runs without one.
    pub file: Option<String>,
    /// Keys in the order of the file.
    pub settings: Vec<ShownSetting>,
}

/// The configuration in use. Clones share it, and a reload replaces it.
#[derive(Debug, Clone, Default)]
pub struct CurrentConfiguration(Arc<ArcSwap<ConfigurationView>>);

impl CurrentConfiguration {
    /// Sets the configuration in use.
    pub fn replace(&self, view: ConfigurationView) {
        self.0.store(Arc::new(view));
    }

    /// Returns the configuration in use.
    #[must_use]
    pub fn get(&self) -> Arc<ConfigurationView> {
        self.0.load_full()
    }
}
