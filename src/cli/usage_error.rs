//! Errors of the command line: the possible values of arguments that are missing.
//!
//! clap lists the possible values after a wrong value only. A user who leaves an argument out needs them as well.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, Error};

/// Adds the possible values to the required arguments that an error lists as missing.
pub(super) fn with_possible_values(mut error: Error, mut program: Command, words: &[String]) -> Error {
    if error.kind() != ErrorKind::MissingRequiredArgument {
        return error;
    }
    let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else { return error };
    program.build();
    let called = called_command(&program, words);
    let described: Vec<String> = missing.iter().map(|argument| describe(called, argument)).collect();
    error.insert(ContextKind::InvalidArg, ContextValue::Strings(described));
    error
}

/// Returns the subcommand that the words of a command line lead to.
fn called_command<'c>(program: &'c Command, words: &[String]) -> &'c Command {
    words.iter().skip(1).fold(program, |command, word| command.find_subcommand(word).unwrap_or(command))
}

/// Returns an argument as the usage shows it, with its possible values.
fn describe(command: &Command, shown: &str) -> String {
    let arguments = command.get_arguments().filter(|argument| argument.to_string() == shown);
    let values = arguments.flat_map(Arg::get_possible_values).filter(|value| !value.is_hide_set());
    let names: Vec<String> = values.map(|value| value.get_name().to_owned()).collect();
    if names.is_empty() {
        shown.to_owned()
    } else {
        format!("{shown} [possible values: {}]", names.join(", "))
    }
}
