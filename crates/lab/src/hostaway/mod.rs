//! A connector for holiday rentals with the streams and API paths of Hostaway, and a sample of two accounts.
//!
//! The manifest lists the paths of Hostaway's API (`/api/v1/bookings`), so that clients that know them can use them.
//! The sample is generated, not stored as files: its bytes are the same on every run, and it is so large that no list
//! and not every record fits into one response. All persons in it are fictional.
//!
//! * `listings`, `bookings`, `transactions`, `conversations`, `reviews`, `analytics`: one stream each
//! * `account`, `property`, `guest`: data that several streams share
//! * `draw`, `day`, `money`: pseudo-random choices, dates, amounts

mod account;
mod analytics;
mod bookings;
mod conversations;
mod day;
mod draw;
mod guest;
mod listings;
mod money;
mod property;
mod reviews;
mod transactions;

use fetchwell_connectors::ImportError;
use fetchwell_connectors::intake::{Draft, DuplicatePolicy, Intake};
use fetchwell_source::ImportTarget;
use serde_json::Value;

use self::account::{ACCOUNTS, Account};
use crate::sample::{SampleAccount, import_account};

/// The manifest of the connector, as JSON.
pub const MANIFEST: &str = include_str!("manifest.json");

/// The ids and labels of the sample's connections.
pub const SAMPLE_ACCOUNTS: [(&str, &str); 2] = {
    let [first, second] = &ACCOUNTS;
    [(first.id, first.label), (second.id, second.label)]
};

/// Imports the sample. Returns the number of its records. Importing it again changes nothing.
///
/// # Errors
///
/// The store cannot be written.
pub fn import_sample(store: &dyn ImportTarget) -> Result<u64, ImportError> {
    let mut records = 0;
    for account in &ACCOUNTS {
        let sample = SampleAccount { id: account.id, label: account.label, manifest: MANIFEST };
        records += import_account(store, sample, |intake| {
            (1_u64..)
                .zip(records_of(account))
                .try_for_each(|(number, (stream, record))| take(intake, number, stream, record))
        })?;
    }
    Ok(records)
}

/// Returns every record of an account with its stream.
fn records_of(account: &Account) -> impl Iterator<Item = (&'static str, Value)> {
    let each = |stream: &'static str, count: u64, make: fn(&Account, u64) -> Value| {
        (0..count).map(move |index| (stream, make(account, index)))
    };
    each("listings", account.listings, listings::listing)
        .chain(each("reservations", account.reservations, bookings::reservations::reservation))
        .chain(each("financial_transactions", account.transactions, transactions::transaction))
        .chain(each("conversations", account.conversations, conversations::conversation))
        .chain(each("reviews", account.reviews, reviews::review))
        .chain(analytics::reports(account).into_iter().map(|report| ("analytics", report)))
}

fn take(intake: &mut Intake<'_>, number: u64, stream: &str, record: Value) -> Result<(), ImportError> {
    let Value::Object(data) = record else { return Ok(()) };
    let emitted_at = data.get("createdAt").and_then(Value::as_str).map(str::to_owned);
    // An estimate of a record's size. It only affects how often a batch is written.
    let bytes = 2_000;
    let draft = Draft {
        stream,
        key: None,
        data: Some(data),
        emitted_at,
        bytes,
        repeated: DuplicatePolicy::Supersedes,
    };
    intake.take(&number, draft)
}

#[cfg(test)]
mod tests;
