//! BK99999, a booking that is too large for any response: months of messages, payments, reviews and a calendar.
//!
//! Each question about it has exactly one answer: the payments add up to the price, one review has five stars, one
//! day is not available, and the last message contains the code of the key box.

use jiff::civil::{Date, date};
use serde_json::{Value, json};

use super::known_booking;
use super::stay::Stay;
use crate::hostaway::day::{later, timestamp};
use crate::hostaway::money::amount;

/// Text of the last message.
pub(crate) const LAST_MESSAGE: &str = "One last thing before you set out: the lock of the front door was changed this \
    morning, so the old code does not work any more. The new code of the key box is 4471. The spare key hangs behind \
    the blue oar in the boathouse. Have a safe trip, and call us when you are at the bridge.";

/// The only day of the calendar that is not available.
pub(crate) const TAKEN_DAY: Date = date(2025, 12, 24);

const MESSAGES: i64 = 60;
const PAYMENTS: i64 = 25;
const REVIEWS: i64 = 10;
const CALENDAR_DAYS: i64 = 60;

/// Number of the review with five stars, from 1.
const BEST_REVIEW: i64 = 7;

/// Returns the core of the known booking under another id, with messages, payments, reviews and a calendar.
pub(crate) fn booking(stay: &Stay) -> Value {
    let mut booking = known_booking::core(stay);
    if let Some(fields) = booking.as_object_mut() {
        fields.insert("messages".to_owned(), (1..=MESSAGES).map(|number| message(stay, number)).collect());
        fields.insert("payments".to_owned(), (1..=PAYMENTS).map(|number| payment(stay, number)).collect());
        fields.insert("reviews".to_owned(), (1..=REVIEWS).map(review).collect());
        fields.insert("calendar".to_owned(), (0..CALENDAR_DAYS).map(|day| calendar_day(stay, day)).collect());
    }
    booking
}

/// Sentences of the messages.
const SAID: [&str; 12] = [
    "Thank you for the quick answer, that helps us a lot with planning the trip and the ferry.",
    "We would arrive a little later than planned because the road along the coast is closed until six.",
    "There is a grocery store two streets up the hill; it closes at nine, and on Sundays it stays closed.",
    "Could you tell us whether the heating in the upper bedroom can be set apart from the rest of the house?",
    "The heating upstairs has its own dial, it is the white one behind the curtain next to the window.",
    "My sister comes for one night with her dog; he is old, quiet, and used to sleeping in the hall.",
    "That is fine with us, please keep him off the sofa and take the blanket from the chest for him.",
    "Is there a place for four bicycles that can be locked, or should we bring a long chain?",
    "Bicycles go into the boathouse, there is a rail along the wall, and the door locks by itself.",
    "We paid another part of the price today, you should see it by tomorrow at the latest.",
    "The payment has arrived, thank you; the receipt is in your mail, and the rest is due on arrival.",
    "If the weather is clear you can see the lighthouse from the kitchen, and the seals at low tide.",
];

/// Returns a message of 200 to 500 characters. The last one is [`LAST_MESSAGE`].
fn message(stay: &Stay, number: i64) -> Value {
    let place = usize::try_from(number - 1).unwrap_or_default();
    let said: Vec<&str> = SAID.iter().cycle().skip(place * 5).take(4 + place % 2).copied().collect();
    let text = if number == MESSAGES { LAST_MESSAGE.to_owned() } else { said.join(" ") };
    let second = u64::try_from(number).unwrap_or_default() * 613;
    json!({
        "id": format!("MSG-{number:03}"),
        "from": if number % 2 == 1 { "guest" } else { "host" },
        "sentAt": timestamp(later(stay.booked, number * 4 / 5), 28_800 + second),
        "text": text,
    })
}

/// Returns a payment. The amounts are 24, 26, 28 and so on in another order, and add up to the price.
fn payment(stay: &Stay, number: i64) -> Value {
    let step = number * 7 % PAYMENTS;
    let second = u64::try_from(number).unwrap_or_default() * 997;
    json!({
        "id": format!("PAY-{number:03}"),
        "amount": amount(2_400 + step * 200),
        "currency": "USD",
        "method": if number % 3 == 0 { "bank transfer" } else { "card" },
        "status": "paid",
        "paidAt": timestamp(later(stay.booked, number * 2), 36_000 + second),
        "note": format!(
            "Part {number} of {PAYMENTS} of the price, as agreed in message MSG-{:03}; the receipt went to {}",
            number * 2,
            stay.guest.email
        ),
    })
}

const AUTHORS: [&str; 10] = [
    "Ingrid Berg",
    "Luis Costa",
    "Maya Tanaka",
    "Farid Haddad",
    "Rosa Moreau",
    "Sven Lindqvist",
    "Priya Nair",
    "Quentin Dubois",
    "Tara Jansen",
    "Olga Petrov",
];

/// Returns a review of one to four stars, except one with five.
fn review(number: i64) -> Value {
    let place = usize::try_from(number - 1).unwrap_or_default();
    let rating = if number == BEST_REVIEW { 5 } else { 1 + number * 3 % 4 };
    let text = match rating {
        5 => {
            "The best week of our year. The house is warm, the beds are new, and the seals came every morning. We \
              have already asked for the same days next autumn."
        }
        4 => {
            "Very good house and kind hosts. The kitchen has everything; only the road is louder than we thought."
        }
        3 => "A fine place, though the upper bedroom stays cold and the key box needs a strong hand.",
        2 => "The view is as promised, but the kitchen was not clean and nobody answered for two days.",
        _ => "We left after one night. The heating did not work and the boathouse smelled of paint.",
    };
    let author = AUTHORS.get(place).copied().unwrap_or_default();
    json!({ "id": format!("REV-{number:02}"), "rating": rating, "author": author, "text": text })
}

/// Returns a day of the calendar, which starts after the stay.
fn calendar_day(stay: &Stay, number: i64) -> Value {
    let day = later(stay.check_out(), number + 1);
    let weekend = matches!(day.weekday().to_monday_one_offset(), 5 | 6);
    let taken = day == TAKEN_DAY;
    json!({
        "date": day.to_string(),
        "available": !taken,
        "price": amount(if weekend { 31_000 } else { 25_000 }),
        "minStay": if weekend { 3 } else { 2 },
        "note": match (taken, weekend) {
            (true, _) => "The owner is here over Christmas, and nobody else.",
            (false, true) => "Weekend price, for three nights at least; arrival on Friday.",
            (false, false) => "Usual price, for two nights at least; cleaning on the day after.",
        },
    })
}
