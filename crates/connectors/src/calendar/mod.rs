//! Readers of calendars (RFC 5545) and contacts (RFC 6350, vCard 2.1 to 4.0).
//!
//! * `content_line`: the lines that both formats consist of
//! * `zones`: the time zones of a calendar, `windows_zones`: the names of zones in Windows
//! * `ics`: events, tasks and journal entries, `vcard`: contacts

mod content_line;
mod ics;
mod vcard;
mod windows_zones;
mod zones;

pub(crate) use self::ics::read_ics;
pub(crate) use self::vcard::read_vcard;
