//! The maximum nesting of a record, and the stack of its parsers.

/// Maximum nesting of objects and arrays. Every JSON parser of this program, and of clients, accepts at least 128;
/// some of these are needed by the response around a record.
pub(crate) const MAX_DEPTH: usize = 100;

/// Stack size in bytes of a thread that reads files: every recursive parser limits nesting to 128 levels.
pub const PARSER_STACK_BYTES: usize = 16 * 1024 * 1024;

/// Returns true if objects and arrays are nested deeper than `limit`. Reads the text once, without recursion. The
/// result for text that is not JSON is unspecified.
pub(crate) fn is_deeper(json: &str, limit: usize) -> bool {
    let (mut depth, mut in_string, mut is_escaped) = (0_usize, false, false);
    json.bytes().any(|byte| {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > limit
    })
}

/// Returns the error for a record that is nested too deep.
pub(crate) fn too_deep() -> String {
    format!("it is nested more than {MAX_DEPTH} levels deep")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nesting_is_counted_outside_of_strings() {
        for (json, expect) in [
            ("1", 0),
            ("[]", 1),
            ("[[],[[]],{}]", 3),
            (r#"{"a":"[[[[","b":["\"[[[","\\",[{}]]}"#, 4),
            (r#"{"a":"\\"}"#, 1),
        ] {
            assert!(!is_deeper(json, expect), "{json}");
            assert!(expect == 0 || is_deeper(json, expect - 1), "{json}");
        }
        for hostile in ["[", "{\"a\":", "[{\"a\":["] {
            assert!(is_deeper(&hostile.repeat(1_000_000), MAX_DEPTH));
        }
    }
}
