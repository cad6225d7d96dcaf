//! Charts as inline SVG, drawn by the crate plotters.
//!
//! A chart has no text but numbers and times. The style sheet replaces its two colors by those of the color scheme. A table
//! beside each chart has the same numbers, for screen readers and for exact values.

use fetchwell_core::saturate::saturated;
use fetchwell_telemetry::{Activity, IntervalCalls};
use jiff::tz::TimeZone;
use maud::{Markup, PreEscaped, html};
use plotters::backend::SVGBackend;
use plotters::chart::ChartBuilder;
use plotters::drawing::IntoDrawingArea;
use plotters::element::Rectangle;
use plotters::style::{Color, RGBColor};

/// Width and height of a chart in pixels.
const SIZE: (u32, u32) = (920, 200);

/// Width of the labels of the vertical axis, and height of those of the horizontal one, in pixels.
const LABELS: (u32, u32) = (52, 26);

/// Font size of labels in pixels.
const FONT: u32 = 15;

/// Number of labels of the horizontal axis, and of the vertical one.
const MAX_LABELS: (usize, usize) = (8, 4);

/// Colors in the SVG. The style sheet has a rule for each.
const ANSWERED: RGBColor = RGBColor(0x17, 0x60, 0x3f);
const FAILED: RGBColor = RGBColor(0xa1, 0x26, 0x1b);
const LABEL: RGBColor = RGBColor(0x59, 0x5d, 0x56);
const GRID: RGBColor = RGBColor(0xd8, 0xda, 0xd2);

/// Renders the calls over time as a chart with a table.
pub(super) fn calls_over_time(activity: &Activity) -> Markup {
    let total = |count: fn(&IntervalCalls) -> u64| activity.intervals.iter().map(count).sum::<u64>();
    let (answered, failed) = (total(|calls| calls.answered), total(|calls| calls.failed));
    let about = format!("Calls over time: {answered} answered, {failed} failed, at most {}", activity.max());
    let svg = draw(activity).unwrap_or_default();
    html! {
        figure class="chart" {
            div role="img" aria-label=(about) { (PreEscaped(svg)) }
            figcaption class="row small" {
                span class="key answered" { "answered " (answered) }
                span class="key failed" { "failed " (failed) }
            }
        }
        details {
            summary { "The same numbers as a table" }
            div class="scroll" {
                table {
                    caption { "Calls in each interval that has any, the newest first" }
                    thead { tr { th scope="col" { "From" } th scope="col" class="number" { "Answered" }
                        th scope="col" class="number" { "Failed" } } }
                    tbody {
                        @for calls in activity.intervals.iter().rev().filter(|calls| calls.answered + calls.failed > 0) {
                            tr {
                                th scope="row" { (clock(calls)) }
                                td class="number" { (calls.answered) }
                                td class="number" { (calls.failed) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Draws stacked bars. Returns `None` if the crate reports an error, which a drawing into memory does not do.
fn draw(activity: &Activity) -> Option<String> {
    let count = i32::try_from(activity.intervals.len()).ok()?;
    let height = i64::try_from(activity.max().max(1)).ok()?;
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        let mut chart = ChartBuilder::on(&area)
            .margin(8)
            .x_label_area_size(LABELS.1)
            .y_label_area_size(LABELS.0)
            .build_cartesian_2d(0..count.max(1), 0..height)
            .ok()?;
        let label = |place: &i32| {
            let place = saturated::<usize>(*place);
            activity.intervals.get(place).map(clock).unwrap_or_default()
        };
        chart
            .configure_mesh()
            .disable_x_mesh()
            .bold_line_style(GRID)
            .light_line_style(GRID.mix(0.0))
            .axis_style(GRID)
            .label_style(("sans-serif", FONT, &LABEL))
            .x_labels(MAX_LABELS.0)
            .y_labels(MAX_LABELS.1)
            .x_label_formatter(&label)
            .draw()
            .ok()?;
        let bars = (0..count).zip(&activity.intervals).flat_map(|(place, calls)| {
            let answered = saturated::<i64>(calls.answered);
            let all = saturated::<i64>(calls.answered.saturating_add(calls.failed));
            let bar = |from: i64, to: i64, color: RGBColor| {
                (to > from).then(|| Rectangle::new([(place, from), (place + 1, to)], color.filled()))
            };
            [bar(0, answered, ANSWERED), bar(answered, all, FAILED)].into_iter().flatten()
        });
        chart.draw_series(bars).ok()?;
        area.present().ok()?;
    }
    Some(svg)
}

/// Returns the begin of an interval as hours, minutes and seconds in UTC.
fn clock(calls: &IntervalCalls) -> String {
    calls.start.to_zoned(TimeZone::UTC).strftime("%H:%M:%S").to_string()
}

/// Renders a part of a total as a bar.
pub(super) fn share(part: u64, total: u64, label: &str) -> Markup {
    html! { meter min="0" max=(total.max(1)) value=(part.min(total)) aria-label=(label) {} }
}

/// Renders a size beside its budget as a bar, which changes its color above nine tenths. `size` may exceed the budget.
pub(super) fn budget_meter(size: u64, budget: u64, label: &str) -> Markup {
    let high = budget.saturating_mul(9) / 10;
    html! { meter min="0" max=(budget.max(1)) high=(high) value=(size.min(budget)) aria-label=(label) {} }
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};

    use super::*;

    fn activity(counts: &[(u64, u64)]) -> Activity {
        let interval = SignedDuration::from_secs(60);
        let start = |number: i64| Timestamp::from_second(1_795_000_000 + 60 * number).unwrap();
        let intervals = (0..)
            .zip(counts)
            .map(|(number, &(answered, failed))| IntervalCalls { start: start(number), answered, failed })
            .collect();
        Activity { interval, intervals }
    }

    #[test]
    fn each_interval_has_a_bar_for_each_result() {
        let html = calls_over_time(&activity(&[(3, 1), (0, 0), (5, 0), (0, 2)])).into_string();
        for (color, bars) in [("#17603F", 2), ("#A1261B", 2)] {
            let bar = format!("fill=\"{color}\"");
            assert_eq!(html.matches(&bar).count(), bars, "{html}");
        }
        assert!(html.contains("8 answered, 3 failed, at most 5"), "{html}");
        assert_eq!(html.matches("<th scope=\"row\">").count(), 3, "intervals without calls have no row");
        assert!(!html.contains("style="), "the content security policy refuses style attributes");
    }

    #[test]
    fn no_calls_and_many_calls_are_drawn() {
        for counts in [&[][..], &[(0, 0)], &[(u64::MAX / 2, u64::MAX / 2)]] {
            assert!(draw(&activity(counts)).is_none_or(|svg| svg.ends_with("</svg>\n")), "{counts:?}");
        }
        assert!(draw(&activity(&[(0, 0); 60])).is_some());
    }
}
