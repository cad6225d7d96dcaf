//! The words of a block as text: a line for each word in ascending order, such as `report<TAB>3:120 7:-1`, which says that 120 more
//! records of stream 3 have the word, and one record less of stream 7. No word has a tab or the end of a line.

use std::fmt::Write as _;

/// Adds a line. Returns false and adds nothing for a word that a line cannot have, or without numbers.
pub(super) fn push_line(
    text: &mut String,
    word: &str,
    numbers: impl IntoIterator<Item = (i64, i64)>,
) -> bool {
    let start = text.len();
    text.push_str(word);
    let mut separator = '\t';
    for (stream, records) in numbers {
        // Writing into a text cannot fail.
        let _infallible = write!(text, "{separator}{stream}:{records}");
        separator = ' ';
    }
    let is_written = separator == ' ' && !word.bytes().any(|byte| byte.is_ascii_control());
    if is_written {
        text.push('\n');
    } else {
        text.truncate(start);
    }
    is_written
}

/// Returns the words of a block, each with its numbers as they are written.
pub(super) fn lines(block: &str) -> impl Iterator<Item = (&str, &str)> {
    block.lines().filter_map(|line| line.split_once('\t'))
}

/// Returns the numbers of a line by the row id of the stream.
pub(super) fn numbers(written: &str) -> impl Iterator<Item = (i64, i64)> {
    written.split(' ').filter_map(|number| {
        let (stream, records) = number.split_once(':')?;
        Some((stream.parse().ok()?, records.parse().ok()?))
    })
}

/// Returns the numbers of a word in a block, as they are written.
pub(super) fn find<'b>(block: &'b str, word: &str) -> Option<&'b str> {
    let beginning = format!("{word}\t");
    let rest = match block.strip_prefix(&beginning) {
        Some(rest) => rest,
        None => block.split_once(&format!("\n{beginning}"))?.1,
    };
    rest.split('\n').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_words_with_their_numbers() {
        let mut block = String::new();
        assert!(push_line(&mut block, "port", [(3, 1), (12, -2)]));
        assert!(push_line(&mut block, "report", [(3, 120)]));
        // The word of a ligature can have spaces.
        assert!(push_line(&mut block, "a b", [(1, 5)]));
        for (word, numbers) in [("tab\t", vec![(1, 1)]), ("line\n", vec![(1, 1)]), ("none", Vec::new())] {
            assert!(!push_line(&mut block, word, numbers), "{word:?}");
        }
        assert_eq!(block, "port\t3:1 12:-2\nreport\t3:120\na b\t1:5\n");
        let read: Vec<(&str, Vec<(i64, i64)>)> =
            lines(&block).map(|(word, written)| (word, numbers(written).collect())).collect();
        assert_eq!(
            read,
            [("port", vec![(3, 1), (12, -2)]), ("report", vec![(3, 120)]), ("a b", vec![(1, 5)])]
        );
        for (word, expect) in
            [("port", Some("3:1 12:-2")), ("report", Some("3:120")), ("a b", Some("1:5")), ("ort", None)]
        {
            assert_eq!(find(&block, word), expect, "{word}");
        }
    }
}
