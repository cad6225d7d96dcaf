//! Fifteen kinds of text that records hold, generated so that every run has the same bytes.
//!
//! They differ in bytes per token, from less than two to more than five, which is the reason why token estimates are
//! wrong. Each text consists of varying pieces.

use fetchwell_core::fit::first_bytes;

/// All kinds, with the generators of their pieces.
pub(super) const KINDS: [Kind; 15] = [
    Kind { name: "English prose", piece: prose },
    Kind { name: "JSON records", piece: json },
    Kind { name: "CSV of numbers", piece: csv },
    Kind { name: "source code", piece: code },
    Kind { name: "Markdown", piece: markdown },
    Kind { name: "log lines", piece: log },
    Kind { name: "base64", piece: base64 },
    Kind { name: "hex and UUIDs", piece: hex },
    Kind { name: "URLs", piece: urls },
    Kind { name: "minified JavaScript", piece: minified },
    Kind { name: "Chinese", piece: chinese },
    Kind { name: "Japanese", piece: japanese },
    Kind { name: "Arabic", piece: arabic },
    Kind { name: "Russian", piece: russian },
    Kind { name: "emoji", piece: emoji },
];

/// Kind of text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kind {
    pub(super) name: &'static str,
    piece: fn(&mut Draw) -> String,
}

/// Returns the kind of a name.
pub(super) fn kind(name: &str) -> Option<Kind> {
    KINDS.into_iter().find(|kind| kind.name == name)
}

impl Kind {
    /// Returns a text of `bytes` bytes, or slightly less to end at a character boundary.
    pub(super) fn text(self, bytes: usize) -> String {
        let mut draw = Draw(0x9E37_79B9_7F4A_7C15);
        let mut text = String::with_capacity(bytes + 4_096);
        while text.len() < bytes {
            text.push_str(&(self.piece)(&mut draw));
        }
        text.truncate(first_bytes(&text, bytes).len());
        text
    }
}

/// Deterministic random numbers (xorshift).
struct Draw(u64);

impl Draw {
    fn bits(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.bits() % bound
    }

    fn one_of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        let at = usize::try_from(self.below(words.len() as u64)).unwrap_or_default();
        words.get(at).copied().unwrap_or_default()
    }

    /// Returns random words, joined by a separator.
    fn joined(&mut self, words: &[&str], count: u64, between: &str) -> String {
        let words: Vec<&str> = (0..count).map(|_| self.one_of(words)).collect();
        words.join(between)
    }
}

const ENGLISH: [&str; 48] = [
    "the",
    "of",
    "and",
    "house",
    "was",
    "quiet",
    "when",
    "they",
    "arrived",
    "at",
    "evening",
    "with",
    "luggage",
    "before",
    "rain",
    "began",
    "again",
    "her",
    "brother",
    "had",
    "written",
    "that",
    "keys",
    "would",
    "be",
    "under",
    "stone",
    "nobody",
    "remembered",
    "which",
    "because",
    "garden",
    "changed",
    "since",
    "last",
    "summer",
    "a",
    "neighbour",
    "waved",
    "from",
    "across",
    "road",
    "in",
    "it",
    "extraordinary",
    "circumstances",
    "notwithstanding",
    "boathouse",
];

const NAMES: [&str; 12] = [
    "total",
    "status",
    "guest_name",
    "check_in",
    "amount",
    "listing",
    "currency",
    "note",
    "channel",
    "created_at",
    "rating",
    "reference",
];

const RUSSIAN: [&str; 24] = [
    "дом",
    "стоял",
    "на",
    "берегу",
    "реки",
    "и",
    "вечером",
    "гости",
    "приехали",
    "поздно",
    "потому",
    "что",
    "дорога",
    "была",
    "закрыта",
    "хозяйка",
    "оставила",
    "ключи",
    "под",
    "камнем",
    "возле",
    "двери",
    "обстоятельства",
    "предварительное",
];

