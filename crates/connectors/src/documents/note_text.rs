//! The text of a note: its tags, its links as text, and the properties of Logseq.
//!
//! Code is left as it is. Everything is found line by line, because a parser of Markdown compares each line with all open
//! blocks.

use std::collections::HashSet;

use fetchwell_core::fit::first_bytes;

/// Maximum number of properties at the start of a note. Further lines stay in its text.
const MAX_PROPERTIES: usize = 100;

/// Maximum number of tags in the text of a note.
const MAX_TAGS: usize = 500;

/// Maximum length of a tag or a property's name in bytes.
const MAX_NAME_BYTES: usize = 100;

/// Maximum length of a link in bytes.
const MAX_LINK_BYTES: usize = 500;

/// Maximum number of backticks around code within a line.
const MAX_BACKTICKS: usize = 16;

/// Properties of Logseq's blocks that say how it shows them.
const HIDDEN_PROPERTIES: [&str; 3] = ["id", "collapsed", "logseq.order-list-type"];

/// The tags of a note in order, each once in any case.
#[derive(Debug, Default)]
pub(super) struct Tags {
    pub(super) list: Vec<String>,
    seen: HashSet<String>,
}

impl Tags {
    /// Adds a tag, unless the note has it.
    pub(super) fn add(&mut self, tag: &str) {
        if !tag.is_empty() && self.seen.insert(tag.to_lowercase()) {
            self.list.push(tag.to_owned());
        }
    }

    /// Adds a tag of the text, unless there are too many.
    fn add_found(&mut self, tag: &str) {
        if self.list.len() < MAX_TAGS {
            self.add(tag);
        }
    }
}

/// Returns the properties at the start of a note (`key:: value` of Logseq, a line each) and the text below them.
pub(super) fn split_properties(body: &str) -> (Vec<(&str, &str)>, &str) {
    let (mut properties, mut end) = (Vec::new(), 0);
    for line in body.split_inclusive('\n').take(MAX_PROPERTIES) {
        let Some(property) = property_of(line) else { break };
        properties.push(property);
        end += line.len();
    }
    (properties, body.get(end..).unwrap_or_default())
}

/// Returns the name and the value of a property: `key:: value`, also in a list.
fn property_of(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    let (name, value) = line.strip_prefix("- ").unwrap_or(line).split_once("::")?;
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/');
    let is_name = (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(is_part);
    (is_name && (value.is_empty() || value.starts_with(' '))).then_some((name, value.trim()))
}

/// Returns the values of a property with a list: `[[a]], b, #c`.
pub(super) fn property_list(value: &str) -> Vec<String> {
    let items = value.split(',').map(|item| item.trim().trim_start_matches('#'));
    let items = items.map(|item| item.trim_start_matches("[[").trim_end_matches("]]").trim().to_owned());
    items.filter(|item| !item.is_empty()).collect()
}

/// Returns a text with its links as text, and adds its tags. Lines that say how Logseq shows a block are left out.
pub(super) fn read_text(text: &str, tags: &mut Tags) -> String {
    if !text.contains(['#', '[', ']']) && !text.contains("::") {
        return text.to_owned();
    }
    let mut written = String::with_capacity(text.len());
    let mut code = CodeBlocks::default();
    for line in text.split_inclusive('\n') {
        if code.contains(line) {
            written.push_str(line);
            continue;
        }
        match property_of(line) {
            Some((name, _)) if HIDDEN_PROPERTIES.contains(&name) => continue,
            Some((name, value)) if name.eq_ignore_ascii_case("tags") => {
                property_list(value).iter().for_each(|tag| tags.add_found(tag));
            }
            _ => {}
        }
        Line { rest: line, before: ['\n', '\n'], absent: 0 }.read(&mut written, tags);
    }
    written
}

/// The blocks of code in a note, line by line.
#[derive(Debug, Default)]
struct CodeBlocks {
    /// Character and number of the fence that is open.
    fence: Option<(char, usize)>,
    is_in_list: bool,
    is_after_blank: bool,
    is_indented: bool,
}

impl CodeBlocks {
    /// Returns true if the next line belongs to a block of code, with its fences.
    fn contains(&mut self, line: &str) -> bool {
        let unquoted = line.trim_start_matches([' ', '\t', '>']);
        let content = unquoted.strip_prefix("- ").unwrap_or(unquoted).trim();
        let mark = content.chars().next().filter(|mark| matches!(mark, '`' | '~'));
        let fence = mark.map(|mark| (mark, content.len() - content.trim_start_matches(mark).len()));
        match (self.fence, fence) {
            (Some((mark, count)), Some((own, length)))
                if own == mark && length >= count && content.len() == length =>
            {
                self.fence = None;
                return true;
            }
            (Some(_), _) => return true,
            (None, Some((mark, count)))
                if count >= 3 && !(mark == '`' && content.trim_start_matches('`').contains('`')) =>
            {
                self.fence = Some((mark, count));
                return true;
            }
            (None, _) => {}
        }
        let is_deep = line.starts_with('\t') || line.starts_with("    ");
        if content.is_empty() {
            self.is_after_blank = true;
            return self.is_indented;
        }
        if !is_deep {
            let number = content.trim_start_matches(|digit: char| digit.is_ascii_digit());
            let is_item = ["* ", "+ ", ". ", ") "].iter().any(|mark| number.starts_with(mark));
            self.is_in_list =
                unquoted.starts_with("- ") || is_item || self.is_in_list && line.starts_with(' ');
        }
        let can_begin = self.is_after_blank || self.is_indented;
        self.is_indented = is_deep && !self.is_in_list && can_begin;
        self.is_after_blank = false;
        self.is_indented
    }
}

/// A line of text that is being read.
struct Line<'a> {
    rest: &'a str,
    /// The last two characters that were read, the last one first.
    before: [char; 2],
    /// Bit set of the numbers of backticks that do not occur any more.
    absent: u32,
}

