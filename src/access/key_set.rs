//! The keys of an issuer as they were seen last, and when they are fetched again.
//!
//! They are fetched when the first token comes, not at the start; again when they are 15 minutes old; and when a token
//! names a key that is not there, but for that once in 30 seconds, whatever is sent. One fetch answers all who wait,
//! and goes on when the one who caused it goes away: else whoever hangs up could keep the others waiting. While the
//! issuer cannot be reached its keys stay good for a day.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use jsonwebtoken::DecodingKey;
use tokio::sync::OwnedMutexGuard;
use tokio::time::timeout;

use super::authority::{AuthorityClient, AuthorityFault};
use super::keys::{Found, Keys, Wanted};
use super::{Denial, IssuerSettings, TokenFault, discovery};

/// How old keys may be before they are fetched again.
const FRESH: SignedDuration = SignedDuration::from_mins(15);

/// How old they may be when they cannot be.
const GOOD: SignedDuration = SignedDuration::from_hours(24);

/// The pause between two fetches for unknown keys, and after a failed fetch while there are keys.
const PAUSE: SignedDuration = SignedDuration::from_secs(30);

/// The pause after a failed fetch while there are none, and nobody can be admitted.
const PAUSE_WITHOUT_KEYS: SignedDuration = SignedDuration::from_secs(5);

/// The keys of one issuer.
#[derive(Debug)]
pub(super) struct KeySet {
    settings: IssuerSettings,
    client: AuthorityClient,
    deadline: Duration,
    /// What is known, for as long as a look takes.
    state: Mutex<State>,
    /// Whoever fetches has it.
    turn: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Debug, Default)]
struct State {
    keys: Option<(Keys, Timestamp)>,
    tried_at: Option<Timestamp>,
    has_failed: bool,
    /// When they were fetched last for a key that was not there.
    unknown_at: Option<Timestamp>,
}

/// What a look at the state comes to.
#[derive(Debug)]
enum Look {
    Found(Arc<DecodingKey>),
    /// There is one, and it is time to fetch them again.
    Old(Arc<DecodingKey>),
    Fetch(Due),
    Refused(Denial),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    /// There are none, or they are old.
    Age,
    /// A key is not there.
    UnknownKey,
}

impl KeySet {
    pub(super) fn new(settings: IssuerSettings, deadline: Duration) -> Self {
        let client = AuthorityClient::default();
        Self { settings, client, deadline, state: Mutex::default(), turn: Arc::default() }
    }

    /// Whether its keys are those of an issuer.
    pub(super) fn is_of(&self, settings: &IssuerSettings) -> bool {
        self.settings.issuer == settings.issuer && self.settings.jwks_url == settings.jwks_url
    }

    /// The key that a token needs.
    pub(super) async fn key(
        self: &Arc<Self>,
        wanted: &Wanted,
        now: Timestamp,
    ) -> Result<Arc<DecodingKey>, Denial> {
        match self.state().look(wanted, now) {
            Look::Found(key) => return Ok(key),
            Look::Refused(denial) => return Err(denial),
            Look::Old(_) | Look::Fetch(_) => {}
        }
        self.fetched(wanted, now).await;
        match self.state().look(wanted, now) {
            Look::Found(key) | Look::Old(key) => Ok(key),
            Look::Refused(denial) => Err(denial),
            // They were fetched for another reason just now.
            Look::Fetch(_) => Err(TokenFault::UnknownKey.into()),
        }
    }

