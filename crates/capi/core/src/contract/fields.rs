//! Where the contract's fields are, in either version of it.

use std::collections::BTreeMap;

use capstan_capi_types::core::{APIEndpoint, FailureDomain, MachineAddress, StatusVersion};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::definition::ContractVersion;
use super::external::External;
use super::field_error::FieldError;

impl External {
    fn read<T: DeserializeOwned>(
        &self,
        path: &'static str,
        expected: &'static str,
    ) -> Result<Option<T>, FieldError> {
        let Some(value) = self.at(path)? else { return Ok(None) };
        T::deserialize(value).map(Some).map_err(|_| FieldError::new(&self.kind.kind, path, expected))
    }

    fn flag(&self, path: &'static str) -> Result<Option<bool>, FieldError> {
        self.read(path, "true or false")
    }

    fn text(&self, path: &'static str) -> Result<Option<String>, FieldError> {
        self.read(path, "text")
    }

    fn count(&self, path: &'static str) -> Result<Option<i32>, FieldError> {
        self.read(path, "a number")
    }

    fn is_old(&self) -> bool {
        self.contract == ContractVersion::V1Beta1
    }
}

/// Contract fields of an infrastructure cluster.
#[derive(Debug, Clone, Copy)]
pub struct InfrastructureCluster<'a>(pub &'a External);

impl InfrastructureCluster<'_> {
    pub fn provisioned(&self) -> Result<Option<bool>, FieldError> {
        self.0.flag(if self.0.is_old() { "status.ready" } else { "status.initialization.provisioned" })
    }

    pub fn control_plane_endpoint(&self) -> Result<Option<APIEndpoint>, FieldError> {
        self.0.read("spec.controlPlaneEndpoint", "a host and a port")
    }

    /// Sorted by name; a map in the v1beta1 contract.
    pub fn failure_domains(&self) -> Result<Option<Vec<FailureDomain>>, FieldError> {
        #[derive(Deserialize, Default)]
        #[serde(default, rename_all = "camelCase")]
        struct Old {
            control_plane: bool,
            attributes: BTreeMap<String, String>,
        }
        if self.0.is_old() {
            let domains: Option<BTreeMap<String, Old>> =
                self.0.read("status.failureDomains", "a map of failure domains")?;
            let converted = |(name, old): (String, Old)| FailureDomain {
                name,
                control_plane: Some(old.control_plane),
                attributes: old.attributes,
            };
            return Ok(domains.map(|domains| domains.into_iter().map(converted).collect()));
        }
        let domains: Option<Vec<FailureDomain>> =
            self.0.read("status.failureDomains", "a list of failure domains")?;
        Ok(domains.map(|mut domains| {
            for domain in &mut domains {
                domain.control_plane.get_or_insert(false);
            }
            domains.sort_by(|a, b| a.name.cmp(&b.name));
            domains
        }))
    }
}

/// Contract fields of an infrastructure machine.
#[derive(Debug, Clone, Copy)]
pub struct InfrastructureMachine<'a>(pub &'a External);

impl InfrastructureMachine<'_> {
    pub fn provisioned(&self) -> Result<Option<bool>, FieldError> {
        self.0.flag(if self.0.is_old() { "status.ready" } else { "status.initialization.provisioned" })
    }

    /// Equals the node's `spec.providerID`.
    pub fn provider_id(&self) -> Result<Option<String>, FieldError> {
        self.0.text("spec.providerID")
    }

    pub fn addresses(&self) -> Result<Option<Vec<MachineAddress>>, FieldError> {
        self.0.read("status.addresses", "a list of addresses")
    }

    /// Where older providers write the failure domain.
    pub fn spec_failure_domain(&self) -> Result<Option<String>, FieldError> {
        self.0.text("spec.failureDomain")
    }

    /// The actual failure domain.
    pub fn failure_domain(&self) -> Result<Option<String>, FieldError> {
        self.0.text("status.failureDomain")
    }

    /// The machine may be terminated at any time (spot instance).
    pub fn interruptible(&self) -> Result<Option<bool>, FieldError> {
        self.0.flag("status.interruptible")
    }
}

