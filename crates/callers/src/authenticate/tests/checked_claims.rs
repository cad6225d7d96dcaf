//! Tests of the claim checks, at a fixed time.

use serde_json::{Value, json};

use super::{RESOURCE, claims, later, now};
use crate::authenticate::claims::{ClaimRequirements, Claims, Issuer};
use crate::{Denial, Subject, TokenFault};

const ISSUER: &str = "https://login.example.com";

fn checked_as(issuer: Issuer<'_>, others: &Value, at: jiff::Timestamp) -> Result<Subject, Denial> {
    let claims = Claims::read(claims(ISSUER, others).to_string().as_bytes()).unwrap();
    let resources = ["https://records.example.com/".to_owned(), RESOURCE.to_owned()];
    let scopes = ["records.read".to_owned()];
    claims.check(&ClaimRequirements { issuer, resources: &resources, scopes: &scopes }, at)
}

fn checked(others: &Value) -> Result<Subject, Denial> {
    checked_as(Issuer::Signed(ISSUER), others, now())
}

#[test]
fn valid_claims_are_accepted() {
    for others in [
        json!({}),
        json!({"aud": [RESOURCE]}),
        json!({"aud": ["https://other.example", RESOURCE]}),
        json!({"aud": format!("{RESOURCE}/")}),
        json!({"aud": "https://records.example.com"}),
        json!({"scope": "openid records.read  email"}),
        json!({"scope": null, "scp": ["records.read"]}),
        json!({"scope": null, "scp": "records.read x"}),
        json!({"exp": later(-59).as_second()}),
        json!({"exp": 1_795_350_000.5}),
        json!({"exp": i64::MAX}),
        json!({"nbf": later(60).as_second(), "iat": later(60).as_second()}),
        json!({"nbf": null, "iat": null}),
        json!({"pdpp_token_kind": "client"}),
        json!({"pdpp_token_kind": "mcp_package"}),
        json!({"token_kind": "client"}),
        json!({"pdpp_token_kind": "client", "token_kind": "mcp_package"}),
        json!({"sub": "a".repeat(255)}),
    ] {
        assert!(checked(&others).is_ok(), "{others}: {:?}", checked(&others));
    }
}

#[test]
fn invalid_claims_are_rejected() {
    for (others, fault) in [
        (json!({"exp": later(-60).as_second()}), TokenFault::Expired),
        (json!({"exp": -1}), TokenFault::Expired),
        (json!({"exp": i64::MIN}), TokenFault::Expired),
        (json!({"exp": null}), TokenFault::Endless),
        (json!({"nbf": later(61).as_second()}), TokenFault::NotYet),
        (json!({"iat": later(61).as_second()}), TokenFault::NotYet),
        (json!({"iss": null}), TokenFault::Issuer),
        (json!({"iss": "https://login.example.com/"}), TokenFault::Issuer),
        (json!({"iss": "https://evil.example"}), TokenFault::Issuer),
        (json!({"aud": null}), TokenFault::Audience),
        (json!({"aud": []}), TokenFault::Audience),
        (json!({"aud": "https://records.example.com/other"}), TokenFault::Audience),
        (json!({"aud": format!("{RESOURCE}//")}), TokenFault::Audience),
        (json!({"aud": format!("{RESOURCE}.evil.example")}), TokenFault::Audience),
        (json!({"aud": "claude"}), TokenFault::Audience),
        (json!({"sub": null}), TokenFault::Subject),
        (json!({"sub": ""}), TokenFault::Subject),
        (json!({"sub": "a\nb"}), TokenFault::Subject),
        (json!({"sub": "a".repeat(256)}), TokenFault::Subject),
    ] {
        assert_eq!(checked(&others), Err(Denial::RenewToken(fault)), "{others}");
    }
    for (others, is_owner) in [
        (json!({"pdpp_token_kind": "owner"}), true),
        (json!({"token_kind": "OWNER"}), true),
        (json!({"pdpp_token_kind": "client", "token_kind": "owner"}), true),
        (json!({"pdpp_token_kind": "admin"}), false),
        (json!({"pdpp_token_kind": ""}), false),
        (json!({"token_kind": 5}), false),
        (json!({"token_kind": ["client"]}), false),
    ] {
        assert_eq!(checked(&others), Err(Denial::UseClientToken { is_owner }), "{others}");
    }
    for scope in ["", "records", "records.readonly", "RECORDS.READ", "x,records.read"] {
        let denial = checked(&json!({ "scope": scope })).unwrap_err();
        assert_eq!(denial, Denial::AskForScopes { needed: vec!["records.read".to_owned()] }, "{scope}");
        assert_eq!((denial.status().as_u16(), denial.error()), (403, Some("insufficient_scope")));
        assert!(denial.to_string().contains("ask for records.read"), "{denial}");
    }
}

