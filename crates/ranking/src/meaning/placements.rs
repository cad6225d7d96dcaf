//! Places of hits by meaning in the list of a search.
//!
//! A first page decides which records go where. The decision is part of the position, so later pages need no model and no
//! vectors, and two walks over the list give the same hits, whatever happens to the vectors meanwhile.

use std::collections::HashSet;

/// Maximum number of placed records. A position of so many takes about 2.5 KB.
pub const MAX_PLACED: usize = 100;

/// A record at a place of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placement {
    /// Index in the list.
    pub(crate) index: u32,
    /// Row id of the record.
    pub row: i64,
    /// Number of near-copies that are folded into the record and follow later.
    pub copies: u32,
    /// Passage of the record's text that is nearest to the query, in bytes.
    pub(crate) first_byte: u32,
    pub(crate) end_byte: u32,
}

/// Placed records in the order of their places.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Placements(Vec<Placement>);

impl Placements {
    /// Creates placements in the order of the list.
    pub(crate) fn new(mut placed: Vec<Placement>) -> Self {
        placed.truncate(MAX_PLACED);
        Self(placed)
    }

    /// Returns the places in the order of the list.
    pub fn iter(&self) -> impl Iterator<Item = &Placement> {
        self.0.iter()
    }

    /// Returns true if no record has a place.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of places.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the same order for a list that also has rows which do not pass a filter. The places were those of a list of the
    /// rows that pass. `others` are the rows of the list without placements.
    #[must_use]
    pub fn with_filtered_out(self, others: impl Iterator<Item = i64>, passes: impl Fn(i64) -> bool) -> Self {
        let placed: HashSet<i64> = self.0.iter().map(|placed| placed.row).collect();
        let mut others = others.filter(|row| !placed.contains(row));
        let (mut passing, mut all) = (0, 0);
        let moved = |placed: Placement| {
            while passing < placed.index {
                let Some(other) = others.next() else { break };
                passing += u32::from(passes(other));
                all += 1;
            }
            // Behind the last other row, places are only an order.
            let index = all.max(placed.index);
            (passing, all) = (passing + 1, all + 1);
            Placement { index, ..placed }
        };
        Self(self.0.into_iter().map(moved).collect())
    }

    /// Returns at most `limit` rows after the first `offset` of the list: placed rows at their places, and other rows, in
    /// their order, at all others. `others` returns the first rows of the list without placements. `placed_row` makes the row
    /// of a placement, and is given the one that `others` has.
    pub fn merge<Row: Copy, Error>(
        &self,
        offset: usize,
        limit: usize,
        others: impl FnOnce(usize) -> Result<Vec<Row>, Error>,
        row_of: impl Fn(&Row) -> i64,
        placed_row: impl Fn(&Placement, Option<Row>) -> Row,
    ) -> Result<Vec<Row>, Error> {
        let end = offset.saturating_add(limit);
        let rows: HashSet<i64> = self.0.iter().map(|placed| placed.row).collect();
        let others = others(end.saturating_add(self.0.len()))?;
        let known = |row: i64| others.iter().find(|other| row_of(other) == row).copied();
        let mut others_left = others.iter().filter(|other| !rows.contains(&row_of(other)));
        let mut placed_left = self.0.iter().peekable();
        let mut merged = Vec::new();
        while merged.len() < end {
            let is_due = placed_left
                .peek()
                .is_some_and(|placed| usize::try_from(placed.index).is_ok_and(|index| index <= merged.len()));
            let other = if is_due { None } else { others_left.next().copied() };
            // Behind the last other row, the remaining placed rows follow.
            let next =
                other.or_else(|| placed_left.next().map(|placed| placed_row(placed, known(placed.row))));
            match next {
                Some(next) => merged.push(next),
                None => break,
            }
        }
        Ok(merged.into_iter().skip(offset).collect())
    }

    /// Writes the placements for a position.
    pub fn write(&self) -> String {
        let one = |placed: &Placement| {
            let Placement { index, row, copies, first_byte, end_byte } = placed;
            let mut text = format!("{index:x}-{row:x}-{first_byte:x}-{end_byte:x}");
            if *copies > 0 {
                text.push_str(&format!("-{copies:x}"));
            }
            text
        };
        self.0.iter().map(one).collect::<Vec<_>>().join("_")
    }

    /// Reads placements of a position.
    pub fn parse(text: &str) -> Option<Self> {
        let pieces = text.split('_').filter(|piece| !piece.is_empty());
        let placed: Vec<Placement> = pieces.take(MAX_PLACED + 1).map(parse_one).collect::<Option<_>>()?;
        let is_ordered = placed.is_sorted_by(|one, other| one.index < other.index);
        (placed.len() <= MAX_PLACED && is_ordered).then_some(Self(placed))
    }
}

