//! Several sources as one.

mod faults;
mod shared_connections;
mod turns;
mod walk;
