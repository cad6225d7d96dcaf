//! A connector of holiday lets, with sample data of two accounts: what Hostaway's API serves, in records.
//!
//! Its manifest lists the paths of that API (`/api/v1/bookings`), so clients that know them find their way. The
//! sample is made here and not kept as files: it is the same bytes on every run, and large enough that no list and not
//! every record of it fits into one answer. Nobody in it exists.

mod account;
mod analytics;
mod conversations;
mod day;
mod draw;
mod fat_booking;
mod guest;
mod known_booking;
mod listings;
mod money;
mod property;
mod reservations;
mod reviews;
mod stay;
mod transactions;

use std::path::Path;

use serde_json::Value;

use self::account::{ACCOUNTS, Account};
use super::ImportError;
use super::intake::{Draft, Intake, Repeated};
use super::sample::{SampleAccount, import_account};

/// What the connector declares.
pub const MANIFEST: &str = include_str!("manifest.json");

/// The accounts of the sample: their connections and labels.
pub const SAMPLE_ACCOUNTS: [(&str, &str); 2] = {
    let [first, second] = &ACCOUNTS;
    [(first.id, first.label), (second.id, second.label)]
};

/// Imports the sample, and says how many records it has. Importing it again changes nothing.
///
/// # Errors
///
/// The store cannot be written.
pub fn import_sample(store: &Path) -> Result<u64, ImportError> {
    let mut records = 0;
    for account in &ACCOUNTS {
        let sample = SampleAccount { id: account.id, label: account.label, manifest: MANIFEST };
        records += import_account(store, sample, |intake| {
            (1_u64..).zip(records_of(account)).try_for_each(|(number, record)| take(intake, number, record))
        })?;
    }
    Ok(records)
}

/// Every record of an account with its stream.
fn records_of(account: &Account) -> impl Iterator<Item = (&'static str, Value)> {
    let each = |stream: &'static str, count: u64, make: fn(&Account, u64) -> Value| {
        (0..count).map(move |index| (stream, make(account, index)))
    };
    each("listings", account.listings, listings::listing)
        .chain(each("reservations", account.reservations, reservations::reservation))
        .chain(each("financial_transactions", account.transactions, transactions::transaction))
        .chain(each("conversations", account.conversations, conversations::conversation))
        .chain(each("reviews", account.reviews, reviews::review))
        .chain(analytics::reports(account).into_iter().map(|report| ("analytics", report)))
}

fn take(intake: &mut Intake<'_>, number: u64, (stream, record): (&str, Value)) -> Result<(), ImportError> {
    let Value::Object(data) = record else { return Ok(()) };
    let emitted_at = data.get("createdAt").and_then(Value::as_str).map(str::to_owned);
    // Only how often a batch is written depends on it: a record is two kilobytes, give or take.
    let bytes = 2_000;
    let draft =
        Draft { stream, key: None, data: Some(data), emitted_at, bytes, repeated: Repeated::Supersedes };
    intake.take(&number, draft)
}

#[cfg(test)]
mod tests;
