//! The two accounts of the sample, with the number of their records.

/// An account of the sample.
#[derive(Debug)]
pub(super) struct Account {
    /// Id of its connection.
    pub(super) id: &'static str,
    /// Label of its connection.
    pub(super) label: &'static str,
    /// Part of record ids that distinguishes the accounts, for kinds of records with the same ids otherwise.
    pub(super) short: &'static str,
    /// Number in the id of its first listing.
    pub(super) first_listing: u64,
    /// Number in the id of its first reservation that no other account has.
    pub(super) first_reservation: u64,
    pub(super) listings: u64,
    pub(super) reservations: u64,
    pub(super) transactions: u64,
    pub(super) conversations: u64,
    pub(super) reviews: u64,
    pub(super) currency: &'static str,
    /// Locations of its listings.
    pub(super) places: &'static [Location],
    /// Nouns for the names of listings, each used with an adjective.
    pub(super) houses: &'static [&'static str],
}

/// The location of a listing.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Location {
    pub(super) city: &'static str,
    pub(super) region: &'static str,
    pub(super) postal_code: &'static str,
    pub(super) country: &'static str,
    pub(super) country_code: &'static str,
    pub(super) time_zone: &'static str,
    /// Latitude in thousandths of a degree.
    pub(super) latitude: i32,
    /// Longitude in thousandths of a degree.
    pub(super) longitude: i32,
}

/// Number of reservations that have the same ids in both accounts, which only a handle can distinguish.
pub(super) const SHARED_RESERVATIONS: u64 = 3;

/// All accounts of the sample.
pub(super) static ACCOUNTS: [Account; 2] = [SEASIDE, ALPINE];

const SEASIDE: Account = Account {
    id: "cin_seaside",
    label: "Seaside Rentals",
    short: "SEA",
    first_listing: 501,
    first_reservation: 20_001,
    listings: 300,
    reservations: 3_000,
    transactions: 1_200,
    conversations: 300,
    reviews: 480,
    currency: "USD",
    places: &[
        location("Monterey", "California", "93940", US_PACIFIC).at(36_600, -121_894),
        location("Cannon Beach", "Oregon", "97110", US_PACIFIC).at(45_891, -123_961),
        location("Kennebunkport", "Maine", "04046", US_EASTERN).at(43_361, -70_476),
        location("Outer Banks", "North Carolina", "27959", US_EASTERN).at(35_958, -75_624),
        location("Key West", "Florida", "33040", US_EASTERN).at(24_555, -81_779),
    ],
    houses: &["Cottage", "Beach House", "Bungalow", "Boathouse", "Pier Loft", "Dune Villa", "Harbor Suite"],
};

const ALPINE: Account = Account {
    id: "cin_alpine",
    label: "Alpine Stays",
    short: "ALP",
    first_listing: 101,
    first_reservation: 50_001,
    listings: 200,
    reservations: 2_000,
    transactions: 800,
    conversations: 200,
    reviews: 320,
    currency: "EUR",
    places: &[
        location("Innsbruck", "Tyrol", "6020", AUSTRIA).at(47_269, 11_404),
        location("Hallstatt", "Upper Austria", "4830", AUSTRIA).at(47_562, 13_649),
        location("Garmisch-Partenkirchen", "Bavaria", "82467", GERMANY).at(47_492, 11_096),
        location("Chamonix", "Haute-Savoie", "74400", FRANCE).at(45_924, 6_870),
    ],
    houses: &["Chalet", "Hut", "Lodge", "Farmhouse", "Attic Flat", "Barn", "Mountain Studio"],
};

/// A country, or a part of it with one time zone.
#[derive(Clone, Copy)]
struct Country {
    name: &'static str,
    code: &'static str,
    time_zone: &'static str,
}

const US_PACIFIC: Country = Country { name: "United States", code: "US", time_zone: "America/Los_Angeles" };
const US_EASTERN: Country = Country { name: "United States", code: "US", time_zone: "America/New_York" };
const AUSTRIA: Country = Country { name: "Austria", code: "AT", time_zone: "Europe/Vienna" };
const GERMANY: Country = Country { name: "Germany", code: "DE", time_zone: "Europe/Berlin" };
const FRANCE: Country = Country { name: "France", code: "FR", time_zone: "Europe/Paris" };

const fn location(
    city: &'static str,
    region: &'static str,
    postal_code: &'static str,
    country: Country,
) -> Location {
    let Country { name: country, code: country_code, time_zone } = country;
    Location { city, region, postal_code, country, country_code, time_zone, latitude: 0, longitude: 0 }
}

impl Location {
    const fn at(self, latitude: i32, longitude: i32) -> Self {
        Self { latitude, longitude, ..self }
    }
}
