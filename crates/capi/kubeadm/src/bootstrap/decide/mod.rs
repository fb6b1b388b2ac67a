//! What is done about a KubeadmConfig.

use std::time::Duration;

use capstan_capi_types::bootstrap::kubeadm_config::condition::CERTIFICATES_AVAILABLE;
use capstan_capi_types::bootstrap::{File, KubeadmConfig, User};
use capstan_capi_types::core::cluster::condition::CONTROL_PLANE_INITIALIZED;
use capstan_capi_types::core::{Cluster, ContractVersionedObjectReference, Machine, label, reason};
use capstan_controller::{Effect, Look, ObjectRef, Wait};
use capstan_object::{ConditionStatus, Conditions, OwnerReference, Time};
use jiff::SignedDuration;
use serde_json::json;

use super::token::{self, TokenCall, TokenState};
use super::{BootstrapController, Settings, lock, status};
use crate::boot::{self, BootData, Run};
use crate::certificates::{
    AdminKubeconfig, Authority, KeyPair, KeySettings, Place, Purpose, places_for_control_plane,
    places_for_worker,
};
use crate::{Error, config};
use capstan_capi_core::secret::{Secret, SecretError, cluster_secret};

type Decision = capstan_controller::Decision<BootstrapController>;

/// A machine that cannot go on looks again after this time, should nothing wake it.
const RETRY: Duration = Duration::from_secs(30);

/// The control plane takes requests.
pub(super) fn is_initialized(cluster: &Cluster) -> bool {
    cluster.status.conditions.is_condition_true(CONTROL_PLANE_INITIALIZED)
}

/// What is to be done. Depends on nothing but what was seen.
pub fn decide(settings: &Settings, look: &Look<BootstrapController>) -> Decision {
    let mut decision = Decision::rest(look);
    let (Some(machine), Some(cluster)) = (&look.seen.machine, &look.seen.cluster) else {
        decision.wait(Wait::on("WaitingForOwner", "the machine that boots from this, and its cluster"));
        return decision;
    };
    if look.paused.is_some() {
        status::paused(&mut decision, look);
        return decision;
    }
    if look.object.metadata.is_deleting() {
        return decision;
    }
    adopt_data(look, &mut decision);
    let made = look.object.status.initialization.data_secret_created == Some(true);
    if cluster.status.initialization.infrastructure_provisioned != Some(true) {
        status::no_data(
            &mut decision,
            look,
            "Waiting for Cluster status.initialization.infrastructureProvisioned to be true",
        );
        decision.wait(Wait::on("WaitingForInfrastructure", "the infrastructure of the cluster"));
    } else if let Some(name) = named_secret(machine)
        && (!made || look.object.status.data_secret_name.is_empty())
    {
        // A move or a restore keeps the specification and loses the status.
        record_data(&mut decision, look, name);
    } else if made {
        status::available(&mut decision, look);
        keep_token(settings, look, machine, cluster, &mut decision);
    } else {
        let step = Step { settings, look, machine, cluster };
        if let Err(error) = step.make(&mut decision) {
            status::no_data(&mut decision, look, error.to_string());
            step.release_lock(&mut decision);
            decision.again_in(RETRY);
        }
    }
    status::summarise(&mut decision, look);
    decision
}

fn named_secret(machine: &Machine) -> Option<String> {
    machine.spec.bootstrap.data_secret_name.clone().filter(|name| !name.is_empty())
}

fn record_data(decision: &mut Decision, look: &Look<BootstrapController>, name: String) {
    decision.object.status.data_secret_name = name;
    decision.object.status.initialization.data_secret_created = Some(true);
    status::available(decision, look);
}

fn owner_of_data(config: &KubeadmConfig) -> OwnerReference {
    OwnerReference { controller: Some(true), ..OwnerReference::to(config) }
}

/// The Secret with the data belongs to the configuration, also after somebody took the reference away.
fn adopt_data(look: &Look<BootstrapController>, decision: &mut Decision) {
    let Some(data) = &look.seen.data else { return };
    let owner = owner_of_data(&look.object);
    let mut owners = data.metadata.owner_references.clone();
    if owners.contains(&owner)
        || owners.iter().any(|other| other.controller == Some(true) && other.kind != owner.kind)
    {
        return;
    }
    owners.retain(|other| !other.same_owner(&owner));
    owners.push(owner);
    let change = json!({"metadata": {"ownerReferences": owners}});
    decision.then(Effect::merge_guarded(ObjectRef::to(data), &data.metadata, change));
}