/// Contract fields of an infrastructure machine pool.
#[derive(Debug, Clone, Copy)]
pub struct InfrastructurePool<'a>(pub &'a External);

impl InfrastructurePool<'_> {
    /// Upstream reads `status.ready` in both contracts, and so providers of the newer one report that as well.
    pub fn provisioned(&self) -> Result<Option<bool>, FieldError> {
        if !self.0.is_old()
            && let Some(provisioned) = self.0.flag("status.initialization.provisioned")?
        {
            return Ok(Some(provisioned));
        }
        self.0.flag("status.ready")
    }

    /// The providerIDs of the pool's machines.
    pub fn provider_ids(&self) -> Result<Option<Vec<String>>, FieldError> {
        self.0.read("spec.providerIDList", "a list of texts")
    }

    /// Number of machines.
    pub fn replicas(&self) -> Result<Option<i32>, FieldError> {
        self.0.count("status.replicas")
    }

    /// Kind of the objects that the provider keeps for each machine, if it does.
    pub fn machine_kind(&self) -> Result<Option<String>, FieldError> {
        self.0.text("status.infrastructureMachineKind")
    }
}

/// Contract fields of a bootstrap config.
#[derive(Debug, Clone, Copy)]
pub struct BootstrapConfig<'a>(pub &'a External);

impl BootstrapConfig<'_> {
    pub fn data_secret_created(&self) -> Result<Option<bool>, FieldError> {
        self.0.flag(if self.0.is_old() { "status.ready" } else { "status.initialization.dataSecretCreated" })
    }

    pub fn data_secret_name(&self) -> Result<Option<String>, FieldError> {
        self.0.text("status.dataSecretName")
    }
}

/// Contract fields of a control plane.
#[derive(Debug, Clone, Copy)]
pub struct ControlPlane<'a>(pub &'a External);

