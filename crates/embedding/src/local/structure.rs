//! Checks the structure of an ONNX file before rten parses it.
//!
//! An ONNX file is a tree of protobuf messages. rten adds the length of a field to its position without a check for
//! overflow, so a damaged length can send its parser back to an earlier byte, again and again, and messages that are
//! nested without end would exhaust the stack. Here each field has to end within its message. Contents are not read.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::Path;

/// Maximum depth of messages. Models have ten, and three more for each graph within a graph.
const MAX_DEPTH: usize = 48;

/// Maximum bytes of a number.
const MAX_VARINT_BYTES: u32 = 10;

/// Messages of an ONNX file that have fields, as in `onnx.proto`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Message {
    Model,
    Graph,
    Node,
    Attribute,
    Tensor,
    ValueInfo,
    Type,
    TensorType,
    SequenceType,
    Shape,
    /// A message of numbers and strings.
    Flat,
}

impl Message {
    /// Returns the message in a field; `None` for other fields.
    fn child(self, field: u64) -> Option<Self> {
        Some(match (self, field) {
            (Self::Model, 7) | (Self::Attribute, 6) => Self::Graph,
            (Self::Graph, 1) => Self::Node,
            (Self::Graph, 5) | (Self::Attribute, 5) => Self::Tensor,
            (Self::Graph, 11..=13) => Self::ValueInfo,
            (Self::Node, 5) => Self::Attribute,
            (Self::ValueInfo, 2) | (Self::SequenceType, 1) => Self::Type,
            (Self::Type, 1) => Self::TensorType,
            (Self::Type, 4) => Self::SequenceType,
            (Self::TensorType, 2) => Self::Shape,
            (Self::Model, 8 | 14) | (Self::Tensor, 13) | (Self::Shape, 1) => Self::Flat,
            _ => return None,
        })
    }
}

/// Returns the problem of a file with a damaged structure.
pub(super) fn check_structure(path: &Path) -> Result<(), String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let length = file.metadata().map_err(|error| error.to_string())?.len();
    StructureReader { reader: BufReader::new(file), at: 0 }.check(Message::Model, length, 0)
}

/// Reads the fields of messages, one after the other.
struct StructureReader<R> {
    reader: BufReader<R>,
    /// Position of the next byte.
    at: u64,
}

impl<R: Read + Seek> StructureReader<R> {
    /// Checks the fields of a message up to its end.
    fn check(&mut self, message: Message, end: u64, depth: usize) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err(format!("it has more than {MAX_DEPTH} levels"));
        }
        while self.at < end {
            let tag = self.varint(end)?;
            match tag & 7 {
                0 => {
                    self.varint(end)?;
                }
                1 => self.skip(8, end)?,
                2 => {
                    let length = self.varint(end)?;
                    match message.child(tag >> 3) {
                        Some(child) => {
                            let end_of_child = self.end_of(length, end)?;
                            self.check(child, end_of_child, depth + 1)?;
                        }
                        None => self.skip(length, end)?,
                    }
                }
                5 => self.skip(4, end)?,
                other => return Err(format!("it is damaged: byte {} has type {other}", self.at)),
            }
        }
        Ok(())
    }

    /// Returns the end of the next bytes, which must not be after the end of the message.
    fn end_of(&self, length: u64, end: u64) -> Result<u64, String> {
        let end_of_field = self.at.checked_add(length).filter(|end_of_field| *end_of_field <= end);
        end_of_field.ok_or_else(|| format!("it is incomplete or damaged at byte {}", self.at))
    }

    fn skip(&mut self, length: u64, end: u64) -> Result<(), String> {
        self.at = self.end_of(length, end)?;
        let length = i64::try_from(length).map_err(|error| error.to_string())?;
        self.reader.seek_relative(length).map_err(|error| error.to_string())
    }

    /// Reads a number of seven bits a byte, the lowest ones first.
    fn varint(&mut self, end: u64) -> Result<u64, String> {
        let mut number = 0;
        for place in 0..MAX_VARINT_BYTES {
            self.at = self.end_of(1, end)?;
            let byte = self.byte().map_err(|error| error.to_string())?;
            number |= u64::from(byte & 0x7F) << (7 * place);
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(format!("it is damaged: the number at byte {} is too long", self.at))
    }

    fn byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.reader.read_exact(&mut byte)?;
        Ok(u8::from_le_bytes(byte))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// Checks a model that consists of some bytes.
    #[track_caller]
    fn check(bytes: &[u8], expect: Result<(), &str>) {
        let length = bytes.len() as u64;
        let mut reader = StructureReader { reader: BufReader::new(Cursor::new(bytes)), at: 0 };
        let found = reader.check(Message::Model, length, 0);
        assert_eq!(found, expect.map_err(str::to_owned), "{bytes:x?}");
    }

    #[test]
    fn each_field_ends_within_its_message() {
        check(&[], Ok(()));
        // A version, a name, and a graph with a node that has a name.
        check(&[0x08, 0x08, 0x12, 0x01, b'x', 0x3A, 0x05, 0x0A, 0x03, 0x1A, 0x01, b'y'], Ok(()));
        check(&[0x12, 0x02, b'x'], Err("it is incomplete or damaged at byte 2"));
        // The name of the node ends after the node.
        check(
            &[0x3A, 0x05, 0x0A, 0x03, 0x1A, 0x02, b'y', 0x08, 0x08],
            Err("it is incomplete or damaged at byte 6"),
        );
        check(&[0x08], Err("it is incomplete or damaged at byte 1"));
        check(&[0x0B], Err("it is damaged: byte 1 has type 3"));
        check(&[0x08, 0xFF], Err("it is incomplete or damaged at byte 2"));
        check(&[0xFF; 11], Err("it is damaged: the number at byte 10 is too long"));
        // A length that overflows to the start of its field.
        let back = [0x7A, 0xF5, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01];
        check(&back, Err("it is incomplete or damaged at byte 11"));
    }

    #[test]
    fn graphs_are_nested_to_a_limit() {
        // A graph in an attribute of a node of a graph.
        let nested = |count: usize| {
            (0..count).fold(Vec::new(), |inner: Vec<u8>, _| {
                [0x32_u8, 0x2A, 0x0A].into_iter().fold(inner, |inner, tag| {
                    let length = u8::try_from(inner.len()).unwrap_or(0x7F);
                    [vec![tag, length], inner].concat()
                })
            })
        };
        let model = |count| {
            let graphs = nested(count);
            [vec![0x3A, u8::try_from(graphs.len()).unwrap_or(0x7F)], graphs].concat()
        };
        check(&model(15), Ok(()));
        check(&model(16), Err("it has more than 48 levels"));
    }
}
