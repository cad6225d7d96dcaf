//! Slack's notation in texts: `<@U1>`, `<#C1|general>`, `<!here>`, `<https://x.test|label>`, `&amp;`.

use super::names::Names;

/// Maximum bytes that the text grows by names of people and channels. Further ones are shown by their ids.
const MAX_GROWTH_BYTES: usize = 1024 * 1024;

/// Returns a text without notation.
pub(super) fn plain_text(text: &str, names: &Names) -> String {
    let mut written = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('<') {
        written.push_str(before);
        let Some((inner, after)) = after.split_once('>') else {
            // No reference is left.
            written.push('<');
            rest = after;
            break;
        };
        let has_room = written.len() < text.len().saturating_add(MAX_GROWTH_BYTES);
        add_reference(inner, has_room.then_some(names), &mut written);
        rest = after;
    }
    written.push_str(rest);
    written.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

/// Appends what stands in angle brackets.
fn add_reference(inner: &str, names: Option<&Names>, written: &mut String) {
    let (target, label) =
        inner.split_once('|').map_or((inner, None), |(target, label)| (target, Some(label)));
    let label = label.filter(|label| !label.is_empty());
    let mut characters = target.chars();
    match (characters.next(), characters.as_str()) {
        (Some('@'), id) => {
            let name = label.or_else(|| names?.person(id));
            add_mention(name.unwrap_or(id), written);
        }
        (Some('#'), id) => {
            written.push('#');
            let name = label.map(str::to_owned).or_else(|| Some(names?.channel_of(id)));
            written.push_str(name.as_deref().unwrap_or(id));
        }
        (Some('!'), command) => match (label, command.split('^').next()) {
            // A date has its text as the label, and a group of people its name.
            (Some(label), Some("subteam")) => add_mention(label.trim_start_matches('@'), written),
            (Some(label), _) => written.push_str(label),
            (None, Some(range @ ("here" | "channel" | "everyone"))) => add_mention(range, written),
            (None, _) => written.push_str(command),
        },
        _ => add_link(target, label.unwrap_or_default(), written),
    }
}

fn add_mention(name: &str, written: &mut String) {
    written.push('@');
    written.push_str(name);
}

/// Appends the label of a link with its address, if that says more.
pub(super) fn add_link(target: &str, label: &str, written: &mut String) {
    let address = target.split_once("://").map_or(target, |(_, address)| address);
    let address = address.strip_prefix("mailto:").unwrap_or(address);
    if label.is_empty() || label == target || label == address {
        written.push_str(target.strip_prefix("mailto:").unwrap_or(target));
    } else {
        written.push_str(label);
        written.push_str(&format!(" ({target})"));
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::super::item::Item;
    use super::*;

    #[test]
    fn the_notation_of_slack_becomes_text() {
        let mut names = Names::default();
        for (path, list) in [
            ("users.json", r#"[{"id": "U1", "name": "Ann"}]"#),
            ("channels.json", r#"[{"id": "C1", "name": "general"}]"#),
        ] {
            let item = Item::from_reader(path.to_owned(), None, Box::new(list.as_bytes())).unwrap();
            assert!(names.read(item).is_ok());
        }
        for (text, expect) in [
            ("hi <@U1> and <@U2> and <@U3|cleo>", "hi @Ann and @U2 and @cleo"),
            (
                "see <https://x.test|the page> &amp; <https://y.test>",
                "see the page (https://x.test) & https://y.test",
            ),
            ("<http://x.test|x.test> <mailto:a@x.test|a@x.test>", "http://x.test a@x.test"),
            ("<#C1|town> <#C1> <#C1|> <#C9> 1 &lt; 2 <", "#town #general #general #C9 1 < 2 <"),
            ("<!here> <!channel> <!subteam^S1|@crew> <!date^1^{date}|1 May>", "@here @channel @crew 1 May"),
            ("&amp;lt; <> <|>", "&lt;  "),
            ("<@U1> <a <b", "@Ann <a <b"),
        ] {
            assert_eq!(plain_text(text, &names), expect);
        }
    }

    #[test]
    fn long_names_and_open_brackets_take_linear_time() {
        let mut names = Names::default();
        let list = format!("[{{\"id\": \"U1\", \"name\": \"{}\"}}]", "n".repeat(100_000));
        let item = Item::from_reader("users.json".to_owned(), None, Box::new(list.as_bytes())).unwrap();
        assert!(names.read(item).is_ok());
        assert_eq!(plain_text("<@U1>", &names).len(), 201);
        let many = "<@U1>".repeat(20_000);
        assert!(plain_text(&many, &names).len() < MAX_GROWTH_BYTES + 2 * many.len());
        let length = |count: usize| plain_text(&"<".repeat(count), &names).len();
        crate::measured::assert_linear(20_000, &|count| assert_eq!(length(count), count));
    }
}
