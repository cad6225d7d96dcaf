//! Tables of query parameters, and the parameters that several routes share.

/// Query parameter of a route.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) takes: ParameterType,
    pub(super) about: &'static str,
}

/// Type of a parameter's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParameterType {
    /// Any text, optional.
    Text,
    /// Non-empty text, required.
    NeededText,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// One of these words, required.
    NeededChoice(&'static [&'static str]),
    /// Page size. More than [`MAX_LIMIT`] is reduced to it; anything but a number becomes [`DEFAULT_LIMIT`].
    PageLimit,
    /// Integer in decimal digits.
    Whole {
        /// Minimum of the integer.
        min: usize,
        /// Maximum of the integer; `None` if it is unlimited or reduced to a maximum.
        max: Option<usize>,
        /// Default value of the integer.
        default: Option<usize>,
    },
    /// Names, repeated or separated by commas.
    Names,
    /// Repeated values, as `name=a&name=b` or `name[]=a`.
    Repeated,
    /// Keyed values, as `name[key]=value`.
    Keyed,
    /// Keyed positive integers, as `name[key]=n`.
    KeyedCounts,
    /// Deprecated name of `connection_id`.
    ConnectionAlias,
}

/// Maximum number of rows of a page.
pub(super) const MAX_LIMIT: usize = 100;

/// Number of rows of a page without a valid `limit`.
pub(super) const DEFAULT_LIMIT: usize = 25;

pub(super) const LIMIT: Parameter = Parameter {
    name: "limit",
    takes: ParameterType::PageLimit,
    about: "Maximum number of rows. A value over 100 becomes 100, with a `limit_clamped` warning; 0 or an invalid number becomes 25.",
};
pub(super) const CURSOR: Parameter = Parameter {
    name: "cursor",
    takes: ParameterType::Text,
    about: "`next_cursor` of the previous page, with the same other parameters.",
};
pub(super) const CONNECTION: Parameter =
    Parameter { name: "connection_id", takes: ParameterType::Text, about: "Only this connection." };
pub(super) const CONNECTION_ALIAS: Parameter = Parameter {
    name: "connector_instance_id",
    takes: ParameterType::ConnectionAlias,
    about: "The older name of `connection_id`; gives a `deprecated_alias_used` warning.",
};
pub(super) const FIELDS: Parameter = Parameter {
    name: "fields",
    takes: ParameterType::Names,
    about: "Only these fields of `data`; repeated or comma-separated.",
};
pub(super) const FILTER: Parameter = Parameter {
    name: "filter",
    takes: ParameterType::Keyed,
    about: "Only records that match: `filter[field]=value`, or `filter[field][gte|gt|lte|lt]=value`.",
};
pub(super) const EXPAND: Parameter = Parameter {
    name: "expand",
    takes: ParameterType::Repeated,
    about: "Related records to include, by the name of the relation.",
};
pub(super) const EXPAND_LIMIT: Parameter = Parameter {
    name: "expand_limit",
    takes: ParameterType::KeyedCounts,
    about: "Maximum number of related records for each relation: `expand_limit[relation]=n`.",
};

impl Parameter {
    /// Returns the text in brackets if `sent` is this parameter's name, or the empty string for a name without
    /// brackets.
    pub(super) fn key_of<'a>(&self, sent: &'a str) -> Option<&'a str> {
        let rest = sent.strip_prefix(self.name)?;
        match self.takes {
            ParameterType::Repeated if rest == "[]" => Some(""),
            ParameterType::Keyed | ParameterType::KeyedCounts => rest.strip_prefix('[')?.strip_suffix(']'),
            _ => rest.is_empty().then_some(""),
        }
    }
}
