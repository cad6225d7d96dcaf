//! The canonical key string of a record.

use serde_json::Value;

/// Returns the canonical key: a string unchanged, an integer in decimal, and several parts as a compact JSON array
/// (`["user_123","2026-04-01"]`). An array with one part becomes that part.
pub(crate) fn canonical_key(key: Value) -> Result<String, String> {
    let Value::Array(mut parts) = key else { return scalar(key) };
    if parts.len() > 1 {
        parts.iter().try_for_each(|part| scalar(part.clone()).map(drop))?;
        return Ok(Value::Array(parts).to_string());
    }
    parts.pop().map_or_else(|| Err("its key is an empty array".to_owned()), scalar)
}

/// Returns a key that is one value.
fn scalar(part: Value) -> Result<String, String> {
    match part {
        Value::String(text) => Ok(text),
        Value::Number(number) if number.is_i64() || number.is_u64() => Ok(number.to_string()),
        // Numbers beyond 64 bits are parsed as the nearest float, which is the same for many of them.
        Value::Number(_) => {
            Err("its key is a number that cannot be kept exactly; write it as a text".to_owned())
        }
        Value::Null => Err("its key is null".to_owned()),
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
            Err("its key is neither a string, a number, nor an array of these".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_are_canonical() {
        assert_eq!(canonical_key(json!("m1")).unwrap(), "m1");
        assert_eq!(canonical_key(json!(["m1"])).unwrap(), "m1");
        assert_eq!(canonical_key(json!(7)).unwrap(), "7");
        assert_eq!(canonical_key(json!(["user_123", "2026-04-01"])).unwrap(), r#"["user_123","2026-04-01"]"#);
        assert_eq!(canonical_key(json!([1, "a"])).unwrap(), r#"[1,"a"]"#);
    }

    #[test]
    fn invalid_keys_are_rejected() {
        for bad in
            [json!(null), json!([]), json!({"a": 1}), json!([["a"], "b"]), json!(["a", null]), json!(true)]
        {
            assert!(canonical_key(bad.clone()).is_err(), "{bad}");
        }
    }

    #[test]
    fn different_numbers_have_different_keys() {
        let read = |text: &str| canonical_key(serde_json::from_str(text).unwrap());
        assert_eq!(read("18446744073709551615").unwrap(), "18446744073709551615");
        assert_eq!(read("-9223372036854775808").unwrap(), "-9223372036854775808");
        for text in ["123456789012345678901", "123456789012345678902", "1.5", "[\"a\",1e30]"] {
            assert!(read(text).unwrap_err().contains("write it as a text"), "{text}");
        }
    }
}
