//! `cargo xtask oidc`: a user signs in with a real Dex and uses our API with the token.
//!
//! The claims are mapped by CEL. Dex is then started again with new keys: a new token is accepted without a restart of
//! the server, and a token of the old keys is refused as soon as the new ones are known.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use clap::Args;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::api::{Api, Reply};
use crate::bed::pki::Pki;
use crate::bed::process::{Process, Program};
use crate::bed::{Server, Workdir, capstan, kubeconfig, ports::free_port, wait};
use crate::peers::{self, catalog};
use crate::text::human_duration;

const PROGRAM: &str = include_str!("dex.go");
/// Dex of that time names no versions of what it needs: these are known to work.
const GO_MOD: &str = include_str!("dex.mod");
const CLIENT: &str = "capstan";
const CALLBACK: &str = "http://127.0.0.1/callback";
const EMAIL: &str = "ada@engines.example";

#[derive(Debug, Args)]
pub struct Options {
    /// Our binary [default: built with the profile `ci`]
    #[arg(long)]
    capstan: Option<PathBuf>,
}

pub async fn run(options: Options) -> Result<()> {
    let begin = Instant::now();
    let binary = capstan::binary(options.capstan.as_deref())?;
    let mut workdir = Workdir::new("oidc")?;
    let pki = Pki::create(&workdir.folder("pki")?)?;
    let dex = Dex::build(&pki, workdir.path())?;
    let authority = String::from_utf8(pki.read("ca.crt")?)?;
    let config = workdir.path().join("authentication.yaml");
    std::fs::write(&config, configuration(&dex.issuer, &authority).to_string())?;
    let folder = workdir.folder("server")?;
    let arguments =
        ["--api-only", "--authentication-config", config.to_str().context("the path is not UTF-8")?];
    let server = Server::capstan_with(&folder, &binary, free_port()?, &arguments).await?;
    let admin = server.api()?;
    let access = kubeconfig::read(&server.kubeconfig)?;
    let api = Api::anonymous(&access)?;

    let running = dex.start().await?;
    let first = dex.sign_in("sesame").await?.context("no token")?;
    ensure!(dex.sign_in("wrong").await?.is_none(), "a wrong password gives a token");
    let user = who_am_i(&api, &first).await?.success()?;
    let info = &user["status"]["userInfo"];
    ensure!(info["username"] == format!("dex:{EMAIL}"), "{user}");
    let groups: Vec<&str> =
        info["groups"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    ensure!(groups == ["dex:engines.example", "system:authenticated"], "{user}");
    ensure!(info["extra"]["engines.example/name"] == json!(["ada"]), "{user}");
    println!("signed in with Dex {} as {} of {groups:?}", catalog::DEX, info["username"]);

    let maps = "/api/v1/namespaces/default/configmaps";
    let before = with_token(&api, Method::GET, maps, &first).await?;
    ensure!(before.status == StatusCode::FORBIDDEN, "without a role: {}", before.status);
    let binding = json!({"metadata": {"name": "engineers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "Group", "name": "dex:engines.example", "apiGroup": "rbac.authorization.k8s.io"}]});
    admin.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).await?.success()?;
    wait::until("a role for the group", Duration::from_secs(10), || async {
        let reply = with_token(&api, Method::GET, maps, &first).await?;
        Ok(reply.status.is_success().then_some(()))
    })
    .await?;
    let changed = tampered(&first)?;
    ensure!(
        who_am_i(&api, &changed).await?.status == StatusCode::UNAUTHORIZED,
        "a changed token is accepted"
    );
    println!("a role of the group counts; a changed token is refused");

    drop(running);
    let _running = dex.start().await?;
    let second = dex.sign_in("sesame").await?.context("no token after new keys")?;
    // The server asks for keys at most every ten seconds.
    wait::until("a token of the new keys", Duration::from_secs(30), || async {
        Ok(who_am_i(&api, &second).await?.status.is_success().then_some(()))
    })
    .await?;
    let old = who_am_i(&api, &first).await?;
    ensure!(old.status == StatusCode::UNAUTHORIZED, "a token of the old keys: {}", old.status);
    println!("new keys are fetched; tokens of the old ones are refused");
    println!("oidc: passed in {}", human_duration(begin.elapsed()));
    workdir.passed();
    Ok(())
}

/// Claims by CEL, with rules that the tokens of this Dex keep.
fn configuration(issuer: &str, authority: &str) -> Value {
    json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
        "jwt": [{
            "issuer": {"url": issuer, "certificateAuthority": authority, "audiences": [CLIENT]},
            "claimValidationRules": [
                {"expression": "claims.email_verified == true", "message": "the address is not verified"},
            ],
            "claimMappings": {
                "username": {"expression": "'dex:' + claims.email"},
                "groups": {"expression": "['dex:' + claims.email.split('@')[1]]"},
                "uid": {"expression": "claims.sub"},
                "extra": [{"key": "engines.example/name", "valueExpression": "claims.name"}],
            },
            "userValidationRules": [
                {"expression": "!user.username.startsWith('system:')", "message": "a reserved name"},
            ],
        }],
    })
}

/// A Dex that can be started.
struct Dex {
    program: PathBuf,
    folder: PathBuf,
    issuer: String,
    arguments: Vec<String>,
    api: Api,
}

impl Dex {
    fn build(pki: &Pki, folder: &Path) -> Result<Self> {
        let program = peers::small_program("dex", GO_MOD, PROGRAM)?;
        let web = peers::module_dir(catalog::DEX_MODULE, &format!("v{}", catalog::DEX))?.join("web");
        let port = free_port()?;
        let (address, issuer) = (format!("127.0.0.1:{port}"), format!("https://127.0.0.1:{port}/dex"));
        let files = [pki.path("server.crt"), pki.path("server.key"), web];
        let files = files.iter().map(|path| path.display().to_string());
        let arguments = [address, issuer.clone()].into_iter().chain(files).collect();
        let api = Api::without_credentials(&format!("https://127.0.0.1:{port}"), &pki.read("ca.crt")?)?;
        Ok(Self { program, folder: folder.to_owned(), issuer, arguments, api })
    }

    async fn start(&self) -> Result<Process> {
        let mut process =
            Program::new("dex", &self.program).args(self.arguments.clone()).start(&self.folder)?;
        let deadline = Instant::now() + Duration::from_secs(30);
        while !self.api.get("/dex/keys").await.is_ok_and(|reply| reply.status.is_success()) {
            process.check()?;
            ensure!(Instant::now() < deadline, "Dex does not answer");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(process)
    }

    /// The authorization code flow, as a browser and a client go through it. `None` if the password is refused.
    async fn sign_in(&self, password: &str) -> Result<Option<String>> {
        let query = [
            ("client_id", CLIENT),
            ("redirect_uri", CALLBACK),
            ("response_type", "code"),
            ("scope", "openid email profile"),
            ("state", "xyz"),
        ];
        let mut path = format!("/dex/auth?{}", form(&query));
        // With one connector, Dex redirects to its form.
        let form_path = loop {
            let reply = self.api.get(&path).await?;
            match location(&reply) {
                Some(next) => path = self.local(&next)?,
                None if reply.status.is_success() => break path,
                None => bail!("{path}: {}", reply.status),
            }
        };
        let entered = form(&[("login", EMAIL), ("password", password)]);
        let mut reply = self.post(&form_path, &[], entered).await?;
        let code = loop {
            let Some(next) = location(&reply) else {
                // A wrong password brings the form again.
                ensure!(reply.status.is_success(), "Dex answers {}", reply.status);
                return Ok(None);
            };
            if let Some(query) = next.strip_prefix(&format!("{CALLBACK}?")) {
                ensure!(query.contains("state=xyz"), "{query}");
                break query
                    .split('&')
                    .find_map(|pair| pair.strip_prefix("code="))
                    .context("no code")?
                    .to_owned();
            }
            reply = self.api.get(&self.local(&next)?).await?;
        };
        let fields = [("grant_type", "authorization_code"), ("code", &code), ("redirect_uri", CALLBACK)];
        let secret = [("client_id", CLIENT), ("client_secret", "client-secret")];
        let answer = self.post("/dex/token", &[], form(&[&fields[..], &secret].concat())).await?.json()?;
        let token = answer["id_token"].as_str().with_context(|| format!("no token: {answer}"))?;
        Ok(Some(token.to_owned()))
    }

    async fn post(&self, path: &str, headers: &[(&str, &str)], body: String) -> Result<Reply> {
        let kind = [("content-type", "application/x-www-form-urlencoded")];
        self.api.send(Method::POST, path, &[&kind[..], headers].concat(), Bytes::from(body)).await
    }

    /// The path of a redirect that stays at Dex.
    fn local(&self, location: &str) -> Result<String> {
        let base = self.issuer.trim_end_matches("/dex");
        let path = location.strip_prefix(base).unwrap_or(location);
        ensure!(path.starts_with('/'), "Dex redirects to {location}");
        Ok(path.to_owned())
    }
}

fn form(pairs: &[(&str, &str)]) -> String {
    let encode = |text: &str| {
        percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
    };
    let pairs: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
    pairs.join("&")
}

fn location(reply: &Reply) -> Option<String> {
    let location = reply.headers.get(http::header::LOCATION)?.to_str().ok()?;
    reply.status.is_redirection().then(|| location.to_owned())
}

async fn with_token(api: &Api, method: Method, path: &str, token: &str) -> Result<Reply> {
    api.send(method, path, &[("authorization", &format!("Bearer {token}"))], Bytes::new()).await
}

async fn who_am_i(api: &Api, token: &str) -> Result<Reply> {
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}).to_string();
    let headers =
        [("authorization", format!("Bearer {token}")), ("content-type", "application/json".to_owned())];
    let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    api.send(Method::POST, path, &headers, Bytes::from(body)).await
}

/// The token with another address in its claims and the old signature.
fn tampered(token: &str) -> Result<String> {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let parts: Vec<&str> = token.split('.').collect();
    let [header, claims, signature] = parts[..] else { bail!("the token has {} parts", parts.len()) };
    let claims = String::from_utf8(URL_SAFE_NO_PAD.decode(claims)?)?.replace("ada@", "eve@");
    Ok(format!("{header}.{}.{signature}", URL_SAFE_NO_PAD.encode(claims)))
}
