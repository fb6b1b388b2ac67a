//! The sample cluster of `examples/`, on a server with simulated machines that boot at once.

use std::path::Path;

use http::Method;
use serde_json::Value;

use crate::program::{Server, ask};

/// A server with simulated machines.
pub fn simulated(dir: &Path) -> Server {
    Server::start(dir, &["--simulator", "--simulator-instant", "--simulator-port", "0"])
}

/// The objects of a file of `examples/`.
pub fn example(name: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name);
    serde_saphyr::from_multiple(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Creates objects in the default namespace.
pub async fn create(server: &Server, objects: &[Value]) {
    for object in objects {
        let version = object["apiVersion"].as_str().unwrap();
        let kind = object["kind"].as_str().unwrap().to_lowercase();
        let plural = if kind.ends_with('s') { format!("{kind}es") } else { format!("{kind}s") };
        let root = if version.contains('/') { "apis" } else { "api" };
        let path = format!("/{root}/{version}/namespaces/default/{plural}");
        let (code, answer) = ask(&server.admin(), Method::POST, &path, object).await;
        assert_eq!(code, 201, "{answer}");
    }
}

/// Creates the sample cluster, `quick`, with its network.
pub async fn quick(server: &Server) {
    create(server, &example("cni.yaml")).await;
    create(server, &example("sim-cluster.yaml")).await;
}

/// An object of a kind in the objects of a cluster.
pub fn of_kind<'a>(objects: &'a mut [Value], kind: &str) -> &'a mut Value {
    objects.iter_mut().find(|object| object["kind"] == kind).unwrap()
}
