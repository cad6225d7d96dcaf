//! Properties: the data that a listing shares with its reservations.

use serde_json::{Value, json};

use super::account::{Account, Location};
use super::draw::Draw;
use super::money::thousandths;

/// A property that can be booked.
#[derive(Debug, Clone)]
pub(super) struct Property {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) kind: &'static str,
    pub(super) street: String,
    pub(super) place: Location,
    /// Latitude in thousandths of a degree.
    pub(super) latitude: i32,
    /// Longitude in thousandths of a degree.
    pub(super) longitude: i32,
    pub(super) bedrooms: u64,
    pub(super) beds: u64,
    pub(super) bathrooms: u64,
    pub(super) guests: u64,
    pub(super) square_meters: u64,
    pub(super) floor: u64,
    pub(super) host: &'static str,
    /// Rating in tenths, from 10 to 50.
    pub(super) rating_tenths: u64,
    /// Price of a night in hundredths.
    pub(super) nightly: i64,
    pub(super) amenities: Vec<&'static str>,
    pub(super) cancellation: &'static str,
}

const ADJECTIVES: [&str; 16] = [
    "Sunny",
    "Quiet",
    "Old",
    "Blue",
    "Hidden",
    "Bright",
    "Windswept",
    "Golden",
    "Little",
    "Grand",
    "Silver",
    "Green",
    "Cozy",
    "Salty",
    "Lantern",
    "Juniper",
];

const KINDS: [&str; 5] = ["house", "apartment", "villa", "studio", "cabin"];

const STREETS: [&str; 8] = [
    "Harbor Street",
    "Lighthouse Road",
    "Dune Way",
    "Chapel Lane",
    "Meadow Path",
    "Church Square",
    "Ridge Road",
    "Old Mill Road",
];

const HOSTS: [&str; 6] = ["Marta", "Oliver", "Sofia", "Tom", "Leonie", "Rafael"];

/// Amenities that a property may have.
pub(super) const AMENITIES: [&str; 40] = [
    "wifi",
    "kitchen",
    "free parking",
    "washing machine",
    "dryer",
    "air conditioning",
    "heating",
    "fireplace",
    "sauna",
    "hot tub",
    "pool",
    "gym",
    "balcony",
    "terrace",
    "garden",
    "barbecue",
    "sea view",
    "mountain view",
    "dishwasher",
    "coffee machine",
    "microwave",
    "oven",
    "television",
    "streaming service",
    "desk",
    "crib",
    "high chair",
    "board games",
    "books",
    "bicycles",
    "kayak",
    "ski room",
    "beach towels",
    "hair dryer",
    "iron",
    "first aid kit",
    "smoke detector",
    "fire extinguisher",
    "key box",
    "elevator",
];

/// Cancellation policies of properties.
pub(super) const CANCELLATION: [&str; 4] = ["flexible", "moderate", "firm", "strict"];

impl Property {
    /// Returns a property of an account. `index` starts at 0.
    pub(super) fn new(account: &Account, index: u64) -> Self {
        let mut draw = Draw::new("property", account.id, index);
        let place = draw.one_of(account.places);
        let bedrooms = draw.between(1, 5);
        let jitter = |draw: &mut Draw| i32::try_from(draw.between(0, 40)).unwrap_or_default() - 20;
        let amenities = usize::try_from(draw.between(10, 18)).unwrap_or_default();
        Self {
            id: format!("PR{:03}", account.first_listing + index),
            name: format!("{} {}, {}", draw.one_of(&ADJECTIVES), draw.one_of(account.houses), place.city),
            kind: draw.one_of(&KINDS),
            street: format!("{} {}", draw.between(1, 180), draw.one_of(&STREETS)),
            latitude: place.latitude + jitter(&mut draw),
            longitude: place.longitude + jitter(&mut draw),
            place,
            bedrooms,
            beds: bedrooms + draw.between(0, 2),
            bathrooms: bedrooms.div_ceil(2),
            guests: bedrooms * 2,
            square_meters: 28 + bedrooms * draw.between(18, 32),
            floor: draw.between(0, 4),
            host: draw.one_of(&HOSTS),
            rating_tenths: draw.between(38, 50),
            nightly: i64::try_from(60 + bedrooms * draw.between(35, 70)).unwrap_or_default() * 100,
            amenities: draw.some_of(&AMENITIES, amenities),
            cancellation: draw.one_of(&CANCELLATION),
        }
    }

    /// Returns the 20 fields of a property that a reservation may repeat.
    pub(super) fn details(&self) -> Value {
        json!({
            "name": self.name,
            "type": self.kind,
            "street": self.street,
            "city": self.place.city,
            "region": self.place.region,
            "postalCode": self.place.postal_code,
            "country": self.place.country,
            "latitude": thousandths(self.latitude),
            "longitude": thousandths(self.longitude),
            "timeZone": self.place.time_zone,
            "bedrooms": self.bedrooms,
            "beds": self.beds,
            "bathrooms": self.bathrooms,
            "maxGuests": self.guests,
            "squareMeters": self.square_meters,
            "floor": self.floor,
            "checkInTime": "15:00",
            "checkOutTime": "11:00",
            "hostName": self.host,
            "rating": tenths(self.rating_tenths),
        })
    }
}

/// Converts tenths to a JSON number.
pub(super) fn tenths(number: u64) -> Value {
    u32::try_from(number).map_or(Value::Null, |number| (f64::from(number) / 10.0).into())
}
