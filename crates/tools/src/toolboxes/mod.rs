//! Toolboxes while calls are answered.
//!
//! * `shared`: the toolbox of all clients, which a changed configuration replaces
//! * `by_caller`: the toolbox of each grant, and the admission of a call within the limits of its person
//! * `link_readers`: readers of links in the state that servers share

mod by_caller;
mod link_readers;
mod shared;

pub use self::by_caller::{CallerSettings, CallerSources, CallerToolboxes, GrantToolbox, Permit};
pub use self::shared::SharedToolbox;
