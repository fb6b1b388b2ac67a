//! Creates the bootstrap data of the first node or of a joining node.

use capstan_capi_types::bootstrap::{File, User};
use capstan_capi_types::core::{Cluster, Machine, label};
use capstan_controller::{Effect, Look, ObjectRef, Wait};
use serde_json::json;

use super::{Decision, RETRY, owner_of_data, record_data, token_call};
use crate::bootstrap::observed::is_initialized;
use crate::bootstrap::token::{self, TokenCall, TokenState};
use crate::bootstrap::{BootstrapController, Settings, lock, status};
use crate::bootstrap_data::{self, BootstrapData, KubeadmCommand};
use crate::certificates::{locations_for_control_plane, locations_for_worker};
use crate::{Error, config};
use capstan_capi_core::secret::{Secret, cluster_secret};

/// The inputs for creating bootstrap data.
pub(super) struct Step<'a> {
    pub settings: &'a Settings,
    pub look: &'a Look<BootstrapController>,
    pub machine: &'a Machine,
    pub cluster: &'a Cluster,
}

impl Step<'_> {
    pub fn make(&self, decision: &mut Decision) -> Result<(), Error> {
        let control_plane = self.machine.metadata.labels.contains_key(label::CONTROL_PLANE);
        if !is_initialized(self.cluster) {
            return self.first_node(control_plane, decision);
        }
        if let Some(lock) = &self.look.seen.lock {
            decision.then(Effect::delete(lock));
        }
        self.join(control_plane, decision)
    }

    fn first_node(&self, control_plane: bool, decision: &mut Decision) -> Result<(), Error> {
        let wait = |decision: &mut Decision, what: &str| {
            status::no_data(decision, self.look, "Waiting for Cluster control plane to be initialized");
            decision.wait(Wait::on("WaitingForControlPlane", what)).again_in(RETRY);
        };
        if !control_plane {
            wait(decision, "the control plane of the cluster");
            return Ok(());
        }
        // Validate the spec before taking the lock, so that another machine can take it.
        let spec = &self.look.object.spec;
        let version = &self.machine.spec.version;
        let run = KubeadmCommand::Init {
            cluster_configuration: config::cluster_configuration(spec, self.cluster, version)?,
            init_configuration: config::init_configuration(&spec.init_configuration, version)?,
        };
        let (files, users) = self.resolved()?;
        let locations = locations_for_control_plane(&spec.cluster_configuration);
        self.check_provided(&locations)?;
        for location in
            locations.iter().filter(|location| self.look.seen.certificates.contains_key(&location.purpose))
        {
            self.pair(location)?;
        }
        let mut data = BootstrapData { run, certificates: Vec::new(), files, users, spec };
        data.render()?;

        let me = &self.machine.metadata.name;
        match self.look.seen.lock.as_ref().map(|found| (found, lock::holder(found))) {
            None => {
                decision.then(Effect::create(&lock::held_by(self.cluster, me)));
                wait(decision, "the lock of the first node");
                return Ok(());
            }
            Some((_, Some(holder))) if holder == *me => {}
            Some((found, _)) if !self.look.seen.lock_holder_exists => {
                decision.then(Effect::delete(found));
                wait(decision, "the lock of a machine that is gone");
                return Ok(());
            }
            Some((_, holder)) => {
                let holder = holder.unwrap_or_default();
                wait(decision, &format!("machine {holder} to become the first node"));
                return Ok(());
            }
        }
        if !self.certificates_there(&locations, decision)? {
            return Ok(());
        }
        data.certificates = self.certificate_files(&locations)?;
        self.store(data, decision)
    }

    pub fn join(&self, control_plane: bool, decision: &mut Decision) -> Result<(), Error> {
        let spec = &self.look.object.spec;
        let join = if control_plane {
            bootstrap_data::as_control_plane(&spec.join_configuration)
        } else {
            spec.join_configuration.clone()
        };
        let locations = if control_plane {
            locations_for_control_plane(&spec.cluster_configuration)
        } else {
            locations_for_worker(&join.ca_cert_path)
        };
        self.check_provided(&locations)?;
        if !self.certificates_there(&locations, decision)? {
            return Ok(());
        }
        let ca = self.pair(&locations[0])?.certificate;
        let Some(mut join) = bootstrap_data::with_discovery(&join, self.cluster, &ca)? else {
            status::no_data(decision, self.look, "Waiting for Cluster spec.controlPlaneEndpoint to be set");
            decision.wait(Wait::on("WaitingForEndpoint", "the endpoint of the cluster")).again_in(RETRY / 3);
            return Ok(());
        };
        if bootstrap_data::uses_token(&join) && bootstrap_data::token(&join).is_none() {
            join.discovery.bootstrap_token.token = token::generate(&self.look.seen.seed, "");
        }
        if join != spec.join_configuration {
            // Recorded first: the token is created in the workload cluster only after it is in the spec.
            decision.object.spec.join_configuration = join;
            status::no_data(decision, self.look, "Waiting for the bootstrap token to be recorded");
            return Ok(());
        }
        if bootstrap_data::uses_token(&join) && self.look.seen.token == TokenState::Missing {
            decision.then(Effect::Call(token_call(self.settings, self.look, self.cluster)));
            status::no_data(
                decision,
                self.look,
                "Waiting for the bootstrap token to be created in the cluster",
            );
            return Ok(());
        }
        let version = &self.machine.spec.version;
        let (mut files, users) = self.resolved()?;
        files.extend(bootstrap_data::discovery_kubeconfig(&join.discovery.file));
        let (run, certificates) = if control_plane {
            let join_configuration = config::join_configuration(&join, version)?;
            (KubeadmCommand::JoinControlPlane { join_configuration }, self.certificate_files(&locations)?)
        } else {
            let join_configuration = config::join_configuration(&bootstrap_data::as_worker(&join)?, version)?;
            (KubeadmCommand::JoinWorker { join_configuration }, Vec::new())
        };
        self.store(BootstrapData { run, certificates, files, users, spec }, decision)?;
        decision.again_in(token::interval(self.settings.token_ttl));
        Ok(())
    }

    fn resolved(&self) -> Result<(Vec<File>, Vec<User>), Error> {
        let (spec, seen) = (&self.look.object.spec, &self.look.seen);
        let files =
            bootstrap_data::resolve_files(&spec.files, &seen.sources, seen.control_plane_version.as_deref())?;
        Ok((files, bootstrap_data::resolve_users(&spec.users, &seen.sources)?))
    }

    /// Writes the data to its Secret and, once it is there, records that in status.
    fn store(&self, data: BootstrapData<'_>, decision: &mut Decision) -> Result<(), Error> {
        let config = &self.look.object;
        let content = data.render()?;
        let wanted = cluster_secret(
            &config.metadata.namespace,
            &config.metadata.name,
            &self.cluster.metadata.name,
            owner_of_data(config),
            [("value", content.as_slice()), ("format", data.format().as_str().as_bytes())],
        );
        match &self.look.seen.data {
            None => {
                decision.then(Effect::create(&wanted));
                status::no_data(decision, self.look, "Waiting for the Secret with the data to be written");
            }
            Some(found) if found.data == wanted.data => {
                record_data(decision, self.look, config.metadata.name.clone());
            }
            Some(found) => {
                decision.then(replace_content(found, &wanted));
                status::no_data(decision, self.look, "Waiting for the Secret with the data to be written");
            }
        }
        Ok(())
    }

    /// A machine that cannot become the first node releases the lock for the others.
    pub fn release_lock(&self, decision: &mut Decision) {
        if let Some(found) = &self.look.seen.lock
            && !self.look.seen.pool
            && lock::holder(found).as_deref() == Some(self.machine.metadata.name.as_str())
        {
            decision.then(Effect::delete(found));
        }
    }
}

fn replace_content(found: &Secret, wanted: &Secret) -> Effect<TokenCall> {
    match serde_json::to_value(wanted) {
        Ok(value) => {
            Effect::merge_guarded(ObjectRef::to(found), &found.metadata, json!({"data": value["data"]}))
        }
        Err(error) => Effect::Impossible { what: "write boot data".to_owned(), why: error.to_string() },
    }
}
