//! Small pieces of markup that several pages use.

use jiff::Timestamp;
use maud::{Markup, html};

/// Formats a timestamp for people, and any other value unchanged.
pub(crate) fn time(value: &str) -> Markup {
    match value.parse::<Timestamp>() {
        Ok(timestamp) => html! { time datetime=(value) { (timestamp.strftime("%-d %B %Y, %H:%M UTC")) } },
        Err(_no_timestamp) => html! { bdi lang="" { (value) } },
    }
}

/// Renders a warning with its messages as sentences. Renders nothing without messages.
pub(crate) fn warning(messages: &[String]) -> Markup {
    html! {
        @match messages {
            [] => {}
            [only] => div class="note warning" { p { (sentence(only)) } }
            several => div class="note warning" { ul { @for message in several { li { (sentence(message)) } } } }
        }
    }
}

/// Renders a button that copies a text. Without scripts it is not shown.
pub(crate) fn copy_button(text: &str, label: &str) -> Markup {
    html! { button class="plain" type="button" hidden data-copy=(text) { (label) } }
}

/// Writes a number with separators: `1,200`.
pub(crate) fn quantity(number: u64) -> String {
    let digits = number.to_string();
    let mut written = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            written.push(',');
        }
        written.push(digit);
    }
    written
}

/// Returns a message as a sentence: with a capital letter and a full stop.
pub(crate) fn sentence(message: &str) -> String {
    let mut letters = message.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str().trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_formatted_for_people() {
        let written = time("2026-11-02T09:05:00.123+01:00").into_string();
        assert_eq!(
            written,
            "<time datetime=\"2026-11-02T09:05:00.123+01:00\">2 November 2026, 08:05 UTC</time>"
        );
        assert_eq!(time("<2026>").into_string(), "<bdi lang=\"\">&lt;2026&gt;</bdi>");
    }

    #[test]
    fn numbers_have_separators() {
        for (number, expect) in [(0, "0"), (999, "999"), (1_000, "1,000"), (12_345_678, "12,345,678")] {
            assert_eq!(quantity(number), expect);
        }
    }
}
