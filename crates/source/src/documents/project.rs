//! Projects: the roots of documents, each a connection of its store.

use fetchwell_core::record::RecordData;
use serde::{Deserialize, Serialize};

use super::slug::ProjectSlug;
use super::uuid::Uuid;

/// Maximum length of the name of a project in characters.
const MAX_NAME_CHARS: usize = 255;

/// A project as a store has it. Its JSON is the `Project` of the contract.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Project {
    /// Id of the project.
    pub id: Uuid,
    /// Slug of the project.
    pub slug: ProjectSlug,
    /// Name for people.
    pub name: String,
    /// Settings of the project.
    pub settings: ProjectSettings,
    /// Version of the documents and of everything else that changes answers.
    pub corpus_version: i64,
    /// Time of creation in RFC 3339.
    pub created_at: String,
    /// Time of the last change in RFC 3339.
    pub updated_at: String,
}

/// Number of days after which a search is deleted, unless the project has a setting.
const HISTORY_DAYS: u32 = 90;

/// Settings of a project. Its JSON has those that differ from the defaults.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProjectSettings {
    /// True to remember searches.
    #[serde(skip_serializing_if = "is_true")]
    pub history: bool,
    /// Number of days after which a search is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history_days: Option<u32>,
    /// Settings of other programs.
    #[serde(flatten)]
    pub others: RecordData,
}

fn is_true(value: &bool) -> bool {
    *value
}

impl Default for ProjectSettings {
    fn default() -> Self {
        Self { history: true, history_days: None, others: RecordData::new() }
    }
}

impl ProjectSettings {
    /// Returns the number of days after which a search is deleted.
    #[must_use]
    pub fn history_days(&self) -> u32 {
        self.history_days.unwrap_or(HISTORY_DAYS)
    }

    /// Returns the number of days for which searches are kept: 0 for a project without a history.
    #[must_use]
    pub fn kept_days(&self) -> u32 {
        if self.history { self.history_days() } else { 0 }
    }
}

/// A project to be created.
#[derive(Debug, Clone, PartialEq)]
pub struct NewProject {
    /// Slug of the project.
    pub slug: ProjectSlug,
    /// Name for people.
    pub name: ProjectName,
    /// Settings of the project.
    pub settings: ProjectSettings,
}

/// A change of a project. What is `None` stays as it is.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProjectChange {
    /// Name for people.
    pub name: Option<ProjectName>,
    /// True to remember searches.
    pub history: Option<bool>,
    /// Number of days after which a search is deleted.
    pub history_days: Option<u32>,
}

impl ProjectChange {
    /// Returns the name and the settings, as JSON, of a changed project.
    #[must_use]
    pub fn apply(&self, before: &Project) -> (String, String) {
        let mut settings = before.settings.clone();
        settings.history = self.history.unwrap_or(settings.history);
        settings.history_days = self.history_days.or(settings.history_days);
        let name = self.name.as_ref().map_or(before.name.as_str(), |name| name.as_str());
        (name.to_owned(), serde_json::to_string(&settings).unwrap_or_default())
    }
}

/// Name of a project for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectName(String);

/// The error for a text that cannot be the name of a project.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the name of a project has 1 to 255 characters, none of which is a control character")]
pub struct InvalidProjectName;

impl ProjectName {
    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&ProjectSlug> for ProjectName {
    fn from(slug: &ProjectSlug) -> Self {
        Self(slug.to_string())
    }
}

impl std::str::FromStr for ProjectName {
    type Err = InvalidProjectName;

    fn from_str(text: &str) -> Result<Self, InvalidProjectName> {
        let length = text.chars().count();
        let is_valid = (1..=MAX_NAME_CHARS).contains(&length) && !text.contains(char::is_control);
        if is_valid { Ok(Self(text.to_owned())) } else { Err(InvalidProjectName) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_are_read_with_defaults() {
        let read = |json: serde_json::Value| serde_json::from_value::<ProjectSettings>(json).unwrap();
        assert_eq!(read(json!({})), ProjectSettings::default());
        let settings = json!({"history": false, "history_days": 7, "color": "red"});
        let quiet = read(settings.clone());
        assert_eq!((quiet.history, quiet.history_days(), quiet.others.len()), (false, 7, 1));
        assert_eq!((quiet.kept_days(), ProjectSettings::default().kept_days()), (0, 90));
        assert_eq!(serde_json::to_value(&quiet).unwrap(), settings);
        assert_eq!(serde_json::to_value(read(json!({"history": true}))).unwrap(), json!({}));
        assert_eq!(ProjectSettings::default().history_days(), 90);
    }
}