/// A token that nobody has used yet is kept alive, and made again if it is gone: a machine that boots late must
/// still be able to join.
fn keep_token(
    settings: &Settings,
    look: &Look<BootstrapController>,
    machine: &Machine,
    cluster: &Cluster,
    decision: &mut Decision,
) {
    if !machine.status.node_ref.name.is_empty() || !is_initialized(cluster) {
        return;
    }
    let due = match &look.seen.token {
        TokenState::NotNeeded => return,
        TokenState::Missing | TokenState::Found { expires: None } => true,
        TokenState::Found { expires: Some(expires) } => token::is_due(*expires, settings.token_ttl, look.now),
    };
    if due {
        decision.then(Effect::Call(token_call(settings, look, cluster)));
    }
    decision.again_in(token::interval(settings.token_ttl));
}

fn token_call(settings: &Settings, look: &Look<BootstrapController>, cluster: &Cluster) -> TokenCall {
    let join = &look.object.spec.join_configuration;
    let id = boot::token(join).and_then(token::halves).map(|(id, _)| id.to_owned()).unwrap_or_default();
    let ttl = SignedDuration::try_from(settings.token_ttl).unwrap_or(SignedDuration::from_mins(15));
    TokenCall {
        namespace: cluster.metadata.namespace.clone(),
        cluster: cluster.metadata.name.clone(),
        id,
        expires: Time::new(look.now + ttl),
    }
}

/// Data is to be made.
struct Step<'a> {
    settings: &'a Settings,
    look: &'a Look<BootstrapController>,
    machine: &'a Machine,
    cluster: &'a Cluster,
}

