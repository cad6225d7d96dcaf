//! Dates and times in plain text: `2025-03-05`, `March 5, 2025`, `3/5/2025`, `Q1 2025`, `yesterday`, `in March`.
//!
//! Names of months and relative times are known in English, German, French, Spanish, Italian, Portuguese and Dutch. A relative
//! time or a month without a year needs its marker word (`last`, `in`), because `may` and `march` are words, too. Text in
//! quotes is not read. A date that no calendar has (31 February) is text, or else its month if it has a year.
//!
//! * `tokens`: the pieces of a text
//! * `calendar`: spans of days
//! * `absolute`: dates with a day, month, quarter or year
//! * `clock`: times of day behind a date
//! * `months`: names of months
//! * `relative`: times relative to today
//!
//! **Invariant:** pure. Today and the time zone come in as a value.

mod absolute;
mod calendar;
mod clock;
mod months;
mod relative;
mod tokens;

use fetchwell_core::fit::first_characters;
use fetchwell_source::SearchDate;
use jiff::Zoned;
use jiff::civil::Date;

use self::calendar::{FoundDate, Span};
use self::tokens::{Token, tokens};

/// Maximum number of dates that are read from one query.
const MAX_DATES: usize = 3;

/// Maximum length in characters of the written form of a date in the explanation of its reading.
const MAX_WRITTEN_CHARS: usize = 32;

/// Dates of a query, as they were read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadDates {
    /// Times that records are raised for; two of one place if a date has two readings.
    pub dates: Vec<SearchDate>,
    /// Explanation of the readings, such as `last week: 2026-11-16 to 2026-11-22`; empty without dates. It has at most three
    /// entries of 80 characters each.
    pub explanation: String,
}

/// Reads the dates of the words of a query. `now` gives today and the time zone of days.
#[must_use]
pub fn read_dates(words: &str, now: &Zoned) -> ReadDates {
    let tokens = tokens(words);
    let (mut read, mut explanations) = (ReadDates::default(), Vec::new());
    let (mut known, mut repeated): (Vec<Vec<Span>>, Vec<SearchDate>) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < tokens.len() {
        let Some(FoundDate { length, spans }) = date_at(&tokens, at, now.date()) else {
            at += 1;
            continue;
        };
        let date = tokens.get(at..at + length).unwrap_or_default();
        if let (Some(first), Some(last)) = (date.first(), date.last())
            && known.len() < MAX_DATES
        {
            let place = first.place.start..last.place.end;
            let dates = spans.iter().filter_map(|span| span.to_search_date(now.time_zone(), place.clone()));
            if !known.contains(&spans) {
                read.dates.extend(dates);
                explanations.push(explanation(date, &spans));
                known.push(spans);
            } else if repeated.len() < MAX_DATES {
                // The words of a repeated date are those of a date, too.
                repeated.extend(dates);
            }
        }
        at += length.max(1);
    }
    read.dates.append(&mut repeated);
    read.explanation = explanations.join("; ");
    read
}

