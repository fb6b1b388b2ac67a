//! Whose a thing in a cloud is. Names repeat across namespaces and management clusters, so what a provider creates also
//! says which object it was created for.

use capstan_object::ObjectMeta;

/// What the things of an object are marked with: its uid when it was first seen, which an annotation keeps. `clusterctl
/// move` changes uids.
pub fn of(meta: &ObjectMeta, annotation: &str) -> String {
    meta.annotations.get(annotation).unwrap_or(&meta.uid).clone()
}

/// Ownership of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// Ours by its mark.
    Ours,
    /// No mark: another program's or older than marks. It is taken over by its name.
    Unmarked,
    /// It has the mark of another object.
    Foreign,
}

/// Marks at the end of descriptions, for clouds without tags on everything.
#[derive(Debug, Clone, Copy)]
pub struct InText {
    /// Between the description and the mark, such as ` toy-mark=`.
    pub prefix: &'static str,
}

impl InText {
    pub fn with(&self, description: &str, mark: &str) -> String {
        format!("{description}{}{mark}", self.prefix)
    }

    /// The mark in a description.
    pub fn held<'a>(&self, description: &'a str) -> Option<&'a str> {
        description.rsplit_once(self.prefix).map(|(_, mark)| mark)
    }

    pub fn owner(&self, description: &str, mark: &str) -> Owner {
        match self.held(description) {
            Some(held) if held == mark => Owner::Ours,
            Some(_) => Owner::Foreign,
            None => Owner::Unmarked,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: InText = InText { prefix: " toy-mark=" };

    #[test]
    fn a_mark_distinguishes_ours_from_others_and_from_what_has_none() {
        let ours = TEXT.with("a harbour", "m1");
        assert_eq!(ours, "a harbour toy-mark=m1");
        assert_eq!(TEXT.owner(&ours, "m1"), Owner::Ours);
        assert_eq!(TEXT.owner(&ours, "m2"), Owner::Foreign);
        assert_eq!(TEXT.owner("a harbour", "m1"), Owner::Unmarked);
    }

    #[test]
    fn an_object_keeps_its_mark_when_its_uid_changes() {
        let mut meta = ObjectMeta { uid: "new".to_owned(), ..ObjectMeta::default() };
        assert_eq!(of(&meta, "toy/mark"), "new");
        meta.annotations.insert("toy/mark".to_owned(), "old".to_owned());
        assert_eq!(of(&meta, "toy/mark"), "old");
    }
}
