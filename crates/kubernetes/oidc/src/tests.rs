//! Tokens of an issuer on the wire.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use capstan_env::Env;
use capstan_pki::{Pki, PrivateKey};
use http_body_util::Full;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::{Identity, Oidc};

/// An issuer with one key.
struct Served {
    url: String,
    authority: String,
    key: Arc<PrivateKey>,
    requests: Arc<AtomicUsize>,
}

impl Served {
    async fn start() -> Self {
        let pki = Arc::new(Pki::ephemeral(Env::system()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://127.0.0.1:{}/realm", listener.local_addr().unwrap().port());
        let tls = TlsAcceptor::from(pki.server_config(&["127.0.0.1".to_owned()]).unwrap());
        let key = pki.token_key().unwrap();
        let documents = Arc::new([
            (
                "/realm/.well-known/openid-configuration",
                json!({"issuer": url, "jwks_uri": format!("{url}/keys")}),
            ),
            ("/elsewhere", json!({"issuer": "https://somebody.example", "jwks_uri": format!("{url}/keys")})),
            ("/realm/keys", json!({"keys": [{"kty": "oct", "k": "AA"}, key.to_jwk()]})),
        ]);
        let requests = Arc::new(AtomicUsize::new(0));
        let counted = requests.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (tls, documents, counted) = (tls.clone(), documents.clone(), counted.clone());
                tokio::spawn(async move {
                    let Ok(stream) = tls.accept(stream).await else { return };
                    let service = hyper::service::service_fn(move |request: http::Request<_>| {
                        let _: &hyper::body::Incoming = request.body();
                        counted.fetch_add(1, Ordering::Relaxed);
                        let found = documents.iter().find(|(path, _)| *path == request.uri().path());
                        let (code, body) =
                            found.map_or((404, String::new()), |(_, json)| (200, json.to_string()));
                        let reply = http::Response::builder().status(code).body(Full::new(Bytes::from(body)));
                        async move { Ok::<_, Infallible>(reply.unwrap()) }
                    });
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Self { url, authority: pki.ca_pem().unwrap(), key, requests }
    }

    /// A configuration for this issuer, with more fields of its entry.
    fn config(&self, more: &Value) -> String {
        let mut jwt = json!({
            "issuer": {"url": self.url, "certificateAuthority": self.authority, "audiences": ["capstan"]},
            "claimMappings": {"username": {"claim": "sub", "prefix": "corp:"}},
        });
        for (name, value) in more.as_object().unwrap() {
            match (&mut jwt[name], value) {
                (Value::Object(into), Value::Object(fields)) => into.extend(fields.clone()),
                (into, value) => *into = value.clone(),
            }
        }
        json!({
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": [jwt],
        })
        .to_string()
    }

    fn oidc(&self, more: &Value) -> Oidc {
        Oidc::parse(&self.config(more)).unwrap()
    }

    /// A good token with some claims changed.
    fn token(&self, changes: &Value) -> String {
        let mut claims = json!({
            "iss": self.url, "aud": "capstan", "sub": "ada", "exp": now().as_second() + 60,
        });
        claims.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        self.signed(&json!({"alg": self.key.token_algorithm(), "kid": self.key.id()}), &claims)
    }

    fn signed(&self, header: &Value, claims: &Value) -> String {
        let encode = |part: &Value| URL_SAFE_NO_PAD.encode(part.to_string());
        let message = format!("{}.{}", encode(header), encode(claims));
        let signature = self.key.sign_token(message.as_bytes()).unwrap();
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

async fn check(oidc: &Oidc, token: &str) -> Option<Result<Identity, String>> {
    oidc.prepare(token).await;
    oidc.check(token, now())
}

#[tokio::test]
async fn a_token_of_the_issuer_is_its_user_and_keys_are_fetched_once() {
    let issuer = Served::start().await;
    let oidc = issuer.oidc(&json!({"claimMappings": {
        "username": {"claim": "sub", "prefix": "corp:"}, "groups": {"claim": "teams", "prefix": "corp:"},
        "uid": {"claim": "id"},
    }}));
    let token = issuer.token(&json!({"teams": ["ops", "dev"], "id": "7", "aud": ["x", "capstan"]}));
    let expected = Identity {
        username: "corp:ada".to_owned(),
        uid: "7".to_owned(),
        groups: vec!["corp:ops".to_owned(), "corp:dev".to_owned()],
        ..Identity::default()
    };
    for _ in 0..3 {
        assert_eq!(check(&oidc, &token).await, Some(Ok(expected.clone())));
    }
    assert_eq!(issuer.requests.load(Ordering::Relaxed), 2, "discovery and keys, once");
}

#[tokio::test]
async fn whatever_is_wrong_with_a_token_it_is_refused() {
    let issuer = Served::start().await;
    let oidc =
        issuer.oidc(&json!({"claimValidationRules": [{"claim": "hd", "requiredValue": "corp.example"}]}));
    let good = json!({"hd": "corp.example"});
    assert_eq!(check(&oidc, &issuer.token(&good)).await.unwrap().unwrap().username, "corp:ada");
    for (changes, problem) in [
        (json!({"exp": now().as_second() - 1}), "expired"),
        (json!({"exp": null}), "no expiry"),
        (json!({"nbf": now().as_second() + 301}), "not valid yet"),
        (json!({"aud": "other"}), "another audience"),
        (json!({"aud": null}), "another audience"),
        (json!({"hd": "evil.example"}), "required value"),
        (json!({"sub": 7}), "not a string"),
        (json!({"sub": ""}), ""),
    ] {
        let mut claims = good.clone();
        claims.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        let result = check(&oidc, &issuer.token(&claims)).await.unwrap();
        if problem.is_empty() {
            // With a prefix, an empty name is no empty user.
            assert_eq!(result.unwrap().username, "corp:");
            continue;
        }
        let error = result.expect_err(problem);
        assert!(error.contains(problem), "{changes}: {error}");
    }

    let token = issuer.token(&good);
    let (message, signature) = token.rsplit_once('.').unwrap();
    let forged =
        URL_SAFE_NO_PAD.encode(json!({"iss": issuer.url, "aud": "capstan", "sub": "root"}).to_string());
    let header = message.split_once('.').unwrap().0;
    let none = URL_SAFE_NO_PAD.encode(json!({"alg": "none"}).to_string());
    let claims = message.split_once('.').unwrap().1;
    let hmac = URL_SAFE_NO_PAD.encode(json!({"alg": "HS256", "kid": issuer.key.id()}).to_string());
    for token in [
        format!("{header}.{forged}.{signature}"),
        format!("{none}.{claims}."),
        format!("{hmac}.{claims}.{signature}"),
        issuer.signed(
            &json!({"alg": issuer.key.token_algorithm(), "kid": "unknown"}),
            &json!({"iss": issuer.url, "aud": "capstan", "sub": "ada", "exp": now().as_second() + 60}),
        ),
    ] {
        let error = check(&oidc, &token).await.unwrap().expect_err("a forgery");
        assert!(error.contains("signature"), "{error}");
    }
    for stranger in ["", "a.b", "a.b.c", "x.y.z.w", &issuer.token(&json!({"iss": "https://other.example"}))] {
        assert_eq!(check(&oidc, stranger).await, None, "{stranger}");
    }
    assert_eq!(issuer.requests.load(Ordering::Relaxed), 2, "an unknown key is not asked for again and again");
}

#[tokio::test]
async fn expressions_map_claims_to_a_user() {
    let issuer = Served::start().await;
    let oidc = issuer.oidc(&json!({
        "claimMappings": {
            "username": {"expression": "claims.email_verified ? claims.email : ''"},
            "groups": {"expression": "claims.roles.map(role, 'role:' + role)"},
            "extra": [{"key": "example.com/tenant", "valueExpression": "claims.tenant"}],
        },
        "claimValidationRules": [{"expression": "claims.tenant != 'banned'", "message": "the tenant is banned"}],
        "userValidationRules": [
            {"expression": "!user.username.startsWith('system:')", "message": "the username is reserved"},
        ],
    }));
    let claims =
        json!({"email": "ada@corp.example", "email_verified": true, "roles": ["ops"], "tenant": "one"});
    let user = check(&oidc, &issuer.token(&claims)).await.unwrap().unwrap();
    assert_eq!(
        (user.username.as_str(), &user.groups[..]),
        ("ada@corp.example", &["role:ops".to_owned()][..])
    );
    assert_eq!(user.extra["example.com/tenant"], ["one"]);
    for (changes, problem) in [
        (json!({"tenant": "banned"}), "the tenant is banned"),
        (json!({"email": "system:admin"}), "the username is reserved"),
        (json!({"email_verified": false}), "the username is empty"),
        (json!({"roles": 7}), ""),
    ] {
        let mut claims = claims.clone();
        claims.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        let error = check(&oidc, &issuer.token(&claims)).await.unwrap().expect_err("refused");
        assert!(error.contains(problem), "{changes}: {error}");
    }
}

#[tokio::test]
async fn keys_of_another_issuer_are_not_taken() {
    let issuer = Served::start().await;
    let root = issuer.url.trim_end_matches("/realm");
    let oidc = issuer.oidc(&json!({"issuer": {"discoveryURL": format!("{root}/elsewhere")}}));
    assert!(check(&oidc, &issuer.token(&json!({}))).await.unwrap().is_err());
}

#[test]
fn a_bad_configuration_is_refused_with_the_field() {
    type Change = fn(&mut Value);
    let jwt = |change: Change| {
        let mut jwt = json!({
            "issuer": {"url": "https://id.example", "audiences": ["a"]},
            "claimMappings": {"username": {"claim": "sub", "prefix": ""}},
        });
        change(&mut jwt);
        json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": [jwt]})
    };
    let table: [(Change, &str); 11] = [
        (|jwt| jwt["issuer"]["url"] = "http://id.example".into(), "jwt[0].issuer.url: must begin with https"),
        (|jwt| jwt["issuer"]["audiences"] = json!([]), "jwt[0].issuer.audiences"),
        (|jwt| jwt["issuer"]["audiences"] = json!(["a", "b"]), "jwt[0].issuer.audienceMatchPolicy"),
        (|jwt| jwt["issuer"]["certificateAuthority"] = "x".into(), "jwt[0].issuer.certificateAuthority"),
        (|jwt| jwt["issuer"]["discoveryURL"] = "https://id.example".into(), "jwt[0].issuer.discoveryURL"),
        (|jwt| jwt["claimMappings"]["username"] = json!({"claim": "sub"}), "claimMappings.username.prefix"),
        (|jwt| jwt["claimMappings"]["username"] = json!({}), "jwt[0].claimMappings.username: claim or"),
        (
            |jwt| jwt["claimMappings"]["username"] = json!({"expression": "claims."}),
            "jwt[0].claimMappings.username.expression",
        ),
        (
            |jwt| jwt["claimMappings"]["username"] = json!({"expression": "claims.email"}),
            "claims.email_verified must be used",
        ),
        (
            |jwt| jwt["claimMappings"]["extra"] = json!([{"key": "x", "valueExpression": "'a'"}]),
            "jwt[0].claimMappings.extra[0].key",
        ),
        (|jwt| jwt["claimMapping"] = json!({}), "unknown field"),
    ];
    for (change, expected) in table {
        let text = jwt(change).to_string();
        let error = Oidc::parse(&text).err().map(|error| error.to_string()).expect(expected);
        assert!(error.contains(expected), "{error}");
    }
    let mut twice = jwt(|_| {});
    let first = twice["jwt"][0].clone();
    twice["jwt"].as_array_mut().unwrap().push(first);
    let error = Oidc::parse(&twice.to_string()).err().expect("twice").to_string();
    assert!(error.contains("jwt[1].issuer.url: is used twice"), "{error}");
}
