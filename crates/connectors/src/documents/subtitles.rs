//! The reader of subtitles (SubRip and WebVTT): the text of each cue after the time at which it is shown.

use super::super::item::{FileKind, FileRecord, Item};
use super::super::skips::Problem;
use super::document::Document;

/// Maximum number of lines of a cue that the next one may repeat.
const MAX_ROLLING_LINES: usize = 8;

/// Reads subtitles. Their language is the one that the name ends with (`talk.de.srt`).
pub(crate) fn read_subtitles(item: &mut Item<'_>) -> Result<FileRecord, Problem> {
    let text = item.read_text()?;
    let cues = read_cues(&text);
    if cues.is_empty() {
        return Err("it has no lines with times, as subtitles have".into());
    }
    let lines: Vec<String> = cues
        .iter()
        .filter(|cue| !cue.text.is_empty())
        .map(|cue| format!("[{}] {}", cue.start, cue.text))
        .collect();
    let (count, text) = (Some(("cues", cues.len())), lines.join("\n"));
    let language = language_of(item.stem()).to_owned();
    let mut record =
        Document { count, text, language, ..Document::default() }.into_record(FileKind::Subtitles, item);
    record.put_text("duration", cues.iter().map(|cue| cue.end.as_str()).max().unwrap_or_default());
    Ok(record)
}

/// Returns true if a text begins as subtitles do.
pub(crate) fn is_subtitles(start: &str) -> bool {
    let mut lines =
        start.trim_start_matches('\u{FEFF}').lines().map(str::trim).filter(|line| !line.is_empty());
    match lines.next() {
        Some(first) if first == "WEBVTT" || first.starts_with("WEBVTT ") || first.starts_with("WEBVTT\t") => {
            true
        }
        Some(first) => {
            let has_number = first.len() < 8 && first.bytes().all(|byte| byte.is_ascii_digit());
            let times = if has_number { lines.next() } else { Some(first) };
            times.is_some_and(|line| times_of(line).is_some())
        }
        None => false,
    }
}

/// A piece of text with the times at which it is shown and hidden (`00:01:02`).
#[derive(Debug)]
struct Cue {
    start: String,
    end: String,
    text: String,
}

/// Returns the cues of a file. Lines that a cue repeats of the one before, as captions that roll do, are left out.
fn read_cues(text: &str) -> Vec<Cue> {
    let mut cues: Vec<Cue> = Vec::new();
    let mut shown: Vec<String> = Vec::new();
    let mut lines = text.lines().map(str::trim).peekable();
    while let Some(line) = lines.next() {
        let Some((start, end)) = times_of(line) else { continue };
        let mut words = Vec::new();
        while let Some(line) = lines.next_if(|line| !line.is_empty() && times_of(line).is_none()) {
            // The number of the next cue, where the empty line before it is missing.
            let is_number = line.bytes().all(|byte| byte.is_ascii_digit());
            if is_number && lines.peek().is_some_and(|next| times_of(next).is_some()) {
                break;
            }
            words.push(plain_text(line));
        }
        words.retain(|line| !line.is_empty());
        let new: Vec<&str> = words.iter().filter(|line| !shown.contains(line)).map(String::as_str).collect();
        cues.push(Cue { start, end, text: new.join(" ") });
        if !words.is_empty() {
            // Captions roll by a few lines.
            words.truncate(MAX_ROLLING_LINES);
            shown = words;
        }
    }
    cues
}

/// Returns the times of a line such as `00:00:01,000 --> 00:00:03,000 align:start`.
fn times_of(line: &str) -> Option<(String, String)> {
    let (start, end) = line.split_once("-->")?;
    Some((clock(start.trim())?, clock(end.split_whitespace().next()?)?))
}

/// Returns a time to the second, with hours: that of WebVTT may have none.
fn clock(time: &str) -> Option<String> {
    let whole = time.split([',', '.']).next()?;
    let parts: Vec<u32> = whole.split(':').map(|part| part.trim().parse().ok()).collect::<Option<_>>()?;
    let (hours, minutes, seconds) = match parts.as_slice() {
        [hours, minutes, seconds] => (*hours, *minutes, *seconds),
        [minutes, seconds] => (0, *minutes, *seconds),
        _ => return None,
    };
    Some(format!("{hours:02}:{minutes:02}:{seconds:02}"))
}

