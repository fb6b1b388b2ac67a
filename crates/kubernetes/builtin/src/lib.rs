//! Facts about the built-in Kubernetes kinds: names, fields, wire numbers, schemas.
