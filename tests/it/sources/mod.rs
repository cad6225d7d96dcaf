//! Record servers, and the behaviour that every source must have.

mod any_words;
mod citations;
pub(crate) mod conformance;
mod connection_ids;
mod dotted_keys;
mod hostaway;
mod outgoing_credentials;
mod parallel_reads;
mod record_server;
mod remote_aggregates;
mod remote_reads;
mod self_contained_ids;
mod transport;
mod words_of_lists;
