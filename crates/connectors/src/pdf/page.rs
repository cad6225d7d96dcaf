//! The text of a page: the operators that place text, and those of forms in the page.

use std::collections::HashMap;
use std::rc::Rc;

use hayro_syntax::content::TypedIter;
use hayro_syntax::content::ops::TypedInstruction;
use hayro_syntax::object::{Array, Dict, Name, Number, Object, ObjectIdentifier, Stream};
use hayro_syntax::page::{Page, Resources};

use super::super::skips::Problem;
use super::cid::CMaps;
use super::font::Font;
use super::layout::{Layout, PageText, Point};

/// Maximum number of operators in a document.
const MAX_OPERATORS: u64 = 50_000_000;

/// Maximum size of the text of a page in bytes.
const MAX_PAGE_BYTES: usize = 8 * 1024 * 1024;

/// Maximum number of forms in forms.
const MAX_LEVELS: usize = 6;

/// Maximum number of saved graphics states.
const MAX_STATES: usize = 256;

/// Maximum number of fonts that are kept.
const MAX_FONTS: usize = 1_000;

/// The fonts and limits of a document.
#[derive(Debug, Default)]
pub(super) struct PageReader {
    fonts: HashMap<ObjectIdentifier, Rc<Font>>,
    cmaps: CMaps,
    operators: u64,
    /// True if text was shown whose characters are not known.
    pub(super) has_unmapped_text: bool,
    /// True if the last page has a picture, or text whose characters are not known.
    pub(super) may_show_text: bool,
    /// Name of a CMap that such text needs and that is not known.
    pub(super) unknown_cmap: Option<String>,
}

/// A transformation: x' = ax + cy + e, y' = bx + dy + f.
#[derive(Debug, Clone, Copy)]
struct Matrix([f64; 6]);

impl Matrix {
    const IDENTITY: Self = Self([1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);

    /// Returns the transformation that applies this one and then `next`.
    fn then(self, next: Self) -> Self {
        let ([a, b, c, d, e, f], [p, q, r, s, t, u]) = (self.0, next.0);
        let first = [a * p + b * r, a * q + b * s, c * p + d * r, c * q + d * s];
        let [a, b, c, d] = first;
        Self([a, b, c, d, e * p + f * r + t, e * q + f * s + u])
    }

    fn moved(self, x: f64, y: f64) -> Self {
        Self([1.0, 0.0, 0.0, 1.0, x, y]).then(self)
    }

    fn origin(self) -> Point {
        let [.., x, y] = self.0;
        Point { x, y }
    }

    /// Returns the factor by which heights grow.
    fn scale(self) -> f64 {
        let [_, _, c, d, ..] = self.0;
        c.hypot(d)
    }

    fn from_numbers(numbers: [&Number; 6]) -> Self {
        Self(numbers.map(Number::as_f64))
    }
}

/// The part of the graphics state that text needs.
#[derive(Debug, Clone)]
struct State {
    matrix: Matrix,
    font: Option<Rc<Font>>,
    size: f64,
    character_spacing: f64,
    word_spacing: f64,
    stretch: f64,
    leading: f64,
}

impl Default for State {
    fn default() -> Self {
        Self {
            matrix: Matrix::IDENTITY,
            font: None,
            size: 0.0,
            character_spacing: 0.0,
            word_spacing: 0.0,
            stretch: 1.0,
            leading: 0.0,
        }
    }
}

/// The content of a page or form that is being read.
struct Content<'r> {
    layout: &'r mut Layout,
    state: State,
    saved: Vec<State>,
    text: Matrix,
    line: Matrix,
    /// Font of text whose characters are not known.
    unmapped: Option<Rc<Font>>,
}

impl PageReader {
    /// Returns the text of a page.
    pub(super) fn read(&mut self, page: &Page<'_>) -> Result<PageText, Problem> {
        let mut layout = Layout::default();
        self.may_show_text = false;
        if let Some(bytes) = page.page_stream() {
            self.read_content(bytes, page.resources(), State::default(), &mut layout, 0)?;
        }
        Ok(layout.into_text())
    }

