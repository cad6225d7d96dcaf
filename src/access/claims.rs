//! What a token says, and whether that admits anybody: the same for a JWT and for the answer of an introspection.
//!
//! No clock and no network is known here: the time comes in as a value.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::{Number, Value};

use super::caller::{digest, hex};
use super::distinct::Distinct;
use super::{Denial, Subject, TokenFault};

/// How far the clock of an authorization server may be off.
const LEEWAY: SignedDuration = SignedDuration::from_secs(60);

/// The longest `sub`, in bytes, as OpenID Connect has it.
const SUBJECT_BYTES_MOST: usize = 255;

/// The kinds of tokens (`pdpp_token_kind`) that are accepted.
const CLIENT_KINDS: [&str; 2] = ["client", "mcp_package"];

/// What a token says that matters here.
#[derive(Debug, PartialEq)]
pub(super) struct Claims {
    issuer: Option<String>,
    subject: Option<String>,
    client: Option<String>,
    audience: Vec<String>,
    expires_at: Option<Timestamp>,
    /// `nbf` and `iat`: neither may be to come.
    since: Vec<Timestamp>,
    scopes: BTreeSet<String>,
    kinds: Vec<Value>,
    grant: String,
    /// What makes it another thing than an access token that whoever has it may show.
    unfit: Option<TokenFault>,
}

/// What they have to say.
#[derive(Debug)]
pub(super) struct Expected<'a> {
    /// What `iss` has to be.
    pub(super) issuer: Issuer<'a>,
    /// Audiences, of which one has to be in `aud`.
    pub(super) resources: &'a [String],
    /// Scopes, of which all have to be there.
    pub(super) scopes: &'a [String],
}

/// What `iss` has to be.
#[derive(Debug, Clone, Copy)]
pub(super) enum Issuer<'a> {
    /// This one, and the token has to have an end: nobody is asked whether it is still good.
    Signed(&'a str),
    /// This one when the answer says one at all, and it is known; else the issuer is who answered.
    Answered { known: Option<&'a str>, by: &'a str },
}

#[derive(Deserialize)]
struct Raw {
    iss: Option<String>,
    sub: Option<String>,
    aud: Option<Words>,
    exp: Option<Number>,
    nbf: Option<Number>,
    iat: Option<Number>,
    scope: Option<Words>,
    scp: Option<Words>,
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

/// Claims that are others in each token of one grant. All else may say what a token is good for: two tokens that differ in it
/// are two grants.
const OF_ONE_TOKEN: [&str; 12] = [
    "active",
    "jti",
    "expires_in",
    "auth_time",
    "sid",
    "session_state",
    // Of Entra ID, Cognito and ForgeRock.
    "uti",
    "rh",
    "aio",
    "origin_jti",
    "event_id",
    "auditTrackingId",
];

/// Claims that only tokens of identity have.
const OF_IDENTITY: [&str; 3] = ["nonce", "at_hash", "c_hash"];

#[derive(Deserialize)]
#[serde(untagged)]
enum Words {
    One(String),
    Several(Vec<String>),
}

impl Claims {
    /// Reads them from JSON. `None` when it is none, or a claim is of the wrong type or there twice.
    pub(super) fn read(json: &[u8]) -> Option<Self> {
        serde_json::from_slice::<Distinct>(json).ok()?;
        let raw: Raw = serde_json::from_slice(json).ok()?;
        let scopes: BTreeSet<String> = [&raw.scope, &raw.scp]
            .into_iter()
            .flatten()
            .flat_map(Words::all)
            .flat_map(str::split_ascii_whitespace)
            .map(str::to_owned)
            .collect();
        let kinds = [raw.pdpp_token_kind, raw.token_kind].into_iter().filter(|kind| !kind.is_null());
        let scope = scopes.iter().map(String::as_str).collect::<Vec<_>>().join(" ");
        let audience: BTreeSet<&str> = raw.aud.iter().flat_map(Words::all).collect();
        let audience = audience.into_iter().collect::<Vec<_>>().join(" ");
        let unfit = unfit(&raw.rest);
        let rest = raw.rest.into_iter().filter(|(name, _)| !OF_ONE_TOKEN.contains(&name.as_str()));
        let rest = in_order(Value::Object(rest.collect())).to_string();
        let [grant_id, pdpp_grant_id, package_id, details] =
            [raw.grant_id, raw.pdpp_grant_id, raw.grant_package_id, raw.authorization_details]
                .map(|value| (!value.is_null()).then(|| in_order(value).to_string()));
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
            audience: raw.aud.iter().flat_map(Words::all).map(str::to_owned).collect(),
            expires_at: match raw.exp {
                Some(date) => Some(moment(&date)?),
                None => None,
            },
            since: [raw.nbf, raw.iat].iter().flatten().map(moment).collect::<Option<_>>()?,
            scopes,
            kinds: kinds.collect(),
            grant: hex(&grant),
            unfit,
        })
    }

    /// Until when they are good.
    pub(super) fn expires_at(&self) -> Option<Timestamp> {
        self.expires_at
    }

    /// Whom they admit.
    pub(super) fn check(&self, expected: &Expected<'_>, now: Timestamp) -> Result<Subject, Denial> {
        self.unfit.map_or(Ok(()), Err)?;
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
        let is_name = |subject: &&String| {
            (1..=SUBJECT_BYTES_MOST).contains(&subject.len()) && !subject.chars().any(char::is_control)
        };
        let subject = self.subject.as_ref().filter(is_name).ok_or(TokenFault::Subject)?;
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

    /// A token without a kind is one of a client: only PDPP has others.
    fn check_kind(&self) -> Result<(), Denial> {
        let said: Vec<&str> = self.kinds.iter().map(|kind| kind.as_str().unwrap_or_default()).collect();
        if said.iter().all(|kind| CLIENT_KINDS.contains(kind)) {
            return Ok(());
        }
        let is_owner = said.iter().any(|kind| kind.eq_ignore_ascii_case("owner"));
        Err(Denial::UseClientToken { is_owner })
    }
}

