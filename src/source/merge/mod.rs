//! Several ordered lists as one, without loss and without repetition.
//!
//! Used twice: for the connections of one record server, and for the sources of a federation. Nothing here
//! reads; [`Lanes`] says what has to be read next and takes what was read.

mod lane;
mod lanes;
mod place;
mod saved;
mod seen;
mod trail;

#[cfg(test)]
mod tests;

pub(super) use lane::{LanePage, Row};
pub(super) use lanes::{Hungry, Lanes, left_out};
pub(super) use place::{Place, sort_value};
pub(super) use saved::Saved;
pub(super) use seen::{Key, Seen, digest};
pub(super) use trail::Trail;
