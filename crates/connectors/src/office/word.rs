//! The text of a part of a Word document: paragraphs, tables and text boxes, without deleted text, and without the
//! numbers of pages.

use super::alternatives::Alternatives;
use super::xml::{Node, Tag, walk_xml};

/// Fields with a number that differs on every page.
const PAGE_NUMBERS: [&str; 3] = ["PAGE", "NUMPAGES", "SECTIONPAGES"];

/// Returns true if the result of a field is a number that differs on every page.
pub(super) fn is_page_number(instruction: &str) -> bool {
    let name = instruction.split_whitespace().next().unwrap_or_default();
    PAGE_NUMBERS.iter().any(|number| name.eq_ignore_ascii_case(number))
}

/// The text of a part.
#[derive(Debug, Default)]
pub(super) struct WordText {
    pub(super) text: String,
    /// First paragraph in the style `Title`, or an empty text.
    pub(super) title: String,
}

/// Returns the text of a part.
pub(super) fn word_text(xml: &str) -> Result<WordText, String> {
    let mut reader = Reader { frames: vec![Frame::default()], ..Reader::default() };
    walk_xml(xml, &mut |node| {
        if !reader.alternatives.skip(&node, reader.written) {
            match node {
                Node::Start(tag) => reader.start(tag),
                Node::Text(piece) => reader.add(piece),
                Node::End(name) => reader.end(name),
            }
        }
        Ok::<(), String>(())
    })?;
    while reader.frames.len() > 1 {
        reader.end_box();
    }
    let mut frame = reader.frames.pop().unwrap_or_default();
    frame.add_boxes();
    Ok(WordText { text: frame.text.trim().to_owned(), title: reader.title.trim().to_owned() })
}

/// The text of the part, or of a text box in it.
#[derive(Debug, Default)]
struct Frame {
    text: String,
    /// Number of cells that have begun, each in a table in the other.
    cells: usize,
    /// Texts of boxes, which follow the paragraph that they stand in.
    boxes: String,
}

impl Frame {
    fn add_boxes(&mut self) {
        let boxes = std::mem::take(&mut self.boxes);
        self.text.push_str(&if self.cells > 0 { boxes.replace('\n', " ") } else { boxes });
    }

    /// Removes characters at the end.
    fn trim_end(&mut self, character: char) {
        self.text.truncate(self.text.trim_end_matches(character).len());
    }
}

/// A field, such as the number of the page.
#[derive(Debug, Default)]
struct Field {
    instruction: String,
    /// True if the text that follows is its result.
    is_hidden: bool,
}

/// A walk over a part.
#[derive(Debug, Default)]
struct Reader {
    frames: Vec<Frame>,
    alternatives: Alternatives,
    fields: Vec<Field>,
    /// Number of fields with a hidden result that have begun.
    hidden: usize,
    /// Number of texts that have begun and were moved elsewhere.
    moved: usize,
    is_text: bool,
    is_instruction: bool,
    is_tab_stop: bool,
    /// Position of the paragraph in the part.
    paragraph: usize,
    is_title: bool,
    title: String,
    /// Bytes of all text so far.
    written: usize,
}

impl Reader {
    fn start(&mut self, tag: &Tag<'_>) {
        let is_part = self.frames.len() == 1;
        let Some(frame) = self.frames.last_mut() else { return };
        match tag.name {
            "moveFrom" => self.moved += 1,
            "t" => self.is_text = true,
            "instrText" => self.is_instruction = true,
            "p" if is_part => (self.paragraph, self.is_title) = (frame.text.len(), false),
            "pStyle" if is_part => {
                self.is_title = tag.attribute("val").is_some_and(|style| style == "Title");
            }
            "tabs" => self.is_tab_stop = true,
            "tab" if !self.is_tab_stop => frame.text.push('\t'),
            "br" | "cr" => frame.text.push('\n'),
            "noBreakHyphen" => frame.text.push('-'),
            "tc" => frame.cells += 1,
            "txbxContent" => self.frames.push(Frame::default()),
            "fldSimple" => {
                self.fields.push(Field {
                    instruction: tag.attribute("instr").unwrap_or_default(),
                    ..Field::default()
                });
                self.begin_result();
            }
            "fldChar" => match tag.attribute("fldCharType").as_deref() {
                Some("begin") => self.fields.push(Field::default()),
                Some("separate") => self.begin_result(),
                Some("end") => self.end_field(),
                _ => {}
            },
            _ => {}
        }
    }

    fn begin_result(&mut self) {
        if let Some(field) = self.fields.last_mut() {
            field.is_hidden = is_page_number(&field.instruction);
            self.hidden += usize::from(field.is_hidden);
        }
    }

    fn end_field(&mut self) {
        let is_hidden = self.fields.pop().is_some_and(|field| field.is_hidden);
        self.hidden = self.hidden.saturating_sub(usize::from(is_hidden));
    }

