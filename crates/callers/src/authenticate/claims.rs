//! The claims of a token and the checks that decide whether it is accepted. JWTs and introspection responses are
//! treated alike.
//!
//! The module has no clock and no network: the time is a parameter.

use std::collections::{BTreeMap, BTreeSet};

use fetchwell_core::hex::hexadecimal;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::{Number, Value};

use super::caller::digest;
use super::distinct::Distinct;
use super::{Denial, Subject, TokenFault};

/// Tolerance for the clock of an authorization server.
const LEEWAY: SignedDuration = SignedDuration::from_secs(60);

/// Maximum length of `sub` in bytes, as in OpenID Connect.
const MAX_SUBJECT_BYTES: usize = 255;

/// Accepted kinds of tokens (`pdpp_token_kind`).
const CLIENT_KINDS: [&str; 2] = ["client", "mcp_package"];

/// The claims of a token that are checked or identify its grant.
#[derive(Debug, PartialEq)]
pub(super) struct Claims {
    issuer: Option<String>,
    subject: Option<String>,
    client: Option<String>,
    audience: Vec<String>,
    expires_at: Option<Timestamp>,
    /// Timestamps of `nbf` and `iat`, neither of which may be in the future.
    since: Vec<Timestamp>,
    scopes: BTreeSet<String>,
    kinds: Vec<Value>,
    grant: String,
    /// Set if this is not a plain bearer access token (for example an ID token, or a token bound to a key).
    rejection: Option<TokenFault>,
}

/// The values that claims are checked against.
#[derive(Debug)]
pub(super) struct ClaimRequirements<'a> {
    /// Rule for `iss`.
    pub(super) issuer: Issuer<'a>,
    /// Accepted audiences, one of which must be in `aud`.
    pub(super) resources: &'a [String],
    /// Required scopes, all of which must be present.
    pub(super) scopes: &'a [String],
}

/// The rule for `iss`.
#[derive(Debug, Clone, Copy)]
pub(super) enum Issuer<'a> {
    /// A signed token: `iss` must be this issuer and `exp` must be present, because no server confirms that the token
    /// is still valid.
    Signed(&'a str),
    /// An introspected token: `iss` may be missing, and the issuer is then the URL that answered. If present it must
    /// be `known`, if that is set.
    Answered { known: Option<&'a str>, by: &'a str },
}

#[derive(Deserialize)]
struct RawClaims {
    iss: Option<String>,
    sub: Option<String>,
    aud: Option<OneOrMany>,
    exp: Option<Number>,
    nbf: Option<Number>,
    iat: Option<Number>,
    scope: Option<OneOrMany>,
    scp: Option<OneOrMany>,
    client_id: Option<String>,
    azp: Option<String>,
    #[serde(default)]
    pdpp_token_kind: Value,
    #[serde(default)]
    token_kind: Value,
    #[serde(default)]
    grant_id: Value,
    #[serde(default)]
    pdpp_grant_id: Value,
    #[serde(default)]
    grant_package_id: Value,
    #[serde(default)]
    authorization_details: Value,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

/// Claims that differ in each token of one grant. Any other claim may limit access, so two tokens that differ in it
/// belong to two grants.
const PER_TOKEN_CLAIMS: [&str; 12] = [
    "active",
    "jti",
    "expires_in",
    "auth_time",
    "sid",
    "session_state",
    // Claims of Entra ID, Cognito and ForgeRock.
    "uti",
    "rh",
    "aio",
    "origin_jti",
    "event_id",
    "auditTrackingId",
];

/// Claims that only ID tokens have.
const ID_TOKEN_CLAIMS: [&str; 3] = ["nonce", "at_hash", "c_hash"];

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Several(Vec<String>),
}

impl Claims {
    /// Parses claims from JSON. Returns `None` if it is invalid, or if a claim has a wrong type or is duplicated.
    pub(super) fn read(json: &[u8]) -> Option<Self> {
        serde_json::from_slice::<Distinct>(json).ok()?;
        let raw: RawClaims = serde_json::from_slice(json).ok()?;
        let scopes: BTreeSet<String> = [&raw.scope, &raw.scp]
            .into_iter()
            .flatten()
            .flat_map(OneOrMany::all)
            .flat_map(str::split_ascii_whitespace)
            .map(str::to_owned)
            .collect();
        let kinds = [raw.pdpp_token_kind, raw.token_kind].into_iter().filter(|kind| !kind.is_null());
        let scope = scopes.iter().map(String::as_str).collect::<Vec<_>>().join(" ");
        let audience: BTreeSet<&str> = raw.aud.iter().flat_map(OneOrMany::all).collect();
        let audience = audience.into_iter().collect::<Vec<_>>().join(" ");
        let rejection = rejection(&raw.rest);
        let rest = raw.rest.into_iter().filter(|(name, _)| !PER_TOKEN_CLAIMS.contains(&name.as_str()));
        let rest = canonical(Value::Object(rest.collect())).to_string();
        let [grant_id, pdpp_grant_id, package_id, details] =
            [raw.grant_id, raw.pdpp_grant_id, raw.grant_package_id, raw.authorization_details]
                .map(|value| (!value.is_null()).then(|| canonical(value).to_string()));
        let grant = digest(&[
            grant_id.as_deref(),
            pdpp_grant_id.as_deref(),
            package_id.as_deref(),
            Some(&scope),
            details.as_deref(),
            Some(&audience),
            Some(&rest),
        ]);
        Some(Self {
            issuer: raw.iss,
            subject: raw.sub,
            client: raw.client_id.or(raw.azp),
            audience: raw.aud.iter().flat_map(OneOrMany::all).map(str::to_owned).collect(),
            expires_at: match raw.exp {
                Some(date) => Some(timestamp(&date)?),
                None => None,
            },
            since: [raw.nbf, raw.iat].iter().flatten().map(timestamp).collect::<Option<_>>()?,
            scopes,
            kinds: kinds.collect(),
            grant: hexadecimal(&grant),
            rejection,
        })
    }

