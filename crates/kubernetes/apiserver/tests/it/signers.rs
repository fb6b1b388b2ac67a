//! Approving and signing certificates needs a right for the signer.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capstan_apiserver::Config;
use capstan_apiserver::auth::User;
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};

use crate::client::Client;

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const MERGE: &str = "application/merge-patch+json";

fn request(name: &str, signer: &str) -> Value {
    let key = KeyPair::generate().expect("a key");
    let pem = CertificateParams::default().serialize_request(&key).expect("a request").pem().expect("PEM");
    json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": name},
        "spec": {"request": STANDARD.encode(pem), "signerName": signer, "usages": ["client auth"]},
    })
}

#[tokio::test]
async fn rights_to_the_approval_of_requests_are_no_rights_to_every_signer() {
    let client = Client::with(Config::in_memory().with_pod_admission()).await;
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "approver"},
        "rules": [
            {
                "apiGroups": ["certificates.k8s.io"], "verbs": ["update", "patch", "get"],
                "resources": ["certificatesigningrequests/approval", "certificatesigningrequests/status"],
            },
            {
                "apiGroups": ["certificates.k8s.io"], "resources": ["signers"], "verbs": ["approve"],
                "resourceNames": ["a.example.com/one", "b.example.com/*"],
            },
        ],
    });
    client.create(&format!("{RBAC}/clusterroles"), &role).await;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "approver"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "approver"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "eve"}],
    });
    client.create(&format!("{RBAC}/clusterrolebindings"), &binding).await;
    let eve = client.as_user(User::new("eve", ["system:authenticated"]));
    let approved = json!({"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "r"}]}});
    for (name, signer, expected) in [
        ("one", "a.example.com/one", 200),
        ("two", "a.example.com/two", 403),
        ("any", "b.example.com/any", 200),
        ("kubelet", "kubernetes.io/kube-apiserver-client", 403),
    ] {
        assert_eq!(client.create(REQUESTS, &request(name, signer)).await.0, 201, "{name}");
        let (code, answer) = eve.patch(&format!("{REQUESTS}/{name}/approval"), MERGE, &approved).await;
        assert_eq!(code, expected, "{name}: {answer}");
    }
    let failed = json!({"status": {"conditions": [{"type": "Failed", "status": "True", "reason": "r"}]}});
    let (code, refused) = eve.patch(&format!("{REQUESTS}/two/status"), MERGE, &failed).await;
    assert_eq!(code, 403, "{refused}");
    assert_eq!(
        refused["message"],
        "certificatesigningrequests.certificates.k8s.io \"two\" is forbidden: user not permitted to sign requests \
         with signerName \"a.example.com/two\""
    );
}
