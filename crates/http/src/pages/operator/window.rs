//! The time that charts show.

use jiff::SignedDuration;
use maud::{Markup, html};
use url::form_urlencoded;

/// Path of the page.
pub(crate) const OPERATOR: &str = "/operator";

/// Number of intervals of a chart.
const INTERVALS: usize = 60;

/// A time before now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Window {
    /// The last ten minutes.
    TenMinutes,
    /// The last hour.
    #[default]
    Hour,
    /// The last day.
    Day,
}

impl Window {
    const ALL: [Self; 3] = [Self::TenMinutes, Self::Hour, Self::Day];

    /// Returns the window of the parameter `window`, or the last hour.
    pub(super) fn from_query(query: &str) -> Self {
        let value = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "window");
        let known = |value: &str| Self::ALL.into_iter().find(|window| window.parameter() == value);
        value.and_then(|(_, value)| known(&value)).unwrap_or_default()
    }

    fn parameter(self) -> &'static str {
        match self {
            Self::TenMinutes => "10m",
            Self::Hour => "1h",
            Self::Day => "1d",
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::TenMinutes => "ten minutes",
            Self::Hour => "hour",
            Self::Day => "day",
        }
    }

    /// Returns the number of intervals of a chart, and their length.
    pub(super) fn intervals(self) -> (usize, SignedDuration) {
        let seconds = match self {
            Self::TenMinutes => 10,
            Self::Hour => 60,
            Self::Day => 24 * 60,
        };
        (INTERVALS, SignedDuration::from_secs(seconds))
    }

    /// Renders links to all windows.
    pub(super) fn choices(self) -> Markup {
        html! {
            nav class="row small" aria-label="Time" {
                @for window in Self::ALL {
                    a href={ (OPERATOR) "?window=" (window.parameter()) } aria-current=[(window == self).then_some("true")] {
                        "Last " (window.label())
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_windows_are_the_default() {
        for (query, expect) in [
            ("", Window::Hour),
            ("window=10m", Window::TenMinutes),
            ("a=b&window=1d", Window::Day),
            ("window=%3Cscript%3E", Window::Hour),
        ] {
            assert_eq!(Window::from_query(query), expect, "{query}");
        }
        for window in Window::ALL {
            let (count, length) = window.intervals();
            assert!(count > 0 && length.as_secs() > 0);
            assert!(window.choices().into_string().contains("aria-current=\"true\""));
        }
    }
}