#[test]
fn an_introspection_response_may_omit_issuer_and_expiry() {
    let by = "https://login.example.com/introspect";
    let unknown = Issuer::Answered { known: None, by };
    let known = Issuer::Answered { known: Some(ISSUER), by };
    for (issuer, others, expect) in [
        (unknown, json!({"iss": null, "exp": null}), Ok(by)),
        (known, json!({"iss": null}), Ok(by)),
        (known, json!({}), Ok(ISSUER)),
        (unknown, json!({"iss": "https://any.example"}), Ok("https://any.example")),
        (known, json!({"iss": "https://any.example"}), Err(TokenFault::Issuer)),
        (unknown, json!({"exp": later(-60).as_second()}), Err(TokenFault::Expired)),
        (unknown, json!({"aud": null}), Err(TokenFault::Audience)),
        (unknown, json!({"sub": null}), Err(TokenFault::Subject)),
    ] {
        let subject = checked_as(issuer, &others, now()).map(|subject| subject.issuer);
        assert_eq!(subject, expect.map(str::to_owned).map_err(Denial::RenewToken), "{others}");
    }
}

#[test]
fn claims_that_limit_access_change_the_grant_and_their_spelling_does_not() {
    let grant = |others: Value| checked(&others).unwrap().grant;
    let plain = grant(json!({}));
    let details = json!([{"type": "records", "streams": ["a", "b"], "x": {"y": 1, "z": 2}}]);
    let others = [
        json!({"grant_id": "g1"}),
        json!({"grant_id": "g2"}),
        json!({"pdpp_grant_id": "g1"}),
        json!({"grant_package_id": "g1"}),
        json!({"scope": "records.read email"}),
        json!({"authorization_details": details}),
        json!({"authorization_details": [{"type": "records", "streams": ["b", "a"]}]}),
    ];
    let mut grants: Vec<String> = others.into_iter().map(grant).collect();
    grants.push(plain.clone());
    grants.sort();
    grants.dedup();
    assert_eq!(grants.len(), 8);
    // A refreshed token has other timestamps, and its server may list values in another order.
    assert_eq!(grant(json!({"exp": later(7_200).as_second(), "jti": "2", "grant_id": null})), plain);
    assert_eq!(grant(json!({"scope": "email records.read"})), grant(json!({"scope": "records.read email"})));
    let reordered = json!([{"x": {"z": 2, "y": 1}, "streams": ["a", "b"], "type": "records"}]);
    assert_eq!(
        grant(json!({"authorization_details": reordered})),
        grant(json!({"authorization_details": details}))
    );
}

#[test]
fn claims_of_a_wrong_type_or_duplicated_are_rejected() {
    for text in [
        "",
        "[]",
        "null",
        r#"{"sub":5}"#,
        r#"{"exp":"1"}"#,
        r#"{"aud":{}}"#,
        r#"{"sub":"a","sub":"b"}"#,
        r#"{"aud":[1]}"#,
        r#"{"exp":1e300}"#,
    ] {
        assert!(Claims::read(text.as_bytes()).is_none(), "{text}");
    }
}

#[test]
fn duplicate_claims_are_rejected() {
    let once = claims(ISSUER, &json!({})).to_string();
    assert!(Claims::read(once.as_bytes()).is_some());
    for twice in [
        r#""cnf":{"jkt":"x"},"cnf":null"#,
        r#""cnf":null,"cnf":{"jkt":"x"}"#,
        r#""nonce":"n","nonce":null"#,
        r#""token_type":"refresh_token","token_type":null"#,
        // The same name, spelled differently.
        r#""cnf":{"jkt":"x"},"\u0063nf":null"#,
        r#""sub":"alice""#,
        r#""authorization_details":[{"type":"a","type":"b"}]"#,
        r#""anything":1,"anything":1"#,
    ] {
        let claims = once.replacen('{', &format!("{{{twice},"), 1);
        assert!(serde_json::from_str::<Value>(&claims).is_ok(), "{claims}");
        assert!(Claims::read(claims.as_bytes()).is_none(), "{claims}");
    }
}
