//! Headers of every shape: none makes a panic, and no refusal says what was sent.

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::json;

use super::authority::{Authority, Reply};
use super::signer::{RSA, base64};
use super::{LOCAL, introspection_of, jwt_door, key_set, now};
use crate::access::Access;

/// A server that knows a key and no token.
static AUTHORITY: LazyLock<Authority> = LazyLock::new(|| {
    let keys = key_set(&[RSA.named("k1")]);
    Authority::start(move |request| match request.line.as_str() {
        "GET /keys" => Reply::Json(keys.clone()),
        _ => Reply::Json(r#"{"active":false}"#.to_owned()),
    })
});

/// A door of every way to be admitted, which keeps its keys from case to case.
static DOOR: LazyLock<Access> = LazyLock::new(|| {
    let mut settings = jwt_door(&AUTHORITY).settings().clone();
    settings.introspection = Some(introspection_of(&AUTHORITY));
    Access::new(settings)
});

/// Tokens that come far: of JSON that is nearly a header and claims.
fn nearly_a_jwt() -> impl Strategy<Value = String> {
    let algorithm = prop_oneof![Just("RS256"), Just("ES256"), Just("EdDSA"), Just("none"), Just("HS256")];
    let id = prop_oneof![Just("k1"), Just("k2"), Just("")];
    let part = "[A-Za-z0-9_-]{10,80}";
    (algorithm, id, part, part, any::<bool>()).prop_map(|(algorithm, id, payload, signature, is_json)| {
        let header = base64(json!({"alg": algorithm, "kid": id}).to_string());
        let payload = if is_json { base64(json!({"sub": payload}).to_string()) } else { payload };
        format!("{header}.{payload}.{signature}")
    })
}

fn check(header: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let denial = runtime.block_on(DOOR.admit_at(Some(header), LOCAL, now())).unwrap_err();
    let shown = format!("{denial} {denial:?} {:?}", denial.error());
    // Shorter words may be our own.
    for word in header.split([' ', '.']).filter(|word| word.len() >= 10) {
        assert!(!shown.contains(word), "{word:?} is in {shown:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_header_is_refused_without_quoting_it(header in "\\PC{0,200}") {
        check(&header);
    }

    #[test]
    fn any_token_is_refused_without_quoting_it(token in "[A-Za-z0-9._~+/=-]{10,300}") {
        check(&format!("Bearer {token}"));
    }

    #[test]
    fn what_is_nearly_a_jwt_is_refused_without_quoting_it(token in nearly_a_jwt()) {
        check(&format!("bearer {token}"));
    }
}