fn parse_one(text: &str) -> Option<Placement> {
    let mut pieces = text.split('-');
    let number = |piece: &str| u32::from_str_radix(piece, 16).ok();
    let index = number(pieces.next()?)?;
    let row = i64::from_str_radix(pieces.next()?, 16).ok()?;
    let first_byte = number(pieces.next()?)?;
    let end_byte = number(pieces.next()?)?;
    let copies = pieces.next().map_or(Some(0), number)?;
    pieces.next().is_none().then_some(Placement { index, row, copies, first_byte, end_byte })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;

    fn placements(places: &[(u32, i64)]) -> Placements {
        let placed = |(index, row): &(u32, i64)| Placement {
            index: *index,
            row: *row,
            copies: index % 3,
            first_byte: 0,
            end_byte: 9,
        };
        Placements::new(places.iter().map(placed).collect())
    }

    fn merged(placements: &Placements, words: &[i64], offset: usize, limit: usize) -> Vec<i64> {
        let first = |count: usize| Ok::<_, Infallible>(words.iter().take(count).copied().collect());
        placements.merge(offset, limit, first, |row| *row, |placed, _| placed.row).unwrap()
    }

    proptest! {
        #[test]
        fn rows_that_do_not_pass_change_no_order(
            places in prop::collection::btree_map(0_u32..30, 0_i64..40, 0..12),
            words in prop::collection::btree_set(0_i64..40, 0..30),
            seed in any::<u64>(),
        ) {
            let mut placed: Vec<(u32, i64)> = Vec::new();
            for (index, row) in places {
                if !placed.iter().any(|(_, known)| *known == row) {
                    placed.push((index, row));
                }
            }
            let is_placed = |row: i64| placed.iter().any(|(_, known)| *known == row);
            // A placed record passes.
            let passes = |row: i64| is_placed(row) || seed >> (row % 64) & 1 == 1;
            let words: Vec<i64> = words.into_iter().collect();
            let passing: Vec<i64> = words.iter().copied().filter(|row| passes(*row)).collect();
            let expect = merged(&placements(&placed), &passing, 0, 100);
            let moved = placements(&placed).with_filtered_out(words.iter().copied(), passes);
            let mut all = merged(&moved, &words, 0, 100);
            all.retain(|row| passes(*row));
            prop_assert_eq!(all, expect);
            prop_assert_eq!(Placements::parse(&moved.write()), Some(moved));
        }
    }

    #[test]
    fn placed_rows_stand_at_their_places_and_once() {
        let placements = placements(&[(1, 20), (2, 3), (9, 21)]);
        assert_eq!(merged(&placements, &[1, 2, 3, 4], 0, 100), [1, 20, 3, 2, 4, 21]);
        assert_eq!(merged(&Placements::default(), &[1, 2], 1, 5), [2]);
        assert_eq!(merged(&placements, &[], 0, 5), [20, 3, 21]);
    }

    #[test]
    fn damaged_placements_are_refused() {
        for text in ["x", "1-2-3", "1-2-3-4-5-6", "1-2-3-4-x", "2-1-0-0_1-1-0-0", "1-1-0-0_1-2-0-0"] {
            assert_eq!(Placements::parse(text), None, "{text}");
        }
        let many: Vec<String> = (0..=MAX_PLACED).map(|index| format!("{index:x}-1-0-0")).collect();
        assert_eq!(Placements::parse(&many.join("_")), None);
        assert_eq!(Placements::parse(""), Some(Placements::default()));
    }

    proptest! {
        #[test]
        fn pages_of_any_size_have_each_row_once(
            places in prop::collection::btree_map(0_u32..40, 0_i64..40, 0..12),
            words in 0_i64..40,
            size in 1_usize..9,
        ) {
            let mut seen = HashSet::new();
            let places: Vec<(u32, i64)> = places.into_iter().filter(|(_, row)| seen.insert(*row)).collect();
            let placements = placements(&places);
            prop_assert_eq!(Placements::parse(&placements.write()), Some(placements.clone()));
            let words: Vec<i64> = (0..words).collect();
            let whole = merged(&placements, &words, 0, 1_000);
            let mut sorted = whole.clone();
            sorted.sort_unstable();
            let expect: std::collections::BTreeSet<i64> = words.iter().copied().chain(seen).collect();
            prop_assert_eq!(sorted, expect.into_iter().collect::<Vec<_>>());
            let pages: Vec<i64> =
                (0..whole.len()).step_by(size).flat_map(|offset| merged(&placements, &words, offset, size)).collect();
            prop_assert_eq!(pages, whole);
        }
    }
}