    fn read_content(
        &mut self,
        bytes: &[u8],
        resources: &Resources<'_>,
        state: State,
        layout: &mut Layout,
        level: usize,
    ) -> Result<(), Problem> {
        let (text, line) = (Matrix::IDENTITY, Matrix::IDENTITY);
        let mut content = Content { layout, state, saved: Vec::new(), text, line, unmapped: None };
        let mut operators = TypedIter::new(bytes);
        while let Some(operator) = operators.next() {
            self.operators += 1;
            if self.operators > MAX_OPERATORS {
                return Err(Problem::too_large(format!("it has more than {MAX_OPERATORS} operators")));
            }
            if content.layout.len() > MAX_PAGE_BYTES {
                return Err(Problem::too_large(format!(
                    "the text of a page is longer than {MAX_PAGE_BYTES} bytes"
                )));
            }
            match operator {
                TypedInstruction::TextFont(font) => {
                    content.state.font = self.font(resources, font.0);
                    content.state.size = font.1.as_f64();
                }
                TypedInstruction::XObject(object) if level < MAX_LEVELS => {
                    if let Some(form) = resources.get_x_object(object.0) {
                        self.read_form(&form, resources, &mut content, level)?;
                    }
                }
                TypedInstruction::InlineImage(_) => self.may_show_text = true,
                other => content.apply(&other),
            }
        }
        if let Some(font) = content.unmapped {
            (self.has_unmapped_text, self.may_show_text) = (true, true);
            self.unknown_cmap = self.unknown_cmap.take().or_else(|| font.unknown_cmap().map(str::to_owned));
        }
        Ok(())
    }

    /// Reads a form. A picture has no text of its own.
    fn read_form(
        &mut self,
        form: &Stream<'_>,
        outer: &Resources<'_>,
        content: &mut Content<'_>,
        level: usize,
    ) -> Result<(), Problem> {
        let dictionary = form.dict();
        match dictionary.get::<Name<'_>>("Subtype").as_ref().map(Name::as_str) {
            Some("Form") => {}
            kind => {
                self.may_show_text |= kind == Some("Image");
                return Ok(());
            }
        }
        let Ok(bytes) = form.decoded() else { return Ok(()) };
        let numbers: Vec<f64> = dictionary
            .get::<Array<'_>>("Matrix")
            .iter()
            .flat_map(Array::iter::<Number>)
            .map(|number| number.as_f64())
            .collect();
        let own = <[f64; 6]>::try_from(numbers).map_or(Matrix::IDENTITY, Matrix);
        let state = State { matrix: own.then(content.state.matrix), ..content.state.clone() };
        match dictionary.get::<Dict<'_>>("Resources") {
            Some(own) => self.read_content(&bytes, &Resources::new(own), state, content.layout, level + 1),
            None => self.read_content(&bytes, outer, state, content.layout, level + 1),
        }
    }

    fn font(&mut self, resources: &Resources<'_>, name: &Name<'_>) -> Option<Rc<Font>> {
        let font = resources.get_font(name)?;
        let id = font.obj_id();
        if let Some(known) = id.and_then(|id| self.fonts.get(&id)) {
            return Some(Rc::clone(known));
        }
        let font = Rc::new(Font::new(&font, &mut self.cmaps));
        if let Some(id) = id.filter(|_| self.fonts.len() < MAX_FONTS) {
            self.fonts.insert(id, Rc::clone(&font));
        }
        Some(font)
    }
}

