//! Images: what disks are made from.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};

use crate::client::{Body, Call, Client, open};
use crate::error::Error;
use crate::id::Id;
use crate::loose::{Time, model, request, words};
use crate::resource::{item, resources, unwritable, verbs, with_body};
use crate::service::Service;

words! {
    /// How far an image is.
    pub enum ImageStatus {
        /// It has no data yet.
        Queued = "queued",
        /// Data comes in.
        Saving = "saving",
        /// Data comes in to be imported.
        Uploading = "uploading",
        /// Data is imported.
        Importing = "importing",
        /// It can be used.
        Active = "active",
        /// It failed.
        Killed = "killed",
        /// It is gone.
        Deleted = "deleted",
        /// It goes.
        PendingDelete = "pending_delete",
        /// Its data is not handed out.
        Deactivated = "deactivated",
    }
}

model! {
    /// An image.
    pub struct Image {
        /// Id of the image.
        pub id: Id<Image>,
        /// Its name, which other images may have too.
        pub name: String,
        /// How far it is.
        pub status: ImageStatus,
        /// Project that owns the image.
        pub owner: String,
        /// `private`, `shared`, `community` or `public`.
        pub visibility: String,
        /// It does not show in lists.
        pub os_hidden: bool,
        /// It cannot be deleted.
        pub protected: bool,
        /// Tags of the image.
        pub tags: Vec<String>,
        /// Bytes.
        pub size: Option<u64>,
        /// Bytes of the disk inside.
        pub virtual_size: Option<u64>,
        /// The disk must have so many GiB.
        pub min_disk: u64,
        /// The server must have so many MiB.
        pub min_ram: u64,
        /// `qcow2`, `raw`, ….
        pub disk_format: Option<String>,
        /// `bare`, ….
        pub container_format: Option<String>,
        /// What `os_hash_value` was made with.
        pub os_hash_algo: Option<String>,
        /// Of the data.
        pub os_hash_value: Option<String>,
        /// When it was made.
        pub created_at: Option<Time>,
        /// Everything else: properties such as `os_distro` and `hw_disk_bus`.
        #[serde(flatten)]
        pub properties: BTreeMap<String, Value>,
    }

    /// What became of an import.
    pub struct ImageTask {
        /// Id of the image task.
        pub id: String,
        /// `pending`, `processing`, `success` or `failure`.
        pub status: String,
        /// Why it failed, or how far it is.
        pub message: String,
        /// When it began.
        pub created_at: Option<Time>,
        /// When it changed last.
        pub updated_at: Option<Time>,
    }

    /// How data can be brought in.
    pub struct ImportMethods {
        /// The names of the methods, such as `web-download`.
        pub value: Vec<String>,
    }
}

impl Image {
    /// A property, which is always a text.
    pub fn property(&self, name: &str) -> Option<&str> {
        self.properties.get(name)?.as_str()
    }
}

request! {
    /// What images can be narrowed by.
    pub struct ImageFilter {
        /// Its name, whatever the case.
        pub name: Option<String>,
        /// All of these words.
        pub tag: Vec<String>,
        /// How far it is.
        pub status: Option<ImageStatus>,
        /// Who sees it. Community images are listed only when asked for.
        pub visibility: Option<String>,
        /// Project that owns the image.
        pub owner: Option<String>,
        /// Properties that it has.
        #[serde(flatten)]
        pub properties: BTreeMap<String, String>,
    }

    /// A new image, without its data.
    pub struct NewImage {
        /// Name of the image.
        pub name: String,
        /// `qcow2`, `raw`, …; needed before data comes.
        pub disk_format: Option<String>,
        /// `bare`, …; needed before data comes.
        pub container_format: Option<String>,
        /// Who sees it; `shared` if left out. `public` is for administrators.
        pub visibility: Option<String>,
        /// Tags of the image.
        pub tags: Vec<String>,
        /// The disk must have so many GiB.
        pub min_disk: Option<u64>,
        /// The server must have so many MiB.
        pub min_ram: Option<u64>,
        /// It cannot be deleted.
        pub protected: Option<bool>,
        /// Properties; texts only.
        #[serde(flatten)]
        pub properties: BTreeMap<String, String>,
    }
}

resources! {
    Image: Image "images" None, "images" by ImageFilter;
}

verbs! {
    Image: new NewImage, delete;
}

/// What changes of an image: a JSON patch of the service's own kind.
const PATCH: &str = "application/openstack-images-v2.1-json-patch";

impl Client {
    /// Sets properties of an image.
    pub async fn set_image_properties(
        &self,
        image: &Id<Image>,
        properties: &BTreeMap<String, String>,
    ) -> Result<Image, Error> {
        let patch: Vec<Value> = properties
            .iter()
            .map(|(name, value)| {
                // `add` replaces what is there; `replace` is refused if nothing is.
                let path = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
                json!({ "op": "add", "path": path, "value": value })
            })
            .collect();
        let path = item("images", image);
        let mut call = Call::change(Service::Image, Method::PATCH, path, Body::None).idempotent();
        self.checked_id(image, &call)?;
        let body = serde_json::to_vec(&patch).map_err(|error| unwritable(&call, &error))?;
        call.body = Body::Other(PATCH, Bytes::from(body));
        let reply = self.send(&call).await?;
        open(&call, &reply, None)
    }

    /// Hands in the data of an image that has none. All of it is in memory: for small images, and for tests.
    pub async fn upload_image(&self, image: &Id<Image>, data: Bytes) -> Result<(), Error> {
        let path = format!("{}/file", item("images", image));
        let body = Body::Other("application/octet-stream", data);
        let call = Call::change(Service::Image, Method::PUT, path, body);
        self.checked_id(image, &call)?;
        self.send(&call).await.map(drop)
    }

    /// Lets the service fetch the data of an image itself. The image is `active` a while later.
    pub async fn import_image(&self, image: &Id<Image>, url: &str) -> Result<(), Error> {
        let path = format!("{}/import", item("images", image));
        let call = Call::change(Service::Image, Method::POST, path, Body::None);
        self.checked_id(image, &call)?;
        let method = json!({ "method": { "name": "web-download", "uri": url } });
        self.send(&with_body(call, None, &method)?).await.map(drop)
    }

    /// The imports of an image: one that failed leaves it `queued`, and only its task says why.
    pub async fn image_tasks(&self, image: &Id<Image>) -> Result<Vec<ImageTask>, Error> {
        let call = Call::read(Service::Image, format!("{}/tasks", item("images", image)));
        self.checked_id(image, &call)?;
        self.read(&call, Some("tasks")).await
    }

    /// How data can be brought in: `web-download` is off in many clouds.
    pub async fn import_methods(&self) -> Result<Vec<String>, Error> {
        let call = Call::read(Service::Image, "info/import");
        let methods: ImportMethods = self.read(&call, Some("import-methods")).await?;
        Ok(methods.value)
    }
}
