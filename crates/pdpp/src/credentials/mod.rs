//! The credential for a record server: from the file of `pdpp connect`, a variable, a file, a command, or the caller.
//!
//! It is read at each use and not only at start, because a token may be valid for ten minutes, and a new one is used
//! without a restart. Owner credentials are refused: what this program reads is given to a model, which must see no
//! more than a client was granted.
//!
//! * `kept_file`, `command`: places of a credential
//! * `token`: formats of a credential
//! * `fault`: errors

mod command;
mod fault;
mod kept_file;
mod token;

use std::path::{Path, PathBuf};

use fetchwell_callers::{CallContext, GrantToken};
use fetchwell_source::SourceError;
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};

pub use command::CommandLine;
pub use fault::{CredentialError, CredentialFault, CredentialPlace};

use self::command::TokenCommand;
use self::kept_file::{KeptFile, Shape};
use self::token::Credential;
use super::ProviderUrl;

/// Place of the credential for one provider, with the last one that was read there.
#[derive(Debug)]
pub struct Credentials {
    provider: String,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    PdppCache(KeptFile),
    Variable { name: String, value: Option<SecretString> },
    File(KeptFile),
    Command(TokenCommand),
    Caller(GrantToken),
}

impl Credentials {
    /// Uses the credential that `pdpp connect` writes below `cache_root` (`.pdpp` by default). Reads nothing yet.
    #[must_use]
    pub fn new(provider: &ProviderUrl, cache_root: &Path) -> Self {
        let path = cache_root.join("clients").join(provider.cache_file_name());
        Self::from_kind(provider, Kind::PdppCache(KeptFile::new(path, Shape::PdppCache(provider.clone()))))
    }

    /// Uses the credential in an environment variable, as it was when the program started.
    #[must_use]
    pub fn in_variable(provider: &ProviderUrl, name: String, value: Option<SecretString>) -> Self {
        Self::from_kind(provider, Kind::Variable { name, value })
    }

    /// Uses the credential in a file of the user's own. Reads nothing yet.
    #[must_use]
    pub fn in_file(provider: &ProviderUrl, path: PathBuf) -> Self {
        Self::from_kind(provider, Kind::File(KeptFile::new(path, Shape::Token)))
    }

    /// Uses the credential that a command prints. Runs nothing yet.
    #[must_use]
    pub fn printed_by(provider: &ProviderUrl, command: CommandLine) -> Self {
        Self::from_kind(provider, Kind::Command(TokenCommand::new(command)))
    }

    /// Uses the token of the caller.
    #[must_use]
    pub fn of_caller(provider: &ProviderUrl, token: GrantToken) -> Self {
        Self::from_kind(provider, Kind::Caller(token))
    }

    fn from_kind(provider: &ProviderUrl, kind: Kind) -> Self {
        Self { provider: provider.to_string(), kind }
    }

    /// Checks the stored credential and returns its expiry. Runs no command.
    ///
    /// # Errors
    ///
    /// There is none, or it is expired, malformed, or an owner's.
    pub fn check_kept(&self, now: Timestamp) -> Result<Option<Timestamp>, CredentialError> {
        match self.kept(&CallContext::default(), now) {
            None => Ok(None),
            Some(kept) => Ok(self.good_at(now, kept)?.expires_at),
        }
    }

    /// Checks the credential and returns its expiry. Runs a command once.
    ///
    /// # Errors
    ///
    /// There is none, or it is expired, malformed, or an owner's, or the command fails.
    pub async fn check(&self, now: Timestamp) -> Result<Option<Timestamp>, CredentialError> {
        self.current(&CallContext::default(), now, None).await.map(|credential| credential.expires_at)
    }

    /// Returns the file of the credential if users other than the owner can read it.
    #[must_use]
    pub fn exposed_file(&self) -> Option<&Path> {
        match &self.kind {
            Kind::PdppCache(file) | Kind::File(file) => file.is_exposed().then(|| file.path()),
            Kind::Variable { .. } | Kind::Command(_) | Kind::Caller(_) => None,
        }
    }

    /// Returns the token if it is valid at `now`.
    ///
    /// # Errors
    ///
    /// There is none, or it is expired, malformed, or an owner's, or the command fails.
    pub async fn token(
        &self,
        context: &CallContext,
        now: Timestamp,
    ) -> Result<SecretString, CredentialError> {
        self.current(context, now, None).await.map(|credential| credential.token)
    }

    /// Reads the token again and returns it if it is valid at `now` and differs from `refused`.
    pub async fn renew(
        &self,
        context: &CallContext,
        refused: &SecretString,
        now: Timestamp,
    ) -> Option<SecretString> {
        let token = self.current(context, now, Some(refused)).await.ok()?.token;
        (token.expose_secret() != refused.expose_secret()).then_some(token)
    }

    /// Returns the error for a credential that the server does not accept.
    #[must_use]
    pub fn unaccepted(&self) -> SourceError {
        SourceError::Reauthorize {
            problem: format!("{} no longer accepts the credential", self.provider),
            remedy: self.place().remedy(&self.provider),
        }
    }

