//! Hits and misses of the caches of toolboxes.

use fetchwell_core::lru::Lookups;
use maud::{Markup, html};

use super::chart;
use crate::pages::layout::quantity;

/// Renders the hits, misses and hit rate of each cache.
pub(super) fn caches(caches: &[(&'static str, Lookups)]) -> Markup {
    html! {
        h2 { "Caches" }
        div class="scroll" tabindex="0" role="region" aria-label="Caches" {
            table {
                caption { "Lookups for the grants that are in memory, since their sources were opened." }
                thead { tr {
                    th scope="col" { "Cache" } th scope="col" { "Hit rate" } th scope="col" class="number" { "Hits" }
                    th scope="col" class="number" { "Misses" }
                } }
                tbody { @for (name, Lookups { hits, misses }) in caches { tr {
                    th scope="row" { (name) }
                    td { (chart::share(*hits, hits + misses, name)) }
                    td class="number" { (quantity(*hits)) }
                    td class="number" { (quantity(*misses)) }
                } } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_without_lookups_are_shown() {
        let html =
            caches(&[("Chunked texts", Lookups::default()), ("Parts", Lookups { hits: 1_200, misses: 3 })]);
        let html = html.into_string();
        assert!(html.contains("Chunked texts") && html.contains(">1,200<") && html.contains(">3<"), "{html}");
    }
}
