//! `list_categories`: the categories of a project with the number of documents of each.

use fetchwell_core::record::RecordData;
use fetchwell_source::documents::{Category, CategoryCount};
use serde::{Deserialize, Serialize};

use super::answer::Payload;
use super::arguments::parse;
use super::error::{SourceHints, ToolError};
use super::projects::{DEFAULT_PROJECT, find_project};
use super::tool::{Example, Tool, ToolCall, ToolSpec};
use super::toolbox::Toolbox;

/// Maximum number of categories in an answer.
const MAX_CATEGORIES: usize = 200;

/// Specification of the tool. Name, description and input schema are those of the contract.
const LIST_CATEGORIES: ToolSpec = ToolSpec {
    name: "list_categories",
    title: "List categories",
    description: "List available document categories for a project",
    input_schema: include_str!("input.json"),
    aliases: &[],
    extra_choices: &[],
    output_schema: include_str!("output.json"),
    examples: &[
        Example { argument: "", call: "{}" },
        Example { argument: "project_id", call: r#"{"project_id": "the slug of a project"}"# },
    ],
    hints: SourceHints::DOCS,
};

/// The tool `list_categories` of the profile `docs`.
pub(crate) struct ListCategories;

/// Arguments of the tool.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListCategoriesArgs {
    project_id: Option<String>,
}

/// The answer of the tool.
#[derive(Debug, Serialize)]
struct CategoriesAnswer {
    project_id: String,
    categories: Vec<NamedCount>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// A category with the number of its documents.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct NamedCount {
    name: String,
    documents: u64,
}

impl Tool for ListCategories {
    type Arguments = ListCategoriesArgs;

    const SPEC: ToolSpec = LIST_CATEGORIES;

    async fn parse(_call: &ToolCall<'_>, arguments: RecordData) -> Result<Self::Arguments, ToolError> {
        parse(&LIST_CATEGORIES, arguments)
    }

    async fn call(call: ToolCall<'_>, args: Self::Arguments) -> Result<Payload, ToolError> {
        let project = args.project_id.as_deref().unwrap_or(DEFAULT_PROJECT);
        categories(call.toolbox, project, call.warnings).await
    }
}

/// Returns the answer for a project, by its slug or id.
pub(crate) async fn categories(
    toolbox: &Toolbox,
    project: &str,
    warnings: Vec<String>,
) -> Result<Payload, ToolError> {
    let found = find_project(toolbox, Some(project)).await?;
    let counts = found.store.categories(found.project.id).await;
    let counts = counts.map_err(|error| ToolError::from_source(toolbox.source(), error))?;
    let answer = CategoriesAnswer { project_id: project.to_owned(), categories: listed(&counts), warnings };
    Payload::within(&answer, toolbox.budget("list_categories"))
}

/// Returns the known categories, also those without documents, and then the others.
fn listed(counts: &[CategoryCount]) -> Vec<NamedCount> {
    let count_of = |name: &str| {
        let count = counts.iter().find(|count| count.category.as_str() == name);
        count.map_or(0, |count| count.documents)
    };
    let known =
        Category::KNOWN.iter().map(|name| NamedCount { name: (*name).to_owned(), documents: count_of(name) });
    let others = counts.iter().filter(|count| !Category::KNOWN.contains(&count.category.as_str()));
    let others =
        others.map(|count| NamedCount { name: count.category.to_string(), documents: count.documents });
    known.chain(others).take(MAX_CATEGORIES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_categories_come_first() {
        let count = |name: &str, documents| CategoryCount { category: name.parse().unwrap(), documents };
        let listed = listed(&[count("adr", 1), count("general", 3), count("research", 2)]);
        let listed: Vec<(&str, u64)> =
            listed.iter().map(|count| (count.name.as_str(), count.documents)).collect();
        let expect = [
            ("intent", 0),
            ("research", 2),
            ("references", 0),
            ("process", 0),
            ("workspace", 0),
            ("general", 3),
            ("adr", 1),
        ];
        assert_eq!(listed, expect);
    }
}
