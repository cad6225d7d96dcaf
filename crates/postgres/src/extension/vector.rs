//! Vectors as values of statements, in the binary form of pgvector.

use std::error::Error;

use bytes::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

/// Vector as a value of the type `vector`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SqlVector<'a>(pub(crate) &'a [f32]);

impl ToSql for SqlVector<'_> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.extend_from_slice(&u16::try_from(self.0.len())?.to_be_bytes());
        out.extend_from_slice(&0_u16.to_be_bytes());
        self.0.iter().for_each(|number| out.extend_from_slice(&number.to_be_bytes()));
        Ok(IsNull::No)
    }

    fn accepts(kind: &Type) -> bool {
        kind.name() == "vector"
    }

    to_sql_checked!();
}
