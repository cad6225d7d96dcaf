//! Financial transactions: payments, refunds, payouts and fees of reservations.

use serde_json::{Value, json};

use super::account::Account;
use super::bookings::stay::{Stay, signed};
use super::day::{later, timestamp};
use super::draw::Draw;
use super::money::amount;

/// Returns a transaction of an account. `index` starts at 0.
pub(super) fn transaction(account: &Account, index: u64) -> Value {
    let mut draw = Draw::new("transaction", account.id, index);
    let stay = Stay::new(account, draw.between(0, account.reservations - 1));
    let kind = if stay.is_active() {
        draw.one_of(&["payment", "payment", "payment", "payout", "fee"])
    } else {
        "refund"
    };
    // A payment is a part of the price, a payout is the price less the fee, and a refund is half the price.
    let (hundredths, what) = match kind {
        "payment" => (stay.total / signed(draw.between(1, 3)), "Payment of"),
        "payout" => (-(stay.total - stay.total / 8), "Payout to the owner for"),
        "fee" => (-(stay.total / 33), "Card fee of"),
        _ => (-(stay.total / 2), "Refund of"),
    };
    let day = later(stay.booked, signed(draw.between(0, 20)));
    json!({
        "id": format!("FT{}{:05}", account.short, index + 1),
        "type": kind,
        "amount": amount(hundredths),
        "currency": account.currency,
        "status": draw.one_of(&["settled", "settled", "settled", "pending"]),
        "method": draw.one_of(&["card", "card", "bank transfer", "channel"]),
        "description": format!("{what} reservation {} of {}", stay.id, stay.guest.name),
        "reservationId": stay.id,
        "listingId": stay.property.id,
        "guestName": stay.guest.name,
        "reference": format!("{}-{:06}", account.short, draw.between(100_000, 999_999)),
        "createdAt": timestamp(day, draw.between(0, 86_399)),
    })
}
