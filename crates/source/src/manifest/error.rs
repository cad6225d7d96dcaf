//! Error of parsing a manifest.

/// Reason why a text is not a valid manifest.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// The text is not JSON of the expected shape.
    #[error("it is not a connector manifest ({0}); it needs `streams`, an array of objects with a `name`")]
    Shape(#[from] serde_json::Error),
    /// The manifest declares no stream.
    #[error("it declares no stream; `streams` is empty")]
    NoStreams,
    /// A stream has no name.
    #[error("one of its `streams` has no `name`, which is a text")]
    NamelessStream,
    /// A route cannot be served.
    #[error("its route `{route}` cannot be served: {problem}")]
    BadRoute {
        /// Path of the route, or the whole JSON value if it has no path.
        route: String,
        /// Description of the problem.
        problem: String,
    },
}