impl Words {
    fn all(&self) -> impl Iterator<Item = &str> {
        match self {
            Self::One(word) => std::slice::from_ref(word),
            Self::Several(words) => words,
        }
        .iter()
        .map(String::as_str)
    }
}

/// Seconds since 1970, of which there may be a part. What is beyond all times is the last one, or the first.
fn moment(seconds: &Number) -> Option<Timestamp> {
    let since = match seconds.as_i64() {
        Some(seconds) => SignedDuration::from_secs(seconds),
        None => SignedDuration::try_from_secs_f64(seconds.as_f64()?).ok()?,
    };
    let beyond = if since.is_negative() { Timestamp::MIN } else { Timestamp::MAX };
    Some(Timestamp::UNIX_EPOCH.checked_add(since).unwrap_or(beyond))
}

fn unfit(rest: &BTreeMap<String, Value>) -> Option<TokenFault> {
    let is_refresh = rest.get("token_type").and_then(Value::as_str) == Some("refresh_token");
    let has = |claim: &str| rest.get(claim).is_some_and(|value| !value.is_null());
    if is_refresh || OF_IDENTITY.iter().any(|claim| has(claim)) {
        return Some(TokenFault::Type);
    }
    has("cnf").then_some(TokenFault::Bound)
}

fn without_slash(url: &str) -> &str {
    url.strip_suffix('/').unwrap_or(url)
}

/// A value with the keys of its objects and the words of its lists in order, so that values that say the same are written alike:
/// servers list roles as they find them.
fn in_order(value: Value) -> Value {
    match value {
        Value::Array(mut items) if items.iter().all(Value::is_string) => {
            items.sort_by(|one, other| one.as_str().cmp(&other.as_str()));
            Value::Array(items)
        }
        Value::Array(items) => items.into_iter().map(in_order).collect(),
        Value::Object(fields) => {
            let mut fields: Vec<(String, Value)> =
                fields.into_iter().map(|(key, value)| (key, in_order(value))).collect();
            fields.sort_by(|one, other| one.0.cmp(&other.0));
            Value::Object(fields.into_iter().collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}
