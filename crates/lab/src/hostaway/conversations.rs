//! Conversations with guests before their arrival.

use serde_json::{Value, json};

use super::account::Account;
use super::bookings::stay::{Stay, signed};
use super::day::{later, timestamp};
use super::draw::Draw;

/// Subject, question of the guest, answer of the host.
const TOPICS: [(&str, &str, &str); 8] = [
    (
        "Arrival after midnight",
        "Our train arrives at half past midnight. Can we still get in?",
        "The key box works at any hour; we leave a light on.",
    ),
    (
        "Parking for two cars",
        "We come with two cars. Is there room for both?",
        "One fits beside the house, the other by the church, where it costs nothing.",
    ),
    (
        "Bringing a dog",
        "May our small dog come along? He does not bark.",
        "He may. Please keep him off the beds.",
    ),
    (
        "Early check-in",
        "Could we leave our bags at noon?",
        "Bags are fine from eleven, the rooms are ready at three.",
    ),
    (
        "Crib and high chair",
        "Do you have a crib for a baby of eight months?",
        "Both are in the closet of the small bedroom.",
    ),
    (
        "Invoice for the company",
        "We need an invoice in the name of our company.",
        "Send us the address and you have it the same day.",
    ),
    (
        "Wifi for video calls",
        "Is the connection good enough for work?",
        "It has 100 megabits, and a desk stands in the quiet room.",
    ),
    ("Changing the dates", "Can we move the stay by one day?", "That is possible; the price stays the same."),
];

/// Further questions of guests with the answers of hosts.
const FOLLOW_UPS: [(&str, &str); 6] = [
    (
        "One more thing: is there a store where we can buy food on the evening we arrive?",
        "The one at the harbor is open until nine, and until six on Sundays.",
    ),
    (
        "That is good to know. Are there towels and sheets for all of us, or do we bring our own?",
        "Everything is there, with two towels for each of you and some for the beach.",
    ),
    (
        "Good. How far is it to the next station on foot, and is there a bus in the evening?",
        "It is a walk of twelve minutes; the last bus leaves at a quarter past ten.",
    ),
    (
        "Understood. Do we have to pay the city tax in cash when we arrive, or is it in the price?",
        "It is in the price, you will find it as its own line on the invoice.",
    ),
    (
        "Thanks. My parents do not climb stairs well; is there a bedroom on the ground floor?",
        "There is one beside the bathroom, with a bed that is 50 cm high.",
    ),
    (
        "All right. We would like to go hiking; are there maps in the house, or do we buy one?",
        "There are three on the shelf in the hall, please put them back.",
    ),
];

/// Returns a conversation of an account. `index` starts at 0.
pub(super) fn conversation(account: &Account, index: u64) -> Value {
    let mut draw = Draw::new("conversation", account.id, index);
    let stay = Stay::new(account, draw.between(0, account.reservations - 1));
    let (subject, question, answer) = draw.one_of(&TOPICS);
    let created = later(stay.check_in, -signed(draw.between(4, 30)));
    let (asked, answered) = (draw.between(25_000, 50_000), draw.between(50_001, 80_000));
    let greeting = format!("Hello {}, ", stay.property.host);
    let mut messages = vec![
        json!({"from": "guest", "sentAt": timestamp(created, asked), "text": format!("{greeting}{question}")}),
        json!({"from": "host", "sentAt": timestamp(created, answered), "text": answer}),
    ];
    let (question, answer) = Draw::new("conversation follow-up", account.id, index).one_of(&FOLLOW_UPS);
    let mut last = timestamp(later(created, 1), answered);
    messages.push(json!({"from": "guest", "sentAt": timestamp(later(created, 1), asked), "text": question}));
    messages.push(json!({"from": "host", "sentAt": last, "text": answer}));
    if draw.chance(60) {
        last = timestamp(later(created, 2), asked);
        messages.push(
            json!({"from": "guest", "sentAt": last, "text": "Thank you, that is all we need to know."}),
        );
    }
    json!({
        "id": format!("CV{}{:04}", account.short, index + 1),
        "subject": format!("{subject}, {}", stay.property.name),
        "reservationId": stay.id,
        "listingId": stay.property.id,
        "guestName": stay.guest.name,
        "guestEmail": stay.guest.email,
        "channel": draw.one_of(&["airbnb", "booking.com", "email", "direct"]),
        "status": draw.one_of(&["open", "answered", "answered", "closed"]),
        "unreadCount": draw.between(0, 2),
        "messageCount": messages.len(),
        "messages": messages,
        "lastMessageAt": last,
        "createdAt": timestamp(created, asked),
    })
}
