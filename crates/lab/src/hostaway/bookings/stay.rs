//! Stays: the data that a reservation shares with its transactions, conversations and reviews.

use fetchwell_core::saturate::saturated;
use jiff::civil::{Date, date};

use crate::hostaway::account::{ACCOUNTS, Account, SHARED_RESERVATIONS};
use crate::hostaway::day::{DAYS, FIRST_DAY, later};
use crate::hostaway::draw::Draw;
use crate::hostaway::guest::Guest;
use crate::hostaway::property::Property;

/// A stay of a guest at a property.
#[derive(Debug, Clone)]
pub(crate) struct Stay {
    pub(crate) id: String,
    pub(crate) guest: Guest,
    pub(crate) property: Property,
    pub(crate) booked: Date,
    pub(crate) check_in: Date,
    pub(crate) nights: i64,
    pub(crate) status: &'static str,
    /// Price of one night in hundredths. The other amounts are in hundredths, too.
    pub(crate) nightly: i64,
    pub(crate) accommodation: i64,
    pub(crate) cleaning: i64,
    pub(crate) taxes: i64,
    pub(crate) total: i64,
}

/// Id of the documented booking, in which all values are fixed.
pub(crate) const KNOWN: &str = "BK12345";

/// Id of the large booking, which has the same values and many more.
pub(crate) const FAT: &str = "BK99999";

/// Number of the listing of both bookings.
const KNOWN_LISTING: u64 = 789;

/// Total of the known booking in hundredths, as its price breakdown adds up.
pub(crate) const KNOWN_TOTAL: i64 = 120_000;

impl Stay {
    /// Returns a stay of an account. `index` starts at 0.
    pub(crate) fn new(account: &Account, index: u64) -> Self {
        if let Some(id) = known_id(account, index) {
            return Self::known(account, id);
        }
        let mut draw = Draw::new("stay", account.id, index);
        let property = Property::new(account, draw.between(0, account.listings - 1));
        let guest = Guest::random(&mut draw);
        let check_in = later(FIRST_DAY, signed(draw.between(0, DAYS - 1)));
        let nights = signed(draw.between(2, 9));
        // Summers and the days around the new year cost a quarter more.
        let nightly = match check_in.month() {
            1 | 7 | 8 | 12 => property.nightly + property.nightly / 4,
            _ => property.nightly,
        };
        let accommodation = nightly * nights;
        let cleaning = 3_500 + signed(property.bedrooms) * 1_500;
        let taxes = accommodation / 10;
        Self {
            id: id(account, index),
            booked: later(check_in, -signed(draw.between(3, 120))),
            check_in,
            nights,
            status: draw.one_of(&[
                "confirmed",
                "confirmed",
                "confirmed",
                "confirmed",
                "modified",
                "cancelled",
            ]),
            nightly,
            accommodation,
            cleaning,
            taxes,
            total: accommodation + cleaning + taxes,
            guest,
            property,
        }
    }

    fn known(account: &Account, id: &str) -> Self {
        Self {
            id: id.to_owned(),
            guest: Guest::john_doe(),
            property: Property::new(account, KNOWN_LISTING - account.first_listing),
            booked: date(2025, 9, 12),
            check_in: date(2025, 11, 1),
            nights: 4,
            status: "confirmed",
            nightly: 25_000,
            accommodation: 100_000,
            cleaning: 8_000,
            taxes: 8_500,
            total: KNOWN_TOTAL,
        }
    }

    pub(crate) fn check_out(&self) -> Date {
        later(self.check_in, self.nights)
    }

    /// Returns true unless the stay was cancelled.
    pub(crate) fn is_active(&self) -> bool {
        self.status != "cancelled"
    }
}

/// Returns the id of a reservation. The first few are the same in every account.
fn id(account: &Account, index: u64) -> String {
    if index < SHARED_RESERVATIONS {
        return format!("BK{:05}", index + 1);
    }
    format!("BK{:05}", account.first_reservation + index - SHARED_RESERVATIONS)
}

/// Returns the id of a known booking, which are two reservations of the first account.
fn known_id(account: &Account, index: u64) -> Option<&'static str> {
    let [first, ..] = &ACCOUNTS;
    match index.checked_sub(SHARED_RESERVATIONS).filter(|_| first.id == account.id) {
        Some(0) => Some(KNOWN),
        Some(1) => Some(FAT),
        _ => None,
    }
}

/// Converts a small number to a signed one.
pub(crate) fn signed(number: u64) -> i64 {
    saturated::<i64>(number)
}
