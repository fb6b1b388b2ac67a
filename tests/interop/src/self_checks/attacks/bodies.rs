//! Bodies that are small on the wire and large or slow inside.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::future::join_all;
use serde_json::json;

use super::{Attempt, Target, refused};

const JSON: &[(&str, &str)] = &[("content-type", "application/json")];
const YAML: &[(&str, &str)] = &[("content-type", "application/yaml")];
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps?dryRun=All";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All";
/// Requests that are sent together.
const AT_ONCE: usize = 32;
/// CPU time that one request may take: less than the square of its size took.
const SOON: Duration = Duration::from_secs(6);

pub const ALL: &[Attempt] = &[
    Attempt {
        name: "duplicate keys below long keys",
        expected: "the body is decoded with bounded errors, or is too large",
        run: |target| Box::pin(duplicate_keys(target)),
    },
    Attempt {
        name: "many small values",
        expected: "a body whose values need much memory is 413",
        run: |target| Box::pin(small_values(target)),
    },
    Attempt {
        name: "deep nesting",
        expected: "JSON and YAML nested too deep are 400",
        run: |target| Box::pin(deep_nesting(target)),
    },
    Attempt {
        name: "YAML alias bomb",
        expected: "aliases that expand to much are an error",
        run: |target| Box::pin(yaml_bomb(target)),
    },
    Attempt {
        name: "compressed body",
        expected: "a gzip body is not decompressed",
        run: |target| Box::pin(gzip_bomb(target)),
    },
    Attempt {
        name: "15,000 owner references",
        expected: "work grows with the size of the body, not with its square",
        run: |target| Box::pin(owner_references(target)),
    },
    Attempt {
        name: "100,000 unknown fields",
        expected: "work grows with the size of the body, not with its square",
        run: |target| Box::pin(unknown_fields(target)),
    },
    Attempt {
        name: "many dense bodies at once",
        expected: "each is answered; together they stay within the memory of the server",
        run: |target| Box::pin(dense_bodies(target)),
    },
    Attempt {
        name: "CEL rules that cost much",
        expected: "rules over the cost limit are rejected when they are created",
        run: |target| Box::pin(cel(target)),
    },
    Attempt {
        name: "regular expression bomb",
        expected: "a pattern that compiles to much is rejected or cheap",
        run: |target| Box::pin(regex(target)),
    },
    Attempt {
        name: "JSON patch that copies",
        expected: "copies may add a few MiB and no more",
        run: |target| Box::pin(copies(target)),
    },
    Attempt {
        name: "endless body",
        expected: "a body over the limit is 413",
        run: |target| Box::pin(large_body(target)),
    },
    Attempt {
        name: "malformed protobuf",
        expected: "lengths and nesting that lie are 400",
        run: |target| Box::pin(protobuf(target)),
    },
];

async fn duplicate_keys(target: &Target) -> Result<()> {
    let key = "k".repeat(50_000);
    let fields = vec!["\"a\":0"; 400_000].join(",");
    let body = format!("{{\"{key}\":{{\"{key}\":{{{fields}}}}}}}");
    target
        .within(SOON, async {
            for validation in ["Strict", "Warn", "Ignore"] {
                let path = format!("{CONFIG_MAPS}&fieldValidation={validation}");
                let reply = target.send("POST", &path, JSON, body.clone()).await?;
                refused("duplicate keys", &reply, &[400, 413, 422])?;
                ensure!(reply.body.len() < 2 << 20, "the answer has {} bytes", reply.body.len());
            }
            Ok(())
        })
        .await
}

async fn small_values(target: &Target) -> Result<()> {
    for text in [vec![r#"{"":0}"#; 400_000].join(","), vec!["[0]"; 700_000].join(",")] {
        let body = format!("{{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"x\":[{text}]}}");
        refused("JSON", &target.send("POST", CONFIG_MAPS, JSON, body.clone()).await?, &[400, 413])?;
        refused("YAML", &target.send("POST", CONFIG_MAPS, YAML, body).await?, &[400, 413])?;
    }
    Ok(())
}

async fn deep_nesting(target: &Target) -> Result<()> {
    let deep = format!("{}1{}", "[".repeat(200_000), "]".repeat(200_000));
    for body in [deep.clone(), format!("{{\"x\":{deep}}}"), "{\"a\":".repeat(100_000)] {
        refused("JSON", &target.send("POST", CONFIG_MAPS, JSON, body.clone()).await?, &[400, 413])?;
        refused("YAML", &target.send("POST", CONFIG_MAPS, YAML, body).await?, &[400, 413])?;
    }
    Ok(())
}

async fn yaml_bomb(target: &Target) -> Result<()> {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let below = vec![format!("*a{}", level - 1); 9].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{below}]\n"));
    }
    refused("POST", &target.send("POST", CONFIG_MAPS, YAML, text.clone()).await?, &[400, 413])?;
    let apply = [("content-type", "application/apply-patch+yaml")];
    let path = "/api/v1/namespaces/default/configmaps/bomb?fieldManager=x";
    refused("apply", &target.send("PATCH", path, &apply, text).await?, &[400, 413])
}

async fn gzip_bomb(target: &Target) -> Result<()> {
    // The magic number of gzip is enough: nothing looks further.
    let headers = [("content-type", "application/json"), ("content-encoding", "gzip")];
    let reply = target.send("POST", CONFIG_MAPS, &headers, "\u{1f}\u{8b}\u{8}".repeat(1000)).await?;
    refused("gzip", &reply, &[400, 415])
}

