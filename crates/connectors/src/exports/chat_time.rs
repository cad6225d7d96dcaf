//! Dates and times as chats and reading devices write them for people, in the ways of several countries.

use jiff::civil::{Date, DateTime};

use super::super::values::DateOrder;

/// Words around a time that say nothing of it, in lower case.
const FILLERS: [&str; 10] = ["at", "um", "a las", "à", "às", "alle", "om", "klo", "kl", "da"];

/// Marks of the hours before noon, in lower case without dots and spaces.
const BEFORE_NOON: [&str; 7] = ["am", "上午", "오전", "午前", "ص", "vorm", "πμ"];

/// Marks of the hours after noon.
const AFTER_NOON: [&str; 8] = ["pm", "下午", "오후", "午後", "م", "nachm", "μμ", "晚上"];

/// Starts of the names of months in lower case, of January to December, in several languages. Names that begin alike
/// are told apart by their length.
const MONTHS: [&[&str]; 12] = [
    &["jan", "ene", "gen", "gennaio", "янв", "sty", "led", "oca"],
    &["feb", "fév", "fev", "фев", "lut", "úno", "şub"],
    &["mar", "mär", "mrt", "maa", "мар", "bře"],
    &["apr", "abr", "avr", "апр", "kwi", "dub", "nis"],
    &["may", "mai", "mag", "mei", "мая", "май", "maj", "kvě"],
    &["jun", "juin", "giu", "июн", "cze", "haz"],
    &["jul", "juil", "lug", "июл", "lip", "tem"],
    &["aug", "ago", "aoû", "авг", "sie", "srp", "ağu"],
    &["sep", "set", "сен", "wrz", "zář", "eyl"],
    &["oct", "okt", "ott", "out", "окт", "paź", "říj", "eki"],
    &["nov", "ноя", "lis", "kas"],
    &["dec", "dez", "déc", "dic", "дек", "gru", "pro", "ara"],
];

/// Numbers of a date and a time in the order in which they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Three numbers of the date.
    pub(super) date: [u16; 3],
    hour: u8,
    minute: u8,
    second: u8,
    /// True if the first number of the date has four digits.
    pub(super) has_year_first: bool,
    /// True if the time has a mark of the half of the day.
    pub(super) has_half: bool,
    pub(super) separator: char,
}

impl Stamp {
    /// Reads a text such as `05/03/2024, 14:05:12`, `5.3.24, 2:05 PM` or `2024/3/5 下午2:05`, and nothing else.
    pub(super) fn parse(text: &str) -> Option<Self> {
        const MAX_BYTES: usize = 60;
        if text.len() > MAX_BYTES {
            return None;
        }
        let (mut numbers, mut words, mut separator) = (Vec::<(u16, usize)>::new(), String::new(), None);
        let mut digits = 0;
        for character in text.chars() {
            if let Some(digit) = digit_of(character) {
                if digits == 0 {
                    numbers.push((0, 0));
                }
                digits += 1;
                let (number, length) = numbers.last_mut()?;
                *number = number.checked_mul(10)?.checked_add(digit)?;
                *length = digits;
                continue;
            }
            if digits > 0 && separator.is_none() {
                separator = Some(character);
            }
            digits = 0;
            match character {
                '/' | '-' | ':' | '.' | ',' | ' ' | '\u{A0}' | '\u{202F}' | '،' => words.push(' '),
                '年' | '月' | '日' | '년' | '월' | '일' => {}
                letter if letter.is_alphabetic() => words.extend(letter.to_lowercase()),
                _ => return None,
            }
        }
        let half = half_of_day(&words)?;
        let (date, time) = numbers.split_at_checked(3)?;
        let [(first, first_length), (second, _), (third, _)] = date else { return None };
        let (hour, minute, seconds) = match time {
            [(hour, _), (minute, _)] => (*hour, *minute, 0),
            [(hour, _), (minute, _), (seconds, _)] => (*hour, *minute, *seconds),
            _ => return None,
        };
        let [hour, minute, second_of_minute] =
            [hour, minute, seconds].map(|number| u8::try_from(number).unwrap_or(u8::MAX));
        Some(Self {
            date: [*first, *second, *third],
            hour: half.hour(hour),
            minute,
            second: second_of_minute,
            has_year_first: *first_length == 4,
            has_half: half != Half::None,
            separator: separator?,
        })
    }

    /// Returns the time, if the numbers are one in this order. Years of two digits are those from 2000 to 2099.
    pub(super) fn to_time(self, order: DateOrder) -> Option<DateTime> {
        let [first, second, third] = self.date;
        let (year, month, day) = match order {
            DateOrder::DayMonthYear => (third, second, first),
            DateOrder::MonthDayYear => (third, first, second),
            DateOrder::YearMonthDay => (first, second, third),
        };
        let year = if year < 100 { year + 2_000 } else { year };
        let date = Date::new(i16::try_from(year).ok()?, i8::try_from(month).ok()?, i8::try_from(day).ok()?);
        self.on(date.ok()?)
    }

