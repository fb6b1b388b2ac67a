//! How many files the process may have open: every connection is one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of open files as far as the system lets this process, and returns it. Service managers and shells
/// start programs with a low one, for the sake of those that use `select`.
pub fn raise_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return limit.current.unwrap_or(u64::MAX);
    }
    let wanted = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let reached = match setrlimit(Resource::Nofile, wanted) {
        Ok(()) => limit.maximum,
        Err(error) => {
            tracing::warn!(%error, "the limit of open files could not be raised");
            limit.current
        }
    };
    reached.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_as_far_as_it_may_be() {
        let hard = getrlimit(Resource::Nofile).maximum;
        let low = Rlimit { current: hard.map(|most| most.min(256)), maximum: hard };
        setrlimit(Resource::Nofile, low).expect("a limit can be lowered");
        assert_eq!(raise_limit(), hard.unwrap_or(u64::MAX));
        assert_eq!(getrlimit(Resource::Nofile).current, hard);
    }
}
