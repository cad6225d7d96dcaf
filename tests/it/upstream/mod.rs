//! MCP servers as sources.
//!
//! * `own_binary`: this program as the server, over stdio and HTTP; servers that do not answer
//! * `callers`: commands beside sources that each caller signs in to
//! * `scripted`: servers that answer by a script
//! * `servers`: the servers of other vendors, and the awkward servers, as the tests describe them
//! * `awkward`: answers of all shapes, and servers that misbehave
//! * `unordered`: servers that return what has a word, in the order of their files

#[cfg(unix)]
mod awkward;
mod callers;
mod own_binary;
mod scripted;
#[cfg(unix)]
mod servers;
mod unordered;