async fn owner_references(target: &Target) -> Result<()> {
    let owner =
        |n: usize| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": format!("u{n}")});
    let owners: Vec<_> = (0..15_000).map(owner).collect();
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "q", "ownerReferences": owners}});
    target
        .within(SOON, async {
            target.send("POST", CONFIG_MAPS, JSON, body.to_string()).await?;
            Ok(())
        })
        .await
}

async fn unknown_fields(target: &Target) -> Result<()> {
    let unknown: String = (0..100_000).map(|n| format!(",\"u{n}\":0")).collect();
    let body =
        format!("{{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{{\"name\":\"q\"}}{unknown}}}");
    for validation in ["Strict", "Warn", "Ignore"] {
        let path = format!("{CONFIG_MAPS}&fieldValidation={validation}&dryRun=All");
        let attack = async { target.send("POST", &path, JSON, body.clone()).await.map(drop) };
        target.within(SOON, attack).await.with_context(|| validation.to_owned())?;
    }
    Ok(())
}

/// Bodies just under the limit of one request, whose values need many times their size.
async fn dense_bodies(target: &Target) -> Result<()> {
    let fields = vec!["\"a\":[{}]"; 200_000].join(",");
    let values = vec!["{\"a\":0}"; 300_000].join(",");
    for body in [format!("{{\"x\":{{{fields}}}}}"), format!("{{\"x\":[{values}]}}")] {
        let create = (0..AT_ONCE).map(|_| target.send("POST", CONFIG_MAPS, JSON, body.clone()));
        let path = "/api/v1/namespaces/default/configmaps/dense?fieldManager=x";
        let apply = [("content-type", "application/apply-patch+yaml")];
        let applied = (0..AT_ONCE).map(|_| target.send("PATCH", path, &apply, body.clone()));
        for reply in join_all(create).await.into_iter().chain(join_all(applied).await) {
            refused("a dense body", &reply?, &[400, 413, 415, 422, 429])?;
        }
    }
    Ok(())
}

fn definition(schema: serde_json::Value) -> String {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "bombs.attack.example.com"},
        "spec": {
            "group": "attack.example.com", "scope": "Namespaced",
            "names": {"plural": "bombs", "singular": "bomb", "kind": "Bomb"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": schema},
            }}}],
        },
    })
    .to_string()
}

async fn cel(target: &Target) -> Result<()> {
    let list = json!({"type": "array", "items": {"type": "string"}});
    let rule = "self.a.all(x, self.a.all(y, self.a.all(z, x + y + z != '')))";
    let schema = json!({
        "type": "object", "properties": {"a": list}, "x-kubernetes-validations": [{"rule": rule}],
    });
    let reply = target.send("POST", DEFINITIONS, JSON, definition(schema)).await?;
    refused("a rule over unbounded lists", &reply, &[422])?;
    let nested = format!("{}1{}", "(".repeat(50_000), ")".repeat(50_000));
    let schema = json!({"type": "object", "x-kubernetes-validations": [{"rule": nested}]});
    refused("a nested rule", &target.send("POST", DEFINITIONS, JSON, definition(schema)).await?, &[400, 422])
}

async fn regex(target: &Target) -> Result<()> {
    target
        .within(SOON, async {
            for pattern in [
                "(((a{1,1000}){1,1000}){1,1000})",
                "(a*)*b",
                r"(\pL{500}){500}",
                "((((((((((a+)+)+)+)+)+)+)+)+)+)$",
            ] {
                let schema =
                    json!({"type": "object", "properties": {"p": {"type": "string", "pattern": pattern}}});
                let reply = target.send("POST", DEFINITIONS, JSON, definition(schema)).await?;
                refused(pattern, &reply, &[201, 422])?;
            }
            Ok(())
        })
        .await
}

async fn copies(target: &Target) -> Result<()> {
    let object = json!({"metadata": {"name": "copied"}, "data": {"a": "x".repeat(100_000)}});
    target.api.post("/api/v1/namespaces/default/configmaps", &object).await?;
    let copy = |n: usize| json!({"op": "copy", "from": "/data", "path": format!("/data/c{n}")});
    let patch: Vec<_> = (0..40).map(copy).collect();
    let headers = [("content-type", "application/json-patch+json")];
    let path = "/api/v1/namespaces/default/configmaps/copied";
    let reply = target.send("PATCH", path, &headers, json!(patch).to_string()).await?;
    refused("copies", &reply, &[400, 413, 422])
}

async fn large_body(target: &Target) -> Result<()> {
    let reply = target.send("POST", CONFIG_MAPS, JSON, " ".repeat(32 << 20)).await;
    // The server may close the connection before the body is sent.
    reply.map_or(Ok(()), |reply| refused("32 MiB", &reply, &[413]))
}

async fn protobuf(target: &Target) -> Result<()> {
    let headers = [("content-type", "application/vnd.kubernetes.protobuf")];
    let lies: [&[u8]; 4] = [
        b"k8s\0\x0a\xff\xff\xff\xff\x0f",
        b"k8s\0\x12\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
        b"k8s\0",
        b"k8s",
    ];
    for lie in lies {
        let method = http::Method::POST;
        let reply =
            target.api.send(method, CONFIG_MAPS, &headers, bytes::Bytes::copy_from_slice(lie)).await?;
        refused("protobuf", &reply, &[400, 413, 422])?;
    }
    Ok(())
}