    /// Comes back when the keys are as new as they have to be, or cannot be had.
    async fn fetched(self: &Arc<Self>, wanted: &Wanted, now: Timestamp) {
        let turn = Arc::clone(&self.turn);
        // Whoever has a key already does not wait for the one who fetches.
        let has_key = matches!(self.state().look(wanted, now), Look::Old(_));
        let turn = if has_key { turn.try_lock_owned().ok() } else { Some(turn.lock_owned().await) };
        let Some(turn) = turn else { return };
        let due = match self.state().look(wanted, now) {
            Look::Old(_) => Due::Age,
            Look::Fetch(due) => due,
            // Somebody else has fetched them meanwhile.
            Look::Found(_) | Look::Refused(_) => return,
        };
        self.state().start(due, now);
        let fetch = tokio::spawn(Arc::clone(self).fetch(turn, now));
        // It fails only when the program is ending, and then nothing is kept.
        let _ = fetch.await;
        let mut state = self.state();
        if matches!(state.look(wanted, now), Look::Fetch(Due::UnknownKey)) {
            // These keys are new: there is no sense in fetching them again for this one.
            state.unknown_at = Some(now);
        }
    }

    async fn fetch(self: Arc<Self>, turn: OwnedMutexGuard<()>, now: Timestamp) {
        let fetched = timeout(self.deadline, self.read()).await.unwrap_or(Err(AuthorityFault::Slow));
        if let Err(problem) = &fetched {
            tracing::warn!(issuer = %self.settings.issuer, %problem, "the keys of the issuer cannot be fetched");
        }
        self.state().keep(fetched.ok(), now);
        drop(turn);
    }

    async fn read(&self) -> Result<Keys, AuthorityFault> {
        let discovered;
        let url = match &self.settings.jwks_url {
            Some(url) => url,
            None => {
                discovered = discovery::keys_of(&self.client, &self.settings.issuer).await?;
                &discovered
            }
        };
        let body = self.client.get(url.url()).await?;
        Keys::read(&body).map_err(AuthorityFault::Unusable)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn look(&self, wanted: &Wanted, now: Timestamp) -> Look {
        let good = self.keys.as_ref().filter(|(_, fetched_at)| is_within(GOOD, Some(*fetched_at), now));
        let Some((keys, fetched_at)) = good else {
            return match self.rest_of(PAUSE_WITHOUT_KEYS, now) {
                Some(rest) => Look::Refused(Denial::TryLater { after: rest }),
                None => Look::Fetch(Due::Age),
            };
        };
        let is_fresh = is_within(FRESH, Some(*fetched_at), now) || self.rest_of(PAUSE, now).is_some();
        match keys.find(wanted) {
            Found::Key(key) if is_fresh => Look::Found(key),
            Found::Key(key) => Look::Old(key),
            Found::OtherType | Found::Unknown if !is_fresh => Look::Fetch(Due::Age),
            Found::OtherType => Look::Refused(TokenFault::OtherKeyType.into()),
            Found::Unknown if !is_within(PAUSE, self.unknown_at, now) => Look::Fetch(Due::UnknownKey),
            Found::Unknown => Look::Refused(match self.rest_of(PAUSE, now) {
                Some(after) => Denial::TryLater { after },
                None => TokenFault::UnknownKey.into(),
            }),
        }
    }

    fn start(&mut self, due: Due, now: Timestamp) {
        self.tried_at = Some(now);
        if due == Due::UnknownKey {
            self.unknown_at = Some(now);
        }
    }

    /// Old keys stay when there are no others.
    fn keep(&mut self, keys: Option<Keys>, now: Timestamp) {
        self.has_failed = keys.is_none();
        if let Some(keys) = keys {
            self.keys = Some((keys, now));
        }
    }

    /// What is left of a pause after a failed fetch, in whole seconds.
    fn rest_of(&self, pause: SignedDuration, now: Timestamp) -> Option<Duration> {
        let tried_at =
            self.tried_at.filter(|tried_at| self.has_failed && is_within(pause, Some(*tried_at), now))?;
        let rest = (pause - now.duration_since(tried_at)).clamp(SignedDuration::from_secs(1), pause);
        u64::try_from(rest.as_secs()).ok().map(Duration::from_secs)
    }
}

/// Whether something is not longer ago than `span`. Of a time further ahead than that a clock must have been set back
/// since.
fn is_within(span: SignedDuration, at: Option<Timestamp>, now: Timestamp) -> bool {
    at.is_some_and(|at| now.duration_since(at).abs() < span)
}
