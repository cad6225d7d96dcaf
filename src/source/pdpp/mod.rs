//! Remote record servers.
