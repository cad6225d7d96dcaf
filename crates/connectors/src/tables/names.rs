//! A name of its own for every column of a table.

use std::collections::{HashMap, HashSet};

use super::super::field_names::list_names;

/// The names of a table's columns.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ColumnNames {
    /// A name for each column, all different.
    pub(crate) names: Vec<String>,
    /// Names that replace repeated ones, in the order of the columns.
    pub(crate) renamed: Vec<String>,
}

impl ColumnNames {
    /// Returns a sentence about the columns with a repeated name, if there are any.
    pub(crate) fn note(&self) -> Option<String> {
        let (columns, have) = match self.renamed.len() {
            0 => return None,
            1 => ("a column", "has"),
            _ => ("columns", "have"),
        };
        Some(format!(
            "{columns} with the name of another {have} a number: {}",
            list_names(self.renamed.iter())
        ))
    }
}

/// Returns the names of columns. An empty name becomes `column_N`, a name of `reserved` becomes `column_NAME`, and a repeated
/// one gets a number: `name`, `name_2`. A name that is not repeated never changes for another one.
pub(crate) fn unique_names(given: Vec<String>, reserved: &[&str]) -> ColumnNames {
    let name_of = |(at, name): (usize, String)| match name.as_str() {
        "" => format!("column_{}", at + 1),
        name if reserved.contains(&name) => format!("column_{name}"),
        _ => name,
    };
    let wanted: Vec<String> = given.into_iter().enumerate().map(name_of).collect();
    let originals: HashSet<&String> = wanted.iter().collect();
    let (mut seen, mut numbers) = (HashSet::new(), HashMap::new());
    let mut result = ColumnNames::default();
    for name in &wanted {
        let is_first = seen.insert(name);
        let mut free = name.clone();
        while !is_first && originals.contains(&free) {
            // The numbers of a name are not tried twice, so that a table of equal names takes linear time.
            let number = numbers.entry(name).or_insert(1_usize);
            *number += 1;
            free = format!("{name}_{number}");
        }
        if !is_first {
            result.renamed.push(free.clone());
        }
        result.names.push(free);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_has_a_name_of_its_own() {
        let check = |given: &[&str], expect: &[&str], renamed: &[&str]| {
            let names = unique_names(given.iter().map(|name| (*name).to_owned()).collect(), &["path"]);
            assert_eq!(
                (names.names, names.renamed),
                (
                    expect.iter().map(|name| (*name).to_owned()).collect(),
                    renamed.iter().map(|name| (*name).to_owned()).collect(),
                )
            );
        };
        check(&["name", "date", "name"], &["name", "date", "name_2"], &["name_2"]);
        check(&["a", "a", "a_2", "a"], &["a", "a_3", "a_2", "a_4"], &["a_3", "a_4"]);
        check(&["", "path", "x", ""], &["column_1", "column_path", "x", "column_4"], &[]);
        check(&["column_2", "", "column_2_2"], &["column_2", "column_2_3", "column_2_2"], &["column_2_3"]);
        check(&["a_2", "a_2", "a", "a"], &["a_2", "a_2_2", "a", "a_3"], &["a_2_2", "a_3"]);
        assert_eq!(unique_names(vec!["a".to_owned()], &[]).note(), None);
    }

    #[test]
    fn thousands_of_equal_names_get_numbers() {
        let names = unique_names(vec!["x".to_owned(); 50_000], &[]);
        assert_eq!(names.names.last().map(String::as_str), Some("x_50000"));
        assert!(names.note().unwrap().ends_with("x_20, x_21 and 49979 more"), "{:?}", names.note());
    }
}