    async fn current(
        &self,
        context: &CallContext,
        now: Timestamp,
        refused: Option<&SecretString>,
    ) -> Result<Credential, CredentialError> {
        if let (Kind::PdppCache(file) | Kind::File(file), Some(_)) = (&self.kind, refused) {
            // A file that was replaced within one tick of the clock looks unchanged.
            file.forget();
        }
        let found = match (&self.kind, self.kept(context, now)) {
            (Kind::Command(command), _) => command.current(now, refused).await,
            (_, kept) => kept.unwrap_or(Err(CredentialFault::Missing)),
        };
        self.good_at(now, found)
    }

    /// Reads the stored credential, or returns `None` if a command has to be run for it.
    fn kept(&self, context: &CallContext, now: Timestamp) -> Option<Result<Credential, CredentialFault>> {
        match &self.kind {
            Kind::PdppCache(file) | Kind::File(file) => Some(file.read()),
            Kind::Variable { value: None, .. } => Some(Err(CredentialFault::Missing)),
            Kind::Variable { value: Some(value), .. } => {
                Some(Credential::of_text(value.expose_secret(), now))
            }
            Kind::Command(_) => None,
            // The expiry was checked when the caller was authenticated.
            Kind::Caller(token) => Some(match context.token().cloned().or_else(|| token.latest()) {
                Some(token) => Ok(Credential { token, expires_at: None }),
                None => Err(CredentialFault::Missing),
            }),
        }
    }

    fn good_at(
        &self,
        now: Timestamp,
        found: Result<Credential, CredentialFault>,
    ) -> Result<Credential, CredentialError> {
        let found = found.and_then(|credential| match credential.expires_at {
            Some(at) if at <= now => Err(CredentialFault::Expired { at }),
            _ => Ok(credential),
        });
        found.map_err(|fault| CredentialError { provider: self.provider.clone(), place: self.place(), fault })
    }

    fn place(&self) -> CredentialPlace {
        match &self.kind {
            Kind::PdppCache(file) => CredentialPlace::PdppCache(file.path().to_owned()),
            Kind::Variable { name, .. } => CredentialPlace::Variable(name.clone()),
            Kind::File(file) => CredentialPlace::File(file.path().to_owned()),
            Kind::Command(_) => CredentialPlace::Command,
            Kind::Caller(_) => CredentialPlace::Caller,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fetchwell_callers::{AuthenticatedCaller, Caller};

    fn provider() -> ProviderUrl {
        "https://records.example.com".parse().unwrap()
    }

    fn now() -> Timestamp {
        "2026-11-20T12:00:00Z".parse().unwrap()
    }

    fn variable(value: Option<&str>) -> Credentials {
        Credentials::in_variable(&provider(), "NOTES_TOKEN".to_owned(), value.map(SecretString::from))
    }

    #[tokio::test]
    async fn a_variable_holds_a_token_or_json() {
        let token = async |value| variable(Some(value)).token(&CallContext::default(), now()).await.unwrap();
        assert_eq!(token("tok_1").await.expose_secret(), "tok_1");
        assert_eq!(token(r#"{"access_token":"tok_2","expires_in":60}"#).await.expose_secret(), "tok_2");
    }

    #[tokio::test]
    async fn call_is_made_with_the_token_it_came_with() {
        let latest = GrantToken::new("tok_latest".into(), None);
        let credentials = Credentials::of_caller(&provider(), latest);
        let caller = Caller::Token { name: "ann".to_owned() };
        let caller =
            AuthenticatedCaller { caller, token: "tok_of_call".into(), expires_at: None, is_admin: false };
        let sent =
            async |context| credentials.token(&context, now()).await.unwrap().expose_secret().to_owned();
        assert_eq!(sent(CallContext::new(caller)).await, "tok_of_call");
        assert_eq!(sent(CallContext::default()).await, "tok_latest");
    }

    #[test]
    fn what_is_wrong_names_its_place_and_its_remedy_and_never_the_token() {
        let file = |path: &str| Credentials::in_file(&provider(), path.into());
        for (credentials, code, problem, remedy) in [
            (variable(None), 78, "variable `NOTES_TOKEN`", "set the environment variable `NOTES_TOKEN`"),
            (variable(Some("")), 78, "is empty", "`NOTES_TOKEN`"),
            (variable(Some("sek ret")), 78, "is malformed", "`NOTES_TOKEN`"),
            (
                variable(Some(r#"{"access_token":"sekret","token_kind":"owner"}"#)),
                77,
                "owner credential",
                "`NOTES_TOKEN`",
            ),
            (
                variable(Some(r#"{"access_token":"sekret","expires_at":"2020-01-01T00:00:00Z"}"#)),
                78,
                "expired at 2020",
                "`NOTES_TOKEN`",
            ),
            (file("/no/such/token"), 78, "/no/such/token", "put a client token into /no/such/token"),
        ] {
            let refused = credentials.check_kept(now()).unwrap_err();
            let shown = format!("{refused} {refused:?} {credentials:?}");
            assert_eq!(refused.exit_code(), code, "{shown}");
            assert!(refused.to_string().contains(problem), "{shown}");
            assert!(refused.remedy().contains(remedy), "{}", refused.remedy());
            assert!(!shown.contains("sek"), "{shown}");
        }
    }
}
