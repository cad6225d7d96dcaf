//! Pauses before a request is repeated.

use std::time::Duration;

use http::HeaderMap;
use http::header::RETRY_AFTER;
use jiff::Timestamp;
use jiff::fmt::rfc2822;

/// First pause of a service that asks for none; it doubles with each attempt.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Maximum pause between attempts, unless the service asks for a longer one.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// Returns the pause that `Retry-After` asks for: seconds, or a date.
pub(super) fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let date = rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    Some(Duration::try_from(date.duration_since(now)).unwrap_or(Duration::ZERO))
}

/// Returns the pause before attempt `attempt`, from 1.
pub(super) fn pause(attempt: u32, requested: Option<Duration>) -> Duration {
    let backoff = FIRST_PAUSE.saturating_mul(1 << attempt.saturating_sub(1).min(6));
    requested.unwrap_or(backoff.min(MAX_PAUSE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_dates_are_understood() {
        let now: Timestamp = "2026-11-23T08:00:00Z".parse().unwrap();
        for (text, expect) in [
            ("0", Some(0)),
            ("7", Some(7)),
            ("Mon, 23 Nov 2026 08:00:30 GMT", Some(30)),
            ("Mon, 23 Nov 2026 07:00:00 GMT", Some(0)),
            ("soon", None),
            ("-1", None),
        ] {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, text.parse().unwrap())]);
            assert_eq!(retry_after(&headers, now), expect.map(Duration::from_secs), "{text}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }

    #[test]
    fn pauses_double_and_are_bounded() {
        let seconds = [1, 2, 3, 10].map(|attempt| pause(attempt, None).as_secs());
        assert_eq!(seconds, [1, 2, 4, 60]);
        // An attempt before the end of this pause would be refused too.
        assert_eq!(pause(1, Some(Duration::from_secs(86_400))).as_secs(), 86_400);
        assert_eq!(pause(5, Some(Duration::ZERO)), Duration::ZERO);
    }
}
