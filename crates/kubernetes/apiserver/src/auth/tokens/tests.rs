//! Tokens are valid exactly as long as everything they are bound to.

use std::sync::atomic::{AtomicI64, Ordering};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::{HeaderMap, HeaderValue};

use super::*;
use crate::auth::testing::Objects;
use crate::auth::{Authenticator, Peer, UNAUTHENTICATED, bucket};
use crate::status::Status;

const START: i64 = 1_800_000_000;

struct Plane {
    objects: Arc<Objects>,
    clock: Arc<AtomicI64>,
    tokens: Arc<ServiceAccountTokens>,
    authenticator: Authenticator,
}

fn plane() -> Plane {
    let clock = Arc::new(AtomicI64::new(START));
    let read = clock.clone();
    let env = Env::simulated(move || Timestamp::from_second(read.load(Ordering::Relaxed)).unwrap(), 1);
    let objects = Arc::new(Objects::default());
    objects.put(bucket::SERVICE_ACCOUNTS, object("ns", "bot", "sa-uid"));
    objects.put(bucket::SECRETS, object("ns", "s", "secret-uid"));
    objects.put(bucket::NODES, json!({"metadata": {"name": "n1", "uid": "node-uid"}}));
    let mut pod = object("ns", "p", "pod-uid");
    pod["spec"] = json!({"serviceAccountName": "bot", "nodeName": "n1"});
    objects.put(bucket::PODS, pod);
    let pki = Arc::new(Pki::ephemeral(env.clone()));
    let issuer = ServiceAccountTokens::DEFAULT_ISSUER;
    let tokens = Arc::new(ServiceAccountTokens::new(pki, objects.clone(), env.clone(), issuer, vec![]));
    let authenticator = Authenticator::new(tokens.clone(), objects.clone(), env)
        .with_token("configured", User::new("loop", ["system:masters"]));
    Plane { objects, clock, tokens, authenticator }
}

fn object(namespace: &str, name: &str, uid: &str) -> Value {
    json!({"metadata": {"namespace": namespace, "name": name, "uid": uid}})
}

impl Plane {
    fn request(&self, spec: Value) -> Result<Value, Status> {
        let mut request = json!({"spec": spec});
        self.tokens.prepare_request("ns", "bot", &mut request)?;
        self.tokens.grant_request(request)
    }

    fn token(&self, spec: Value) -> String {
        self.request(spec).unwrap()["status"]["token"].as_str().unwrap().to_owned()
    }

    fn check(&self, token: &str) -> Result<TokenIdentity, String> {
        self.authenticator.check_token(token, self.tokens.audiences(), &Warnings::default())
    }

    fn pass(&self, seconds: i64) {
        self.clock.fetch_add(seconds, Ordering::Relaxed);
    }
}

fn claims(token: &str) -> Value {
    let payload = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).unwrap()).unwrap()
}

#[test]
fn a_requested_token_has_the_claims_of_upstreams() {
    let plane = plane();
    let answer = plane.request(json!({"expirationSeconds": 600})).unwrap();
    assert_eq!(answer["status"]["expirationTimestamp"], "2027-01-15T08:10:00Z");
    assert_eq!(answer["metadata"]["uid"], "sa-uid");
    assert_eq!(answer["spec"]["audiences"], json!(["https://kubernetes.default.svc"]));
    assert_eq!(answer["spec"]["boundObjectRef"], Value::Null);
    let mut claims = claims(answer["status"]["token"].as_str().unwrap());
    let id = claims["jti"].take();
    assert_eq!(
        claims,
        json!({
            "aud": ["https://kubernetes.default.svc"], "exp": START + 600, "iat": START,
            "iss": "https://kubernetes.default.svc", "jti": null,
            "kubernetes.io": {
                "namespace": "ns", "serviceaccount": {"name": "bot", "uid": "sa-uid"},
            },
            "nbf": START, "sub": "system:serviceaccount:ns:bot",
        })
    );
    let identity = plane.check(answer["status"]["token"].as_str().unwrap()).unwrap();
    assert_eq!(identity.audiences, ["https://kubernetes.default.svc"]);
    assert_eq!(identity.user.name, "system:serviceaccount:ns:bot");
    assert_eq!(
        identity.user.groups,
        ["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"]
    );
    let credential = format!("JTI={}", id.as_str().unwrap());
    assert_eq!(identity.user.extra["authentication.kubernetes.io/credential-id"], [credential]);
}

