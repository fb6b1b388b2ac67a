//! The clauses of an `Accept` header.

/// One clause of an `Accept` header.
#[derive(Debug, PartialEq)]
pub(super) struct Clause<'a> {
    pub kind: &'a str,
    pub subtype: &'a str,
    quality: f32,
    pub parameters: Vec<(&'a str, &'a str)>,
}

/// A `group/version, Kind=` of a requested transformation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Target<'a> {
    pub group: &'a str,
    pub version: &'a str,
    pub kind: &'a str,
}

/// The transformation that a clause requests.
pub(super) fn target<'a>(clause: &Clause<'a>) -> Option<Target<'a>> {
    let mut target = None;
    for (key, value) in &clause.parameters {
        match *key {
            "as" => target.get_or_insert(Target::default()).kind = value,
            "g" => target.get_or_insert(Target::default()).group = value,
            "v" => target.get_or_insert(Target::default()).version = value,
            _ => {}
        }
    }
    target
}

/// Clauses by descending weight, explicit types before wildcards. Malformed clauses are skipped.
pub(super) fn parse(header: &str) -> Vec<Clause<'_>> {
    let mut clauses: Vec<Clause> = header.split(',').filter_map(clause).collect();
    // Upstream's comparison is not transitive (a lighter explicit type beats a heavier wildcard only when they are
    // compared directly), so its insertion sort is part of the behaviour. Long headers are properly sorted.
    if clauses.len() <= 12 {
        for end in 1..clauses.len() {
            let mut at = end;
            while at > 0 && before(&clauses[at], &clauses[at - 1]) {
                clauses.swap(at, at - 1);
                at -= 1;
            }
        }
    } else {
        clauses.sort_by(|a, b| {
            b.quality
                .total_cmp(&a.quality)
                .then((a.kind == "*").cmp(&(b.kind == "*")))
                .then((a.subtype == "*").cmp(&(b.subtype == "*")))
        });
    }
    clauses
}

fn before(a: &Clause, b: &Clause) -> bool {
    a.quality > b.quality || (a.kind != "*" && b.kind == "*") || (a.subtype != "*" && b.subtype == "*")
}

fn clause(text: &str) -> Option<Clause<'_>> {
    let mut parts = text.trim_matches(' ').split(';');
    let media_type = parts.next()?;
    let (kind, subtype) = match media_type.split_once('/') {
        Some((_, rest)) if rest.contains('/') => return None,
        Some((kind, subtype)) if !subtype.is_empty() => (kind.trim_matches(' '), subtype.trim_matches(' ')),
        // A single `*` is a wildcard; anything else without a subtype is malformed.
        _ if media_type.trim_matches([' ', '/']) == "*" => ("*", "*"),
        _ => return None,
    };
    let mut quality = 1.0;
    let mut parameters = Vec::new();
    for part in parts {
        let Some((key, value)) = part.split_once('=') else { continue };
        if value.is_empty() || value.contains('=') {
            continue;
        }
        match key.trim_matches(' ') {
            "q" => quality = value.parse().unwrap_or(0.0),
            key => parameters.push((key, value.trim_matches(' '))),
        }
    }
    Some(Clause { kind, subtype, quality, parameters })
}
