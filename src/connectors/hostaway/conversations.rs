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
    let mut last = timestamp(created, answered);
    if draw.chance(60) {
        last = timestamp(later(created, 1), asked);
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