#[test]
fn a_token_ends_with_its_time_its_account_and_what_it_is_bound_to() {
    let ended = "[invalid bearer token, service account token has expired]";
    let invalidated = "[invalid bearer token, service account token has been invalidated]";
    let bound =
        |kind: &str, name: &str| json!({"boundObjectRef": {"kind": kind, "apiVersion": "v1", "name": name}});
    type Step = fn(&Plane);
    let table: [(Value, Step, Result<(), &str>); 11] = [
        (json!({}), |_| {}, Ok(())),
        (json!({"expirationSeconds": 600}), |p| p.pass(600 + 60), Ok(())),
        (json!({"expirationSeconds": 600}), |p| p.pass(600 + 61), Err(ended)),
        (json!({}), |p| p.pass(-120), Err("[invalid bearer token, service account token is not valid yet]")),
        (
            json!({}),
            |p| p.objects.delete(bucket::SERVICE_ACCOUNTS, "ns/bot"),
            Err("[invalid bearer token, serviceaccounts \"bot\" not found]"),
        ),
        (
            json!({}),
            |p| p.objects.put(bucket::SERVICE_ACCOUNTS, object("ns", "bot", "other")),
            Err("[invalid bearer token, service account UID (other) does not match claim (sa-uid)]"),
        ),
        (bound("Pod", "p"), |p| p.objects.delete(bucket::PODS, "ns/p"), Err(invalidated)),
        (bound("Pod", "p"), |p| p.objects.delete(bucket::NODES, "n1"), Ok(())),
        (bound("Node", "n1"), |p| p.objects.delete(bucket::NODES, "n1"), Err(invalidated)),
        (
            bound("Secret", "s"),
            |p| p.objects.put(bucket::SECRETS, object("ns", "s", "other")),
            Err(
                "[invalid bearer token, secret UID (other) does not match service account secret ref claim (secret-uid)]",
            ),
        ),
        (
            bound("Secret", "s"),
            |p| {
                let mut secret = object("ns", "s", "secret-uid");
                secret["metadata"]["deletionTimestamp"] = "2027-01-15T07:00:00Z".into();
                p.objects.put(bucket::SECRETS, secret);
            },
            Err(invalidated),
        ),
    ];
    for (spec, step, expected) in table {
        let plane = plane();
        let token = plane.token(spec.clone());
        // Checked once before, so that the signature is cached.
        plane.check(&token).unwrap();
        step(&plane);
        let answer = plane.check(&token);
        assert_eq!(answer.as_ref().map(|_| ()).map_err(String::as_str), expected, "{spec}");
    }
}

#[test]
fn a_pod_bound_token_identifies_pod_and_node() {
    let plane = plane();
    let spec = json!({
        "boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": "pod-uid"},
        "expirationSeconds": 3607,
    });
    let token = plane.token(spec);
    let private = &claims(&token)["kubernetes.io"];
    assert_eq!(private["pod"], json!({"name": "p", "uid": "pod-uid"}));
    assert_eq!(private["node"], json!({"name": "n1", "uid": "node-uid"}));
    assert_eq!(private["warnafter"], START + 3607);
    assert_eq!(claims(&token)["exp"], START + 365 * 24 * 3600);
    let user = plane.check(&token).unwrap().user;
    for (key, value) in
        [("pod-name", "p"), ("pod-uid", "pod-uid"), ("node-name", "n1"), ("node-uid", "node-uid")]
    {
        assert_eq!(user.extra[&format!("authentication.kubernetes.io/{key}")], [value]);
    }
}

#[test]
fn bad_requests_are_rejected_with_upstreams_texts() {
    let plane = plane();
    let bound = |reference: Value| json!({"boundObjectRef": reference});
    let table = [
        (
            json!({"expirationSeconds": 5}),
            422,
            "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid value: 5: may not specify a duration less than 10 minutes",
        ),
        (
            json!({"expirationSeconds": 4_294_967_297i64}),
            422,
            "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds",
        ),
        (
            bound(json!({"kind": "Foo", "apiVersion": "v1", "name": "x"})),
            400,
            "cannot bind token to object of type /v1, Kind=Foo",
        ),
        (
            bound(json!({"kind": "Secret", "apiVersion": "v1", "name": "gone"})),
            404,
            "secrets \"gone\" not found",
        ),
        (
            bound(json!({"kind": "Secret", "apiVersion": "v1", "name": "s", "uid": "u"})),
            409,
            "Operation cannot be fulfilled on Secret \"s\": the UID in the bound object reference (u) does not match the UID in record. The object might have been deleted and then recreated",
        ),
    ];
    for (spec, code, message) in table {
        let status = plane.request(spec).unwrap_err();
        assert_eq!((status.code, status.message.as_str()), (code, message));
    }
    let mut stranger = object("ns", "p", "pod-uid");
    stranger["spec"] = json!({"serviceAccountName": "other"});
    plane.objects.put(bucket::PODS, stranger);
    let spec = bound(json!({"kind": "Pod", "apiVersion": "v1", "name": "p"}));
    assert_eq!(
        plane.request(spec).unwrap_err().message,
        "cannot bind token for serviceaccount \"bot\" to pod running with different serviceaccount name."
    );
    let mut named = json!({"metadata": {"name": "x"}});
    let status = plane.tokens.prepare_request("ns", "bot", &mut named).unwrap_err();
    assert_eq!(
        status.message,
        "TokenRequest.authentication.k8s.io \"bot\" is invalid: metadata.name: Invalid value: \"x\": must match the service account name if specified"
    );
}

