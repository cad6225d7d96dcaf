//! The HTTP server: connections, hosts, proxies, statistics.

mod audit_log;
mod limits;
mod names;
mod operations;
mod operator_page;
mod ops_listener;
mod proxied_requests;
mod raw_http_2;
mod search_page;
mod spans;
mod telemetry;
mod tls;
mod unread;
mod web_pages;