const ARABIC: [&str; 20] = [
    "البيت",
    "على",
    "شاطئ",
    "البحر",
    "وصل",
    "الضيوف",
    "في",
    "المساء",
    "لأن",
    "الطريق",
    "كان",
    "مغلقا",
    "المفتاح",
    "تحت",
    "الحجر",
    "قرب",
    "الباب",
    "والحديقة",
    "جميلة",
    "استثنائية",
];

const CHINESE: [&str; 22] = [
    "房子",
    "在",
    "海边",
    "客人",
    "晚上",
    "到达",
    "因为",
    "道路",
    "关闭",
    "钥匙",
    "放在",
    "石头",
    "下面",
    "门口",
    "花园",
    "很",
    "漂亮",
    "我们",
    "已经",
    "收到",
    "付款",
    "疑难杂症",
];

const JAPANESE: [&str; 22] = [
    "家",
    "は",
    "海",
    "の",
    "近く",
    "に",
    "あります",
    "お客様",
    "が",
    "夜",
    "着きました",
    "道路",
    "を",
    "鍵",
    "石",
    "下",
    "庭",
    "とても",
    "きれい",
    "です",
    "チェックイン",
    "ございました",
];

fn prose(draw: &mut Draw) -> String {
    let words = 6 + draw.below(14);
    let sentence = draw.joined(&ENGLISH, words, " ");
    let end = draw.one_of(&[". ", ", and ", "; ", "? ", ".\n\n", " - "]);
    format!("{}{end}", capitalised(&sentence))
}

fn capitalised(sentence: &str) -> String {
    let mut characters = sentence.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

fn json(draw: &mut Draw) -> String {
    let fields: Vec<String> = (0..8)
        .map(|_| {
            let name = draw.one_of(&NAMES);
            match draw.below(4) {
                0 => format!("\"{name}\":{}", draw.below(100_000)),
                1 => format!("\"{name}\":\"{}\"", draw.joined(&ENGLISH, 5, " ")),
                2 => format!("\"{name}\":null"),
                _ => format!("\"{name}\":{{\"id\":\"BK{}\",\"ok\":true}}", draw.below(100_000)),
            }
        })
        .collect();
    format!("{{{}}},", fields.join(","))
}

fn csv(draw: &mut Draw) -> String {
    let cells: Vec<String> =
        (0..8).map(|_| format!("{}.{:02}", draw.below(100_000), draw.below(100))).collect();
    format!("{}\n", cells.join(","))
}

fn code(draw: &mut Draw) -> String {
    let indent = " ".repeat(usize::try_from(4 * draw.below(6)).unwrap_or_default());
    let (one, other) = (draw.one_of(&NAMES), draw.one_of(&NAMES));
    match draw.below(5) {
        0 => format!("{indent}let {one} = {other}.iter().map(|item| item.{one}).collect::<Vec<_>>();\n"),
        1 => format!(
            "{indent}if {one} > {} {{\n{indent}    return Err({other}Error::new());\n{indent}}}\n",
            draw.below(999)
        ),
        2 => format!("{indent}// {}\n", draw.joined(&ENGLISH, 9, " ")),
        3 => format!("{indent}fn {one}_of({other}: &str) -> Option<u64> {{\n"),
        _ => format!("{indent}}}\n\n"),
    }
}

fn markdown(draw: &mut Draw) -> String {
    let (some, more) = (draw.joined(&ENGLISH, 4, " "), draw.joined(&ENGLISH, 9, " "));
    match draw.below(5) {
        0 => format!("## {some}\n\n"),
        1 => format!("* **{some}**: {more}\n"),
        2 => format!("| {some} | {} | `{}` |\n", draw.below(9_999), draw.one_of(&NAMES)),
        3 => format!("See [{some}](docs/{}.md) and {more}.\n\n", draw.one_of(&NAMES)),
        _ => format!("> {more}\n\n```sh\n$ fetchwell search \"{some}\" --json\n```\n\n"),
    }
}

fn log(draw: &mut Draw) -> String {
    let (minute, second, milli) = (draw.below(60), draw.below(60), draw.below(1_000));
    format!(
        "2026-11-21T14:{minute:02}:{second:02}.{milli:03}Z {} [worker-{}] {}: {} id={:08x} took={}ms\n",
        draw.one_of(&["INFO", "WARN", "ERROR", "DEBUG"]),
        draw.below(16),
        draw.one_of(&["http::server", "store.index", "federation"]),
        draw.joined(&ENGLISH, 5, " "),
        draw.bits() >> 32,
        draw.below(5_000),
    )
}

fn base64(draw: &mut Draw) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |bits: u64| DIGITS.get(usize::try_from(bits % 64).unwrap_or_default()).copied();
    let line: String = (0..76).filter_map(|_| digit(draw.bits() >> 20)).map(char::from).collect();
    line + "\n"
}

