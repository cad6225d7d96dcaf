//! A whole synchronization of an import.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fetchwell_source::contract::{
    ImportStatus, ItemId, KnownItem, MissingCounts, NewConnection, RememberedImport, StoreError, Tally,
};
use fetchwell_source::{ImportLock, ImportWriter, Manifest, SyncStore};
use jiff::Timestamp;

use super::super::files::{DocumentIds, DocumentReader};
use super::super::intake::{Intake, Report};
use super::super::skips::{Problem, SkipCounts};
use super::super::{ImportError, item};
use super::kind::{ImportKind, ImportOptions};
use super::plan::Plan;
use super::read::{OriginReader, ReadFiles};
use super::scan::Scan;
use super::store_files::StoreFiles;

/// Maximum number of passes over files that share keys. After that, all files are read.
const MAX_PASSES: usize = 8;

/// A synchronization of an import.
pub struct Synchronization<'a> {
    /// Store of the import.
    pub store: &'a dyn SyncStore,
    /// Import to be synchronized.
    pub import: &'a RememberedImport,
    /// True to delete what is missing, however much it is, also if the origin is missing.
    pub prune: bool,
    /// Program that reads PDF documents in a process of its own.
    pub program: Option<PathBuf>,
    /// Receiver of rejections.
    pub report: &'a mut dyn Report,
    /// Flag that stops the synchronization.
    pub stop: &'a Arc<AtomicBool>,
}

/// The result of a synchronization.
#[derive(Debug, Default)]
pub struct SyncOutcome {
    /// Records by effect.
    pub tally: Tally,
    /// Number of files that were read.
    pub read: u64,
    /// Number of files that were not read because they have not changed.
    pub unchanged: u64,
    /// Number of rejected records and files, with the files that were rejected before and have not changed since.
    pub rejected: u64,
    /// Counts of what was left out by design or could not be read. Files of other kinds are counted when they are new or
    /// changed.
    pub skips: SkipCounts,
    /// Number of attachments of messages, and of files in them, that could not be read.
    pub unread_attachments: u64,
    /// Missing items and records that were kept, if there are any.
    pub held: Option<MissingCounts>,
    /// Warning about documents that are not stored as their files have them, if there is one.
    pub warning: Option<String>,
    /// Error that prevents use of the search index, if there is one.
    pub index_problem: Option<StoreError>,
}

/// Returns the text for records of a connection that are missing at the origin and were kept, with the remedy.
#[must_use]
pub fn describe_held_records(connection: &str, records: &dyn fmt::Display) -> String {
    format!(
        "{records} records of `{connection}` are missing at the origin, so none was deleted; if that is right, run \
         `fetchwell sync {connection} --prune`"
    )
}

impl fmt::Debug for Synchronization<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Synchronization").field("import", &self.import.connection_id).finish_non_exhaustive()
    }
}

