//! The tools: arguments, answers, budgets, handles and cursors.

mod allowed_streams;
mod arguments;
mod budgets;
mod changed_sources;
mod cursors;
mod fat_booking;
mod group_pairs;
mod handles;
mod hard_cap;
mod hidden_streams;
mod no_results;
mod own_records;
mod read_surface;
mod schemas;
mod unknown_places;