/// Reads the date at a token, with a weekday before it and a time of day behind it.
fn date_at(tokens: &[Token<'_>], at: usize, today: Date) -> Option<FoundDate> {
    let rest = tokens.get(at..)?;
    let before = at.checked_sub(1).and_then(|before| tokens.get(before));
    let mut found = absolute::date_at(rest, before, today)
        .or_else(|| with_weekday(rest, today))
        .or_else(|| relative::date_at(rest, tokens, today))?;
    if found.spans.iter().all(Span::is_day) {
        found.length += clock::time_length(rest.get(found.length..).unwrap_or_default());
    }
    Some(found)
}

/// Reads a weekday with the date behind it, such as `on Monday, 5 March 2025`.
fn with_weekday(tokens: &[Token<'_>], today: Date) -> Option<FoundDate> {
    let weekday = relative::weekday_length(tokens);
    let date = tokens.get(weekday..).filter(|_| weekday > 0)?;
    let found = absolute::date_at(date, None, today).filter(|found| found.spans.iter().all(Span::is_day))?;
    Some(FoundDate { length: weekday + found.length, spans: found.spans })
}

/// Returns how a date was read.
fn explanation(date: &[Token<'_>], spans: &[Span]) -> String {
    let written: Vec<&str> = date.iter().map(|token| token.written).collect();
    let written = written.join(" ");
    let written = first_characters(&written, MAX_WRITTEN_CHARS);
    let spans: Vec<String> = spans.iter().map(Span::to_string).collect();
    let read = spans.join(" or ");
    if read == written { read } else { format!("{written}: {read}") }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Noon of a Saturday.
    const NOW: &str = "2026-11-28T12:00:00[UTC]";

    #[track_caller]
    fn check(text: &str, expect: &str) {
        let read = read_dates(text, &NOW.parse().unwrap());
        assert_eq!(read.explanation, expect, "{text}");
        assert_eq!(read.dates.is_empty(), expect.is_empty(), "{text}");
    }

    #[test]
    fn dates_in_numbers_are_read() {
        for (text, expect) in [
            ("harbour lease 2025-03-05", "2025-03-05"),
            ("2025-03-05T10:00:00Z lease", "2025-03-05T10:00:00Z: 2025-03-05"),
            ("lease 2025/03/05.", "2025/03/05: 2025-03-05"),
            ("lease 2025-03", "2025-03"),
            ("lease 5.3.2025", "5.3.2025: 2025-03-05"),
            ("lease (05.03.2025)", "05.03.2025: 2025-03-05"),
            ("lease 3/5/2025", "3/5/2025: 2025-03-05 or 2025-05-03"),
            ("lease 3/15/2025", "3/15/2025: 2025-03-15"),
            ("lease 15/3/2025", "15/3/2025: 2025-03-15"),
            ("lease 4/4/2025", "4/4/2025: 2025-04-04"),
            ("budget Q1 2025", "Q1 2025: 2025-01-01 to 2025-03-31"),
            ("budget 2025 q4", "2025 q4: 2025-10-01 to 2025-12-31"),
            ("budget Q2/2025", "Q2/2025: 2025-04-01 to 2025-06-30"),
            ("budget 2025-Q3", "2025-Q3: 2025-07-01 to 2025-09-30"),
            ("budget 2025", "2025"),
            ("2024 2025 2026 2023", "2024; 2025; 2026"),
            ("lease 5. 3. 2025", "5 3 2025: 2025-03-05"),
            ("lease 5.3. 2025", "5.3 2025: 2025-03-05"),
            ("lease 5/ 3/2025", "5/ 3/2025: 2025-05-03 or 2025-03-05"),
            ("lease 15 / 3 / 2025", "15 / 3 / 2025: 2025-03-15"),
            ("lease 2025-3-5", "2025-3-5: 2025-03-05"),
            ("lease ３/５/２０２５", "３/５/２０２５: 2025-03-05 or 2025-05-03"),
            ("2025-03-05 and 2025-03-05", "2025-03-05"),
            ("2025-03-05, 5.3.2025, 2024, 2023", "2025-03-05; 2024; 2023"),
            ("lease 2025-03-05 10:30 invoice", "2025-03-05 10:30: 2025-03-05"),
        ] {
            check(text, expect);
        }
    }

    #[test]
    fn dates_with_months_are_read_in_seven_languages() {
        for (text, expect) in [
            ("lease 5 March 2025", "5 March 2025: 2025-03-05"),
            ("lease March 5, 2025 signed", "March 5 2025: 2025-03-05"),
            ("the 5th of March 2025", "5th of March 2025: 2025-03-05"),
            ("variables may 7 2025", "may 7 2025: 2025-05-07"),
            ("lease March 2025", "March 2025: 2025-03"),
            ("lease Sept. 2025", "Sept 2025: 2025-09"),
            ("Vertrag 5. März 2025", "5 März 2025: 2025-03-05"),
            ("Vertrag Dezember 2025", "Dezember 2025: 2025-12"),
            ("contrat 1er février 2025", "1er février 2025: 2025-02-01"),
            ("contrat août 2025", "août 2025: 2025-08"),
            ("contrato 5 de marzo de 2025", "5 de marzo de 2025: 2025-03-05"),
            ("contratto 5 maggio 2025", "5 maggio 2025: 2025-05-05"),
            ("contrato 5 de março de 2025", "5 de março de 2025: 2025-03-05"),
            ("contract 5 mei 2025", "5 mei 2025: 2025-05-05"),
            ("lease March 5", "March 5: 2026-03-05"),
            ("lease 24 December", "24 December: 2025-12-24 or 2026-12-24"),
            ("lease Mar 2025", "Mar 2025: 2025-03"),
            ("lease 5 March 25", "5 March 25: 2025-03-05"),
            ("lease 5 Mar '25", "5 Mar 25: 2025-03-05"),
            ("lease March 5, 25", "March 5 25: 2025-03-05"),
            ("lease ５ March ２０２５", "５ March ２０２５: 2025-03-05"),
            ("lease 5 March 10000", "5 March: 2026-03-05"),
            ("lease 5 March 99", "5 March: 2026-03-05"),
            ("lease 5 March 10 am", "5 March 10 am: 2026-03-05"),
            ("5 March 10 April 2025", "5 March: 2026-03-05; 10 April 2025: 2025-04-10"),
            ("5 March to 7 March 2025", "5 March: 2025-03-05; 7 March 2025: 2025-03-07"),
            ("5 Mar – 7 Apr 25", "5 Mar: 2025-03-05; 7 Apr 25: 2025-04-07"),
            ("March 5 to the 7th of March 2025", "March 5: 2025-03-05; 7th of March 2025: 2025-03-07"),
            ("28 December to 3 January 2025", "28 December: 2024-12-28; 3 January 2025: 2025-01-03"),
            ("vom 5. März bis 7. März 2025", "5 März: 2025-03-05; 7 März 2025: 2025-03-07"),
            ("March 5 to 7, 2025", "March 5 to 7 2025: 2025-03-05 to 2025-03-07"),
            ("on Monday 5 March 2025", "on Monday 5 March 2025: 2025-03-05"),
            ("Wednesday, 5 March 2025", "Wednesday 5 March 2025: 2025-03-05"),
            ("on Monday, the 5th of March 2025", "on Monday the 5th of March 2025: 2025-03-05"),
            ("am Mittwoch, dem 5.3.2025", "am Mittwoch dem 5.3.2025: 2025-03-05"),
            ("on Monday 2025", "on Monday: 2026-11-23; 2025"),
            ("harbour 5 March 2025 10:30 PM", "5 March 2025 10:30 PM: 2025-03-05"),
            ("harbour 5 March 2025 at 10pm UTC", "5 March 2025 at 10pm UTC: 2025-03-05"),
            ("Hafen 5. März 2025 um 10 Uhr", "5 März 2025 um 10 Uhr: 2025-03-05"),
        ] {
            check(text, expect);
        }
    }

    #[test]
    fn relative_times_need_their_marker() {
        for (text, expect) in [
            ("notes of yesterday", "yesterday: 2026-11-27"),
            ("mail from today", "today: 2026-11-28"),
            ("notes last week", "last week: 2026-11-16 to 2026-11-22"),
            ("notes this month", "this month: 2026-11"),
            ("notes last month", "last month: 2026-10"),
            ("notes this year", "this year: 2026"),
            ("notes last year", "last year: 2025"),
            ("notes last quarter", "last quarter: 2026-07-01 to 2026-09-30"),
            ("notes in March", "in March: 2026-03"),
            ("notes last December", "last December: 2025-12"),
            ("meeting on Monday", "on Monday: 2026-11-23"),
            ("mail 3 days ago", "3 days ago: 2026-11-25"),
            ("harbour 12 months ago", "12 months ago: 2025-11"),
            ("mail two weeks ago", "two weeks ago: 2026-11-09 to 2026-11-15"),
            ("mail last 3 days", "last 3 days: 2026-11-25 to 2026-11-28"),
            ("Notizen von gestern", "gestern: 2026-11-27"),
            ("Notizen letzte Woche", "letzte Woche: 2026-11-16 to 2026-11-22"),
            ("Notizen im März", "im März: 2026-03"),
            ("notes de la semaine dernière", "semaine dernière: 2026-11-16 to 2026-11-22"),
            ("le contrat signé hier", "hier: 2026-11-27"),
            ("el contrato de ayer", "ayer: 2026-11-27"),
            ("contratto dell'anno scorso", "anno scorso: 2025"),
            ("contrato de ontem", "ontem: 2026-11-27"),
            ("contract van vorige maand", "vorige maand: 2026-10"),
            ("march to the sea", ""),
            ("it may rain", ""),
            ("in a march", ""),
            ("last name", ""),
            ("Monday", ""),
            ("wo ist hier der Vertrag", ""),
            ("week plan", ""),
        ] {
            check(text, expect);
        }
    }

    #[test]
    fn other_numbers_and_impossible_dates_are_text() {
        for text in [
            "31 February",
            "2025-02-30",
            "31.2.2025",
            "0000-01-01",
            "1/1/1",
            "1/1/0",
            "5.3.25",
            "version 2024.1",
            "version 2024",
            "part 12-03",
            "1.2.2.2025",
            "RFC 2119",
            "port 8080",
            "#2019",
            "room 2019-1",
            "13/13/2025",
            "2025-13-01",
            "March 99",
            "99999999999999999999-01-01",
            "\"March 5, 2025\" lease",
            "May",
            "1.2.3",
            "2024.1.2",
            "2024.1",
            "12-03",
            "5 out of 10",
            "1. 2. 3.",
            "10:30 PM",
            "",
        ] {
            check(text, "");
        }
        // An impossible date has a month or year all the same.
        check("31 February 2025", "31 February 2025: 2025-02");
        check("31 April 2025", "31 April 2025: 2025-04");
        check("31 April 25", "31 April 25: 2025-04");
        check("0 March 2025", "0 March 2025: 2025-03");
        check("Q5 2025", "2025");
    }

    #[test]
    fn days_are_those_of_the_time_zone() {
        let now = "2026-11-28T23:30:00+01:00[Europe/Berlin]".parse().unwrap();
        let read = read_dates("notes of 2026-11-27", &now);
        let [date] = read.dates.as_slice() else { panic!("{read:?}") };
        assert_eq!(date.start.to_string(), "2026-11-26T23:00:00Z");
        assert_eq!(date.end.to_string(), "2026-11-27T23:00:00Z");
        assert_eq!(date.place, 9..19);
    }

    #[test]
    fn long_texts_are_read_in_part() {
        let text = format!("{}2025-03-05", "word 2024-01-01 ".repeat(10_000));
        let read = read_dates(&text, &NOW.parse().unwrap());
        assert_eq!(read.explanation, "2024-01-01");
        assert_eq!(read.dates.len(), 1 + MAX_DATES);
        let wide = format!("5{}March 2025", " ".repeat(10_000));
        assert_eq!(read_dates(&wide, &NOW.parse().unwrap()).explanation, "5 March 2025: 2025-03-05");
    }
    proptest! {
        #[test]
        fn any_text_is_read_within_bounds(
            pieces in prop::collection::vec(
                prop_oneof![
                    ".{0,6}",
                    "[0-9]{1,4}[-./][0-9]{1,2}[-./][0-9]{1,4}",
                    "(last|in|on|this|vor|hace|[0-9]{1,4})",
                    "(March|may|semaine|year|days|Q1|2025|März|\"|week|monday|ago|of)",
                ],
                0..12,
            ),
            seconds in -60_000_000_000_i64..200_000_000_000,
        ) {
            let text = pieces.join(" ");
            let now = jiff::Timestamp::from_second(seconds).unwrap().to_zoned(jiff::tz::TimeZone::UTC);
            let read = read_dates(&text, &now);
            prop_assert!(read.dates.len() <= 3 * MAX_DATES + 1);
            prop_assert!(read.explanation.chars().count() <= 80 * MAX_DATES);
            for date in &read.dates {
                prop_assert!(date.start < date.end && text.get(date.place.clone()).is_some());
            }
        }
    }
}