    fn add(&mut self, piece: &str) {
        if self.is_instruction
            && let Some(field) = self.fields.last_mut()
        {
            field.instruction.push_str(piece);
        }
        if self.is_text
            && self.hidden == 0
            && self.moved == 0
            && let Some(frame) = self.frames.last_mut()
        {
            frame.text.push_str(piece);
            self.written += piece.len();
        }
    }

    fn end(&mut self, name: &str) {
        let is_part = self.frames.len() == 1;
        let Some(frame) = self.frames.last_mut() else { return };
        match name {
            "moveFrom" => self.moved = self.moved.saturating_sub(1),
            "t" => self.is_text = false,
            "instrText" => self.is_instruction = false,
            "tabs" => self.is_tab_stop = false,
            "p" => {
                if is_part && self.is_title && self.title.is_empty() {
                    self.title = frame.text.get(self.paragraph..).unwrap_or_default().to_owned();
                }
                frame.text.push(if frame.cells > 0 { ' ' } else { '\n' });
                frame.add_boxes();
            }
            "tc" => {
                frame.cells = frame.cells.saturating_sub(1);
                frame.trim_end(' ');
                frame.text.push('\t');
            }
            "tr" => {
                frame.trim_end('\t');
                frame.text.push('\n');
            }
            "txbxContent" if !is_part => self.end_box(),
            "fldSimple" => self.end_field(),
            _ => {}
        }
    }

    /// Moves the text of a box to what it stands in.
    fn end_box(&mut self) {
        let Some(mut frame) = self.frames.pop() else { return };
        frame.add_boxes();
        if let Some(outer) = self.frames.last_mut() {
            outer.boxes.push_str(frame.text.trim());
            outer.boxes.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(body: &str, expect: &str) {
        assert_eq!(word_text(&format!("<w:body>{body}</w:body>")).unwrap().text, expect, "{body}");
    }

    fn run(text: &str) -> String {
        format!("<w:r><w:t>{text}</w:t></w:r>")
    }

    fn text_box(text: &str) -> String {
        format!("<wps:txbx><w:txbxContent><w:p>{}</w:p></w:txbxContent></wps:txbx>", run(text))
    }

    #[test]
    fn boxes_stand_once_behind_their_paragraph() {
        let both = |choice: &str, fallback: &str| {
            format!(
                "<w:r><mc:AlternateContent><mc:Choice Requires='wps'>{choice}</mc:Choice>\
                 <mc:Fallback>{fallback}</mc:Fallback></mc:AlternateContent></w:r>"
            )
        };
        let twice = both(&text_box("In a box"), &text_box("In a box"));
        check(
            &format!("<w:p>{}{twice}{}</w:p><w:p>{}</w:p>", run("A sen"), run("tence"), run("next")),
            "A sentence\nIn a box\nnext",
        );
        // The second choice counts if the first one has no text.
        check(&format!("<w:p>{}{}</w:p>", both("<w:drawing/>", &run("old")), run(" x")), "old x");
        let inner =
            format!("<wps:txbx><w:txbxContent><w:p>{}{twice}</w:p></w:txbxContent></wps:txbx>", run("outer"));
        check(&format!("<w:p>{}{}</w:p>", both(&inner, &inner), run("text")), "text\nouter\nIn a box");
        check(
            &format!(
                "<w:tbl><w:tr><w:tc><w:p>{}{twice}</w:p></w:tc><w:tc><w:p>{}</w:p></w:tc></w:tr></w:tbl>",
                run("a"),
                run("b")
            ),
            "a In a box\tb",
        );
    }

    #[test]
    fn numbers_of_pages_and_moved_texts_are_left_out() {
        let field = |kind: &str| format!("<w:r><w:fldChar w:fldCharType='{kind}'/></w:r>");
        let instruction = |text: &str| format!("<w:r><w:instrText> {text} </w:instrText></w:r>");
        let number =
            [field("begin"), instruction("PAGE"), field("separate"), run("7"), field("end")].concat();
        let link =
            [field("begin"), instruction("HYPERLINK \"x\""), field("separate"), run("here"), field("end")]
                .concat();
        let simple = format!("<w:fldSimple w:instr=' NUMPAGES '>{}</w:fldSimple>", run("9"));
        check(&format!("<w:p>{}{number}{}{simple}{link}</w:p>", run("Page "), run(" of ")), "Page  of here");
        check(
            &format!("<w:p><w:moveFrom>{}</w:moveFrom><w:moveTo>{}</w:moveTo></w:p>", run("a"), run("a")),
            "a",
        );
        check(
            "<w:p><w:pPr><w:tabs><w:tab/></w:tabs></w:pPr><w:r><w:t>x</w:t><w:tab/><w:t>y</w:t></w:r></w:p>",
            "x\ty",
        );
        check(&field("end").repeat(3), "");
    }
}
