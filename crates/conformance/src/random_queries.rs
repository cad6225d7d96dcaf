//! Random records and queries about them: filters, words, counts, groups and orders.
//!
//! A store that reads records in two ways, such as from columns and from the JSON of the records, must give the same answers. The
//! records have fields of one kind and fields of mixed kinds, with the values that are hard to keep apart.

use fetchwell_core::fit::characters;
use fetchwell_core::handle::StreamName;
use fetchwell_core::record::RecordData;
use fetchwell_source::{
    AggregateQuery, CountMode, Direction, Filter, Granularity, Grouping, Metric, RecordsQuery, SearchText,
};
use serde_json::{Map, Value, json};

/// Pseudo-random numbers (`SplitMix64`), the same for one seed everywhere.
#[derive(Debug)]
pub struct Random(pub u64);

impl Random {
    /// Returns a number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) % end.max(1) as u64).unwrap()
    }

    /// Returns true once in `times` times.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn pick<'a, T: ?Sized>(&mut self, values: &[&'a T]) -> &'a T {
        values[self.below(values.len())]
    }
}

/// Names of the fields of records, and of values inside of them.
const FIELDS: [&str; 14] =
    ["a", "b", "c", "d", "e", "f", "o", "o.p", "o.q", "l", "x.y", "rare", "o.r[].s", "none"];

/// Records of one stream.
#[derive(Debug)]
pub struct RandomRecords {
    /// Keys and data of the records.
    pub records: Vec<(String, RecordData)>,
    /// Kind of the values of each field.
    kinds: Vec<usize>,
}

impl RandomRecords {
    /// Makes `count` records.
    pub fn new(random: &mut Random, count: usize) -> Self {
        let kinds = FIELDS.iter().map(|_| random.below(KINDS)).collect();
        let mut records = Self { records: Vec::new(), kinds };
        records.records = (0..count).map(|key| (format!("k{key}"), records.data(random))).collect();
        records
    }

    /// Makes the data of one record.
    pub fn data(&self, random: &mut Random) -> RecordData {
        let mut data = RecordData::new();
        let mut value = |at: usize| {
            let kind = if random.once_in(40) { random.below(KINDS) } else { self.kinds[at] };
            (!random.once_in(12)).then(|| any_value(random, kind))
        };
        for (at, name) in FIELDS.iter().enumerate().take(6) {
            data.extend(value(at).map(|value| ((*name).to_owned(), value)));
        }
        let inner: Map<String, Value> = [("p", 7), ("q", 8)]
            .into_iter()
            .filter_map(|(name, at)| Some((name.to_owned(), value(at)?)))
            .collect();
        data.insert("o".to_owned(), Value::Object(inner));
        data.extend(value(9).map(|value| ("l".to_owned(), json!([value]))));
        if random.once_in(30) {
            data.insert("x.y".to_owned(), any_value(random, self.kinds[10]));
        }
        if random.once_in(30) {
            data.insert("x".to_owned(), json!({"y": any_value(random, self.kinds[10])}));
        }
        if random.once_in(60) {
            data.insert("rare".to_owned(), any_value(random, self.kinds[11]));
        }
        if random.once_in(20) {
            let item = || json!({"s": 1});
            data.insert("o".to_owned(), json!({"r": [item(), item(), any_value(random, 0)]}));
        }
        if random.once_in(50) {
            let list: Vec<Value> = (0..random.below(20)).map(|_| any_value(random, self.kinds[9])).collect();
            data.insert("l".to_owned(), Value::Array(list));
        }
        data
    }

    /// Returns a value of a field, as a filter may ask for it.
    fn value(&self, random: &mut Random, field: &str) -> Value {
        let at = FIELDS.iter().position(|name| *name == field).unwrap();
        let value = any_value(random, self.kinds[at]);
        match value {
            Value::String(text) if random.once_in(4) => {
                let length = [4, 7, 10, 13, 19, 22][random.below(6)];
                json!(characters(&text, 0, length))
            }
            Value::Number(number) if random.once_in(4) => json!(number.to_string()),
            Value::String(_) | Value::Number(_) | Value::Bool(_) => value,
            Value::Null | Value::Array(_) | Value::Object(_) => json!(1),
        }
    }
}

