//! A stay: what a reservation and everything that comes of it have in common.

use jiff::civil::{Date, date};

use super::account::{ACCOUNTS, Account, SHARED_RESERVATIONS};
use super::day::{DAYS, FIRST_DAY, later};
use super::draw::Draw;
use super::guest::Guest;
use super::property::Property;

/// Who stays where, and when.
#[derive(Debug, Clone)]
pub(super) struct Stay {
    pub(super) id: String,
    pub(super) guest: Guest,
    pub(super) property: Property,
    pub(super) booked: Date,
    pub(super) check_in: Date,
    pub(super) nights: i64,
    pub(super) status: &'static str,
    /// A night, all nights, the cleaning, the taxes, all together; in hundredths.
    pub(super) nightly: i64,
    pub(super) accommodation: i64,
    pub(super) cleaning: i64,
    pub(super) taxes: i64,
    pub(super) total: i64,
}

/// The booking of the documentation: everything in it is set.
pub(super) const KNOWN: &str = "BK12345";

/// The same booking with everything that gathered around it.
pub(super) const FAT: &str = "BK99999";

/// The listing of both.
const KNOWN_LISTING: u64 = 789;

/// In hundredths, as the booking's price breakdown adds up.
pub(super) const KNOWN_TOTAL: i64 = 120_000;

impl Stay {
    /// One of an account, by its number from 0.
    pub(super) fn of(account: &Account, index: u64) -> Self {
        if let Some(id) = known_id(account, index) {
            return Self::known(account, id);
        }
        let mut draw = Draw::of("stay", account.id, index);
        let property = Property::of(account, draw.between(0, account.listings - 1));
        let guest = Guest::of(&mut draw);
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
            property: Property::of(account, KNOWN_LISTING - account.first_listing),
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

    pub(super) fn check_out(&self) -> Date {
        later(self.check_in, self.nights)
    }

    /// Whether anybody came, or is to come.
    pub(super) fn holds(&self) -> bool {
        self.status != "cancelled"
    }
}

/// The id of a reservation. The first few are the same in every account.
fn id(account: &Account, index: u64) -> String {
    if index < SHARED_RESERVATIONS {
        return format!("BK{:05}", index + 1);
    }
    format!("BK{:05}", account.first_reservation + index - SHARED_RESERVATIONS)
}

/// Two reservations of the first account are known.
fn known_id(account: &Account, index: u64) -> Option<&'static str> {
    let [first, ..] = &ACCOUNTS;
    match index.checked_sub(SHARED_RESERVATIONS).filter(|_| first.id == account.id) {
        Some(0) => Some(KNOWN),
        Some(1) => Some(FAT),
        _ => None,
    }
}

/// A small number with a sign.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
