//! Readers of office documents and books: XML files in a ZIP container.
//!
//! * `package`: the parts of a container, within limits
//! * `xml`: a walk over the elements and texts of a part
//! * `properties`: title, author and times of a document
//! * `alternatives`: content that a part has twice, `word`: the text of a part of a Word document
//! * `docx`, `pptx`, `odt`, `epub`: documents; `xlsx`, `ods`: spreadsheets, a record per row
//! * `rows`: the rows of a sheet as records, `serial`: days and times as numbers
//! * `binary`: the formats of Office 97 to 2003
//!
//! **Invariant:** entities are never expanded, no macro is run, and no other file is opened.

mod alternatives;
mod binary;
mod docx;
mod epub;
mod ods;
mod odt;
mod package;
mod pptx;
mod properties;
mod rows;
mod serial;
mod word;
mod xlsx;
mod xml;

pub(crate) use self::binary::{open_compound, read_stream};
pub(crate) use self::docx::read_docx;
pub(crate) use self::epub::read_epub;
pub(crate) use self::ods::read_ods;
pub(crate) use self::odt::read_odt;
pub(crate) use self::pptx::read_pptx;
pub(crate) use self::xlsx::read_xlsx;
pub(crate) use self::xml::{Node, Tag, referenced_character, walk_xml};