/// Number of kinds of values.
const KINDS: usize = 21;

/// Returns a value of a kind.
fn any_value(random: &mut Random, kind: usize) -> Value {
    let small = i64::try_from(random.below(9)).unwrap() - 3;
    let hour = random.below(24);
    let (month, day) = (random.below(12) + 1, random.below(28) + 1);
    match kind {
        0 => json!(small),
        1 => json!(9_007_199_254_740_990 + small),
        2 => {
            let cents = i32::try_from(random.below(2_000)).unwrap();
            json!((f64::from(cents) - 500.0) / 100.0)
        }
        3 => json!(random.pick(&[
            "open",
            "paid",
            "Paid",
            "Ann <ann@x.org>",
            "ANN@x.org",
            "ann@x.org",
            "n/a",
            "Ärger"
        ])),
        4 => json!(format!("name {}", random.below(500))),
        5 => json!(format!("2026-{month:02}-{day:02}T{hour:02}:00:00Z")),
        6 => json!(format!("2026-{month:02}-{day:02}T{hour:02}:30:00.{:03}Z", random.below(2) * 500)),
        7 => json!(format!("2026-10-25T{:02}:00:00+0{}:00", hour % 4, random.below(3))),
        8 => json!(format!("2026-{month:02}-{day:02}")),
        9 => json!(random.once_in(2)),
        10 => json!(small.to_string()),
        11 => json!([json!(small), json!(random.below(3)), json!("x")][..random.below(4)]),
        12 => json!(format!("{}{small}", "long ".repeat(25))),
        13 => json!(random.pick(&["", "true", "1e3", "12.50", "-", "1234567890123456789"])),
        14 => serde_json::from_str(random.pick(&[
            "1.0",
            "1",
            "-0.0",
            "0",
            "1e300",
            "18446744073709551615",
            "1234567890123456789012345678901234567890",
            "0.1",
            "1e-30",
            "9223372036854775807",
        ]))
        .unwrap(),
        15 => {
            json!(format!("2026-{month:02}-{day:02}T{hour:02}:00:00.{:06}+02:00", random.below(2) * 250_000))
        }
        16 => json!(any_time(random)),
        17 => json!(random.pick(&SAME_TIMES)),
        18 => json!(random.pick(&["high", "low"])),
        19 => [Value::Null, json!({}), json!([]), json!({"p": small}), json!([[small]])][random.below(5)]
            .clone(),
        _ => {
            let kind = random.below(KINDS - 1);
            any_value(random, kind)
        }
    }
}

/// One time as different programs write it, the second before and the next millisecond.
const SAME_TIMES: [&str; 9] = [
    "2026-10-25T00:30:00Z",
    "2026-10-25T00:30:00.000Z",
    "2026-10-25T00:30:00.000000Z",
    "2026-10-25T00:30:00.000000000Z",
    "2026-10-25T02:30:00+02:00",
    "2026-10-25 00:30:00+00",
    "2026-10-24T21:00:00.0-03:30",
    "2026-10-25T02:29:59+02:00",
    "2026-10-25T00:30:00.001+00:00",
];

/// Returns a time of a few days in the form of some program.
fn any_time(random: &mut Random) -> String {
    let (day, hour) = (24 + random.below(3), random.below(24));
    let minute = random.pick(&["00:00", "29:59", "30:00"]);
    let separator = random.pick(&["T", "T", " "]);
    let fraction =
        random.pick(&["", "", ".5", ".500", ".123456", ".120000", ".123456789", ".1234567", ".1234567891"]);
    let zone =
        random.pick(&["", "Z", "Z", "+00:00", "+02:00", "-03:30", "+02", "+00", "+0200", "-00:00", "+00:10"]);
    format!("2026-10-{day}{separator}{hour:02}:{minute}{fraction}{zone}")
}

/// Query about the records of a stream.
#[derive(Debug, Clone)]
pub enum StoreQuery {
    /// An aggregate of the stream.
    Aggregate(AggregateQuery),
    /// First page of a list.
    Records(RecordsQuery),
}

