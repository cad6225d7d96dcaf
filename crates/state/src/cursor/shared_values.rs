//! Encrypted values that servers share, such as sessions. Redis gets a digest of their names, which may be secrets, and
//! ciphertexts that open only under their name. The names of grouped values are no secrets, and Redis gets them as they
//! are, with a mark of the group before the ciphertext.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use fetchwell_core::hex::hexadecimal;
use sha2::{Digest, Sha256};

use crate::cursor::Cursors;
use crate::redis::{IfExists, MarkedValues, NewValue, OwnerLimits, RedisError, RedisState};

/// Context of the encryption, beside the kind and the digest of the name.
const CONTEXT: &str = "shared value";

/// Context of the encryption of grouped values, beside their kind, name, group and owner.
const GROUPED_CONTEXT: &str = "grouped value";

/// The values that servers share.
#[derive(Clone, Copy)]
pub struct SharedValues<'a> {
    cursors: &'a Cursors,
    redis: &'a RedisState,
}

impl fmt::Debug for SharedValues<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SharedValues").field(self.redis).finish()
    }
}

/// A value to store.
#[derive(Debug, Clone, Copy)]
pub struct SharedValue<'a> {
    /// Kind of value.
    pub kind: &'static str,
    /// Name of the value, which may be a secret.
    pub name: &'a str,
    /// Owner of the value. All values of an owner share a quota.
    pub owner: &'a str,
    /// Text of the value.
    pub text: &'a str,
    /// Time after which it is deleted.
    pub lifetime: Duration,
    /// Quota of the owner.
    pub limits: OwnerLimits,
    /// Treatment of a value that has the name already.
    pub if_exists: IfExists,
}

/// Address of a value that is removed together with others of its group.
#[derive(Debug, Clone, Copy)]
pub struct GroupedName<'a> {
    /// Kind of value.
    pub kind: &'static str,
    /// Name of the value. Redis shows it.
    pub name: &'a str,
    /// Mark of the group. All marks of a kind have the same length. Redis shows it.
    pub group: &'a str,
    /// Owner of the value. The value opens for this owner alone.
    pub owner: &'a str,
}

impl<'a> GroupedName<'a> {
    fn context(self) -> [&'a str; 5] {
        [GROUPED_CONTEXT, self.kind, self.name, self.group, self.owner]
    }
}

impl Cursors {
    /// Returns the values that servers share, or `None` if this server shares no state.
    #[must_use]
    pub fn shared_values(&self) -> Option<SharedValues<'_>> {
        self.redis().map(|redis| SharedValues { cursors: self, redis })
    }
}

impl SharedValues<'_> {
    /// Stores a value. Returns false if another one has the name and is kept.
    ///
    /// # Errors
    ///
    /// Redis cannot be used, or has no memory left.
    pub async fn put(&self, value: SharedValue<'_>) -> Result<bool, RedisError> {
        let name = digest(value.kind, value.name);
        self.write(SharedValue { name: &name, ..value }, &[CONTEXT, value.kind, &name], "").await
    }

    /// Returns the value of a name. A value that was encrypted with other keys is no value.
    ///
    /// # Errors
    ///
    /// Redis cannot be used.
    pub async fn get(&self, kind: &'static str, name: &str) -> Result<Option<String>, RedisError> {
        let name = digest(kind, name);
        let stored = self.redis.get(kind, &name).await?;
        Ok(self.open(kind, &name, stored.value).await)
    }

    /// Deletes the value of a name and returns it. Of several servers that do so at once, one gets it.
    ///
    /// # Errors
    ///
    /// Redis cannot be used.
    pub async fn take(
        &self,
        kind: &'static str,
        name: &str,
        owner: &str,
    ) -> Result<Option<String>, RedisError> {
        let name = digest(kind, name);
        let taken = self.redis.take(kind, &name, owner).await?;
        Ok(self.open(kind, &name, taken).await)
    }

    /// Stores a value of a group in place of an earlier one.
    ///
    /// # Errors
    ///
    /// Redis cannot be used, or has no memory left.
    pub async fn put_grouped(
        &self,
        at: GroupedName<'_>,
        text: &str,
        lifetime: Duration,
        limits: OwnerLimits,
    ) -> Result<(), RedisError> {
        let GroupedName { kind, name, group, owner } = at;
        let if_exists = IfExists::Replace;
        let value = SharedValue { kind, name, owner, text, lifetime, limits, if_exists };
        self.write(value, &at.context(), group).await.map(drop)
    }

    /// Returns a value of a group. A value that was encrypted with other keys, or for another owner, is no value.
    ///
    /// # Errors
    ///
    /// Redis cannot be used.
    pub async fn get_grouped(&self, at: GroupedName<'_>) -> Result<Option<String>, RedisError> {
        let stored = self.redis.get(at.kind, at.name).await?.value;
        let Some(sealed) = stored.as_deref().and_then(|value| value.strip_prefix(at.group)) else {
            return Ok(None);
        };
        Ok(self.cursors.open_lasting_text(&at.context(), sealed).await.ok())
    }

    /// Deletes the values of some groups, those of all owners, and returns their names.
    ///
    /// # Errors
    ///
    /// Redis cannot be used.
    pub async fn remove_groups(&self, groups: MarkedValues<'_>) -> Result<BTreeSet<String>, RedisError> {
        self.redis.remove(groups).await
    }

    /// Encrypts a text for a context, and stores it behind a mark. Returns false if another value has the name and is kept.
    async fn write(&self, value: SharedValue<'_>, context: &[&str], mark: &str) -> Result<bool, RedisError> {
        let SharedValue { kind, name, owner, text, lifetime, limits, if_exists } = value;
        let sealed = self.cursors.seal_lasting_text(context, text).await;
        let value = &format!("{mark}{sealed}");
        let stored =
            self.redis.put(NewValue { kind, name, owner, value, lifetime, limits, if_exists }).await?;
        Ok(stored.is_some())
    }

    async fn open(&self, kind: &str, name: &str, sealed: Option<String>) -> Option<String> {
        self.cursors.open_lasting_text(&[CONTEXT, kind, name], &sealed?).await.ok()
    }
}

fn digest(kind: &str, name: &str) -> String {
    hexadecimal(&Sha256::new().chain_update(kind).chain_update([0]).chain_update(name).finalize())
}
