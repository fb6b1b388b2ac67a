//! Things of a service, and what can be done with all of them.

use bytes::Bytes;
use http::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::client::{Body, Call, Client, open};
use crate::error::{Error, ErrorKind};
use crate::id::Id;
use crate::microversion::Wanted;
use crate::pages::Paging;
use crate::query;
use crate::service::Service;

/// A kind of thing that has an id.
pub trait Resource: DeserializeOwned + Send + Sized {
    /// Whose it is.
    const SERVICE: Service;
    /// Its collection in URLs.
    const PATH: &'static str;
    /// The key of one in a body; none where the body is the thing.
    const ONE: Option<&'static str>;
    /// The microversions whose answers are understood; none for services or things without.
    const WANTED: Option<Wanted> = None;
}

/// Things that can be listed.
pub trait List: Resource {
    /// The path of the list, where it is not the collection's.
    const LIST_PATH: &'static str = Self::PATH;
    /// The key of the list in a body.
    const MANY: &'static str;
    /// How the pages of the list follow each other.
    const PAGING: Paging = Paging::Marker;
    /// What a list can be narrowed by.
    type Filter: Serialize + Sync;

    /// The id, which is the marker of the page behind it.
    fn marker(&self) -> &str;
}

/// Things that can be made.
pub trait Create: Resource {
    /// What is said of a new one.
    type New: Serialize + Sync;

    /// What this one needs of the service beyond [`Resource::WANTED`].
    fn needs(_new: &Self::New) -> Option<Wanted> {
        Self::WANTED
    }
}

/// Things that can be changed.
pub trait Update: Resource {
    /// What can be changed.
    type Change: Serialize + Sync;
}

/// Things that can be removed.
pub trait Delete: Resource {}

/// What came of a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// The service removes it, or did.
    Accepted,
    /// It was not there.
    Absent,
}

impl Client {
    /// One thing.
    pub async fn get<R: Resource>(&self, id: &Id<R>) -> Result<R, Error> {
        let call = Call::read(R::SERVICE, item(R::PATH, id)).wanting(R::WANTED);
        self.checked(id, call).await
    }