    fn on(self, date: Date) -> Option<DateTime> {
        let [hour, minute, second] =
            [self.hour, self.minute, self.second].map(|number| i8::try_from(number).unwrap_or(i8::MAX));
        Some(date.to_datetime(jiff::civil::Time::new(hour, minute, second, 0).ok()?))
    }
}

/// A half of the day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Half {
    None,
    BeforeNoon,
    AfterNoon,
}

impl Half {
    /// Returns an hour of 24.
    fn hour(self, hour: u8) -> u8 {
        match (self, hour) {
            (Self::BeforeNoon, 12) => 0,
            (Self::AfterNoon, 0..=11) => hour + 12,
            _ => hour,
        }
    }
}

/// Returns the half of the day that the words around a time name, or `None` if they are others.
fn half_of_day(words: &str) -> Option<Half> {
    let joined = words.split_whitespace().collect::<Vec<_>>().join(" ");
    let joined = FILLERS.iter().find_map(|filler| joined.strip_prefix(filler)).unwrap_or(&joined);
    let compact = joined.replace(' ', "");
    match compact.as_str() {
        "" => Some(Half::None),
        mark if BEFORE_NOON.contains(&mark) => Some(Half::BeforeNoon),
        mark if AFTER_NOON.contains(&mark) => Some(Half::AfterNoon),
        _ => None,
    }
}

/// Returns the value of a digit, also of an Arabic, Persian or full-width one.
fn digit_of(character: char) -> Option<u16> {
    let digit = match character {
        '\u{660}'..='\u{669}' => character as u32 - 0x660,
        '\u{6F0}'..='\u{6F9}' => character as u32 - 0x6F0,
        '\u{FF10}'..='\u{FF19}' => character as u32 - 0xFF10,
        _ => character.to_digit(10)?,
    };
    u16::try_from(digit).ok()
}

/// Reads a date with the name of its month and a time, such as `Friday, March 1, 2024 10:00:00 AM` or `viernes, 1 de
/// marzo de 2024 10:00:00`, or one in numbers with the year first (`2024年3月1日 上午10:00:00`). Other words are passed
/// over.
pub(super) fn read_written_time(text: &str) -> Option<DateTime> {
    const MAX_BYTES: usize = 200;
    if text.len() > MAX_BYTES {
        return None;
    }
    let (date, clock) = split_clock(text)?;
    let words: Vec<String> = date
        .split(|character: char| !character.is_alphanumeric())
        .map(str::to_lowercase)
        .filter(|word| !word.is_empty())
        .collect();
    // The names of some weekdays, which come before, begin as those of months.
    let month = words.iter().rev().find_map(|word| month_of(word));
    let numbers: Vec<i16> = numbers_in(date);
    let date = match (month, numbers.as_slice()) {
        (Some(month), numbers) => {
            let year = numbers.iter().copied().find(|number| *number >= 1_000)?;
            let day = numbers.iter().copied().find(|number| (1..=31).contains(number))?;
            Date::new(year, month, i8::try_from(day).ok()?)
        }
        (None, [year, month, day]) if *year >= 1_000 => {
            Date::new(*year, i8::try_from(*month).ok()?, i8::try_from(*day).ok()?)
        }
        (None, _) => return None,
    };
    let mut parts = numbers_in(clock).into_iter().filter_map(|number| u8::try_from(number).ok());
    let (hour, minute) = (parts.next()?, parts.next()?);
    let half = [BEFORE_NOON.as_slice(), AFTER_NOON.as_slice()].map(|marks| {
        let letters: String = text
            .to_lowercase()
            .chars()
            .filter(|character| !matches!(character, '.' | ' ' | '\u{A0}' | '\u{202F}'))
            .collect();
        marks.iter().any(|mark| letters.ends_with(mark) || !mark.is_ascii() && letters.contains(mark))
    });
    let half = match half {
        [_, true] => Half::AfterNoon,
        [true, false] => Half::BeforeNoon,
        [false, false] => Half::None,
    };
    let stamp = Stamp {
        date: [0; 3],
        hour: half.hour(hour),
        minute,
        second: parts.next().unwrap_or_default(),
        has_year_first: false,
        has_half: false,
        separator: ' ',
    };
    stamp.on(date.ok()?)
}

/// Splits a text before the time of day in it.
fn split_clock(text: &str) -> Option<(&str, &str)> {
    // A colon may also follow a word.
    let mut before = text.match_indices(':').filter_map(|(colon, _)| text.get(..colon));
    let before = before.find(|before| before.ends_with(|last: char| last.is_ascii_digit()))?;
    let hour = before.trim_end_matches(|character: char| character.is_ascii_digit()).len();
    text.split_at_checked(hour)
}

