//! The path of Markdown headings that a place in a text is below.

/// Maximum length of a heading in bytes. Longer lines that begin with `#` are text.
const MAX_HEADING_BYTES: usize = 120;

/// The headings above the current place of a walk through a text.
#[derive(Debug, Default)]
pub struct Headings {
    /// Level and text of each heading, the outermost first.
    path: Vec<(usize, String)>,
}

impl Headings {
    /// Updates the path by the lines of a piece of the text.
    pub fn read(&mut self, text: &str) {
        for line in text.lines() {
            let Some((level, heading)) = heading(line) else { continue };
            self.path.retain(|(outer, _)| *outer < level);
            self.path.push((level, heading.to_owned()));
        }
    }

    /// Returns the path as text, such as `Install > Linux`.
    #[must_use]
    pub fn shown(&self) -> String {
        self.path.iter().map(|(_, heading)| heading.as_str()).collect::<Vec<_>>().join(" > ")
    }
}

fn heading(line: &str) -> Option<(usize, &str)> {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    let text = line.get(level..)?.strip_prefix(' ')?.trim().trim_end_matches('#').trim_end();
    ((1..=6).contains(&level) && !text.is_empty() && text.len() <= MAX_HEADING_BYTES).then_some((level, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deeper_headings_follow_and_equal_ones_replace() {
        let mut headings = Headings::default();
        headings.read("# Guide\ntext\n## Install ##\n#no\n#######  no\n");
        assert_eq!(headings.shown(), "Guide > Install");
        headings.read("## Use\n### Search\n");
        assert_eq!(headings.shown(), "Guide > Use > Search");
        headings.read("# Other\n");
        assert_eq!(headings.shown(), "Other");
    }
}
