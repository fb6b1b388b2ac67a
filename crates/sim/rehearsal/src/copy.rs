//! A copy in real time: an API server with the recorded objects, for controllers that only read their cloud.

use std::sync::Arc;

use capstan_apiserver::{Config, Server};
use capstan_capi_plane as plane;
use capstan_controller::{Client, Env};
use capstan_pki::Pki;

use crate::fork::{Kinds, Records, RehearsalError};
use crate::load;

/// Starts an API server in this process that has the recorded objects. It runs no controllers.
pub async fn serve_copy(records: &Records, kinds: &Kinds) -> Result<Server, RehearsalError> {
    let failed = |error: String| RehearsalError::NotCopied(error);
    let config = (kinds.configure)(Config::in_memory());
    let server = Server::start(config, Arc::new(Pki::ephemeral(Env::system()))).await;
    let server = server.map_err(|error| failed(error.to_string()))?;
    let client = Client::in_process(server.clone(), "capstan-copy");
    plane::install(&client, &kinds.definitions).await.map_err(|error| failed(error.to_string()))?;
    for namespace in load::namespaces(&records.0) {
        plane::ensure_namespace(&client, &namespace).await.map_err(|error| failed(error.to_string()))?;
    }
    load::load(server.store(), &records.0).await.map_err(failed)?;
    Ok(server)
}