fn hex(draw: &mut Draw) -> String {
    let (high, low) = (draw.bits(), draw.bits());
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x} {:016x}{:016x}\n",
        high >> 32,
        high >> 16 & 0xFFFF,
        high & 0xFFF,
        low >> 48,
        low & 0xFFFF_FFFF_FFFF,
        draw.bits(),
        draw.bits(),
    )
}

fn urls(draw: &mut Draw) -> String {
    format!(
        "https://{}.example.com/{}/{}?{}={}&utm_source={}&sig=%2F{:010x}%3D#{}\n",
        draw.one_of(&["www", "api", "cdn-eu-1", "booking"]),
        draw.joined(&ENGLISH, 3, "-"),
        draw.below(1_000_000),
        draw.one_of(&NAMES),
        draw.below(100_000),
        draw.one_of(&ENGLISH),
        draw.bits() >> 24,
        draw.one_of(&NAMES),
    )
}

fn minified(draw: &mut Draw) -> String {
    let letter = |draw: &mut Draw| draw.one_of(&["a", "b", "e", "t", "n", "r", "i", "o", "s", "u"]);
    let (a, b, c) = (letter(draw), letter(draw), letter(draw));
    match draw.below(5) {
        0 => format!("function {a}{b}({c}){{return {c}&&{c}.{}||null}}", draw.one_of(&NAMES)),
        1 => format!("var {a}={b}({}),{c}=void 0;", draw.below(9_999)),
        2 => format!("!function({a},{b}){{{a}.exports={b}({c}({}))}}(this);", draw.below(999)),
        3 => format!("{a}=>{b}?{c}[{}]:\"{}\";", draw.below(99), draw.one_of(&ENGLISH)),
        _ => format!("for(let {a}=0;{a}<{b}.length;{a}++){c}.push({b}[{a}].{});", draw.one_of(&NAMES)),
    }
}

fn chinese(draw: &mut Draw) -> String {
    let words = 4 + draw.below(8);
    draw.joined(&CHINESE, words, "") + draw.one_of(&["。", "，", "；", "？\n"])
}

fn japanese(draw: &mut Draw) -> String {
    let words = 5 + draw.below(9);
    draw.joined(&JAPANESE, words, "") + draw.one_of(&["。", "、", "。\n"])
}

fn arabic(draw: &mut Draw) -> String {
    let words = 5 + draw.below(9);
    draw.joined(&ARABIC, words, " ") + draw.one_of(&[". ", "، ", "؟\n"])
}

fn russian(draw: &mut Draw) -> String {
    let words = 5 + draw.below(9);
    capitalised(&draw.joined(&RUSSIAN, words, " ")) + draw.one_of(&[". ", ", ", "!\n"])
}

/// Smileys, animals, families joined by zero-width joiners, and flags.
fn emoji(draw: &mut Draw) -> String {
    let family = draw.one_of(&["👩\u{200d}👧", "👍🏽", "🇳🇴", "❤\u{fe0f}", "👨\u{200d}💻"]);
    let any = u32::try_from(0x1F300 + draw.below(700)).ok().and_then(char::from_u32).unwrap_or('🙂');
    if draw.below(6) == 0 { family.to_owned() } else { any.to_string() }
}
