//! Content that a part has twice: `mc:Choice` for new programs, and `mc:Fallback` for the others.

use super::xml::Node;

/// Skips the second choice where the first one has text.
#[derive(Debug, Default)]
pub(super) struct Alternatives {
    /// Length of the text at the start of each content with alternatives that has begun.
    starts: Vec<usize>,
    /// Number of second choices, each in the other, that are skipped.
    skipped: usize,
}

impl Alternatives {
    /// Returns true if a node is skipped. `length` is the length of all text so far.
    pub(super) fn skip(&mut self, node: &Node<'_>, length: usize) -> bool {
        match node {
            Node::Start(tag) if tag.name == "AlternateContent" && self.skipped == 0 => {
                self.starts.push(length);
            }
            Node::End("AlternateContent") if self.skipped == 0 => drop(self.starts.pop()),
            Node::Start(tag) if tag.name == "Fallback" => {
                let has_text = self.starts.last().is_some_and(|start| *start < length);
                self.skipped += usize::from(self.skipped > 0 || has_text);
            }
            Node::End("Fallback") if self.skipped > 0 => {
                self.skipped -= 1;
                return true;
            }
            _ => {}
        }
        self.skipped > 0
    }
}