impl Synchronization<'_> {
    /// Brings the records of an import up to date with its origin, and saves the result. A result that cannot be saved is
    /// logged.
    ///
    /// # Errors
    ///
    /// The origin cannot be read, another process synchronizes the import, the store cannot be written, or the user
    /// stopped the synchronization. Batches that were written stay.
    pub fn run(self) -> Result<SyncOutcome, ImportError> {
        let (store, import) = (self.store, self.import);
        let Some(lock) = store.try_lock(import)? else {
            return Err(ImportError::Synchronizing(import.connection_id.to_string()));
        };
        let outcome = self.synchronize(&*lock);
        let now = Timestamp::now();
        let mut status = ImportStatus { last_attempt: Some(now), ..ImportStatus::default() };
        match &outcome {
            Ok(outcome) => {
                status.last_sync = Some(now);
                status.tally = outcome.tally;
                status.held = outcome.held.map_or(0, |missing| missing.records);
            }
            Err(error) => {
                status.held = import.status.held;
                status.problem = Some(error.to_string());
            }
        }
        // The outcome counts: records were written, or its error is the cause of this one.
        if let Err(error) = store.save_status(import.id, &status) {
            let connection = import.connection_id.as_str();
            tracing::warn!(connection, %error, "the result of a synchronization cannot be saved");
        }
        outcome
    }

    fn synchronize(self, lock: &dyn ImportLock) -> Result<SyncOutcome, ImportError> {
        let Self { store, import, prune, program, report, stop } = self;
        let settings = &import.settings;
        let kind: ImportKind = settings.kind.parse().map_err(|error: super::kind::UnknownKind| {
            ImportError::Unreadable { path: settings.origin.clone(), problem: error.to_string() }
        })?;
        let options: ImportOptions = ImportOptions::from_json(&settings.options);
        let store_files =
            store.path().map(|path| StoreFiles::new(path, &settings.origin)).unwrap_or_default();
        let scan = match Scan::read(&settings.origin, kind, &store_files) {
            // A user who prunes an import says that the origin is gone for good.
            Err(ImportError::Unreadable { .. }) if prune => Scan::default(),
            scan => scan?,
        };
        // Opened before the items are read, so that it notices when the store was changed since.
        let writer = lock.writer(import)?;
        let items = store.items(import.id)?;
        let plan = Plan::new(&scan, &items);
        writer.save_states(&plan.touched)?;
        let manifest = import.manifest.as_deref().filter(|_| kind == ImportKind::Records);
        let connection = NewConnection {
            connection_id: import.connection_id.clone(),
            connector_key: import.connector_key.clone(),
            display_name: None,
            manifest: None,
        };
        // Counted before the files are read. A synchronization without changes has nothing to delete.
        let has_changes = !plan.files.is_empty() || !plan.missing.is_empty() || writer.has_stale()?;
        let present =
            if has_changes { writer.present(!plan.missing.is_empty())? } else { MissingCounts::default() };
        let manifest = manifest.and_then(Manifest::from_stored);
        let mut intake = Intake::synchronize(writer, connection, manifest, &mut *report, stop);
        scan.report_into(&mut intake);
        let documents =
            if kind.is_docs() { Some(document_reader(store, import, &scan, &options)?) } else { None };
        let origin = &settings.origin;
        let reader = OriginReader { kind, options: &options, origin, program, documents, stop };
        let mut run = Run { store, import, scan: &scan, items: &items, reader, counts: ReadFiles::default() };
        let read = run.read_passes(&plan, &mut intake);
        let read =
            read.map_err(|error| if stop.load(Ordering::Relaxed) { ImportError::Stopped } else { error });
        if let Err(error) = read {
            // Records that were read are kept, and their files are read again.
            intake.flush()?;
            intake.finish()?;
            return Err(error);
        }
        let held = run.remove(&plan, present, prune, &mut intake)?;
        let unchanged = scan.files.len() as u64;
        let (unchanged, read) = (unchanged.saturating_sub(run.counts.read), run.counts.read);
        let warning = run.reader.documents.as_ref().and_then(DocumentReader::warning);
        let (mut skips, unread_attachments) = (intake.skips().clone(), intake.unread_attachments());
        let (imported, _rejected) = intake.finish()?;
        let (tally, index_problem) = (imported.tally, imported.index_problem);
        run.add_earlier_problems(&mut skips, report)?;
        Ok(SyncOutcome {
            tally,
            read,
            unchanged,
            rejected: skips.not_read(),
            skips,
            unread_attachments,
            held,
            warning,
            index_problem,
        })
    }
}

/// Returns the reader of the documents of a project.
fn document_reader(
    store: &dyn SyncStore,
    import: &RememberedImport,
    scan: &Scan,
    options: &ImportOptions,
) -> Result<DocumentReader, ImportError> {
    let connection = &import.connection_id;
    let known = store.known_documents(connection)?;
    let known = known.ok_or_else(|| StoreError::NoProject(connection.to_string()))?;
    let present: HashSet<&str> = scan.files.iter().map(|file| file.path.as_str()).collect();
    // A file that cannot be read is not missing.
    let ids = DocumentIds::new(known, |path| present.contains(path) || scan.is_unreadable(path));
    Ok(DocumentReader::new(ids, options.category_from))
}

/// A synchronization in progress.
struct Run<'a> {
    store: &'a dyn SyncStore,
    import: &'a RememberedImport,
    scan: &'a Scan,
    items: &'a HashMap<String, KnownItem>,
    reader: OriginReader<'a>,
    counts: ReadFiles,
}

