//! A credential in a file, read again when the file changes.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use jiff::Timestamp;
use parking_lot::Mutex;

use super::CredentialFault;
use super::token::Credential;
use crate::ProviderUrl;

/// Maximum size of the file in bytes. Tokens have at most a few thousand.
const MAX_FILE: u64 = 64 * 1024;

/// File with a credential, and the content that was read last.
#[derive(Debug)]
pub(super) struct KeptFile {
    path: PathBuf,
    shape: Shape,
    known: Mutex<Option<CachedCredential>>,
}

/// Format of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Shape {
    /// The format that `pdpp connect` writes for this provider.
    PdppCache(ProviderUrl),
    /// A bare token, or JSON with one.
    Token,
}

#[derive(Debug, Clone)]
struct CachedCredential {
    modified: SystemTime,
    bytes: u64,
    credential: Credential,
}

impl KeptFile {
    pub(super) fn new(path: PathBuf, shape: Shape) -> Self {
        Self { path, shape, known: Mutex::new(None) }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the file again next time, even if it did not change.
    pub(super) fn forget(&self) {
        *self.known.lock() = None;
    }

    /// Returns the credential in the file.
    pub(super) fn read(&self) -> Result<Credential, CredentialFault> {
        let found = fs::metadata(&self.path).map_err(|_missing| CredentialFault::Missing)?;
        // Reading a pipe would block until another process writes to it.
        if !found.is_file() {
            return Err(CredentialFault::failed("it is not a file"));
        }
        let modified = found.modified().map_err(|error| CredentialFault::failed(error.to_string()))?;
        let mut known = self.known.lock();
        if let Some(known) = &*known
            && known.modified == modified
            && known.bytes == found.len()
        {
            return Ok(known.credential.clone());
        }
        let text = self.text()?;
        let since = Timestamp::try_from(modified).unwrap_or(Timestamp::UNIX_EPOCH);
        let credential = match &self.shape {
            Shape::PdppCache(provider) => Credential::of_pdpp_cache(&text, since, provider),
            Shape::Token => Credential::of_text(&text, since),
        }?;
        *known = Some(CachedCredential { modified, bytes: found.len(), credential: credential.clone() });
        Ok(credential)
    }

    fn text(&self) -> Result<String, CredentialFault> {
        let file = File::open(&self.path).map_err(|error| CredentialFault::failed(error.to_string()))?;
        let mut text = String::new();
        let read = file.take(MAX_FILE + 1).read_to_string(&mut text);
        let read = read.map_err(|error| CredentialFault::malformed(error.to_string()))?;
        if read as u64 > MAX_FILE {
            return Err(CredentialFault::malformed(format!("it is larger than {MAX_FILE} bytes")));
        }
        Ok(text)
    }

    /// Returns true if users other than the owner can read the file.
    #[cfg(unix)]
    pub(super) fn is_exposed(&self) -> bool {
        use std::os::unix::fs::PermissionsExt;
        fs::metadata(&self.path).is_ok_and(|file| file.permissions().mode() & 0o077 != 0)
    }

    /// Returns false: only Unix reports the permissions of a file in a simple way.
    #[cfg(not(unix))]
    pub(super) fn is_exposed(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use secrecy::ExposeSecret;

    use super::super::{CredentialError, Credentials};
    use super::*;

    fn now() -> Timestamp {
        "2026-11-20T12:00:00Z".parse().unwrap()
    }

    /// Checks the file that `pdpp connect` writes.
    fn check_cache(text: Option<&str>) -> Result<Option<Timestamp>, CredentialError> {
        let folder = tempfile::tempdir().unwrap();
        let provider = "https://records.example.com".parse().unwrap();
        if let Some(text) = text {
            let clients = folder.path().join("clients");
            fs::create_dir_all(&clients).unwrap();
            fs::write(clients.join("records.example.com.json"), text).unwrap();
        }
        Credentials::new(&provider, folder.path()).check_kept(now())
    }

    #[test]
    fn a_client_credential_is_taken() {
        for (expires, until) in [
            ("", None),
            (r#","expires_at":"2026-11-20T12:00:01Z""#, Some("2026-11-20T12:00:01Z")),
            (r#","expires_at":1895000000"#, Some("2030-01-18T20:53:20Z")),
            (r#","expires_at":null"#, None),
        ] {
            let text = format!(
                r#"{{"provider_url":"https://records.example.com","credential":{{"access_token":"tok","token_kind":"client"{expires}}}}}"#
            );
            assert_eq!(check_cache(Some(&text)), Ok(until.map(|until| until.parse().unwrap())));
        }
    }

    #[test]
    fn refusals_have_their_exit_codes_and_never_the_token() {
        let cases = [
            (None, 78, "not connected"),
            (
                Some(r#"{"credential":{"access_token":"sekret","expires_at":"2026-11-20T12:00:00Z"}}"#),
                78,
                "expired",
            ),
            (Some(r#"{"credential":{"access_token":"sekret","expires_at":1700000000000}}"#), 78, "expired"),
            (Some(r#"{"credential":{"access_token":"sekret","role":"OWNER"}}"#), 77, "owner"),
            (Some(r#"{"kind":"owner","credential":{"access_token":"sekret"}}"#), 77, "owner"),
            (Some(r#"{"credential":{"pdpp_token_kind":"Owner","access_token":"sekret"}}"#), 77, "owner"),
            (Some(r#"{"credential":{"access_token":"sekret","expires_at":"soon"}}"#), 78, "malformed"),
            (Some(r#"{"credential":{"access_token":"sek\nret"}}"#), 78, "malformed"),
            (Some(r#"{"access_token":"sekret"}"#), 78, "malformed"),
            (Some("not json sekret"), 78, "malformed"),
        ];
        for (text, code, word) in cases {
            let refused = check_cache(text).unwrap_err();
            let shown = format!("{refused} {refused:?}");
            assert_eq!(refused.exit_code(), code, "{shown}");
            assert!(shown.contains(word) && !shown.contains("sek"), "{shown}");
            assert_eq!(refused.remedy(), "run `pdpp connect https://records.example.com`");
        }
    }

    #[test]
    fn a_credential_goes_to_the_origin_that_it_was_given_for() {
        for (provider, file, kept_for, is_taken) in [
            ("https://a.example", "a.example", r#""https://a.example""#, true),
            ("https://a.example", "a.example", r#""https://A.example:443/""#, true),
            ("https://a.example:443/base", "a.example", r#""a.example""#, true),
            ("https://a.example", "a.example", "null", true),
            ("http://127.0.0.1:80", "127.0.0.1", r#""http://127.0.0.1""#, true),
            ("http://127.0.0.1:7663", "127.0.0.1_7663", "null", true),
            ("http://a.example", "a.example", r#""http://a.example:80""#, true),
            ("http://a.example", "a.example", r#""https://a.example""#, false),
            ("http://a.example", "a.example", "null", false),
            ("https://a.example", "a.example", r#""http://a.example""#, false),
            ("http://127.0.0.1:7663", "127.0.0.1_7663", r#""https://127.0.0.1:7663""#, false),
            ("https://a.example:8443", "a.example_8443", r#""https://a.example""#, false),
            ("https://a_8443", "a_8443", r#""https://a:8443""#, false),
            ("https://a.example", "a.example", r#""https://b.example""#, false),
            ("https://a.example", "a.example", r#""https://""#, false),
            ("https://a.example", "a.example", "7", false),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let clients = folder.path().join("clients");
            fs::create_dir_all(&clients).unwrap();
            let text = format!(r#"{{"provider_url":{kept_for},"credential":{{"access_token":"sekret"}}}}"#);
            fs::write(clients.join(format!("{file}.json")), text).unwrap();
            let provider = ProviderUrl::parse_insecure(provider).unwrap();
            let checked = Credentials::new(&provider, folder.path()).check_kept(now());
            assert_eq!(checked.is_ok(), is_taken, "{provider} {kept_for}: {checked:?}");
            if let Err(refused) = checked {
                assert_eq!(refused.exit_code(), 78);
                assert_eq!(refused.remedy(), format!("run `pdpp connect {provider}`"));
                assert!(!format!("{refused} {refused:?}").contains("sekret"), "{refused}");
            }
        }
    }

    #[test]
    fn a_new_credential_is_taken_up_without_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        fs::write(&path, "old\n").unwrap();
        let kept = KeptFile::new(path.clone(), Shape::Token);
        let token = || kept.read().unwrap().token.expose_secret().to_owned();
        assert_eq!(token(), "old");
        fs::write(&path, "new\n").unwrap();
        let later = fs::metadata(&path).unwrap().modified().unwrap() + Duration::from_secs(2);
        File::options().append(true).open(&path).unwrap().set_modified(later).unwrap();
        assert_eq!(token(), "new");
    }

    #[test]
    fn a_life_in_seconds_starts_when_the_file_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        fs::write(&path, r#"{"access_token":"tok","expires_in":60}"#).unwrap();
        let written = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000);
        File::options().append(true).open(&path).unwrap().set_modified(written).unwrap();
        let credential = KeptFile::new(path, Shape::Token).read().unwrap();
        assert_eq!(credential.expires_at, Some(Timestamp::from_second(1_060).unwrap()));
    }

    #[test]
    fn what_is_no_file_of_a_few_bytes_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let check = |path: PathBuf, part: &str| {
            let fault = format!("{:?}", KeptFile::new(path, Shape::Token).read().unwrap_err());
            assert!(fault.contains(part), "{fault}");
        };
        check(folder.path().join("none"), "Missing");
        check(folder.path().to_owned(), "not a file");
        let large = folder.path().join("large");
        fs::write(&large, "x".repeat(70_000)).unwrap();
        check(large, "larger than 65536 bytes");
        let bytes = folder.path().join("bytes");
        fs::write(&bytes, [0xff, 0xfe]).unwrap();
        check(bytes, "UTF-8");
    }
}
