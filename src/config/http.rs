//! `[http]`.
use crate::http::PublicUrl;
/// http
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpSettings {
    /// p
    pub public_url: Option<PublicUrl>,
    /// c
    pub calls_per_caller: usize,
}
impl Default for HttpSettings {
    fn default() -> Self {
        Self { public_url: None, calls_per_caller: 16 }
    }
}
