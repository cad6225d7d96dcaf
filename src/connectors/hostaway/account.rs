//! The two accounts of the sample, and how much each has.

/// An account.
#[derive(Debug)]
pub(super) struct Account {
    /// Its connection.
    pub(super) id: &'static str,
    /// What people call it.
    pub(super) label: &'static str,
    /// What its ids begin with where the kind of record alone would not tell the accounts apart.
    pub(super) short: &'static str,
    /// The number in the id of its first listing.
    pub(super) first_listing: u64,
    /// The number in the id of its first reservation that no other account has.
    pub(super) first_reservation: u64,
    pub(super) listings: u64,
    pub(super) reservations: u64,
    pub(super) transactions: u64,
    pub(super) conversations: u64,
    pub(super) reviews: u64,
    pub(super) currency: &'static str,
    /// City, region, postal code, country with its code, time zone; latitude and longitude in thousandths.
    pub(super) places: &'static [Place],
    /// What listings are named by: an adjective with one of these.
    pub(super) houses: &'static [&'static str],
}

/// Where listings are.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Place {
    pub(super) city: &'static str,
    pub(super) region: &'static str,
    pub(super) postal_code: &'static str,
    pub(super) country: &'static str,
    pub(super) country_code: &'static str,
    pub(super) time_zone: &'static str,
    /// In thousandths of a degree.
    pub(super) latitude: i32,
    pub(super) longitude: i32,
}

/// How many reservations have the same ids in both accounts, to show what a handle is for.
pub(super) const SHARED_RESERVATIONS: u64 = 3;

/// All of them.
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
        place(("Monterey", "California", "93940"), US, "America/Los_Angeles", (36_600, -121_894)),
        place(("Cannon Beach", "Oregon", "97110"), US, "America/Los_Angeles", (45_891, -123_961)),
        place(("Kennebunkport", "Maine", "04046"), US, "America/New_York", (43_361, -70_476)),
        place(("Outer Banks", "North Carolina", "27959"), US, "America/New_York", (35_958, -75_624)),
        place(("Key West", "Florida", "33040"), US, "America/New_York", (24_555, -81_779)),
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
        place(("Innsbruck", "Tyrol", "6020"), AT, "Europe/Vienna", (47_269, 11_404)),
        place(("Hallstatt", "Upper Austria", "4830"), AT, "Europe/Vienna", (47_562, 13_649)),
        place(("Garmisch-Partenkirchen", "Bavaria", "82467"), DE, "Europe/Berlin", (47_492, 11_096)),
        place(("Chamonix", "Haute-Savoie", "74400"), FR, "Europe/Paris", (45_924, 6_870)),
    ],
    houses: &["Chalet", "Hut", "Lodge", "Farmhouse", "Attic Flat", "Barn", "Mountain Studio"],
};

const US: (&str, &str) = ("United States", "US");
const AT: (&str, &str) = ("Austria", "AT");
const DE: (&str, &str) = ("Germany", "DE");
const FR: (&str, &str) = ("France", "FR");

const fn place(
    (city, region, postal_code): (&'static str, &'static str, &'static str),
    (country, country_code): (&'static str, &'static str),
    time_zone: &'static str,
    (latitude, longitude): (i32, i32),
) -> Place {
    Place { city, region, postal_code, country, country_code, time_zone, latitude, longitude }
}