/// Returns a line without its markup: `<i>`, `{\an8}`, and `<v Ann>`, which names the speaker.
fn plain_text(line: &str) -> String {
    let mut written = String::with_capacity(line.len());
    let mut rest = line;
    // A search for the end of markup that found none is not repeated, so that the time is linear.
    let (mut has_tags, mut has_styles) = (true, true);
    while let Some(at) = rest.find(['<', '{']) {
        let (before, markup) = rest.split_at_checked(at).unwrap_or((rest, ""));
        written.push_str(before);
        let is_style = has_styles && markup.starts_with("{\\");
        // A sign before a space is no markup, as in `1 < 2`.
        let is_tag = has_tags && markup.starts_with('<') && !markup.starts_with("< ");
        let close = if is_style { '}' } else { '>' };
        let found = if is_style || is_tag { markup.split_once(close) } else { None };
        if let Some((tag, after)) = found {
            if let Some(speaker) = tag.strip_prefix("<v ") {
                written.push_str(speaker.trim());
                written.push_str(": ");
            }
            rest = after;
            continue;
        }
        has_styles &= !is_style;
        has_tags &= !is_tag;
        let mut characters = markup.chars();
        written.extend(characters.next());
        rest = characters.as_str();
    }
    written.push_str(rest);
    let text = written.replace("\\N", " ").replace("&nbsp;", " ").replace("&lt;", "<").replace("&gt;", ">");
    text.replace("&amp;", "&").trim().to_owned()
}

/// Returns the language in a name such as `talk.de` or `talk.pt-BR`, or an empty text.
fn language_of(stem: &str) -> &str {
    let code = stem.rsplit_once('.').map(|(_, code)| code).unwrap_or_default();
    let language = code.split(['-', '_']).next().unwrap_or_default();
    let is_language =
        matches!(language.len(), 2 | 3) && language.bytes().all(|byte| byte.is_ascii_lowercase());
    if is_language { code } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        read_cues(text).into_iter().map(|cue| format!("{} {}", cue.start, cue.text)).collect()
    }

    #[test]
    fn cues_have_times_and_plain_text() {
        let srt = "1\r\n00:00:01,000 --> 00:00:03,000\r\n<i>Welcome</i> to\r\nthe {\\an8}heron talk\r\n\r\n2\r\n\
            01:00:04,500 --> 01:00:06,000\r\n2024 {was} a < year > now\r\n3\r\n01:00:07,000 --> 01:00:08,000\r\nEnd\r\n";
        assert_eq!(
            lines(srt),
            ["00:00:01 Welcome to the heron talk", "01:00:04 2024 {was} a < year > now", "01:00:07 End"]
        );
        let vtt = "WEBVTT - talk\n\nNOTE a remark\nSTYLE\n::cue {}\n\nintro\n00:01.000 --> 00:02.500 align:start\n\
            <v Ann>Hi &amp; <00:00:01.500><c>bye</c>\n\n00:03.000 --> 00:04.000\nHi &amp; bye\nnext\n\n00:04.000 --> 00:05.000\nnext\nlast\n";
        assert_eq!(lines(vtt), ["00:00:01 Ann: Hi & bye", "00:00:03 Hi & bye next", "00:00:04 last"]);
        assert!(lines("no --> times\n1\n2:3:4:5 --> 6").is_empty());
        assert_eq!(plain_text("<i>a</i> {\\y}b {\\z <i>c <d 1"), "a b {\\z c <d 1");
    }

    #[test]
    fn marks_without_an_end_take_linear_time() {
        for shape in ["<", "{", "{\\", "<{\\"] {
            crate::measured::assert_linear(20_000, &|count| {
                assert!(!plain_text(&shape.repeat(count)).is_empty());
            });
        }
    }

    #[test]
    fn subtitles_are_recognized_by_their_start() {
        for (start, expect) in [
            ("\u{FEFF}WEBVTT\n", true),
            ("WEBVTTX\n", false),
            ("\n1\n00:00:01,000 --> 00:00:03,000\n", true),
            ("00:00:01,000 --> 00:00:03,000\nx\n", true),
            ("1\n2\n", false),
            ("", false),
        ] {
            assert_eq!(is_subtitles(start), expect, "{start}");
        }
        for (stem, expect) in
            [("talk.de", "de"), ("talk.pt-BR", "pt-BR"), ("talk", ""), ("v1.2", ""), ("a.final", "")]
        {
            assert_eq!(language_of(stem), expect);
        }
    }
}
