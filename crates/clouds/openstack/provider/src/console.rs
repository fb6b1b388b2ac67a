//! Consoles of machines, as Nova keeps them.

use capstan_controller::Client;
use capstan_object::Key;
use capstan_openstack_types::v1alpha1::OpenStackServer;
use capstan_provider_kit::{ConsoleReader, ProviderError, Secret};
use clap::ArgMatches;
use futures::future::BoxFuture;
use serde_json::Value;

use crate::clouds::Clouds;
use crate::plugin::OpenStack;
use crate::references;

/// Lines that are asked for. Nova keeps the end of a console.
const LINES: u32 = 10_000;

impl ConsoleReader for OpenStack {
    fn kind(&self) -> &'static str {
        "OpenStackMachine"
    }

    fn read<'a>(
        &'a self,
        client: &'a Client,
        machine: &'a str,
        object: &'a Value,
        _: &'a ArgMatches,
    ) -> BoxFuture<'a, Result<String, ProviderError>> {
        Box::pin(read(self.clouds(), client, machine, object))
    }
}

async fn read(
    clouds: &Clouds,
    client: &Client,
    machine: &str,
    object: &Value,
) -> Result<String, ProviderError> {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    let key = Key::new(text("namespace"), text("name"));
    let server = client.get::<OpenStackServer>(&key).await?;
    let unmade =
        || ProviderError::new(format!("machine {machine} has printed nothing yet: it has no server"));
    let server = server.ok_or_else(unmade)?;
    let id = server.status.instance_id.clone().ok_or_else(unmade)?;
    let reference = &server.spec.identity_ref;
    let secret = references::secret(client, reference, &key.namespace).await?;
    let secret = secret.ok_or_else(|| {
        ProviderError::new(format!("there is no OpenStackClusterIdentity {}: create it", reference.name))
    })?;
    let content = client.get::<Secret>(&secret).await?;
    let content = content.ok_or_else(|| ProviderError::new(format!("there is no Secret {secret}")))?;
    let failed =
        |why: String| ProviderError::new(format!("the console of server {id} cannot be read: {why}"));
    let access = clouds.open(reference, &secret, &content).await.map_err(|error| failed(error.text()))?;
    let console = access.client.console_output(&id.as_str().into(), LINES).await;
    console.map(|console| console.output.expose().to_owned()).map_err(|error| failed(error.to_string()))
}