    /// Returns the expiry of the token.
    pub(super) fn expires_at(&self) -> Option<Timestamp> {
        self.expires_at
    }

    /// Checks the claims and returns the subject.
    pub(super) fn check(&self, expected: &ClaimRequirements<'_>, now: Timestamp) -> Result<Subject, Denial> {
        self.rejection.map_or(Ok(()), Err)?;
        self.check_time(now)?;
        let issuer = self.check_issuer(expected.issuer)?;
        let audience = |resource: &String| {
            self.audience.iter().any(|audience| without_slash(audience) == without_slash(resource))
        };
        if !expected.resources.iter().any(audience) {
            return Err(TokenFault::Audience.into());
        }
        self.check_kind()?;
        if !expected.scopes.iter().all(|scope| self.scopes.contains(scope)) {
            return Err(Denial::AskForScopes { needed: expected.scopes.to_vec() });
        }
        let is_valid = |subject: &&String| {
            (1..=MAX_SUBJECT_BYTES).contains(&subject.len()) && !subject.chars().any(char::is_control)
        };
        let subject = self.subject.as_ref().filter(is_valid).ok_or(TokenFault::Subject)?;
        Ok(Subject {
            issuer: issuer.to_owned(),
            subject: subject.clone(),
            client: self.client.clone(),
            grant: self.grant.clone(),
        })
    }

    fn check_time(&self, now: Timestamp) -> Result<(), TokenFault> {
        if self.expires_at.is_some_and(|end| now.duration_since(end) >= LEEWAY) {
            return Err(TokenFault::Expired);
        }
        if self.since.iter().any(|start| start.duration_since(now) > LEEWAY) {
            return Err(TokenFault::NotYet);
        }
        Ok(())
    }

    fn check_issuer<'a>(&'a self, expected: Issuer<'a>) -> Result<&'a str, TokenFault> {
        match (expected, self.issuer.as_deref()) {
            (Issuer::Signed(_), _) if self.expires_at.is_none() => Err(TokenFault::Endless),
            (Issuer::Signed(known), Some(said)) if said == known => Ok(known),
            (Issuer::Answered { known: None, .. }, Some(said)) => Ok(said),
            (Issuer::Answered { known: Some(known), .. }, Some(said)) if said == known => Ok(known),
            (Issuer::Answered { by, .. }, None) => Ok(by),
            (Issuer::Signed(_) | Issuer::Answered { .. }, _) => Err(TokenFault::Issuer),
        }
    }

    /// Checks the token kind. A token without one is accepted: only PDPP servers issue other kinds.
    fn check_kind(&self) -> Result<(), Denial> {
        let said: Vec<&str> = self.kinds.iter().map(|kind| kind.as_str().unwrap_or_default()).collect();
        if said.iter().all(|kind| CLIENT_KINDS.contains(kind)) {
            return Ok(());
        }
        let is_owner = said.iter().any(|kind| kind.eq_ignore_ascii_case("owner"));
        Err(Denial::UseClientToken { is_owner })
    }
}

impl OneOrMany {
    fn all(&self) -> impl Iterator<Item = &str> {
        match self {
            Self::One(word) => std::slice::from_ref(word),
            Self::Several(words) => words,
        }
        .iter()
        .map(String::as_str)
    }
}

/// Converts seconds since 1970, with an optional fraction, to a timestamp. Values out of range become the first or
/// the last timestamp.
fn timestamp(seconds: &Number) -> Option<Timestamp> {
    let since = match seconds.as_i64() {
        Some(seconds) => SignedDuration::from_secs(seconds),
        None => SignedDuration::try_from_secs_f64(seconds.as_f64()?).ok()?,
    };
    let beyond = if since.is_negative() { Timestamp::MIN } else { Timestamp::MAX };
    Some(Timestamp::UNIX_EPOCH.checked_add(since).unwrap_or(beyond))
}

/// Returns a fault if a token is an ID token, a refresh token, or bound to a key.
fn rejection(rest: &BTreeMap<String, Value>) -> Option<TokenFault> {
    let is_refresh = rest.get("token_type").and_then(Value::as_str) == Some("refresh_token");
    let has = |claim: &str| rest.get(claim).is_some_and(|value| !value.is_null());
    if is_refresh || ID_TOKEN_CLAIMS.iter().any(|claim| has(claim)) {
        return Some(TokenFault::Type);
    }
    has("cnf").then_some(TokenFault::Bound)
}

fn without_slash(url: &str) -> &str {
    url.strip_suffix('/').unwrap_or(url)
}

/// Sorts the keys of objects and the strings of lists, so that equal values have equal JSON: servers list roles in
/// any order.
fn canonical(value: Value) -> Value {
    match value {
        Value::Array(mut items) if items.iter().all(Value::is_string) => {
            items.sort_by(|one, other| one.as_str().cmp(&other.as_str()));
            Value::Array(items)
        }
        Value::Array(items) => items.into_iter().map(canonical).collect(),
        Value::Object(fields) => {
            let mut fields: Vec<(String, Value)> =
                fields.into_iter().map(|(key, value)| (key, canonical(value))).collect();
            fields.sort_by(|one, other| one.0.cmp(&other.0));
            Value::Object(fields.into_iter().collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}
