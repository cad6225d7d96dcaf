//! The configuration file without its secrets.

use fetchwell_core::fit::clip;
use maud::{Markup, html};

use crate::site::ConfigurationView;

/// Maximum number of keys on the page.
const MAX_KEYS: usize = 200;

/// Maximum length of a key and of a value in characters.
const MAX_CHARS: usize = 160;

/// Renders the keys of the file with their values.
pub(super) fn configuration(view: &ConfigurationView) -> Markup {
    let more = view.settings.len().saturating_sub(MAX_KEYS);
    html! {
        h2 { "Configuration" }
        @match &view.file {
            None => p { "This server runs without a configuration file." },
            Some(file) => {
                p class="soft" { code { (file) } ", as it was last applied. Flags and environment variables of the command can override it." }
                details {
                    summary { "Its " (view.settings.len()) " keys, without secrets" }
                    div class="scroll" tabindex="0" role="region" aria-label="Configuration" {
                        table {
                            caption { "Of a URL only scheme, host and port are shown. Passwords, tokens, hashes and commands are hidden." }
                            thead { tr { th scope="col" { "Key" } th scope="col" { "Value" } } }
                            tbody { @for setting in view.settings.iter().take(MAX_KEYS) { tr {
                                th scope="row" { code { (clip(&setting.key, MAX_CHARS)) } }
                                td { @match &setting.value {
                                    Some(value) => code { (clip(value, MAX_CHARS)) },
                                    None => span class="soft" { "hidden" },
                                } }
                            } } }
                        }
                    }
                    @if more > 0 { p class="soft" { "The file has " (more) " more keys." } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::ShownSetting;

    #[test]
    fn hidden_values_and_long_files_are_bounded() {
        let setting = |number: usize| ShownSetting {
            key: format!("source[{number}].name"),
            value: (number > 0).then(|| "<b>".repeat(400)),
        };
        let settings: Vec<ShownSetting> = (0..1_000).map(setting).collect();
        let html =
            configuration(&ConfigurationView { file: Some("<f>.toml".to_owned()), settings }).into_string();
        assert_eq!(html.matches("hidden</span>").count(), 1);
        assert!(html.contains("800 more keys") && html.contains("&lt;f&gt;.toml") && !html.contains("<b>"));
        assert!(
            configuration(&ConfigurationView::default()).into_string().contains("without a configuration")
        );
    }
}
