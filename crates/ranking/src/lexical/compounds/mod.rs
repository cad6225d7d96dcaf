//! Words that texts write joined (`wifi`) or separated (`wi fi`). Those with a hyphen are joined in the index, too (`words`).
//!
//! * `adjacent`: words of a query that texts may write as one, such as `set up`
//! * `separated`: the words that texts may write for one word of a query, such as `set up` for `setup`

mod adjacent;
mod separated;

pub(crate) use adjacent::{are_certain, are_joined, grouped_numbers};
pub(crate) use separated::{groups, halves, possible_groups};
