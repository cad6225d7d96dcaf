//! Writing a configuration file atomically, and deleting one.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use fetchwell_state::create_private_directory;

use crate::config::ConfigError;

/// Replaces a configuration file atomically. Its permissions stay, a symbolic link stays a link, and a new file is
/// readable by its owner only, because a command in it may contain a secret.
///
/// # Errors
///
/// The file cannot be written and is unchanged.
pub fn save(path: &Path, text: &str) -> Result<(), ConfigError> {
    let unwritable =
        |error: io::Error| ConfigError::Unwritable { path: path.to_owned(), problem: error.to_string() };
    replace(&target(path), text).map_err(unwritable)
}

/// Deletes a configuration file. A symbolic link stays a link, as with [`save`].
///
/// # Errors
///
/// The file cannot be deleted.
pub fn delete(path: &Path) -> Result<(), ConfigError> {
    fs::remove_file(target(path))
        .map_err(|error| ConfigError::Unwritable { path: path.to_owned(), problem: error.to_string() })
}

/// Returns the target of a symbolic link, which may not exist, or the path itself.
fn target(path: &Path) -> PathBuf {
    let link = |_missing| match fs::read_link(path) {
        Ok(to) => path.parent().unwrap_or(Path::new("")).join(to),
        Err(_no_link) => path.to_owned(),
    };
    fs::canonicalize(path).unwrap_or_else(link)
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    create_private_directory(folder)?;
    let mut fresh = tempfile::NamedTempFile::new_in(folder)?;
    fresh.write_all(text.as_bytes())?;
    if let Ok(old) = fs::metadata(path) {
        fresh.as_file().set_permissions(old.permissions())?;
    }
    fresh.as_file().sync_all()?;
    fresh.persist(path)?;
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn permissions_and_links_stay() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real.toml"), folder.path().join("link.toml"));
        symlink("real.toml", &link).unwrap();
        // The target of the link does not exist yet.
        save(&link, "one").unwrap();
        let mode = || fs::metadata(&real).unwrap().permissions().mode() & 0o777;
        assert_eq!((fs::read_to_string(&real).unwrap().as_str(), mode()), ("one", 0o600));
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        save(&link, "two").unwrap();
        assert_eq!((fs::read_to_string(&real).unwrap().as_str(), mode()), ("two", 0o640));
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        delete(&link).unwrap();
        assert!(!real.exists() && fs::symlink_metadata(&link).unwrap().is_symlink());
        save(&link, "three").unwrap();
        assert_eq!(fs::read_to_string(&real).unwrap(), "three");
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(left.len(), 2, "{left:?}");
    }

    #[test]
    fn an_error_of_creating_the_folder_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let refused = save(&file.join("below.toml"), "x").unwrap_err().to_string();
        assert!(refused.contains("below.toml") && refused.contains("nothing was changed"), "{refused}");
    }
}