    /// One thing, if it is there.
    pub async fn find<R: Resource>(&self, id: &Id<R>) -> Result<Option<R>, Error> {
        match self.get(id).await {
            Ok(thing) => Ok(Some(thing)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Everything that a filter finds.
    pub async fn list<R: List>(&self, filter: &R::Filter) -> Result<Vec<R>, Error> {
        self.list_at::<R>(R::LIST_PATH, filter).await
    }

    /// The one thing that a filter finds, if there is one. Names are not unique.
    pub async fn find_one<R: List>(&self, filter: &R::Filter) -> Result<Option<R>, Error> {
        let mut found = self.list::<R>(filter).await?;
        match found.len() {
            0 | 1 => Ok(found.pop()),
            several => Err(Call::read(R::SERVICE, R::LIST_PATH).error(ErrorKind::Several(several))),
        }
    }

    /// Makes a thing.
    pub async fn create<R: Create>(&self, new: &R::New) -> Result<R, Error> {
        self.create_at(R::PATH, new).await
    }

    /// Changes a thing.
    pub async fn update<R: Update>(&self, id: &Id<R>, change: &R::Change) -> Result<R, Error> {
        let call = Call::change(R::SERVICE, Method::PUT, item(R::PATH, id), Body::None).wanting(R::WANTED);
        let call = with_body(call, R::ONE, change)?;
        self.checked(id, call).await
    }

    /// Removes a thing. It may be there for a while: what is removed in the background can be read until it is gone.
    pub async fn delete<R: Delete>(&self, id: &Id<R>) -> Result<Deletion, Error> {
        let call = Call::change(R::SERVICE, Method::DELETE, item(R::PATH, id), Body::None).wanting(R::WANTED);
        self.checked_id(id, &call)?;
        self.remove(&call).await
    }

    pub(crate) async fn list_at<R: List>(&self, path: &str, filter: &R::Filter) -> Result<Vec<R>, Error> {
        let call = Call::read(R::SERVICE, path).wanting(R::WANTED);
        let query = query::pairs(filter).map_err(|error| unwritable(&call, &error))?;
        self.pages::<R>(call.with_query(query)).await
    }

    pub(crate) async fn create_at<R: Create>(&self, path: &str, new: &R::New) -> Result<R, Error> {
        let call = Call::change(R::SERVICE, Method::POST, path, Body::None).wanting(R::needs(new));
        let call = with_body(call, R::ONE, new)?;
        self.read(&call, R::ONE).await
    }

    pub(crate) async fn remove(&self, call: &Call) -> Result<Deletion, Error> {
        match self.send(call).await {
            Ok(_) => Ok(Deletion::Accepted),
            Err(error) if error.is_not_found() => Ok(Deletion::Absent),
            Err(error) => Err(error),
        }
    }

    /// An empty id would name the collection, and dots what is above it.
    pub(crate) fn checked_id<R>(&self, id: &Id<R>, call: &Call) -> Result<(), Error> {
        match id.as_str() {
            "" => Err(call.error(ErrorKind::Unwritable("the id is empty".to_owned()))),
            "." | ".." => Err(call.error(ErrorKind::Unwritable("the id is none".to_owned()))),
            _ => Ok(()),
        }
    }

    async fn checked<R: Resource>(&self, id: &Id<R>, call: Call) -> Result<R, Error> {
        self.checked_id(id, &call)?;
        let reply = self.send(&call).await?;
        open(&call, &reply, R::ONE)
    }
}

/// The path of one thing. Ids come from outside as well: a slash in one must not lead elsewhere.
pub(crate) fn item<R>(path: &str, id: &Id<R>) -> String {
    format!("{path}/{}", encoded(id.as_str()))
}

/// A segment of a path.
pub(crate) fn encoded(segment: &str) -> String {
    let text: String = url::form_urlencoded::byte_serialize(segment.as_bytes()).collect();
    // Spaces are `+` in forms only.
    text.replace('+', "%20")
}

pub(crate) fn with_body(call: Call, key: Option<&str>, body: &impl Serialize) -> Result<Call, Error> {
    let value = serde_json::to_value(body).map_err(|error| unwritable(&call, &error))?;
    let value = match key {
        Some(key) => Value::Object([(key.to_owned(), value)].into_iter().collect()),
        None => value,
    };
    Ok(Call { body: Body::Json(Bytes::from(value.to_string())), ..call })
}

pub(crate) fn unwritable(call: &Call, error: &serde_json::Error) -> Error {
    call.error(ErrorKind::Unwritable(error.to_string()))
}

/// The plain facts of resources in a table.
macro_rules! resources {
    ($($kind:ident: $service:ident $path:literal $one:expr, $many:literal by $filter:ty;)*) => {$(
        impl crate::resource::Resource for $kind {
            const SERVICE: crate::service::Service = crate::service::Service::$service;
            const PATH: &'static str = $path;
            const ONE: Option<&'static str> = $one;
        }

        impl crate::resource::List for $kind {
            const MANY: &'static str = $many;
            type Filter = $filter;

            fn marker(&self) -> &str {
                self.id.as_str()
            }
        }
    )*};
}

/// What can be done with them.
macro_rules! verbs {
    (@new $kind:ident $new:ty) => { impl crate::resource::Create for $kind { type New = $new; } };
    (@change $kind:ident $change:ty) => { impl crate::resource::Update for $kind { type Change = $change; } };
    (@delete $kind:ident) => { impl crate::resource::Delete for $kind {} };
    ($($kind:ident: $($verb:ident $($body:ty)?),*;)*) => {
        $($(crate::resource::verbs!(@$verb $kind $($body)?);)*)*
    };
}

pub(crate) use {resources, verbs};
