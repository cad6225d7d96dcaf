//! Readers of calendars (RFC 5545) and contacts (RFC 6350, vCard 2.1 to 4.0).
//!
//! * `content_line`: the lines that both formats consist of
//! * `zones`: the time zones of a calendar, `windows_zones`: the names of zones in Windows
//! * `ics`: events, tasks and journal entries, `vcard`: contacts
//! * `invitation`: the events of an invitation in a message as text, `recurrence`: their rules in words

mod content_line;
mod ics;
mod invitation;
mod recurrence;
mod vcard;
mod windows_zones;
mod zones;

pub(crate) use self::ics::read_ics;
pub(crate) use self::invitation::invitation_text;
pub(crate) use self::vcard::read_vcard;