impl Step<'_> {
    fn make(&self, decision: &mut Decision) -> Result<(), Error> {
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
        // What is wrong with the specification is found before the lock is taken, so that another machine may.
        let spec = &self.look.object.spec;
        let version = &self.machine.spec.version;
        let run = Run::Init {
            cluster_configuration: config::cluster_configuration(spec, self.cluster, version)?,
            init_configuration: config::init_configuration(&spec.init_configuration, version)?,
        };
        let (files, users) = self.resolved()?;
        let places = places_for_control_plane(&spec.cluster_configuration);
        self.check_provided(&places)?;
        for place in places.iter().filter(|place| self.look.seen.certificates.contains_key(&place.purpose)) {
            self.pair(place)?;
        }
        let mut data = BootData { run, certificates: Vec::new(), files, users, spec };
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
        if !self.certificates_there(&places, decision)? {
            return Ok(());
        }
        data.certificates = self.certificate_files(&places)?;
        self.store(data, decision)
    }

    fn join(&self, control_plane: bool, decision: &mut Decision) -> Result<(), Error> {
        let spec = &self.look.object.spec;
        let join = if control_plane {
            boot::as_control_plane(&spec.join_configuration)
        } else {
            spec.join_configuration.clone()
        };
        let places = if control_plane {
            places_for_control_plane(&spec.cluster_configuration)
        } else {
            places_for_worker(&join.ca_cert_path)
        };
        self.check_provided(&places)?;
        if !self.certificates_there(&places, decision)? {
            return Ok(());
        }
        let ca = self.pair(&places[0])?.certificate;
        let Some(mut join) = boot::with_discovery(&join, self.cluster, &ca)? else {
            status::no_data(decision, self.look, "Waiting for Cluster spec.controlPlaneEndpoint to be set");
            decision.wait(Wait::on("WaitingForEndpoint", "the endpoint of the cluster")).again_in(RETRY / 3);
            return Ok(());
        };
        if boot::uses_token(&join) && boot::token(&join).is_none() {
            join.discovery.bootstrap_token.token = token::generate(&self.look.seen.seed);
        }
        if join != spec.join_configuration {
            // Written first: the token is made in the workload cluster only once it is on record.
            decision.object.spec.join_configuration = join;
            status::no_data(decision, self.look, "Waiting for the bootstrap token to be recorded");
            return Ok(());
        }
        if boot::uses_token(&join) && self.look.seen.token == TokenState::Missing {
            decision.then(Effect::Call(token_call(self.settings, self.look, self.cluster)));
            status::no_data(decision, self.look, "Waiting for the bootstrap token to be made in the cluster");
            return Ok(());
        }
        let version = &self.machine.spec.version;
        let (mut files, users) = self.resolved()?;
        files.extend(boot::discovery_kubeconfig(&join.discovery.file));
        let (run, certificates) = if control_plane {
            let join_configuration = config::join_configuration(&join, version)?;
            (Run::JoinControlPlane { join_configuration }, self.certificate_files(&places)?)
        } else {
            let join_configuration = config::join_configuration(&boot::as_worker(&join)?, version)?;
            (Run::JoinWorker { join_configuration }, Vec::new())
        };
        self.store(BootData { run, certificates, files, users, spec }, decision)?;
        decision.again_in(token::interval(self.settings.token_ttl));
        Ok(())
    }

    fn resolved(&self) -> Result<(Vec<File>, Vec<User>), Error> {
        let (spec, seen) = (&self.look.object.spec, &self.look.seen);
        let files = boot::resolve_files(&spec.files, &seen.sources, seen.control_plane_version.as_deref())?;
        Ok((files, boot::resolve_users(&spec.users, &seen.sources)?))
    }

    fn secret_name(&self, place: &Place) -> String {
        place.purpose.secret_name(&self.cluster.metadata.name)
    }

    /// What the user must provide is there.
    fn check_provided(&self, places: &[Place]) -> Result<(), Error> {
        let missing =
            |place: &&Place| place.provided && !self.look.seen.certificates.contains_key(&place.purpose);
        match places.iter().find(missing) {
            Some(place) => Err(Error::CertificateMissing(self.secret_name(place))),
            None => Ok(()),
        }
    }

    /// Every certificate is there; what is not is made where no control plane provider makes it.
    fn certificates_there(&self, places: &[Place], decision: &mut Decision) -> Result<bool, Error> {
        let seen = &self.look.seen;
        let missing: Vec<&Place> =
            places.iter().filter(|place| !seen.certificates.contains_key(&place.purpose)).collect();
        if missing.is_empty() {
            status::set(
                decision,
                self.look,
                CERTIFICATES_AVAILABLE,
                ConditionStatus::True,
                reason::AVAILABLE,
                "",
            );
            self.make_kubeconfig(decision)?;
            return Ok(true);
        }
        let names: Vec<String> = missing.iter().map(|place| self.secret_name(place)).collect();
        let message = format!("Waiting for secrets {}", names.join(", "));
        status::set(
            decision,
            self.look,
            CERTIFICATES_AVAILABLE,
            ConditionStatus::False,
            reason::NOT_AVAILABLE,
            message.clone(),
        );
        status::no_data(decision, self.look, message);
        let standalone = self.cluster.spec.control_plane_ref == ContractVersionedObjectReference::default();
        if standalone && !is_initialized(self.cluster) {
            let spec = &self.look.object.spec.cluster_configuration;
            let keys = KeySettings::of(spec, self.settings.default_algorithm);
            let owner = OwnerReference::controlled_by(&*self.look.object);
            let meta = &self.cluster.metadata;
            for place in missing {
                let pair = KeyPair::make(place.purpose, keys, &seen.seed, self.look.now)?;
                let secret = pair.to_secret(&meta.namespace, &meta.name, place.purpose, owner.clone());
                decision.then(Effect::create(&secret));
            }
        } else {
            decision.wait(Wait::on("WaitingForCertificates", names.join(", "))).again_in(RETRY / 3);
        }
        Ok(false)
    }

    /// Without a control plane provider nobody else makes the kubeconfig of the administrator. Upstream's core does;
    /// ours knows nothing of certificates.
    fn make_kubeconfig(&self, decision: &mut Decision) -> Result<(), Error> {
        let endpoint = &self.cluster.spec.control_plane_endpoint;
        let authority = self.look.seen.certificates.get(&Purpose::ClusterCa).map(KeyPair::from_secret);
        // Who keeps the authority's key to themselves makes the kubeconfig as well.
        let authority = authority.transpose()?.filter(|authority| !authority.key.is_empty());
        let (false, true, Some(authority)) = (self.look.seen.has_kubeconfig, endpoint.is_valid(), authority)
        else {
            return Ok(());
        };
        let config = &self.look.object.spec.cluster_configuration;
        let server = format!("https://{endpoint}");
        let kubeconfig = AdminKubeconfig {
            cluster: &self.cluster.metadata.name,
            server: &server,
            algorithm: KeySettings::of(config, self.settings.default_algorithm).algorithm,
        };
        let authority = Authority::from_pair(&authority)?;
        let text = kubeconfig.render(&authority, &self.look.seen.seed, self.look.now)?;
        let owner = OwnerReference::to(self.cluster);
        decision.then(Effect::create(&kubeconfig.to_secret(&self.cluster.metadata.namespace, owner, &text)));
        Ok(())
    }

    fn pair(&self, place: &Place) -> Result<KeyPair, Error> {
        let secret = self.look.seen.certificates.get(&place.purpose);
        let pair =
            KeyPair::from_secret(secret.ok_or_else(|| Error::CertificateMissing(self.secret_name(place)))?)?;
        if pair.key.is_empty() && place.key_file.is_some() {
            let (secret, key) = (self.secret_name(place), "tls.key".to_owned());
            return Err(SecretError::KeyMissing { secret, key }.into());
        }
        Ok(pair)
    }

    fn certificate_files(&self, places: &[Place]) -> Result<Vec<File>, Error> {
        let mut files = Vec::new();
        for place in places {
            files.extend(place.files(&self.pair(place)?));
        }
        Ok(files)
    }

    /// Puts the data into its Secret, and once it is there says so.
    fn store(&self, data: BootData<'_>, decision: &mut Decision) -> Result<(), Error> {
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

    /// A machine that cannot become the first node does not keep others from it.
    fn release_lock(&self, decision: &mut Decision) {
        if let Some(found) = &self.look.seen.lock
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
