//! Reservations of the sample.
//!
//! * `reservations`: the records
//! * `stay`: dates, guests and price of a stay
//! * `known_booking`, `fat_booking`: the two reservations that tests and documentation use
//! * `house_texts`: the long texts of the known booking

pub(super) mod fat_booking;
mod house_texts;
pub(super) mod known_booking;
pub(super) mod reservations;
pub(super) mod stay;