impl Line<'_> {
    fn read(mut self, written: &mut String, tags: &mut Tags) {
        while let Some(at) = self.rest.find(['`', '[', ']', '#']) {
            self.copy(at, written);
            let replaced = self.link().or_else(|| self.joplin_link());
            if let Some((length, text)) = replaced {
                written.push_str(&text);
                self.skip(length);
                continue;
            }
            let length = match self.rest.as_bytes().first() {
                Some(b'`') => self.code(),
                Some(b'#') if self.can_have_tag() => self.tag(tags),
                _ => None,
            };
            self.copy(length.unwrap_or(1), written);
        }
        written.push_str(self.rest);
    }

    fn copy(&mut self, length: usize, written: &mut String) {
        written.push_str(self.rest.get(..length).unwrap_or_default());
        self.skip(length);
    }

    /// Moves behind the next bytes.
    fn skip(&mut self, length: usize) {
        let (read, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        let [before, _] = self.before;
        let mut characters = read.chars().rev();
        if let Some(last) = characters.next() {
            self.before = [last, characters.next().unwrap_or(before)];
        }
        self.rest = rest;
    }

    /// Returns the length of code within the line: from backticks to as many backticks.
    fn code(&mut self) -> Option<usize> {
        let count = self.rest.len() - self.rest.trim_start_matches('`').len();
        if count > MAX_BACKTICKS || (self.absent >> count) & 1 == 1 {
            return Some(count);
        }
        let (mut at, mut run) = (count, 0);
        for byte in self.rest.bytes().skip(count).chain([b'\n']) {
            if byte == b'`' {
                run += 1;
            } else {
                if run == count {
                    return Some(at);
                }
                run = 0;
            }
            at += 1;
        }
        self.absent |= 1 << count;
        Some(count)
    }

    /// Returns the length of a link to another note with its text: `[[Note#Heading|shown]]`.
    fn link(&self) -> Option<(usize, String)> {
        let rest = first_bytes(self.rest.strip_prefix("[[")?, MAX_LINK_BYTES);
        let (link, end) = rest.split_at_checked(rest.find(['[', ']', '\n'])?)?;
        if !end.starts_with("]]") {
            return None;
        }
        let length = link.len() + 4;
        let (target, shown) = link.split_once('|').unwrap_or((link, ""));
        let parts = target.split('#').map(|part| part.split('^').next().unwrap_or_default().trim());
        let target = parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" > ");
        let text = match shown.trim() {
            "" => target,
            shown if shown == target || target.is_empty() => shown.to_owned(),
            shown => format!("{shown} ({target})"),
        };
        (!text.is_empty()).then_some((length, text))
    }

    /// Returns the length of the target of a link within Joplin with the bracket before it: `](:/ID)`.
    fn joplin_link(&self) -> Option<(usize, String)> {
        let (id, rest) = self.rest.strip_prefix("](:/")?.split_at_checked(32)?;
        let is_id = id.bytes().all(|byte| byte.is_ascii_hexdigit()) && rest.starts_with(')');
        is_id.then(|| (id.len() + 5, "]".to_owned()))
    }

    /// Returns true if a tag can begin here: not in a word, an address or the target of a link.
    fn can_have_tag(&self) -> bool {
        match self.before {
            ['(', ']'] => false,
            [last, _] => last.is_whitespace() || matches!(last, '(' | ',' | ';' | '，' | '、' | '（'),
        }
    }

    /// Adds a tag (`#tag`, `#one/two`, `#[[two words]]`) and returns its length.
    fn tag(&self, tags: &mut Tags) -> Option<usize> {
        let rest = self.rest.get(1..)?;
        if rest.starts_with("[[") {
            let (name, _) = first_bytes(rest.get(2..)?, MAX_NAME_BYTES).split_once("]]")?;
            tags.add_found(name.trim());
            return Some(name.len() + 5);
        }
        let is_part = |character: char| character.is_alphanumeric() || matches!(character, '_' | '-' | '/');
        let end = rest.find(|character| !is_part(character)).unwrap_or(rest.len());
        let name = rest.get(..end)?.trim_end_matches(['/', '-']);
        let is_color =
            matches!(name.len(), 3 | 4 | 6 | 8) && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_number = name.chars().all(char::is_numeric);
        if !is_color && !is_number && name.len() <= MAX_NAME_BYTES && !name.starts_with(['/', '-']) {
            tags.add_found(name);
        }
        Some(end + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &str, tags: &[&str]) {
        let mut found = Tags::default();
        assert_eq!(read_text(text, &mut found), expect);
        assert_eq!(found.list, tags, "{text}");
    }

    #[test]
    fn tags_are_words_after_a_number_sign() {
        for (text, tags) in [
            (
                "#one and #two/three, (#four_5) x #größe.\n- #五\n",
                &["one", "two/three", "four_5", "größe", "五"][..],
            ),
            ("#One #one #ONE", &["One"]),
            ("#[[two words]] #x-", &["two words", "x"]),
            ("# Heading\n## Sub #tagged\n", &["tagged"]),
            ("#123 #fff #a1b2c3 #12345678 #1st", &["1st"]),
            ("a#b https://x.test/#c [d](#e) [f](g.md#h) \\#i \"#j\" ##k #! #", &[]),
            ("`#a` ``b ` #c`` #d ` #e", &["d", "e"]),
            ("```\n#a\n```\n#b\n~~~ sh\n#c\n```\n~~~\n#d\n", &["b", "d"]),
            ("text\n\n    #a\n\n\t#b\nmore\n    #c\n\n- item\n\n    #d\n", &["c", "d"]),
            ("> ```\n> #a\n> ```\n> #b", &["b"]),
            ("- ```\n  #a\n  ```\n- #b", &["b"]),
        ] {
            check(text, text, tags);
        }
        check("- a\n  tags:: [[b c]], d, #e\n", "- a\n  tags:: b c, d, #e\n", &["b c", "d", "e"]);
    }

    #[test]
    fn links_are_text() {
        for (text, expect) in [
            ("See [[Plan]].", "See Plan."),
            ("[[a/Plan#Costs|the plan]]", "the plan (a/Plan > Costs)"),
            ("[[Plan|Plan]] [[#Costs]] [[Plan#^ab1]]", "Plan Costs Plan"),
            ("![[photo.png]]", "!photo.png"),
            ("[[]] [[a\nb]] [[a", "[[]] [[a\nb]] [[a"),
            ("`[[a]]` [b](c) [[d]]", "`[[a]]` [b](c) d"),
            ("[x](:/0123456789abcdef0123456789abcdef) [y](:/z)", "[x] [y](:/z)"),
            ("- a\n  id:: 6412-ab\n  collapsed:: true\n  due:: soon\n", "- a\n  due:: soon\n"),
        ] {
            check(text, expect, &[]);
        }
    }

    #[test]
    fn properties_stand_at_the_start() {
        let (properties, rest) =
            split_properties("title:: A b\ntags:: [[x]], #y\nicon::\n\n- std::cout x:: y\n");
        assert_eq!(properties, [("title", "A b"), ("tags", "[[x]], #y"), ("icon", "")]);
        assert_eq!(rest, "\n- std::cout x:: y\n");
        assert_eq!(property_list("[[x]], #y, "), ["x", "y"]);
        for text in ["std::cout\n", "a b:: c\n", ":: x\n", "text\n", ""] {
            assert_eq!(split_properties(text), (Vec::new(), text));
        }
    }

    #[test]
    fn long_lines_take_linear_time() {
        for shape in ["`", "` `` ", "[[", "#a ", "#", "](:/", "[[a]]", "``` x", "> - ", "a:: "] {
            crate::measured::assert_linear(20_000, &|count| {
                let mut tags = Tags::default();
                let text = read_text(&shape.repeat(count), &mut tags);
                assert!(!text.is_empty() && tags.list.len() <= MAX_TAGS, "{shape}");
            });
        }
    }
}
