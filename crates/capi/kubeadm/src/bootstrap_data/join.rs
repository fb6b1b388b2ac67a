//! The join configuration of a node, completed from its cluster.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use capstan_capi_types::bootstrap::{
    BootstrapTokenDiscovery, FileDiscovery, FileDiscoveryKubeConfig, JoinConfiguration, JoinControlPlane,
};
use capstan_capi_types::core::Cluster;
use capstan_capi_types::kubernetes::Taint;

use crate::Error;
use crate::certificates::ca_hashes;

/// Keeps pods off a worker until Cluster API has set the node's labels.
const UNINITIALIZED: &str = "node.cluster.x-k8s.io/uninitialized";

/// Whether a join uses a bootstrap token, set or still to be created.
pub fn uses_token(join: &JoinConfiguration) -> bool {
    join.discovery.file == FileDiscovery::default()
}

/// Completes the discovery, except for the token; `None` while the cluster has no endpoint. Fields set by the user
/// are kept.
pub fn with_discovery(
    join: &JoinConfiguration,
    cluster: &Cluster,
    ca_certificate: &str,
) -> Result<Option<JoinConfiguration>, Error> {
    let mut join = join.clone();
    let endpoint = &cluster.spec.control_plane_endpoint;
    if uses_token(&join) {
        let token = &mut join.discovery.bootstrap_token;
        if token.ca_cert_hashes.is_empty() {
            token.ca_cert_hashes = ca_hashes(ca_certificate)?;
        }
        if token.api_server_endpoint.is_empty() {
            if !endpoint.is_valid() {
                return Ok(None);
            }
            token.api_server_endpoint = endpoint.to_string();
        }
    } else if join.discovery.file.kube_config != FileDiscoveryKubeConfig::default() {
        let cluster = &mut join.discovery.file.kube_config.cluster;
        if cluster.server.is_empty() {
            if !endpoint.is_valid() {
                return Ok(None);
            }
            cluster.server = format!("https://{endpoint}");
        }
        if cluster.certificate_authority_data.is_empty() {
            cluster.certificate_authority_data = STANDARD.encode(ca_certificate);
        }
    }
    Ok(Some(join))
}

pub fn token(join: &JoinConfiguration) -> Option<&str> {
    let BootstrapTokenDiscovery { token, .. } = &join.discovery.bootstrap_token;
    (!token.is_empty()).then_some(token.as_str())
}

/// The join of a worker, with a taint that is removed once the node is set up and therefore is only in the rendered data.
pub fn as_worker(join: &JoinConfiguration) -> Result<JoinConfiguration, Error> {
    if join.control_plane.is_some() {
        return Err(Error::WorkerWithControlPlane);
    }
    let mut join = join.clone();
    let taints = join.node_registration.taints.get_or_insert_default();
    if !taints.iter().any(|taint| taint.key == UNINITIALIZED && taint.effect == "NoSchedule") {
        taints.push(Taint {
            key: UNINITIALIZED.to_owned(),
            effect: "NoSchedule".to_owned(),
            ..Taint::default()
        });
    }
    Ok(join)
}

pub fn as_control_plane(join: &JoinConfiguration) -> JoinConfiguration {
    let mut join = join.clone();
    join.control_plane.get_or_insert_with(JoinControlPlane::default);
    join
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificates::{KeyPair, KeySettings, Keys, Purpose, SeededKeys};
    use crate::testing::{cluster, object};
    use capstan_capi_types::bootstrap::EncryptionAlgorithmType;

    fn ca() -> String {
        let settings = KeySettings { algorithm: EncryptionAlgorithmType::EcdsaP256, authority_days: 1 };
        let seed = SeededKeys::new(1).seed("a").expect("a seed");
        KeyPair::make(Purpose::ClusterCa, settings, &seed, jiff::Timestamp::UNIX_EPOCH)
            .expect("a pair")
            .certificate
    }

    #[test]
    fn discovery_is_completed_from_the_cluster() {
        let join = with_discovery(&JoinConfiguration::default(), &cluster(), &ca()).expect("a join");
        let token = join.expect("an endpoint").discovery.bootstrap_token;
        assert_eq!(token.api_server_endpoint, "10.0.0.10:6443");
        assert_eq!(token.ca_cert_hashes, ca_hashes(&ca()).expect("hashes"));
    }

    #[test]
    fn fields_set_by_the_user_are_kept() {
        let given: JoinConfiguration = object(
            "{discovery: {bootstrapToken: {token: abcdef.0123456789abcdef, apiServerEndpoint: 'a:1', caCertHashes: ['sha256:b']}}}",
        );
        assert_eq!(with_discovery(&given, &cluster(), &ca()).expect("a join"), Some(given));
    }

    #[test]
    fn the_join_waits_for_the_endpoint() {
        let nowhere = Cluster::default();
        let file: JoinConfiguration =
            object("{discovery: {file: {kubeConfigPath: /k, kubeConfig: {user: {exec: {command: x}}}}}}");
        for join in [JoinConfiguration::default(), file] {
            assert_eq!(with_discovery(&join, &nowhere, &ca()), Ok(None));
        }
    }

    #[test]
    fn a_discovery_file_is_completed_only_if_its_kubeconfig_is_inline() {
        let own: JoinConfiguration = object("{discovery: {file: {kubeConfigPath: /k}}}");
        assert_eq!(with_discovery(&own, &cluster(), &ca()), Ok(Some(own)));
        let described: JoinConfiguration =
            object("{discovery: {file: {kubeConfigPath: /k, kubeConfig: {user: {exec: {command: x}}}}}}");
        let join = with_discovery(&described, &cluster(), &ca()).expect("a join").expect("an endpoint");
        assert_eq!(join.discovery.file.kube_config.cluster.server, "https://10.0.0.10:6443");
        let file = super::super::discovery_kubeconfig(&join.discovery.file).expect("a file");
        insta::assert_snapshot!(file.content.replace(&STANDARD.encode(ca()), "(authority)"), @r"
        apiVersion: v1
        clusters:
        - cluster:
            certificate-authority-data: (authority)
            server: https://10.0.0.10:6443
          name: default
        contexts:
        - context:
            cluster: default
            user: default
          name: default
        current-context: default
        kind: Config
        preferences: {}
        users:
        - name: default
          user:
            exec:
              apiVersion: client.authentication.k8s.io/v1
              args: []
              command: x
              env: []
              interactiveMode: Never
              provideClusterInfo: false
        ");
    }

    #[test]
    fn a_worker_has_the_uninitialized_taint_and_no_control_plane() {
        let taints = |join: &JoinConfiguration| {
            let join = as_worker(join).expect("a worker");
            join.node_registration.taints.into_iter().flatten().map(|taint| taint.key).collect::<Vec<_>>()
        };
        assert_eq!(taints(&JoinConfiguration::default()), [UNINITIALIZED]);
        let tainted: JoinConfiguration =
            object("{nodeRegistration: {taints: [{key: gpu, effect: NoExecute}]}}");
        assert_eq!(taints(&tainted), ["gpu", UNINITIALIZED]);
        assert_eq!(taints(&as_worker(&tainted).expect("a worker")), ["gpu", UNINITIALIZED]);
        let mixed = as_control_plane(&JoinConfiguration::default());
        assert_eq!(as_worker(&mixed), Err(Error::WorkerWithControlPlane));
    }
}
