//! Analytics reports: one per month, aggregated from the reservations of the sample.

use serde_json::{Value, json};

use super::account::Account;
use super::bookings::stay::Stay;
use super::day::{later, month, timestamp};
use super::money::amount;
use super::property::tenths;

/// Number of months with a report: those in which stays start.
pub(super) const MONTHS: u64 = 14;

/// Returns the reports of an account. A stay counts in the month in which it starts.
pub(super) fn reports(account: &Account) -> Vec<Value> {
    let stays: Vec<Stay> = (0..account.reservations).map(|index| Stay::new(account, index)).collect();
    let numbers = 0..i64::try_from(MONTHS).unwrap_or_default();
    numbers.map(|number| report(account, number, &stays)).collect()
}

fn report(account: &Account, number: i64, stays: &[Stay]) -> Value {
    let first = month(number);
    let (began, cancelled): (Vec<&Stay>, Vec<&Stay>) = stays
        .iter()
        .filter(|stay| stay.check_in.first_of_month() == first)
        .partition(|stay| stay.is_active());
    let nights: i64 = began.iter().map(|stay| stay.nights).sum();
    let revenue: i64 = began.iter().map(|stay| stay.total).sum();
    let accommodation: i64 = began.iter().map(|stay| stay.accommodation).sum();
    let days = u64::try_from(first.days_in_month()).unwrap_or_default();
    let on_offer = account.listings * days;
    let occupancy = u64::try_from(nights).unwrap_or_default() * 1_000 / on_offer.max(1);
    let name = first.strftime("%Y-%m").to_string();
    json!({
        "id": format!("AN{}-{name}", account.short),
        "title": format!("{} in {name}", account.label),
        "month": name,
        "listings": account.listings,
        "bookings": began.len(),
        "cancellations": cancelled.len(),
        "nights": nights,
        "occupancy": tenths(occupancy),
        "revenue": amount(revenue),
        "adr": amount(accommodation / nights.max(1)),
        "currency": account.currency,
        "createdAt": timestamp(later(first.last_of_month(), 1), 3_600),
    })
}
