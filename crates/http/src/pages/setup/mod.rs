//! `/setup`: the page of `fetchwell setup --page`. It finds records and clients on this machine and sets them up.
//!
//! It is served only at a loopback address, by a process that serves nothing else. Its URL has a random key that the command
//! prints: other users of the machine do not know it, so they can neither read what is in the home folder nor change it. The
//! form has the key and a hash of the plan that was shown, and must come from the page itself.
//!
//! * `actions`: what is shown and done, as values
//! * `state`: the work in the background
//! * `view`: the page
//! * `serve`: routes and the server

mod actions;
mod serve;
mod state;
mod view;

pub use self::actions::{
    ClientFileState, PlannedClient, PlannedImport, PlannedSource, SetupActions, SetupChoice, SetupOutcome,
    SetupPlan,
};
pub use self::serve::serve_setup;
pub use self::view::SETUP;
