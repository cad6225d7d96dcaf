//! The words that texts may write for one word of a query: `set up` for `setup`, `rfc 2119` for `rfc2119`, the groups of a phone
//! number.
//!
//! A word that records have is separated before a particle and between letters and digits alone, so that other queries look up
//! no more words than they have. One that no record has is separated everywhere.

use super::adjacent::PARTICLES;

/// Lengths in bytes of a word that is separated.
const LENGTHS: std::ops::RangeInclusive<usize> = 4..=32;

/// Minimum length in bytes of a part, and of a verb before a particle.
const MIN_PART: usize = 2;
const MIN_VERB: usize = 3;

/// Particles that are the ending of many other words (`button`, `domain`), and the verbs before which they are particles.
const ENDINGS: [&str; 2] = ["in", "on"];
const VERBS: [&str; 12] =
    ["add", "built", "check", "drop", "log", "opt", "plug", "sign", "stand", "tie", "turn", "walk"];

/// Digits of a number that is written in groups.
const GROUPED_DIGITS: std::ops::RangeInclusive<usize> = 7..=15;

/// Maximum number of groups of a number, and lengths of a group. A country code may be shorter.
const MAX_GROUPS: usize = 6;
const GROUP_LENGTHS: std::ops::RangeInclusive<usize> = 2..=5;

/// Returns the ways in which a folded word may be written as two words. `is_known` is true for a word that records have.
pub(crate) fn halves(word: &str, is_known: bool) -> Vec<[&str; 2]> {
    if !LENGTHS.contains(&word.len()) || !word.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Vec::new();
    }
    let boundaries = number_boundaries(word);
    if let [boundary] = boundaries.as_slice() {
        return word.split_at_checked(*boundary).map(|(first, second)| [first, second]).into_iter().collect();
    }
    if !boundaries.is_empty() || word.bytes().all(|byte| byte.is_ascii_digit()) {
        return Vec::new();
    }
    let particle = PARTICLES.iter().filter_map(|particle| {
        let verb = word.strip_suffix(particle)?;
        let is_verb = verb.len() >= MIN_VERB && (!ENDINGS.contains(particle) || VERBS.contains(&verb));
        is_verb.then_some(verb.len())
    });
    let places: Vec<usize> =
        if is_known { particle.collect() } else { (MIN_PART..=word.len() - MIN_PART).collect() };
    places
        .into_iter()
        .filter_map(|at| word.split_at_checked(at))
        .map(|(first, second)| [first, second])
        .collect()
}

/// Returns the ways in which a number of many digits may be written in groups that are known: those with few groups first.
pub(crate) fn groups<'a, E>(
    number: &'a str,
    is_known: &impl Fn(&str) -> Result<bool, E>,
    count: usize,
) -> Result<Vec<Vec<&'a str>>, E> {
    if !is_grouped_number(number) {
        return Ok(Vec::new());
    }
    // Groupings of the first digits, by their number.
    let mut ends: Vec<Vec<Vec<&str>>> = vec![Vec::new(); number.len() + 1];
    if let Some(first) = ends.first_mut() {
        first.push(Vec::new());
    }
    for end in 1..=number.len() {
        for start in 0..end {
            let before: Vec<Vec<&str>> = ends.get(start).into_iter().flatten().cloned().collect();
            let Some(group) = number.get(start..end) else { continue };
            let is_group = GROUP_LENGTHS.contains(&group.len()) || start == 0 && group.len() == 1;
            if before.is_empty() || !is_group || !is_known(group)? {
                continue;
            }
            let longer = before.into_iter().filter(|groups| groups.len() < MAX_GROUPS).map(|mut groups| {
                groups.push(group);
                groups
            });
            if let Some(found) = ends.get_mut(end) {
                found.extend(longer);
            }
        }
    }
    let mut whole = ends.pop().unwrap_or_default();
    whole.sort_by_key(Vec::len);
    whole.truncate(count);
    Ok(whole)
}

/// Returns the groups of digits that a number may consist of; none for another word.
pub(crate) fn possible_groups(number: &str) -> Vec<&str> {
    if !is_grouped_number(number) {
        return Vec::new();
    }
    let groups = (0..number.len())
        .flat_map(|start| GROUP_LENGTHS.filter_map(move |length| number.get(start..start + length)));
    groups.chain(number.get(..1)).collect()
}

fn is_grouped_number(word: &str) -> bool {
    GROUPED_DIGITS.contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the places between letters and digits.
fn number_boundaries(word: &str) -> Vec<usize> {
    let pairs = word.bytes().zip(word.bytes().skip(1)).enumerate();
    let boundaries = pairs.filter(|(_, (one, other))| one.is_ascii_digit() != other.is_ascii_digit());
    boundaries.map(|(at, _)| at + 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_separated_before_particles_and_at_numbers() {
        for (word, expect) in [
            ("setup", &[["set", "up"]][..]),
            ("rfc2119", &[["rfc", "2119"]]),
            ("covid19", &[["covid", "19"]]),
            ("100km", &[["100", "km"]]),
            ("wifi", &[]),
            ("login", &[["log", "in"]]),
            ("version", &[]),
            ("harbour", &[]),
            ("57c6a20", &[]),
            ("5551234567", &[]),
            ("mp3", &[]),
            ("lösup", &[]),
        ] {
            assert_eq!(halves(word, true), expect, "{word}");
        }
        assert_eq!(halves("wifi", false), [["wi", "fi"]]);
        assert_eq!(halves("email", false), [["em", "ail"], ["ema", "il"]]);
        assert_eq!(halves("websocket", false).len(), 6);
    }

    #[test]
    fn numbers_are_separated_into_known_groups() {
        let known = ["555", "123", "4567", "12", "34", "567", "5", "5512"];
        let is_known = |group: &str| Ok::<_, ()>(known.contains(&group));
        let found = groups("5551234567", &is_known, 2).unwrap();
        assert_eq!(found, [vec!["555", "123", "4567"], vec!["5", "5512", "34", "567"]]);
        assert!(groups("123456", &is_known, 2).unwrap().is_empty());
        let found = groups("123456789012345", &|_: &str| Ok::<_, ()>(true), 3).unwrap();
        assert_eq!((found.len(), found.iter().map(Vec::len).max()), (3, Some(4)));
        let possible = possible_groups("5551234567");
        assert!(known.iter().all(|group| possible.contains(group)), "{possible:?}");
    }
}
