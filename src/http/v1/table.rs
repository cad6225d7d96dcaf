//! The tables of parameters: what is in them, and the rows that several routes share.

/// One parameter of a route.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) takes: Takes,
    pub(super) about: &'static str,
}

/// What a parameter may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    /// Any text.
    Text,
    /// A text that has to be there.
    NeededText,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// One of these words, which has to be there.
    NeededChoice(&'static [&'static str]),
    /// How many on a page: more than [`LIMIT_MOST`] is that, and what is no number is [`LIMIT_DEFAULT`].
    PageLimit,
    /// A whole number, written in digits.
    Whole {
        /// The least.
        least: usize,
        /// The most; `None` for no bound, or for one that clamps.
        most: Option<usize>,
        /// What it is when left out.
        default: Option<usize>,
    },
    /// Names, repeated or with commas between.
    Names,
    /// Repeated, as `name=a&name=b` or `name[]=a`.
    Repeated,
    /// Named values, as `name[key]=value`.
    Keyed,
    /// Named whole numbers of at least 1, as `name[key]=n`.
    KeyedCounts,
    /// The older name of `connection_id`.
    ConnectionAlias,
}

/// The most rows of a page.
pub(super) const LIMIT_MOST: usize = 100;

/// The rows of a page when nothing, or nothing sensible, is asked.
pub(super) const LIMIT_DEFAULT: usize = 25;

pub(super) const LIMIT: Parameter = Parameter {
    name: "limit",
    takes: Takes::PageLimit,
    about: "Rows of the page. More than 100 is 100 with a `limit_clamped` warning; 0 or no number is 25.",
};
pub(super) const CURSOR: Parameter = Parameter {
    name: "cursor",
    takes: Takes::Text,
    about: "`next_cursor` of the page before, with the same other parameters.",
};
pub(super) const CONNECTION: Parameter =
    Parameter { name: "connection_id", takes: Takes::Text, about: "Only this connection." };
pub(super) const CONNECTION_ALIAS: Parameter = Parameter {
    name: "connector_instance_id",
    takes: Takes::ConnectionAlias,
    about: "The older name of `connection_id`; gives a `deprecated_alias_used` warning.",
};
pub(super) const FIELDS: Parameter = Parameter {
    name: "fields",
    takes: Takes::Names,
    about: "Only these fields of `data`; repeated, or with commas between.",
};
pub(super) const FILTER: Parameter = Parameter {
    name: "filter",
    takes: Takes::Keyed,
    about: "Only records that pass: `filter[field]=value`, or `filter[field][gte|gt|lte|lt]=value`.",
};
pub(super) const EXPAND: Parameter = Parameter {
    name: "expand",
    takes: Takes::Repeated,
    about: "Related records to bring along, by the name of the relation.",
};
pub(super) const EXPAND_LIMIT: Parameter = Parameter {
    name: "expand_limit",
    takes: Takes::KeyedCounts,
    about: "How many related records of a relation at most: `expand_limit[relation]=n`.",
};

impl Parameter {
    /// What stands between the brackets when `sent` is a spelling of this parameter's name; empty for a plain name.
    pub(super) fn key_of<'a>(&self, sent: &'a str) -> Option<&'a str> {
        let rest = sent.strip_prefix(self.name)?;
        match self.takes {
            Takes::Repeated if rest == "[]" => Some(""),
            Takes::Keyed | Takes::KeyedCounts => rest.strip_prefix('[')?.strip_suffix(']'),
            _ => rest.is_empty().then_some(""),
        }
    }
}