impl StoreQuery {
    /// Makes a query about records.
    pub fn new(random: &mut Random, records: &RandomRecords, stream: &StreamName) -> Self {
        let filter = any_filter(random, records);
        if random.once_in(3) {
            let sort = (!random.once_in(4)).then(|| random.pick(&FIELDS).to_owned());
            let direction = if random.once_in(2) { Direction::Ascending } else { Direction::Descending };
            let count = if random.once_in(2) { CountMode::Exact } else { CountMode::None };
            let limit = 1 + random.below(40);
            let words = random.once_in(2).then(|| any_words(random));
            let query = RecordsQuery::new(stream.clone(), limit);
            return Self::Records(RecordsQuery {
                filter,
                words,
                sort,
                direction,
                count,
                placed: true,
                ..query
            });
        }
        use Metric::{Avg, Count, CountDistinct, Max, Min, Sum};
        let metric = [Count, Count, Sum, Avg, Min, Max, CountDistinct][random.below(7)];
        let field = (metric != Count).then(|| random.pick(&FIELDS).to_owned());
        let grouping = match random.below(4) {
            0 => None,
            1 => Some(any_time_grouping(random)),
            _ => Some(Grouping::Field(random.pick(&FIELDS).to_owned())),
        };
        let second_field = (grouping.is_some() && random.once_in(3)).then(|| random.pick(&FIELDS).to_owned());
        let limit = 1 + random.below(100);
        let query = AggregateQuery::new(stream.clone(), metric);
        Self::Aggregate(AggregateQuery { field, grouping, second_field, limit, filter, ..query })
    }
}

/// Texts of a list with words: words of records, other forms of them, identifiers, and words of no record.
const WORDS: [&str; 16] = [
    "open",
    "names",
    "name",
    "long",
    "PAID",
    "arger",
    "x.org",
    "ann@x.org",
    "2026",
    "2026-10-25",
    "k1",
    "12.50",
    "-1",
    "true",
    "n/a",
    "nothing",
];

/// Makes the words of a list, some with a phrase or an exclusion.
fn any_words(random: &mut Random) -> SearchText {
    let mut words = SearchText::plain(random.pick(&WORDS));
    if random.once_in(3) {
        words.words = format!("{} {}", words.words, random.pick(&WORDS));
    }
    if random.once_in(4) {
        words.phrases.push(random.pick(&["long long", "ann x", "name 1", "2026 10"]).to_owned());
    }
    if random.once_in(4) {
        words.excluded.push(random.pick(&["open", "Ann ann", "2", "00 00z"]).to_owned());
    }
    words
}

fn any_time_grouping(random: &mut Random) -> Grouping {
    use Granularity::{Day, Hour, Minute, Month, Quarter, Week, Year};
    let granularity = [Minute, Hour, Day, Week, Month, Quarter, Year][random.below(7)];
    let zone = random.pick(&["UTC", "Europe/Oslo", "America/St_Johns", "Asia/Kolkata"]);
    Grouping::Time { field: random.pick(&FIELDS).to_owned(), granularity, time_zone: zone.parse().unwrap() }
}

fn any_filter(random: &mut Random, records: &RandomRecords) -> Filter {
    let mut conditions = Map::new();
    for _ in 0..random.below(3) {
        let field = random.pick(&FIELDS);
        let value = records.value(random, field);
        let text = value.as_str().map_or_else(|| value.to_string(), |text| characters(text, 0, 3).to_owned());
        let test = match random.below(9) {
            0 => json!([value, records.value(random, field)]),
            1 => json!({"gte": value}),
            2 => json!({"lt": value}),
            3 => json!({"gt": value, "lte": records.value(random, field)}),
            4 => json!({"contains": text}),
            5 => json!({"prefix": text}),
            6 => json!({"exists": random.once_in(2)}),
            _ => value,
        };
        conditions.insert(field.to_owned(), test);
    }
    // Some values are no valid condition.
    serde_json::from_value(Value::Object(conditions)).unwrap_or_default()
}
