//! BK12345, the booking that documentation and tests use: 15 fields with complete groups, and more tokens than the
//! threshold of an answer.

use serde_json::{Map, Value, json};

use super::house_texts::{AMENITY_NOTES, POLICIES};
use super::stay::Stay;
use crate::hostaway::money::amount;
use crate::hostaway::property::AMENITIES;

/// Number of amenities in the booking.
const AMENITY_COUNT: usize = 30;

/// Returns the booking, with the full texts of its house.
pub(crate) fn booking(stay: &Stay) -> Value {
    let mut booking = core(stay);
    if let Some(fields) = booking.as_object_mut() {
        let amenities = AMENITIES.iter().zip(AMENITY_NOTES).take(AMENITY_COUNT);
        let policies = POLICIES.iter().map(|(name, text)| ((*name).to_owned(), Value::from(*text)));
        fields.insert(
            "amenities".to_owned(),
            amenities.map(|(name, note)| Value::from(format!("{name}: {note}"))).collect(),
        );
        fields.insert("policies".to_owned(), Value::Object(policies.collect::<Map<_, _>>()));
    }
    booking
}

/// Returns what both known bookings have, with short texts.
pub(super) fn core(stay: &Stay) -> Value {
    json!({
        "id": stay.id,
        "status": stay.status,
        "guestName": stay.guest.name,
        "guestEmail": stay.guest.email,
        "guestPhone": stay.guest.phone,
        "guestAddress": stay.guest.address,
        "checkInDate": stay.check_in.to_string(),
        "checkOutDate": stay.check_out().to_string(),
        "totalPrice": amount(stay.total),
        "currency": "USD",
        "priceBreakdown": price(stay),
        "propertyId": stay.property.id,
        "propertyDetails": stay.property.details(),
        "amenities": AMENITIES.iter().take(AMENITY_COUNT).collect::<Vec<_>>(),
        "policies": {
            "cancellation": "Free until 14 days before arrival, then half of the price",
            "checkIn": "From 15:00, with the code of the key box",
            "checkOut": "Until 11:00",
            "smoking": "Not inside",
            "pets": "One dog, after asking",
            "parties": "None",
            "quietHours": "22:00 to 07:00",
            "damageDeposit": "300.00 USD, given back within 7 days",
        },
    })
}

/// Returns 15 fields that add up: 1000 + 80 + 60 + 25 - 50 = 1115, and 1200 with the taxes.
fn price(stay: &Stay) -> Value {
    json!({
        "nightlyRate": amount(stay.nightly),
        "nights": stay.nights,
        "accommodation": amount(stay.accommodation),
        "cleaningFee": amount(stay.cleaning),
        "serviceFee": amount(6_000),
        "petFee": amount(0),
        "extraGuestFee": amount(0),
        "damageWaiver": amount(2_500),
        "weeklyDiscount": amount(0),
        "earlyBirdDiscount": amount(-5_000),
        "couponDiscount": amount(0),
        "subtotal": amount(111_500),
        "cityTax": amount(2_000),
        "occupancyTax": amount(6_500),
        "total": amount(stay.total),
    })
}
