//! Reviews that guests write after their stay.

use serde_json::{Value, json};

use super::account::Account;
use super::bookings::stay::{Stay, signed};
use super::day::{later, timestamp};
use super::draw::Draw;

/// Title and text of a review, from one star to five.
const VERDICTS: [(&str, &str); 5] = [
    ("Not what was promised", "The heating did not work and nobody came to look at it."),
    ("Below what we hoped for", "The beds were good, but the kitchen had not been cleaned."),
    ("All right for a few days", "Everything worked, nothing was special, and the price was fair."),
    ("A good stay", "Kind hosts, a quiet street and a kitchen that has what one needs."),
    ("We did not want to leave", "We sat in the hot tub at sunset every evening and slept like stones."),
];

const SMALL_THINGS: [&str; 6] = [
    "The bakery around the corner opens at six.",
    "Bring shoes for the rocks.",
    "The upper bedroom gets the morning sun.",
    "Parking was easier than we had read.",
    "The instructions for the stove are in the drawer.",
    "The bus stops in front of the house.",
];

/// Sentences about the house and the days there.
const DETAILS: [&str; 6] = [
    "We were six persons from three generations, and there was a quiet corner for everyone, which we had not found in \
     any other house in ten years of looking for one.",
    "It rained on four of our five days, so we know every game in the chest under the stairs by now, and the fireplace \
     made up for most of what the sky did to us.",
    "The photographs show the house as it is, only the path down to the water is steeper than one thinks, and with \
     small children or a stroller it takes a good quarter of an hour.",
    "We wrote to the host three times, about the heating, the bicycles and a lost jacket, and had an answer within the \
     hour each time, also late on a Sunday evening.",
    "The beds are firm, the curtains keep the light out, and apart from the church bells at seven we heard nothing at \
     all, although the house stands in the middle of the town.",
    "Somebody should sharpen the knives and replace the two pans, but that is all we can complain of, and the list in \
     the kitchen says that new ones are on their way.",
];

/// Returns a review of an account. `index` starts at 0.
pub(super) fn review(account: &Account, index: u64) -> Value {
    let mut draw = Draw::new("review", account.id, index);
    let stay = Stay::new(account, draw.between(0, account.reservations - 1));
    let rating = draw.one_of(&[5_u64, 5, 5, 4, 4, 4, 3, 3, 2, 1]);
    let verdict = usize::try_from(rating).unwrap_or_default().checked_sub(1);
    let (title, text) = verdict.and_then(|verdict| VERDICTS.get(verdict)).copied().unwrap_or_default();
    let details = Draw::new("review detail", account.id, index).some_of(&DETAILS, 2).join(" ");
    let created = later(stay.check_out(), signed(draw.between(1, 14)));
    json!({
        "id": format!("RV{}{:04}", account.short, index + 1),
        "title": title,
        "rating": rating,
        "text": format!("{text} {} {details}", draw.one_of(&SMALL_THINGS)),
        "reservationId": stay.id,
        "listingId": stay.property.id,
        "listingName": stay.property.name,
        "guestName": stay.guest.name,
        "channel": draw.one_of(&["airbnb", "booking.com", "vrbo", "direct"]),
        "categories": {
            "cleanliness": (rating + draw.between(0, 1)).min(5),
            "location": draw.between(3, 5),
            "value": (rating + draw.between(0, 1)).min(5),
        },
        "hostReply": draw.chance(40).then_some("Thank you for staying with us and for writing."),
        "createdAt": timestamp(created, draw.between(0, 86_399)),
    })
}
