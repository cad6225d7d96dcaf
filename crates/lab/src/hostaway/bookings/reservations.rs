//! Reservations. All have the same 15 fields, but most have fewer fields in their groups than the known booking.

use serde_json::{Value, json};

use super::stay::{FAT, KNOWN, Stay};
use super::{fat_booking, known_booking};
use crate::hostaway::account::Account;
use crate::hostaway::draw::Draw;
use crate::hostaway::money::amount;

/// Returns a reservation of an account. `index` starts at 0.
pub(crate) fn reservation(account: &Account, index: u64) -> Value {
    let stay = Stay::new(account, index);
    match stay.id.as_str() {
        KNOWN => known_booking::booking(&stay),
        FAT => fat_booking::booking(&stay),
        _ => standard_booking(account, index, &stay),
    }
}

fn standard_booking(account: &Account, index: u64, stay: &Stay) -> Value {
    let mut draw = Draw::new("reservation", account.id, index);
    let property = &stay.property;
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
        "currency": account.currency,
        "priceBreakdown": {
            "nightlyRate": amount(stay.nightly),
            "nights": stay.nights,
            "accommodation": amount(stay.accommodation),
            "cleaningFee": amount(stay.cleaning),
            "subtotal": amount(stay.accommodation + stay.cleaning),
            "taxes": amount(stay.taxes),
            "total": amount(stay.total),
        },
        "propertyId": property.id,
        "propertyDetails": {
            "name": property.name,
            "type": property.kind,
            "street": property.street,
            "city": property.place.city,
            "region": property.place.region,
            "country": property.place.country,
            "timeZone": property.place.time_zone,
            "bedrooms": property.bedrooms,
            "maxGuests": property.guests,
            "hostName": property.host,
        },
        "amenities": draw.some_of(&property.amenities, 5),
        "policies": {
            "cancellation": property.cancellation,
            "checkIn": "from 15:00",
            "checkOut": "until 11:00",
            "smoking": "not inside",
            "pets": "after asking",
            "quietHours": "22:00 to 07:00",
        },
    })
}
