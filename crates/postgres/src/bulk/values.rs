//! Values of types that the client library does not know, in the binary form of the server.

use std::error::Error;

use bytes::{BufMut as _, BytesMut};
use fetchwell_source::documents::Uuid;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

/// Version of the binary form of `jsonb`.
const JSONB_VERSION: u8 = 1;

/// Value of the type `uuid`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SqlUuid([u8; 16]);

impl From<Uuid> for SqlUuid {
    fn from(uuid: Uuid) -> Self {
        Self(uuid.into_bytes())
    }
}

impl ToSql for SqlUuid {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.put_slice(&self.0);
        Ok(IsNull::No)
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::UUID
    }

    to_sql_checked!();
}

/// Value of the type `jsonb`, as JSON text.
#[derive(Debug)]
pub(crate) struct SqlJson(pub(crate) String);

impl ToSql for SqlJson {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.put_u8(JSONB_VERSION);
        out.put_slice(self.0.as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::JSONB
    }

    to_sql_checked!();
}
