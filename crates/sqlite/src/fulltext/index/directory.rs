//! Implementation of tantivy's `Directory` on an index folder.
//!
//! Only files with names that an index has are opened, created or deleted; lists are checksummed and written
//! atomically.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use fetchwell_state::{LockedFile, create_private_file, private_options};
use parking_lot::Mutex;
use tantivy::Directory;
use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    AntiCallToken, DirectoryLock, FileHandle, Lock, TerminatingWrite, WatchCallback, WatchHandle, WritePtr,
};

use super::checksum::{seal, unseal};
use super::file::{IndexFile, open_regular};
use super::folder::{is_known_name, sync_folder, write_atomically};

/// Files of one index folder. A file used by several readers is open once.
#[derive(Debug, Clone)]
pub(super) struct FileDirectory {
    folder: PathBuf,
    open: Arc<Mutex<HashMap<String, Weak<IndexFile>>>>,
}

impl FileDirectory {
    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), open: Arc::default() }
    }

    /// Opens a file, or returns the open file of that name.
    pub(super) fn file(&self, path: &Path) -> Result<Arc<IndexFile>, OpenReadError> {
        let failed = |error: io::Error| {
            if error.kind() == io::ErrorKind::NotFound {
                OpenReadError::FileDoesNotExist(path.to_owned())
            } else {
                OpenReadError::wrap_io_error(error, path.to_owned())
            }
        };
        let name = file_name(path).map_err(failed)?;
        let mut open = self.open.lock();
        if let Some(file) = open.get(name).and_then(Weak::upgrade) {
            return Ok(file);
        }
        let file = Arc::new(IndexFile::open(&self.folder.join(name), name).map_err(failed)?);
        open.retain(|_, file| file.strong_count() > 0);
        open.insert(name.to_owned(), Arc::downgrade(&file));
        Ok(file)
    }

    /// Opens a lock file. Refuses a symbolic link, since opening one would create its target.
    fn lock_file(&self, lock: &Lock) -> io::Result<File> {
        let path = self.folder.join(file_name(&lock.filepath)?);
        if path.is_symlink() {
            return Err(io::Error::other("it is a symbolic link"));
        }
        private_options().create(true).write(true).truncate(false).open(path)
    }
}

/// Returns a name that an index file can have, so that no path leads out of the folder.
fn file_name(path: &Path) -> io::Result<&str> {
    path.to_str().filter(|name| is_known_name(name)).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidData, format!("{} is no name of an index file", path.display()))
    })
}

impl Directory for FileDirectory {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        Ok(self.file(path)?)
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        let remove = || fs::remove_file(self.folder.join(file_name(path)?));
        remove().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => DeleteError::FileDoesNotExist(path.to_owned()),
            _ => DeleteError::IoError { io_error: Arc::new(error), filepath: path.to_owned() },
        })
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        let exists = || self.folder.join(file_name(path)?).try_exists();
        exists().map_err(|error| OpenReadError::wrap_io_error(error, path.to_owned()))
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        let create = || create_private_file(&self.folder.join(file_name(path)?));
        match create() {
            Ok(file) => Ok(io::BufWriter::new(Box::new(SyncedFile(file)))),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(OpenWriteError::FileAlreadyExists(path.to_owned()))
            }
            Err(error) => Err(OpenWriteError::wrap_io_error(error, path.to_owned())),
        }
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => OpenReadError::FileDoesNotExist(path.to_owned()),
            _ => OpenReadError::wrap_io_error(error, path.to_owned()),
        };
        let name = file_name(path).map_err(failed)?;
        let (mut file, _) = open_regular(&self.folder.join(name)).map_err(failed)?;
        let mut sealed = Vec::new();
        file.read_to_end(&mut sealed).map_err(failed)?;
        let problem =
            || io::Error::new(io::ErrorKind::InvalidData, format!("the checksum of {name} does not match"));
        unseal(&sealed).map(<[u8]>::to_vec).ok_or_else(problem).map_err(failed)
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        write_atomically(&self.folder, file_name(path)?, &seal(data))
    }

    fn sync_directory(&self) -> io::Result<()> {
        sync_folder(&self.folder)
    }

    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        let locked = |file: LockedFile| DirectoryLock::from(Box::new(file));
        match self.lock_file(lock) {
            Ok(file) if lock.is_blocking => {
                LockedFile::lock(file).map(locked).map_err(LockError::wrap_io_error)
            }
            Ok(file) => LockedFile::try_lock(file).map(locked).map_err(|_busy| LockError::LockBusy),
            // Readers take this lock so that no file is deleted while they open it. In a folder that this user cannot
            // write to, they open the files without it; a file deleted meanwhile is an error, after which they open
            // the files again.
            Err(_unwritable) if lock.is_blocking => Ok(DirectoryLock::from(Box::new(()))),
            Err(error) => Err(LockError::wrap_io_error(error)),
        }
    }

    /// Returns a handle that never calls back: readers are reloaded explicitly.
    fn watch(&self, _callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        Ok(WatchHandle::empty())
    }
}

/// File that is synced to disk when tantivy closes it.
#[derive(Debug)]
struct SyncedFile(File);

impl Write for SyncedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TerminatingWrite for SyncedFile {
    fn terminate_ref(&mut self, _: AntiCallToken) -> io::Result<()> {
        self.0.sync_data()
    }
}