impl Content<'_> {
    fn apply(&mut self, operator: &TypedInstruction<'_, '_>) {
        match operator {
            TypedInstruction::SaveState(_) if self.saved.len() < MAX_STATES => {
                self.saved.push(self.state.clone());
            }
            TypedInstruction::RestoreState(_) => {
                if let Some(state) = self.saved.pop() {
                    self.state = state;
                }
            }
            TypedInstruction::Transform(it) => {
                let matrix = Matrix::from_numbers([&it.0, &it.1, &it.2, &it.3, &it.4, &it.5]);
                self.state.matrix = matrix.then(self.state.matrix);
            }
            TypedInstruction::BeginText(_) => self.set_line(Matrix::IDENTITY),
            TypedInstruction::CharacterSpacing(it) => self.state.character_spacing = it.0.as_f64(),
            TypedInstruction::WordSpacing(it) => self.state.word_spacing = it.0.as_f64(),
            TypedInstruction::HorizontalScaling(it) => self.state.stretch = it.0.as_f64() / 100.0,
            TypedInstruction::TextLeading(it) => self.state.leading = it.0.as_f64(),
            TypedInstruction::SetTextMatrix(it) => {
                self.set_line(Matrix::from_numbers([&it.0, &it.1, &it.2, &it.3, &it.4, &it.5]));
            }
            TypedInstruction::NextLine(it) => self.set_line(self.line.moved(it.0.as_f64(), it.1.as_f64())),
            TypedInstruction::NextLineAndSetLeading(it) => {
                self.state.leading = -it.1.as_f64();
                self.set_line(self.line.moved(it.0.as_f64(), it.1.as_f64()));
            }
            TypedInstruction::NextLineUsingLeading(_) => self.next_line(),
            TypedInstruction::ShowText(it) => self.show(it.0.as_bytes()),
            TypedInstruction::NextLineAndShowText(it) => {
                self.next_line();
                self.show(it.0.as_bytes());
            }
            TypedInstruction::ShowTextWithParameters(it) => {
                (self.state.word_spacing, self.state.character_spacing) = (it.0.as_f64(), it.1.as_f64());
                self.next_line();
                self.show(it.2.as_bytes());
            }
            TypedInstruction::ShowTexts(it) => {
                for item in it.0.iter::<Object<'_>>() {
                    match item {
                        Object::String(text) => self.show(text.as_bytes()),
                        Object::Number(gap) => {
                            let gap = -gap.as_f64() / 1_000.0 * self.state.size * self.state.stretch;
                            self.advance(gap);
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }

    fn set_line(&mut self, line: Matrix) {
        (self.text, self.line) = (line, line);
    }

    fn next_line(&mut self) {
        self.set_line(self.line.moved(0.0, -self.state.leading));
    }

    /// Moves the position in the direction of the writing.
    fn advance(&mut self, distance: f64) {
        let is_vertical = self.state.font.as_ref().is_some_and(|font| font.is_vertical());
        let (x, y) = if is_vertical { (0.0, distance) } else { (distance, 0.0) };
        self.text = self.text.moved(x, y);
    }

    /// Adds a string, and moves the position behind it.
    fn show(&mut self, bytes: &[u8]) {
        let Some(font) = self.state.font.clone() else { return };
        let is_vertical = font.is_vertical();
        let start = self.text.then(self.state.matrix);
        let (mut text, mut width) = (String::new(), 0.0);
        for glyph in font.glyphs(bytes) {
            let spacing = self.state.character_spacing;
            let spacing = if glyph.is_space { spacing + self.state.word_spacing } else { spacing };
            width += (glyph.width * self.state.size + spacing) * self.state.stretch;
            text.push_str(&glyph.text);
        }
        if text.is_empty() && width.abs() > 0.0 {
            self.unmapped = Some(font);
        }
        self.advance(width);
        let end = self.text.then(self.state.matrix).origin();
        let size = (self.state.size * start.scale()).abs();
        // Columns are lines from the right to the left.
        let turned = |place: Point| if is_vertical { Point { x: -place.y, y: place.x } } else { place };
        self.layout.add(&text, turned(start.origin()), turned(end), size);
    }
}