#[test]
fn forged_and_foreign_tokens_are_refused() {
    let plane = plane();
    let token = plane.token(json!({}));
    let (message, signature) = token.rsplit_once('.').unwrap();
    let mut flipped = URL_SAFE_NO_PAD.decode(signature).unwrap();
    flipped[7] ^= 1;
    let primitive = "[invalid bearer token, go-jose/go-jose: error in cryptographic primitive]";
    let forged = format!("{message}.{}", URL_SAFE_NO_PAD.encode(flipped));
    assert_eq!(plane.check(&forged), Err(primitive.into()));

    let unsigned = {
        let encode = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let header = json!({"alg": "none"});
        format!("{}.{}.", encode(header), message.split('.').nth(1).unwrap())
    };
    assert_eq!(plane.check(&unsigned), Err(primitive.into()));
    let other = self::plane().token(json!({}));
    let no_keys = "[invalid bearer token, invalid signature, no keys found]";
    assert_eq!(plane.check(&other), Err(no_keys.into()));
    for garbage in ["garbage", "a.b.c", "..", "a.b", "{}", "abcdef.0123456789abcdef"] {
        assert_eq!(plane.check(garbage), Err("invalid bearer token".into()), "{garbage}");
    }
    let elsewhere = plane.token(json!({"audiences": ["vault"]}));
    assert_eq!(
        plane.check(&elsewhere),
        Err("[invalid bearer token, token audiences [\"vault\"] is invalid for the target audiences [\"https://kubernetes.default.svc\"]]".into())
    );
    let vault = plane.authenticator.check_token(&elsewhere, &["vault".into()], &Warnings::default());
    assert_eq!(vault.unwrap().audiences, ["vault"]);
}

#[test]
fn a_secret_that_asks_for_a_token_gets_one_that_lives_as_long_as_it() {
    let plane = plane();
    let mut secret = object("ns", "legacy", "u");
    assert_eq!(plane.tokens.complete_secret(&secret).unwrap(), TokenSecret::Unchanged);
    secret["type"] = "kubernetes.io/service-account-token".into();
    secret["metadata"]["annotations"] = json!({"kubernetes.io/service-account.name": "bot"});
    let TokenSecret::Store(stored) = plane.tokens.complete_secret(&secret).unwrap() else {
        panic!("not completed")
    };
    assert_eq!(stored["metadata"]["annotations"]["kubernetes.io/service-account.uid"], "sa-uid");
    assert_eq!(stored["data"]["namespace"], STANDARD.encode("ns"));
    assert_eq!(plane.tokens.complete_secret(&stored).unwrap(), TokenSecret::Unchanged);

    let held = STANDARD.decode(stored["data"]["token"].as_str().unwrap()).unwrap();
    let token = String::from_utf8(held).unwrap();
    let refused = |why: &str| Err(format!("[invalid bearer token, {why}]"));
    assert_eq!(plane.check(&token), refused("Token has been invalidated"));
    plane.objects.put(bucket::SECRETS, stored.clone());
    plane.pass(10 * 365 * 24 * 3600);
    assert_eq!(plane.check(&token).unwrap().user.name, "system:serviceaccount:ns:bot");
    plane.objects.put(bucket::SECRETS, secret.clone());
    assert_eq!(plane.check(&token), refused("Token does not match server's copy"));

    secret["metadata"]["annotations"]["kubernetes.io/service-account.uid"] = "other".into();
    assert_eq!(plane.tokens.complete_secret(&secret).unwrap(), TokenSecret::Delete);
}

