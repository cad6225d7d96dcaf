//! The command line with which a client starts a server.

use serde_json::{Map, Value, json};

/// Command line with which a client starts a server.
pub(crate) struct Launch {
    pub(crate) program: String,
    /// The arguments of `serve` without a transport, `serve` included.
    pub(crate) arguments: Vec<String>,
    /// Environment variables that sources take their credentials from. Programs that a desktop application starts have no
    /// environment of a shell.
    pub(crate) variables: Vec<String>,
}

impl Launch {
    /// Returns the arguments of a server over standard input and output.
    pub(crate) fn stdio_arguments(&self) -> Vec<String> {
        self.arguments.iter().cloned().chain(["--stdio".to_owned()]).collect()
    }

    /// Returns the values of the variables, as a client expects them.
    pub(super) fn environment(&self, value: impl Fn(&str) -> String) -> Map<String, Value> {
        self.variables.iter().map(|name| (name.clone(), Value::from(value(name)))).collect()
    }

    /// Returns the entry with the keys `command`, `args` and `env`, which most clients share.
    pub(super) fn entry(&self, value: impl Fn(&str) -> String) -> Value {
        let mut entry = json!({ "command": self.program, "args": self.stdio_arguments() });
        if !self.variables.is_empty()
            && let Some(fields) = entry.as_object_mut()
        {
            fields.insert("env".to_owned(), self.environment(value).into());
        }
        entry
    }
}
