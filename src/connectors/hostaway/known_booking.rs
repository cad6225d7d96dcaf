//! BK12345, the booking that documentation and tests speak of: 15 fields, and every group of them whole.

use serde_json::{Value, json};

use super::money::amount;
use super::property::AMENITIES;
use super::stay::Stay;

/// How many amenities it lists.
const AMENITY_COUNT: usize = 30;

/// The booking, and under another id what is fat about the other.
pub(super) fn booking(stay: &Stay) -> Value {
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

/// 15 fields that add up: 1000 + 80 + 60 + 25 - 50 = 1115, and with the taxes 1200.
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
