//! Guests of the sample.

use serde_json::{Value, json};

use super::draw::Draw;

/// The guest of a reservation.
#[derive(Debug, Clone)]
pub(super) struct Guest {
    pub(super) name: String,
    pub(super) email: String,
    pub(super) phone: String,
    /// A full or partial address, always with a `city`.
    pub(super) address: Value,
}

const FIRST: [&str; 24] = [
    "Ada", "Ben", "Chloé", "Dmitri", "Elena", "Farid", "Grace", "Hiro", "Ingrid", "Jonas", "Kira", "Luis",
    "Maya", "Nils", "Olga", "Priya", "Quentin", "Rosa", "Sven", "Tara", "Umut", "Vera", "Wen", "Yusuf",
];

const LAST: [&str; 24] = [
    "Almeida",
    "Berg",
    "Costa",
    "Dubois",
    "Eriksen",
    "Fischer",
    "Garcia",
    "Huber",
    "Ivanova",
    "Jansen",
    "Kovacs",
    "Lindqvist",
    "Moreau",
    "Nakamura",
    "O'Neill",
    "Petrov",
    "Quist",
    "Rossi",
    "Schmidt",
    "Tanaka",
    "Ueda",
    "Varga",
    "Weber",
    "Zhang",
];

/// City, postal code, country.
const HOMES: [(&str, &str, &str); 10] = [
    ("Portland", "97205", "United States"),
    ("Denver", "80202", "United States"),
    ("Boston", "02108", "United States"),
    ("Toronto", "M5V 2T6", "Canada"),
    ("London", "SE1 9TG", "United Kingdom"),
    ("Hamburg", "20095", "Germany"),
    ("Lyon", "69002", "France"),
    ("Vienna", "1010", "Austria"),
    ("Zürich", "8001", "Switzerland"),
    ("Kraków", "31-001", "Poland"),
];

const STREETS: [&str; 8] = [
    "Oak Street",
    "Mill Lane",
    "Station Road",
    "Park Avenue",
    "High Street",
    "River Walk",
    "Elm Court",
    "Hill Row",
];

impl Guest {
    /// Returns a random guest.
    pub(super) fn random(draw: &mut Draw) -> Self {
        let (first, last) = (draw.one_of(&FIRST), draw.one_of(&LAST));
        let mail = format!("{first}.{last}").to_lowercase();
        let mail: String =
            mail.chars().filter(|letter| letter.is_ascii_lowercase() || *letter == '.').collect();
        let (city, postal_code, country) = draw.one_of(&HOMES);
        Self {
            name: format!("{first} {last}"),
            email: format!("{mail}{}@example.com", draw.between(1, 99)),
            phone: format!("+1-555-{:04}", draw.between(101, 9_999)),
            address: json!({
                "street": format!("{} {}", draw.between(1, 220), draw.one_of(&STREETS)),
                "city": city,
                "postalCode": postal_code,
                "country": country,
            }),
        }
    }

    /// Returns the guest of the documented booking.
    pub(super) fn john_doe() -> Self {
        Self {
            name: "John Doe".to_owned(),
            email: "john@example.com".to_owned(),
            phone: "+1-555-0100".to_owned(),
            address: json!({
                "street": "742 Alder Street",
                "unit": "Apt 4B",
                "city": "Portland",
                "county": "Multnomah",
                "state": "Oregon",
                "postalCode": "97205",
                "country": "United States",
                "countryCode": "US",
                "latitude": 45.519,
                "longitude": -122.681,
            }),
        }
    }
}
