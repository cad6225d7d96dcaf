//! The readers of bookmarks: a record for each.
//!
//! * `bookmark`: a bookmark and its record
//! * `netscape`: the HTML file that every browser exports, `chrome`: the file `Bookmarks` of Chrome and its relatives

mod bookmark;
mod chrome;
mod netscape;

pub(crate) use self::netscape::is_bookmarks;

use self::chrome::read_chrome;
use self::netscape::read_netscape;
use super::super::intake::Intake;
use super::super::item::{Item, ReadError};

/// Reads the bookmarks of a file.
pub(crate) fn read_bookmarks(item: Item<'_>, intake: &mut Intake<'_>) -> Result<(), ReadError> {
    let is_json = item.head().trim_ascii_start().starts_with(b"{");
    if is_json { read_chrome(item, intake) } else { read_netscape(item, intake) }
}