impl Run<'_> {
    /// Reads the files of a plan, and those that share keys with them, until no file shares a key with one that was
    /// not read.
    fn read_passes(&mut self, plan: &Plan, intake: &mut Intake<'_>) -> Result<(), ImportError> {
        let missing: BTreeSet<ItemId> = plan.missing.iter().map(|(item, _)| *item).collect();
        let mut items: BTreeSet<ItemId> = plan.known.union(&missing).copied().collect();
        let mut files = plan.files.clone();
        for pass in 0..=MAX_PASSES {
            if pass > 0 || items.len() < self.items.len() {
                items = self.store.related(self.import.id, &items)?;
            }
            let is_last = pass == MAX_PASSES;
            // The ids of items that this synchronization created are only in the store.
            let created = if pass == 0 { HashMap::new() } else { self.store.items(self.import.id)? };
            let is_chosen = |path: &String| {
                let item = self.items.get(path).or_else(|| created.get(path));
                is_last || item.is_some_and(|item| items.contains(&item.id))
            };
            let related = self.scan.files.iter().enumerate().filter(|(_, file)| is_chosen(&file.path));
            files.extend(related.map(|(at, _)| at));
            if files.is_empty() {
                return Ok(());
            }
            let has_others = !is_last && files.len() < self.scan.files.len();
            intake.begin_pass(items.union(&missing).copied().collect(), has_others);
            let chosen = || files.iter().filter_map(|at| self.scan.files.get(*at));
            intake.progress().expect(chosen().map(|file| file.bytes).sum());
            self.reader.read(chosen(), intake, &mut self.counts)?;
            intake.flush()?;
            items = intake.writer().map(ImportWriter::take_conflicts).unwrap_or_default();
            files.clear();
            if items.is_empty() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Counts and reports the files that an earlier synchronization could not read, and that have not changed since.
    fn add_earlier_problems(
        &self,
        skips: &mut SkipCounts,
        report: &mut dyn Report,
    ) -> Result<(), ImportError> {
        for (path, stored) in self.store.unreadable(self.import.id)? {
            if !self.counts.unreadable.contains(&path) {
                let problem = Problem::from_stored(&stored);
                skips.add(problem.reason, 1);
                report.still_rejected(&path, &problem.text);
            }
        }
        Ok(())
    }

    /// Deletes what is missing at the origin. Returns what was kept because so much is missing.
    fn remove(
        &self,
        plan: &Plan,
        present: MissingCounts,
        prune: bool,
        intake: &mut Intake<'_>,
    ) -> Result<Option<MissingCounts>, ImportError> {
        let missing: HashSet<ItemId> = plan.missing.iter().map(|(item, _)| *item).collect();
        let Some(writer) = intake.writer() else { return Ok(None) };
        let fingerprints = if missing.is_empty() { HashSet::new() } else { writer.fingerprints(&missing)? };
        let is_moved = |path: &String| {
            let fingerprint = self.items.get(path).and_then(|item| item.state.fingerprint.as_ref());
            fingerprint.is_some_and(|fingerprint| fingerprints.contains(fingerprint))
        };
        let (moved, gone): (Vec<_>, Vec<_>) = plan.missing.iter().partition(|(_, path)| is_moved(path));
        let ids =
            |items: Vec<&(ItemId, String)>| items.into_iter().map(|(item, _)| *item).collect::<Vec<_>>();
        let (moved, gone) = (ids(moved), ids(gone));
        let unreadable = self.items.iter().filter(|(path, _)| self.scan.is_unreadable(path));
        let unreadable: Vec<ItemId> = unreadable.map(|(_, item)| item.id).collect();
        let missing = writer.mark_missing(&gone, &moved, &unreadable, present)?;
        // An empty folder may be that of a disk that is not mounted, and an empty file one that is being written.
        let is_empty = missing.is_all || self.scan.files.is_empty() && missing.items > 0;
        // An import that was held stays held, although new files make its share smaller.
        let is_still_held = self.import.status.held > 0 && missing.is_many();
        if !prune && (is_empty || is_still_held || missing.is_suspicious()) {
            return Ok(Some(missing));
        }
        if missing.records > 0 || !plan.missing.is_empty() {
            writer.remove_missing(&item::written(Timestamp::now()))?;
        }
        Ok(None)
    }
}