impl ControlPlane<'_> {
    /// The control plane accepts requests.
    pub fn initialized(&self) -> Result<Option<bool>, FieldError> {
        self.0.flag(if self.0.is_old() {
            "status.initialized"
        } else {
            "status.initialization.controlPlaneInitialized"
        })
    }

    pub fn control_plane_endpoint(&self) -> Result<Option<APIEndpoint>, FieldError> {
        self.0.read("spec.controlPlaneEndpoint", "a host and a port")
    }

    /// Managed elsewhere: it has no machines.
    pub fn externally_managed(&self) -> bool {
        self.0.flag("status.externalManagedControlPlane").ok().flatten().unwrap_or(false)
    }

    pub fn desired_replicas(&self) -> Result<Option<i32>, FieldError> {
        self.0.count("spec.replicas")
    }

    pub fn replicas(&self) -> Result<Option<i32>, FieldError> {
        self.0.count("status.replicas")
    }

    pub fn ready_replicas(&self) -> Result<Option<i32>, FieldError> {
        self.0.count("status.readyReplicas")
    }

    /// The v1beta1 contract reports unavailable replicas instead.
    pub fn available_replicas(&self) -> Result<Option<i32>, FieldError> {
        if !self.0.is_old() {
            return self.0.count("status.availableReplicas");
        }
        let unavailable = self.0.count("status.unavailableReplicas")?;
        let desired = self.desired_replicas()?;
        Ok(unavailable.zip(desired).map(|(unavailable, desired)| (desired - unavailable).max(0)))
    }

    pub fn up_to_date_replicas(&self) -> Result<Option<i32>, FieldError> {
        self.0.count(if self.0.is_old() { "status.updatedReplicas" } else { "status.upToDateReplicas" })
    }

    /// Versions, and the number of machines of each.
    pub fn versions(&self) -> Result<Option<Vec<StatusVersion>>, FieldError> {
        self.0.read("status.versions", "a list of versions")
    }

    pub fn version(&self) -> Result<Option<String>, FieldError> {
        self.0.text("spec.version")
    }

    pub fn status_version(&self) -> Result<Option<String>, FieldError> {
        let lowest =
            self.versions()?.and_then(|versions| versions.into_iter().next()).map(|lowest| lowest.version);
        match lowest {
            Some(version) => Ok(Some(version)),
            None => self.0.text("status.version"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use capstan_controller::KindName;
    use serde_json::{Value, json};

    fn external(contract: ContractVersion, value: Value) -> External {
        External::new(KindName::namespaced("g", "v1", "FakeCluster", "fakeclusters"), contract, value)
    }

    #[test]
    fn an_absent_field_is_not_an_error_and_a_wrong_one_is() {
        use ContractVersion::{V1Beta1, V1Beta2};
        for (contract, value, expected) in [
            (V1Beta2, json!({"status": {"initialization": {"provisioned": true}}}), Ok(Some(true))),
            (V1Beta2, json!({"status": {"ready": true}}), Ok(None)),
            (V1Beta1, json!({"status": {"ready": true}}), Ok(Some(true))),
            (V1Beta1, json!({}), Ok(None)),
            (V1Beta1, json!({"status": {"ready": null}}), Ok(None)),
            (
                V1Beta1,
                json!({"status": {"ready": "yes"}}),
                Err(FieldError::new("FakeCluster", "status.ready", "true or false")),
            ),
            (
                V1Beta2,
                json!({"status": "ready"}),
                Err(FieldError::new("FakeCluster", "status.initialization.provisioned", "an object")),
            ),
        ] {
            let object = external(contract, value.clone());
            assert_eq!(InfrastructureCluster(&object).provisioned(), expected, "{contract:?} {value}");
        }
    }

    #[test]
    fn a_pool_of_either_contract_may_report_that_it_is_ready() {
        use ContractVersion::{V1Beta1, V1Beta2};
        for (contract, status, expected) in [
            (V1Beta2, json!({"initialization": {"provisioned": true}}), Some(true)),
            (V1Beta2, json!({"ready": true}), Some(true)),
            (V1Beta2, json!({"initialization": {"provisioned": false}, "ready": true}), Some(false)),
            (V1Beta1, json!({"initialization": {"provisioned": true}}), None),
            (V1Beta1, json!({"ready": true}), Some(true)),
        ] {
            let object = external(contract, json!({"status": status}));
            assert_eq!(InfrastructurePool(&object).provisioned(), Ok(expected), "{contract:?} {status}");
        }
    }

    #[test]
    fn failure_domains_of_both_contracts_are_equal_and_sorted() {
        let new = json!({"status": {"failureDomains": [{"name": "b", "controlPlane": true}, {"name": "a"}]}});
        let old = json!({"status": {"failureDomains": {"b": {"controlPlane": true}, "a": {}}}});
        let domain = |name: &str, control_plane| FailureDomain {
            name: name.to_owned(),
            control_plane: Some(control_plane),
            attributes: BTreeMap::new(),
        };
        let expected = Ok(Some(vec![domain("a", false), domain("b", true)]));
        assert_eq!(
            InfrastructureCluster(&external(ContractVersion::V1Beta2, new)).failure_domains(),
            expected
        );
        assert_eq!(
            InfrastructureCluster(&external(ContractVersion::V1Beta1, old)).failure_domains(),
            expected
        );
    }

    #[test]
    fn the_older_contract_reports_unavailable_replicas() {
        let old =
            |unavailable| json!({"spec": {"replicas": 3}, "status": {"unavailableReplicas": unavailable}});
        for (unavailable, available) in [(1, 2), (0, 3), (5, 0)] {
            let object = external(ContractVersion::V1Beta1, old(unavailable));
            assert_eq!(ControlPlane(&object).available_replicas(), Ok(Some(available)));
        }
    }
}
