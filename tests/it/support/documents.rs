//! The code blocks and inline commands of README.md and `docs/`.

use std::path::Path;

/// A fenced block of a document.
#[derive(Debug)]
pub(crate) struct Block {
    /// The line of its opening fence, counted from 1.
    pub(crate) line: usize,
    /// The word after the fence.
    pub(crate) language: String,
    pub(crate) text: String,
}

/// A command of a `console` block, with the output below it.
#[derive(Debug)]
pub(crate) struct ShownCommand {
    pub(crate) command: String,
    /// The comment after the command.
    pub(crate) comment: String,
    pub(crate) output: String,
}

/// Returns the paths of README.md and of the pages of `docs/`, relative to the root.
pub(crate) fn documents() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut documents = vec!["README.md".to_owned()];
    for entry in std::fs::read_dir(root.join("docs")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if Path::new(&name).extension().is_some_and(|extension| extension == "md") {
            documents.push(format!("docs/{name}"));
        }
    }
    documents.sort();
    documents
}

pub(crate) fn document(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

/// Returns the fenced blocks of a document.
pub(crate) fn blocks(name: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (index, line) in document(name).lines().enumerate() {
        let fence = line.trim_start().strip_prefix("```");
        match (fence, &mut open) {
            (Some(language), None) => {
                open = Some(Block {
                    line: index + 1,
                    language: language.trim().to_owned(),
                    text: String::new(),
                });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some(block)) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "{name}: a block is not closed");
    blocks
}

impl Block {
    /// Returns the commands of a `console` block. In a `sh` block every line is a command.
    pub(crate) fn commands(&self) -> Vec<ShownCommand> {
        let mut commands: Vec<ShownCommand> = Vec::new();
        for line in self.text.lines() {
            let command = if self.language == "sh" { Some(line) } else { line.strip_prefix("$ ") };
            if let Some(command) = command {
                let (command, comment) = command.split_once("  #").unwrap_or((command, ""));
                commands.push(ShownCommand {
                    command: command.trim().to_owned(),
                    comment: comment.trim().to_owned(),
                    output: String::new(),
                });
            } else {
                let shown = commands
                    .last_mut()
                    .unwrap_or_else(|| panic!("line {}: output before a command: {line}", self.line));
                shown.output.push_str(line);
                shown.output.push('\n');
            }
        }
        commands
    }
}

/// Returns the `fetchwell` commands between single backticks, outside of blocks.
pub(crate) fn inline_commands(name: &str) -> Vec<String> {
    let mut text = String::new();
    let mut is_inside = false;
    for line in document(name).lines() {
        if line.trim_start().starts_with("```") {
            is_inside = !is_inside;
        } else if !is_inside {
            text.push_str(line);
            text.push('\n');
        }
    }
    let spans = text.split('`').skip(1).step_by(2);
    spans.filter(|span| span.starts_with("fetchwell ")).map(|span| span.replace('\n', " ")).collect()
}
