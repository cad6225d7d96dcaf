//! Property tests with arbitrary headers: none causes a panic, and no rejection quotes the header.

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::json;

use super::authority::{Authority, Reply};
use super::signer::{RSA, base64};
use super::{LOCAL, introspection_of, jwt_authenticator, key_set, now};
use crate::Authenticator;

/// A server that has a key and knows no token.
static AUTHORITY: LazyLock<Authority> = LazyLock::new(|| {
    let keys = key_set(&[RSA.named("k1")]);
    Authority::start(move |request| match request.line.as_str() {
        "GET /keys" => Reply::Json(keys.clone()),
        _ => Reply::Json(r#"{"active":false}"#.to_owned()),
    })
});

/// An authenticator with all methods, which keeps its key cache between cases.
static AUTHENTICATOR: LazyLock<Authenticator> = LazyLock::new(|| {
    let mut settings = jwt_authenticator(&AUTHORITY).settings().clone();
    settings.introspection = Some(introspection_of(&AUTHORITY));
    Authenticator::new(settings)
});

/// Tokens that pass the first checks: JSON that is almost a header and claims.
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
    let denial = runtime.block_on(AUTHENTICATOR.authenticate_at(Some(header), LOCAL, now())).unwrap_err();
    let shown = format!("{denial} {denial:?} {:?}", denial.error());
    // Shorter words may occur in our own text.
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
    fn an_almost_valid_jwt_is_refused_without_quoting_it(token in nearly_a_jwt()) {
        check(&format!("bearer {token}"));
    }
}
