//! Listings: the properties of an account with prices, terms and descriptions.

use jiff::civil::date;
use serde_json::{Value, json};

use super::account::Account;
use super::bookings::stay::signed;
use super::day::{later, timestamp};
use super::draw::Draw;
use super::money::amount;
use super::property::{Property, tenths};

const RULES: [&str; 8] = [
    "Please take off your shoes at the door.",
    "No smoking inside; there is an ashtray outside.",
    "Quiet hours are from ten in the evening to seven in the morning.",
    "Parties need our agreement beforehand.",
    "Pets are welcome when you tell us before you arrive.",
    "Sort the waste as the sheet in the kitchen says.",
    "Close all windows when you leave, the wind is strong here.",
    "Leave the key in the box and send us a short message.",
];

const CHARMS: [&str; 8] = [
    "wakes up to the light over the water",
    "was built by a boat builder who never threw a board away",
    "has thick walls, low doors and a very long table",
    "stands at the end of the road, where only the wind is loud",
    "is five minutes from bread, coffee and the bus",
    "was renovated last winter, down to the last socket",
    "looks west, and the evenings are the best of it",
    "has room for two families that like each other",
];

/// Returns a listing of an account. `index` starts at 0.
pub(super) fn listing(account: &Account, index: u64) -> Value {
    let property = Property::new(account, index);
    let mut draw = Draw::new("listing", account.id, index);
    let created = later(date(2022, 3, 1), signed(draw.between(0, 1_000)));
    let updated = later(created, signed(draw.between(1, 300)));
    let slug = property.id.to_lowercase();
    let images: Vec<String> = (1..=draw.between(3, 6))
        .map(|number| format!("https://images.example.com/hostaway/{slug}/{number:02}.jpg"))
        .collect();
    let mut listing = property.details();
    let more = description(&property, &mut draw);
    let times = json!({
        "images": images,
        "url": format!("https://stays.example.com/{slug}"),
        "updatedAt": timestamp(updated, draw.between(0, 86_399)),
        "createdAt": timestamp(created, draw.between(0, 86_399)),
    });
    if let Some(fields) = listing.as_object_mut() {
        fields.shift_insert(0, "id".to_owned(), property.id.clone().into());
        for part in [terms(account, &property, &mut draw), more, times] {
            fields.extend(part.as_object().cloned().unwrap_or_default());
        }
    }
    listing
}

/// Returns the prices and terms of a listing.
fn terms(account: &Account, property: &Property, draw: &mut Draw) -> Value {
    json!({
        "status": draw.one_of(&["listed", "listed", "listed", "listed", "unlisted"]),
        "price": amount(property.nightly),
        "currency": account.currency,
        "weekendPrice": amount(property.nightly + property.nightly / 5),
        "cleaningFee": amount(3_500 + signed(property.bedrooms) * 1_500),
        "extraGuestFee": amount(signed(draw.between(10, 30)) * 100),
        "petFee": amount(signed(draw.between(0, 4)) * 1_000),
        "securityDeposit": amount(signed(draw.between(2, 8)) * 10_000),
        "weeklyDiscountPercent": draw.between(0, 15),
        "monthlyDiscountPercent": draw.between(10, 30),
        "taxPercent": 10,
        "minNights": draw.between(1, 4),
        "maxNights": draw.between(14, 60),
        "baseGuests": property.guests.min(2),
        "instantBook": draw.chance(70),
        "cancellationPolicy": property.cancellation,
        "paymentPolicy": draw.one_of(&["all at booking", "half at booking", "all on arrival"]),
        "petsAllowed": draw.chance(45),
        "smokingAllowed": false,
        "partiesAllowed": draw.chance(8),
        "childrenAllowed": draw.chance(92),
        "licenseNumber": format!("{}-{:05}", property.place.country_code, draw.between(10_000, 99_999)),
    })
}

/// Returns the description of a listing.
fn description(property: &Property, draw: &mut Draw) -> Value {
    let Property { name, kind, place, bedrooms, guests, .. } = property;
    let charm = draw.one_of(&CHARMS);
    json!({
        "description": format!(
            "{name} is a {kind} for {guests} guests that {charm}. {bedrooms} bedrooms, a kitchen that is meant for \
             cooking, and {} in {}.",
            draw.one_of(&["a terrace", "a garden", "a wood stove", "a long balcony", "a reading corner"]),
            place.city,
        ),
        "neighborhood": draw.one_of(&["old town", "waterfront", "hillside", "village green", "station quarter"]),
        "houseRules": draw.some_of(&RULES, 5).join(" "),
        "arrival": format!("The key box is left of the door. {} meets you if you ask.", property.host),
        "amenities": property.amenities,
        "tags": draw.some_of(&["family", "remote work", "romantic", "groups", "long stay", "hiking", "beach"], 3),
        "languages": draw.some_of(&["en", "de", "fr", "es", "it"], 2),
        "channels": draw.some_of(&["airbnb", "booking.com", "vrbo", "direct"], 3),
        "hostEmail": format!("{}@hosts.example.com", property.host.to_lowercase()),
        "hostPhone": format!("+1-555-{:04}", draw.between(101, 9_999)),
        "wifiName": format!("{}-guest", property.id),
        "parkingSpaces": draw.between(0, 3),
        "distanceToBeachKm": tenths(draw.between(1, 90)),
        "distanceToStationKm": tenths(draw.between(2, 120)),
        "distanceToShopKm": tenths(draw.between(1, 30)),
        "elevationMeters": draw.between(2, 1_600),
        "reviewCount": draw.between(0, 140),
        "ratingCleanliness": tenths(draw.between(38, 50)),
        "ratingLocation": tenths(draw.between(38, 50)),
    })
}
