//! The files that a synchronization reads.

use std::collections::{BTreeSet, HashMap};

use fetchwell_source::contract::{ItemId, ItemState, KnownItem};

use super::scan::{Scan, ScannedFile};
use super::stamp::fingerprint;

/// The difference between an origin and the items that a store knows.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Positions of the files to read, in the order of the scan.
    pub(super) files: BTreeSet<usize>,
    /// Known items among them.
    pub(super) known: BTreeSet<ItemId>,
    /// New states of items with unchanged content.
    pub(super) touched: Vec<(ItemId, ItemState)>,
    /// Items without their file, with their paths.
    pub(super) missing: Vec<(ItemId, String)>,
}

impl Plan {
    /// Compares an origin with the items that a store knows. Reads files with changed times, but not their content.
    pub(super) fn new(scan: &Scan, items: &HashMap<String, KnownItem>) -> Self {
        let mut plan = Self::default();
        let mut seen = BTreeSet::new();
        for (at, file) in scan.files.iter().enumerate() {
            match items.get(&file.path) {
                None => drop(plan.files.insert(at)),
                Some(item) => {
                    seen.insert(item.id);
                    plan.compare(at, file, item);
                }
            }
        }
        let missing =
            items.iter().filter(|(path, item)| !seen.contains(&item.id) && !scan.is_unreadable(path));
        plan.missing = missing.map(|(path, item)| (item.id, path.clone())).collect();
        plan.missing.sort();
        plan
    }

    fn compare(&mut self, at: usize, file: &ScannedFile, item: &KnownItem) {
        let is_same_stamp = item.state.stamp.as_deref() == Some(&file.stamp.text);
        if is_same_stamp && !item.state.is_recent {
            if item.is_gone {
                self.touched.push((item.id, item.state.clone()));
            }
            return;
        }
        // A file that could not be read is read again when anything about it changes.
        let is_complete = item.state.stamp.is_some() && (item.state.problem.is_none() || is_same_stamp);
        let is_equal = is_complete
            && item.state.fingerprint.is_some()
            && fingerprint(&file.file).is_ok_and(|now| now == item.state.fingerprint);
        if is_equal {
            let stamp = Some(file.stamp.text.clone());
            let state = ItemState { stamp, is_recent: file.stamp.is_recent, ..item.state.clone() };
            self.touched.push((item.id, state));
        } else {
            self.files.insert(at);
            self.known.insert(item.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::kind::ImportKind;
    use super::super::store_files::StoreFiles;
    use super::*;

    #[test]
    fn a_new_file_is_read() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.md"), "x").unwrap();
        let kind: ImportKind = "files".parse().unwrap();
        let plan =
            Plan::new(&Scan::read(folder.path(), kind, &StoreFiles::default()).unwrap(), &HashMap::new());
        assert_eq!((plan.files.len(), plan.known.len(), plan.missing.len()), (1, 0, 0));
    }
}
