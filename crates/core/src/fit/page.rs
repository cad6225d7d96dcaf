//! Fitting of a page of search hits.
//!
//! Excerpts are shortened, then dropped from the last hit upwards, then the last hits are left for the next page.
//! Titles are truncated before they get here; handles are never changed.

use super::cut::json_len;
use super::excerpt::shorten;
use crate::record::Excerpt;

/// Maximum length of an excerpt in bytes of JSON, about two lines of a terminal.
const MAX_EXCERPT: usize = 320;

/// Minimum useful length of an excerpt: a match with a few words on either side.
const MIN_EXCERPT: usize = 60;

/// Hit with its size.
#[derive(Debug, Clone, Copy)]
pub struct PageItem<'a> {
    /// Bytes of its JSON with an empty excerpt, without the comma.
    pub bare: usize,
    /// Excerpt at full length.
    pub excerpt: &'a Excerpt,
}

/// Priority if not everything fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pressure {
    /// The caller requested a number of hits: excerpts are shortened first, and hits are dropped last.
    KeepHits,
    /// The caller requested no number: as many hits as fit with a useful excerpt.
    KeepExcerpts,
}

/// Hits and excerpts of a page.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PagePlan {
    /// Excerpt of each hit on the page, in order; `None` for a hit that is too large for any page and is skipped.
    pub shown: Vec<Option<String>>,
}

impl PagePlan {
    /// Returns the number of hits that are too large for any page.
    #[must_use]
    pub fn omitted(&self) -> usize {
        self.shown.iter().filter(|excerpt| excerpt.is_none()).count()
    }
}

/// Fills at most `budget` bytes with hits, in order. `budget` is the room for the items of the array with their
/// commas. The plan covers the first items; the others belong on the next page.
#[must_use]
pub fn plan_page(items: &[PageItem<'_>], budget: usize, pressure: Pressure) -> PagePlan {
    let sizes: Vec<Option<(usize, usize)>> = items
        .iter()
        .map(|item| (item.bare < budget).then(|| (item.bare, json_len(item.excerpt.text()).min(MAX_EXCERPT))))
        .collect();
    let taken_with = |max_excerpt: usize| count_fitting(&sizes, budget, max_excerpt);
    let (taken, room) = match pressure {
        Pressure::KeepExcerpts => {
            let taken = taken_with(MIN_EXCERPT);
            // An empty page would never advance, so it has one hit without an excerpt.
            let taken = if shows_any(&sizes, taken) { taken } else { taken_with(0).min(first_shown(&sizes)) };
            (taken, widest_excerpt(&sizes, taken, budget))
        }
        Pressure::KeepHits => {
            let taken = taken_with(0);
            (taken, widest_excerpt(&sizes, taken, budget))
        }
    };
    let mut spare = budget.saturating_sub(cost(&sizes, taken, 0));
    let shown = items.iter().zip(&sizes).take(taken).map(|(item, size)| {
        size.map(|(_, full)| {
            // Below the minimum useful width, excerpts go to the best hits until the room is used up.
            let max_excerpt = if room >= MIN_EXCERPT { room } else { spare.min(MIN_EXCERPT) };
            if max_excerpt < full.min(MIN_EXCERPT) {
                return String::new();
            }
            let text = shorten(item.excerpt, max_excerpt);
            spare = spare.saturating_sub(json_len(&text));
            text
        })
    });
    PagePlan { shown: shown.collect() }
}

/// Returns true if [`plan_page`] fills a page with all items under [`Pressure::KeepExcerpts`]. Reads items until one does not
/// fit.
#[must_use]
pub fn fits_all<'a>(items: impl IntoIterator<Item = PageItem<'a>>, budget: usize) -> bool {
    let mut items = items.into_iter();
    let (mut left, mut shows_any) = (budget, false);
    while let Some(item) = items.next() {
        if item.bare >= budget {
            continue;
        }
        // JSON is never shorter than its text.
        let is_long = item.excerpt.text().len() >= MIN_EXCERPT;
        let excerpt = if is_long { MIN_EXCERPT } else { json_len(item.excerpt.text()).min(MIN_EXCERPT) };
        match left.checked_sub(item.bare + 1 + excerpt) {
            Some(rest) => (left, shows_any) = (rest, true),
            // A page has one hit without an excerpt rather than none.
            None => return !shows_any && items.next().is_none(),
        }
    }
    true
}

type Size = Option<(usize, usize)>;

/// Returns the bytes of the first `taken` items with excerpts of at most `max_excerpt` bytes.
fn cost(sizes: &[Size], taken: usize, max_excerpt: usize) -> usize {
    sizes.iter().take(taken).flatten().map(|(bare, full)| bare + 1 + full.min(&max_excerpt)).sum()
}

