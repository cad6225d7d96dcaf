//! BK12345, the booking that documentation and tests use: 15 fields with complete groups.

use serde_json::{Value, json};

use super::stay::Stay;
use crate::connectors::hostaway::money::amount;
use crate::connectors::hostaway::property::AMENITIES;

/// Number of amenities in the booking.
const AMENITY_COUNT: usize = 30;

/// Returns the booking, or the common part of both known bookings under the other's id.
pub(in crate::connectors::hostaway) fn booking(stay: &Stay) -> Value {
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