fn numbers_in(text: &str) -> Vec<i16> {
    text.split(|character: char| !character.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect()
}

/// Returns the number of a month by its name.
fn month_of(word: &str) -> Option<i8> {
    // The first three letters of these are those of another month.
    let by_name = match word {
        "juin" => Some(6),
        "juillet" => Some(7),
        "lipca" | "lipiec" => Some(7),
        "listopada" | "listopad" => Some(11),
        "mayo" | "mai" | "maio" | "maggio" => Some(5),
        "maart" | "mars" => Some(3),
        _ => None,
    };
    by_name.or_else(|| {
        let found = MONTHS
            .iter()
            .position(|names| names.iter().any(|name| word.chars().count() >= 3 && word.starts_with(name)));
        found.and_then(|at| i8::try_from(at + 1).ok())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_of_several_countries_are_read() {
        for (text, order, expect) in [
            ("05/03/2024, 14:05:12", DateOrder::DayMonthYear, "2024-03-05T14:05:12"),
            ("3/5/24, 2:05\u{202F}PM", DateOrder::MonthDayYear, "2024-03-05T14:05:00"),
            ("05.03.24, 14:05", DateOrder::DayMonthYear, "2024-03-05T14:05:00"),
            ("5/3/2024, 2:05 p.\u{A0}m.", DateOrder::DayMonthYear, "2024-03-05T14:05:00"),
            ("5/3/2024 12:05 a. m.", DateOrder::DayMonthYear, "2024-03-05T00:05:00"),
            ("2024/3/5 下午2:05", DateOrder::YearMonthDay, "2024-03-05T14:05:00"),
            ("2024. 3. 5. 오후 2:05", DateOrder::YearMonthDay, "2024-03-05T14:05:00"),
            ("2024-03-05, 14:05", DateOrder::YearMonthDay, "2024-03-05T14:05:00"),
            ("5.3.2024 klo 14.05", DateOrder::DayMonthYear, "2024-03-05T14:05:00"),
            ("05.03.24 um 14:05", DateOrder::DayMonthYear, "2024-03-05T14:05:00"),
            ("٥/٣/٢٠٢٤، ٢:٠٥ م", DateOrder::DayMonthYear, "2024-03-05T14:05:00"),
        ] {
            let time = Stamp::parse(text).and_then(|stamp| stamp.to_time(order));
            assert_eq!(time.map(|time| time.to_string()).as_deref(), Some(expect), "{text}");
        }
        for text in ["", "2024", "05/03/2024", "1.2.3.4:5:6:7", "05/03/2024, 14:05 ERROR", "99999999/1/1 1:1"]
        {
            assert_eq!(Stamp::parse(text), None, "{text}");
        }
        assert_eq!(Stamp::parse("13/13/2024, 14:05").unwrap().to_time(DateOrder::DayMonthYear), None);
    }

    #[test]
    fn dates_with_names_of_months_are_read() {
        for (text, expect) in [
            ("Added on Friday, March 1, 2024 10:00:00 AM", "2024-03-01T10:00:00"),
            ("Added on Friday, 1 March 2024 22:00:09", "2024-03-01T22:00:09"),
            ("Añadido el martes, 5 de noviembre de 2024 10:00:00", "2024-11-05T10:00:00"),
            ("Añadido el viernes, 1 de marzo de 2024 10:00:00", "2024-03-01T10:00:00"),
            ("Hinzugefügt am Freitag, 1. Mai 2024 10:00:00", "2024-05-01T10:00:00"),
            ("Ajouté le vendredi 1 juin 2024 10:00:00", "2024-06-01T10:00:00"),
            ("Ajouté le vendredi 1 juillet 2024 10:00:00", "2024-07-01T10:00:00"),
            ("Aggiunto in data venerdì 1 agosto 2024 10:00:00", "2024-08-01T10:00:00"),
            ("Adicionado: sexta-feira, 1 de dezembro de 2024 10:00:00", "2024-12-01T10:00:00"),
            ("Toegevoegd op vrijdag 1 maart 2024 10:00:00", "2024-03-01T10:00:00"),
            ("添加于 2024年3月1日星期五 下午1:00:00", "2024-03-01T13:00:00"),
            ("作成日: 2024年3月1日金曜日 13:00:00", "2024-03-01T13:00:00"),
            ("Added on Friday, March 1, 2024 12:00:00 PM", "2024-03-01T12:00:00"),
        ] {
            assert_eq!(
                read_written_time(text).map(|time| time.to_string()).as_deref(),
                Some(expect),
                "{text}"
            );
        }
        for text in ["", "soon", "March 2024", "Friday 10:00", "32 March 2024 10:00", "1 March 2024 25:00"] {
            assert_eq!(read_written_time(text), None, "{text}");
        }
    }
}