fn count_fitting(sizes: &[Size], budget: usize, max_excerpt: usize) -> usize {
    let mut left = budget;
    sizes
        .iter()
        .take_while(|size| {
            let needed = size.map_or(0, |(bare, full)| bare + 1 + full.min(max_excerpt));
            left.checked_sub(needed).inspect(|rest| left = *rest).is_some()
        })
        .count()
}

fn widest_excerpt(sizes: &[Size], taken: usize, budget: usize) -> usize {
    let widths: Vec<usize> = (0..=MAX_EXCERPT).collect();
    widths.partition_point(|width| cost(sizes, taken, *width) <= budget).saturating_sub(1)
}

fn shows_any(sizes: &[Size], taken: usize) -> bool {
    sizes.iter().take(taken).any(Option::is_some) || sizes.iter().all(Option::is_none)
}

/// Returns the number of items up to the first that fits on a page.
fn first_shown(sizes: &[Size]) -> usize {
    sizes.iter().position(Option::is_some).map_or(sizes.len(), |at| at + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn excerpts(lengths: &[usize]) -> Vec<Excerpt> {
        lengths.iter().map(|length| Excerpt::new(&"x".repeat(*length), 0..1)).collect()
    }

    #[track_caller]
    fn check(hits: &[(usize, usize)], budget: usize, pressure: Pressure, expect: &[Option<usize>]) {
        let texts = excerpts(&hits.iter().map(|(_, excerpt)| *excerpt).collect::<Vec<_>>());
        let items: Vec<PageItem<'_>> =
            hits.iter().zip(&texts).map(|((bare, _), excerpt)| PageItem { bare: *bare, excerpt }).collect();
        let plan = plan_page(&items, budget, pressure);
        let lengths: Vec<Option<usize>> =
            plan.shown.iter().map(|text| text.as_deref().map(json_len)).collect();
        assert_eq!(lengths, expect);
    }

    #[test]
    fn everything_stays_when_it_fits() {
        check(&[(50, 100), (50, 20)], 1_000, Pressure::KeepHits, &[Some(100), Some(20)]);
    }

    #[test]
    fn excerpts_are_shortened_evenly_first() {
        // 2 * 51 bare leaves 200 for two excerpts; the ellipsis costs 3 of each hundred.
        check(&[(50, 500), (50, 500)], 302, Pressure::KeepHits, &[Some(97), Some(97)]);
    }

    #[test]
    fn then_they_are_dropped_from_the_tail() {
        check(
            &[(50, 500), (50, 500), (50, 500)],
            153 + 70,
            Pressure::KeepHits,
            &[Some(57), Some(0), Some(0)],
        );
    }

    #[test]
    fn then_tail_hits_wait_for_the_next_page() {
        check(&[(50, 500), (50, 500), (50, 500)], 102, Pressure::KeepHits, &[Some(0), Some(0)]);
    }

    #[test]
    fn without_a_limit_hits_wait_before_excerpts_go() {
        check(&[(50, 500), (50, 500), (50, 500)], 240, Pressure::KeepExcerpts, &[Some(66), Some(66)]);
    }

    #[test]
    fn a_hit_that_fits_on_no_page_is_passed_over() {
        check(&[(900, 10), (50, 10)], 300, Pressure::KeepExcerpts, &[None, Some(10)]);
        check(&[(900, 10)], 300, Pressure::KeepHits, &[None]);
    }

    #[test]
    fn a_page_always_advances() {
        check(&[(280, 500), (50, 500)], 300, Pressure::KeepExcerpts, &[Some(0)]);
    }

    proptest! {
        #[test]
        fn a_page_fits_and_advances(
            hits in prop::collection::vec((1usize..400, 0usize..500), 0..40),
            budget in 1usize..2_000,
            keep_hits in any::<bool>(),
        ) {
            let texts = excerpts(&hits.iter().map(|(_, excerpt)| *excerpt).collect::<Vec<_>>());
            let items: Vec<PageItem<'_>> =
                hits.iter().zip(&texts).map(|((bare, _), excerpt)| PageItem { bare: *bare, excerpt }).collect();
            let pressure = if keep_hits { Pressure::KeepHits } else { Pressure::KeepExcerpts };
            let plan = plan_page(&items, budget, pressure);
            let used: usize = plan.shown.iter().zip(&hits)
                .filter_map(|(text, (bare, _))| text.as_ref().map(|text| bare + 1 + json_len(text)))
                .sum();
            prop_assert!(used <= budget, "{used} of {budget}");
            prop_assert!(items.is_empty() || !plan.shown.is_empty());
            let is_whole = fits_all(items.iter().copied(), budget);
            prop_assert!(keep_hits || is_whole == (plan.shown.len() == items.len()));
        }
    }
}