#[test]
fn bootstrap_tokens_need_everything_right() {
    let good = [
        ("token-id", "abcdef"),
        ("token-secret", "0123456789abcdef"),
        ("usage-bootstrap-authentication", "true"),
        ("expiration", "2027-01-15T09:00:00Z"),
        ("auth-extra-groups", "system:bootstrappers:b,system:bootstrappers:a-1"),
    ];
    let secret = |changes: &[(&str, &str)]| {
        let data = good.iter().chain(changes).map(|(k, v)| ((*k).to_owned(), STANDARD.encode(v).into()));
        json!({
            "metadata": {"namespace": "kube-system", "name": "bootstrap-token-abcdef"},
            "type": "bootstrap.kubernetes.io/token",
            "data": Value::Object(data.collect()),
        })
    };
    let token = "abcdef.0123456789abcdef";
    let plane = plane();
    plane.objects.put(bucket::SECRETS, secret(&[]));
    let user = plane.check(token).unwrap().user;
    assert_eq!(user.name, "system:bootstrap:abcdef");
    assert_eq!(
        user.groups,
        [
            "system:bootstrappers",
            "system:bootstrappers:a-1",
            "system:bootstrappers:b",
            "system:authenticated"
        ]
    );
    for change in [
        ("token-id", "abcdeg"),
        ("token-secret", "0123456789abcdeg"),
        ("usage-bootstrap-authentication", "false"),
        ("expiration", "2027-01-15T07:00:00Z"),
        ("expiration", "soon"),
        ("auth-extra-groups", "system:masters"),
    ] {
        plane.objects.put(bucket::SECRETS, secret(&[change]));
        assert!(plane.check(token).is_err(), "{change:?}");
    }
}

#[test]
fn headers_lead_to_a_user_an_anonymous_user_or_a_rejection() {
    let plane = plane();
    let token = plane.token(json!({}));
    let table = [
        (None, Ok("system:anonymous"), None),
        (Some(format!("Bearer {token}")), Ok("system:serviceaccount:ns:bot"), None),
        (Some(format!("bearer {token} more")), Ok("system:serviceaccount:ns:bot"), None),
        (Some("Bearer configured".into()), Ok("loop"), None),
        (Some("Bearer garbage".into()), Err(401), None),
        (
            Some("Bearer  garbage".into()),
            Ok("system:anonymous"),
            Some(
                "the provided Authorization header contains extra space before the bearer token, and is ignored",
            ),
        ),
        (Some("Bearer".into()), Ok("system:anonymous"), None),
        (Some("Basic dTpw".into()), Ok("system:anonymous"), None),
    ];
    for (header, expected, warning) in table {
        let mut headers = HeaderMap::new();
        if let Some(header) = &header {
            headers.insert("authorization", HeaderValue::from_str(header).unwrap());
        }
        let warnings = Warnings::default();
        let user = plane.authenticator.authenticate(&headers, None, &warnings);
        let answer = user.as_ref().map(|user| user.name.as_str()).map_err(|status| status.code);
        assert_eq!(answer, expected, "{header:?}");
        assert_eq!(warnings.texts().first().map(String::as_str), warning, "{header:?}");
    }
    let strict = plane.authenticator.without_anonymous();
    assert!(strict.authenticate(&HeaderMap::new(), None, &Warnings::default()).is_err());
    assert!(User::anonymous().in_group(UNAUTHENTICATED));
}

#[test]
fn a_certificate_wins_over_a_token_and_a_bad_one_does_not_stop_a_good_token() {
    let plane = plane();
    let ours = plane.tokens.pki.client("ada", &["devs"]).unwrap();
    let stranger = Pki::ephemeral(plane.tokens.env.clone()).client("eve", &[]).unwrap();
    let authenticate = |credential: &capstan_pki::Credential, token: Option<&str>| {
        let mut headers = HeaderMap::new();
        if let Some(token) = token {
            headers.insert("authorization", HeaderValue::from_str(&format!("Bearer {token}")).unwrap());
        }
        let peer = plane.tokens.pki.peer(std::slice::from_ref(&credential.certificate)).map(Peer::new);
        let user = plane.authenticator.authenticate(&headers, peer.as_ref(), &Warnings::default());
        user.map(|user| user.name.clone()).map_err(|status| status.code)
    };
    assert_eq!(authenticate(&ours, None), Ok("ada".into()));
    assert_eq!(authenticate(&ours, Some("garbage")), Ok("ada".into()));
    assert_eq!(authenticate(&stranger, None), Err(401));
    assert_eq!(authenticate(&stranger, Some("configured")), Ok("loop".into()));
}
