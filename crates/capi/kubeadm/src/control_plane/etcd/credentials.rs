//! Client certificates for etcd, cached per cluster because signing one costs more than the requests it is used for.

use std::collections::BTreeMap;

use capstan_controller::{ObserveError, View};
use capstan_object::{Key, ObjectMeta};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

use super::tls::Credentials;
use crate::Error;
use crate::certificates::{KeyPair, Purpose, Seed};
use crate::control_plane::cluster_secret;

/// Credentials for a cluster's etcd, or why there are none.
pub(crate) async fn etcd_credentials(
    cluster: &Key,
    view: &View,
    seed: &Seed,
    client_certificates: &ClientCertificates,
) -> Result<Result<Credentials, String>, ObserveError> {
    let Some(found) = cluster_secret::read(view, cluster, Purpose::EtcdCa).await? else {
        return Ok(Err("the certificate of etcd's authority is missing".to_owned()));
    };
    let authority = match KeyPair::from_secret(&found) {
        Ok(authority) => authority,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let client = match authority.key.is_empty() {
        true => cluster_secret::read(view, cluster, Purpose::ApiServerEtcdClient).await?,
        false => None,
    };
    let client = client.as_ref().map(KeyPair::from_secret).transpose();
    let made = client.and_then(|client| {
        let own = client_certificates.of(cluster, &found.metadata, view.now(), || {
            Credentials::issue(&authority, client.as_ref(), seed, view.now())
        })?;
        Credentials::new(&authority, &own, view.now())
    });
    Ok(made.map_err(|error| error.to_string()))
}

/// How long a certificate is reused; it is valid for twice as long.
const REUSE_FOR: SignedDuration = SignedDuration::from_hours(12);

/// Client certificates by cluster.
#[derive(Default)]
pub(crate) struct ClientCertificates(Mutex<BTreeMap<Key, CachedCertificate>>);

struct CachedCertificate {
    /// uid and resourceVersion of the CA's Secret; a new CA invalidates the entry.
    authority: (String, String),
    made: Timestamp,
    pair: KeyPair,
}

impl ClientCertificates {
    /// The cached certificate, or a new one.
    fn of(
        &self,
        cluster: &Key,
        authority: &ObjectMeta,
        now: Timestamp,
        make: impl FnOnce() -> Result<KeyPair, Error>,
    ) -> Result<KeyPair, Error> {
        let authority = (authority.uid.clone(), authority.resource_version.clone());
        if let Some(own) = self.0.lock().get(cluster) {
            let age = now.duration_since(own.made);
            if own.authority == authority && !age.is_negative() && age < REUSE_FOR {
                return Ok(own.pair.clone());
            }
        }
        let pair = make()?;
        self.0.lock().insert(cluster.clone(), CachedCertificate { authority, made: now, pair: pair.clone() });
        Ok(pair)
    }

    pub(crate) fn forget(&self, cluster: &Key) {
        self.0.lock().remove(cluster);
    }
}
