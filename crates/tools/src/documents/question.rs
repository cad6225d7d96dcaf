//! The topic of a question: what is left of it without the words that only make it a question.
//!
//! "how does authentication work" asks for documents about authentication. Its other words are in most documents, and a
//! ranking by words would prefer those that have all of them. Search by meaning gets the whole question.

/// Words at the start of a question. Only a query that begins with one of them is a question.
const QUESTION_WORDS: [&str; 8] = ["how", "what", "where", "when", "why", "which", "who", "whats"];

/// Words that follow them.
const FILLERS: [&str; 26] = [
    "a", "an", "are", "can", "could", "did", "do", "does", "i", "is", "it", "my", "of", "our", "should",
    "the", "there", "they", "to", "was", "we", "were", "will", "would", "you", "your",
];

/// Words at the end of a question that begins with "how".
const ENDINGS: [&str; 6] = ["work", "works", "working", "handled", "done", "implemented"];

/// Returns the words of a question without those that only make it a question, and other queries as they are.
pub(super) fn topic(query: &str) -> String {
    let words: Vec<&str> = query.split_whitespace().collect();
    let plain = |word: &str| word.trim_matches(|letter: char| !letter.is_alphanumeric()).to_lowercase();
    let Some(first) = words.first().map(|word| plain(word)) else { return String::new() };
    if !QUESTION_WORDS.contains(&first.as_str()) {
        return query.to_owned();
    }
    let mut rest = words.get(1..).unwrap_or_default();
    while let Some((filler, others)) = rest.split_first()
        && FILLERS.contains(&plain(filler).as_str())
    {
        rest = others;
    }
    if first == "how"
        && let Some((ending, others)) = rest.split_last()
        && ENDINGS.contains(&plain(ending).as_str())
        && !others.is_empty()
    {
        rest = others;
    }
    if rest.is_empty() { query.to_owned() } else { rest.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_topic_of_a_question_is_what_it_is_about() {
        for (query, expect) in [
            ("how does authentication work", "authentication"),
            ("How do I rotate the signing keys?", "rotate the signing keys?"),
            ("what is a corpus version", "corpus version"),
            ("Where are the logs", "logs"),
            ("how are errors handled?", "errors"),
            ("how does it work", "work"),
            ("how to", "how to"),
            ("who", "who"),
            ("work queue", "work queue"),
            ("authentication how", "authentication how"),
            ("", ""),
        ] {
            assert_eq!(topic(query), expect, "{query}");
        }
    }
}
