//! Toolboxes while calls are answered.
//!
//! * `shared`: the toolbox of all clients, which a changed configuration replaces
//! * `by_caller`: the toolbox of each grant, and the admission of a call within the limits of its person
//! * `link_readers`: readers of links in the state that servers share
//! * `sign_ins`: sign-ins of callers at the servers of sources

mod by_caller;
mod link_readers;
mod shared;
mod sign_ins;

pub use self::by_caller::{CallerSettings, CallerSources, CallerToolboxes, GrantToolbox, Permit};
pub use self::shared::SharedToolbox;
pub use self::sign_ins::{SignInStart, SignInState, SourceSignIn, SourceSignIns};
