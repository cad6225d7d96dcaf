//! Requests in the form that handlers use.

use fetchwell_core::fit::Limits;
use fetchwell_tools::Toolbox;

use super::parameters::Parameters;

/// Path prefix of the API.
pub(super) const BASE: &str = "/api/v1";

/// One request in the form that handlers use.
#[derive(Debug)]
pub(super) struct Call<'a> {
    pub(super) toolbox: &'a Toolbox,
    pub(super) limits: Limits,
    /// Path of the list, as clients write it.
    pub(super) path: String,
    pub(super) parameters: Parameters,
    /// True if the caller asks for the size of the response without any shaping.
    pub(super) compares: bool,
}
