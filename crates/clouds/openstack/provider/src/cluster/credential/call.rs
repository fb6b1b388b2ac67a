//! The calls that make and delete application credentials.

use capstan_controller::Outcome;
use capstan_object::Key;
use capstan_openstack_client::Class;
use capstan_openstack_client::identity::{NewApplicationCredential, RoleRef};
use serde_json::json;

use super::{Fresh, FreshCredentials};
use crate::cluster::call::CredentialOrder;
use crate::code;
use crate::error::{CloudError, failed};
use crate::project::Access;

/// Makes a credential and keeps its secret until it is in the Secrets.
pub(in crate::cluster) async fn create(
    name: &str,
    order: &CredentialOrder,
    (cluster, fresh): (Key, &FreshCredentials),
    access: &Access,
) -> Outcome {
    let new = NewApplicationCredential {
        name: name.to_owned(),
        description: Some(order.description.clone()),
        roles: order.roles.iter().cloned().map(RoleRef::Name).collect(),
        expires_at: order.expires.clone(),
        unrestricted: Some(false),
    };
    let made = access.client.create_application_credential(&new).await;
    access.forget_application_credentials().await;
    let made = match made {
        Ok(made) => made,
        Err(error) if error.class() == Class::Permission => {
            let message = format!(
                "{}; create the application credential in clouds.yaml with --unrestricted, or use a password there",
                CloudError::of(&error).message
            );
            return Outcome::failed(code::APPLICATION_CREDENTIAL, message);
        }
        Err(error) => return failed(&error),
    };
    let id = made.id.to_string();
    // Without a secret it is of no use. The next reconcile deletes it, and makes another.
    if let Some(secret) = made.secret {
        fresh.put(cluster, Fresh { number: order.number, id: id.clone(), secret });
    }
    Outcome::Done(json!({"id": id}))
}

pub(in crate::cluster) async fn delete(id: &str, access: &Access) -> Outcome {
    let deleted = access.client.delete_application_credential(&id.into()).await;
    access.forget_application_credentials().await;
    match deleted {
        Ok(_) => Outcome::done(),
        Err(error) => failed(&error),
    }
}
