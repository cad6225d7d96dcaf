//! Values of fetchwell, and what all crates share. No clock, no network and no source is known here.
//!
//! * `handle`: the names of records, `record`: records as values
//! * `fit`: budgets and truncation
//! * `memory`, `lru`: bounds of memory
//! * `terminal`: what the commands print
//! * `hex`, `saturate`: small conversions
//!
//! Uses `o200k`.

pub mod fit;
pub mod handle;
pub mod hex;
pub mod lru;
pub mod memory;
pub mod record;
pub mod saturate;
pub mod terminal;
