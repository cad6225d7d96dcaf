//! The interface of a tool.
//!
//! A tool is a type that implements [`Tool`]: a specification that clients see, typed arguments, and a call. Its folder has
//! all of it, with the hints of its errors. The registry of a profile (`registry.rs`) names the tools that clients get.
//! **Invariant:** everything in a specification is constant; no text of a record, stream or connection is part of it.

use fetchwell_core::record::RecordData;
use tokio::time::Instant;

use super::answer::Payload;
use super::error::{SourceHints, ToolError, UNKNOWN_SOURCE_HINT};
use super::toolbox::Toolbox;

/// A tool that clients can call.
pub(crate) trait Tool {
    /// Arguments after parsing and validation.
    type Arguments: Send;

    /// Specification that clients see, and the hints of errors.
    const SPEC: ToolSpec;

    /// Parses and validates normalized arguments. A tool with pages also reads the position that a cursor names.
    ///
    /// # Errors
    ///
    /// An argument is invalid, or a cursor cannot be used.
    fn parse(
        call: &ToolCall<'_>,
        arguments: RecordData,
    ) -> impl Future<Output = Result<Self::Arguments, ToolError>> + Send;

    /// Reads the source and fits the answer into its budget.
    ///
    /// # Errors
    ///
    /// See [`ToolError`].
    fn call(
        call: ToolCall<'_>,
        arguments: Self::Arguments,
    ) -> impl Future<Output = Result<Payload, ToolError>> + Send;
}

/// One call of a tool, apart from its arguments.
#[derive(Debug)]
pub(crate) struct ToolCall<'a> {
    /// Source, settings and caches of the caller.
    pub(crate) toolbox: &'a Toolbox,
    /// Corrections of arguments, which the answer repeats as warnings.
    pub(crate) warnings: Vec<String>,
    /// Start of the call, from which its deadline counts.
    pub(crate) started: Instant,
}

/// Specification of a tool: what clients see of it, and the hints of its errors.
#[derive(Debug, Clone, Copy)]
pub struct ToolSpec {
    /// Name by which it is called.
    pub name: &'static str,
    /// Title for people.
    pub title: &'static str,
    /// Description for a model.
    pub description: &'static str,
    /// JSON Schema of the arguments.
    pub input_schema: &'static str,
    /// Other accepted names of arguments, each with the declared one.
    pub aliases: &'static [(&'static str, &'static str)],
    /// Values of arguments that are accepted beside those that the input schema lists, each with its argument.
    pub extra_choices: &'static [(&'static str, &'static str)],
    /// JSON Schema of the payload.
    pub output_schema: &'static str,
    /// Example calls for the hints of invalid arguments. The first one is the shortest that works.
    pub examples: &'static [Example],
    /// Hints for errors of the source.
    pub hints: SourceHints,
}

/// An example call that shows one argument.
#[derive(Debug, Clone, Copy)]
pub struct Example {
    /// Argument that it shows.
    pub argument: &'static str,
    /// Arguments of the call as JSON.
    pub call: &'static str,
}

impl ToolSpec {
    /// Creates the error for an argument with an invalid value.
    pub(crate) fn invalid_argument(&self, param: &str, problem: impl Into<String>) -> ToolError {
        let name = param.split(['[', '.']).next().unwrap_or_default();
        self.argument_error(param, problem.into(), self.example_hint(name))
    }

    /// Creates the error for a required argument that is missing.
    pub(crate) fn missing_argument(&self, param: &str) -> ToolError {
        self.invalid_argument(param, "it is missing")
    }

    /// Creates the error for an argument that the tool does not have.
    pub(crate) fn unknown_argument(&self, param: &str, known: &[&str]) -> ToolError {
        let problem = format!("there is no such argument; it takes {}", known.join(", "));
        self.argument_error(param, problem, self.example_hint(""))
    }

    fn argument_error(&self, param: &str, problem: String, hint: String) -> ToolError {
        ToolError::InvalidArgument { tool: self.name, param: param.to_owned(), problem, hint }
    }

    /// Returns a hint with the example of an argument, or with the shortest example if the argument has none.
    fn example_hint(&self, argument: &str) -> String {
        if argument == "source" {
            return UNKNOWN_SOURCE_HINT.to_owned();
        }
        let example = self.examples.iter().find(|example| example.argument == argument);
        let example = example.or_else(|| self.examples.first());
        format!("Call {} with {}.", self.name, example.map_or("{}", |example| example.call))
    }
}
