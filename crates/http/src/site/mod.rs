//! Settings of a server.
//!
//! * `configuration`: the configuration file without its secrets, for operators

mod configuration;

use fetchwell_state::cursor::LatestKeyMismatch;
use fetchwell_state::redis::RedisState;
use fetchwell_telemetry::Telemetry;
use fetchwell_tools::SharedToolbox;

pub use self::configuration::{ConfigurationView, CurrentConfiguration, ShownSetting};

use super::middleware::check_host::AllowedNames;
use super::middleware::rate_limit::RateLimiter;
use super::middleware::served::AuthMode;
use super::public_url::PublicUrl;
use super::server::forwarded::TrustedProxies;
use super::server::limits::Limits;

/// Settings of a server.
#[derive(Debug, Clone)]
pub struct Site {
    /// Authentication mode with the toolboxes.
    pub served: AuthMode,
    /// Recorder of calls.
    pub telemetry: Telemetry,
    /// Rate limiter for clients.
    pub rate_limiter: RateLimiter,
    /// Redis with the state that servers share.
    pub state: Option<RedisState>,
    /// Difference between the keys of this server and those of others with the same Redis.
    pub key_mismatch: LatestKeyMismatch,
    /// Configuration file without its secrets, for operators.
    pub configuration: CurrentConfiguration,
    /// URL at which clients reach the server.
    pub public_url: Option<PublicUrl>,
    /// Allowed `Host` names and origins.
    pub names: AllowedNames,
    /// Proxies that report client addresses in a trusted header.
    pub proxies: TrustedProxies,
    /// Proxies that may forward requests without authentication; none by default.
    pub unauthenticated_proxies: TrustedProxies,
    /// Limits of connections and timeouts.
    pub limits: Limits,
}

impl Site {
    /// Creates the settings of a server for this machine, without configuration.
    #[must_use]
    pub fn of_this_machine(toolbox: SharedToolbox, telemetry: Telemetry, rate_limiter: RateLimiter) -> Self {
        Self {
            served: AuthMode::Unauthenticated(toolbox),
            telemetry,
            rate_limiter,
            state: None,
            key_mismatch: LatestKeyMismatch::default(),
            configuration: CurrentConfiguration::default(),
            public_url: None,
            names: AllowedNames::default(),
            proxies: TrustedProxies::default(),
            unauthenticated_proxies: TrustedProxies::default(),
            limits: Limits::default(),
        }
    }
}
