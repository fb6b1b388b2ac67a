//! Limits on remediation: with too many unhealthy machines the cause is elsewhere.

use capstan_capi_types::core::MachineHealthCheckRemediationTriggerIf;
use capstan_object::IntOrString;

/// Whether remediation is allowed, and how many more machines may become unhealthy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Limit {
    Allowed(i32),
    Restricted(String),
    Invalid(String),
}

/// Decides by the number of machines that are expected and that are healthy; the rest, started or not, counts
/// as unhealthy.
pub fn limit(
    trigger: &MachineHealthCheckRemediationTriggerIf,
    expected: i32,
    healthy: i32,
    failed: usize,
) -> Limit {
    let unhealthy = expected - healthy;
    let range = &trigger.unhealthy_in_range;
    if !range.is_empty() {
        let Some((low, high)) = parsed(range) else {
            return Limit::Invalid(format!("{range:?} is not a range such as [2-5]"));
        };
        if (low..=high).contains(&unhealthy) {
            return Limit::Allowed(high - unhealthy);
        }
        return Limit::Restricted(format!(
            "Remediation is not allowed, the number of not started or unhealthy machines does not fall within the \
             range (total: {expected}, unhealthy: {failed}, unhealthyRange: {range})"
        ));
    }
    let all = IntOrString::String("100%".to_owned());
    let most = trigger.unhealthy_less_than_or_equal_to.as_ref().unwrap_or(&all);
    let written = match most {
        IntOrString::Int(count) => count.to_string(),
        IntOrString::String(text) => text.clone(),
    };
    match most.scaled(expected, false) {
        None => Limit::Invalid(format!("{written:?} is neither a number nor a percentage")),
        Some(most) if unhealthy <= most => Limit::Allowed(most - unhealthy),
        Some(_) => Limit::Restricted(format!(
            "Remediation is not allowed, the number of not started or unhealthy machines exceeds maxUnhealthy (total: \
             {expected}, unhealthy: {failed}, maxUnhealthy: {written})"
        )),
    }
}

fn parsed(range: &str) -> Option<(i32, i32)> {
    let (low, high) = range.strip_prefix('[')?.strip_suffix(']')?.split_once('-')?;
    let (low, high) = (low.parse().ok()?, high.parse().ok()?);
    (low <= high).then_some((low, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_unhealthy_machines_are_not_replaced() {
        let most = |most: IntOrString| MachineHealthCheckRemediationTriggerIf {
            unhealthy_less_than_or_equal_to: Some(most),
            ..Default::default()
        };
        let share = |text: &str| most(IntOrString::String(text.to_owned()));
        let range = |text: &str| MachineHealthCheckRemediationTriggerIf {
            unhealthy_in_range: text.to_owned(),
            ..Default::default()
        };
        for (what, trigger, expected, healthy, allowed) in [
            (
                "by default all may be replaced",
                MachineHealthCheckRemediationTriggerIf::default(),
                3,
                0,
                Some(0),
            ),
            ("none is too many of none", most(IntOrString::Int(0)), 3, 2, None),
            ("as many as allowed", most(IntOrString::Int(1)), 3, 2, Some(0)),
            ("one more than allowed", most(IntOrString::Int(1)), 3, 1, None),
            ("a share is rounded down", share("40%"), 3, 2, Some(0)),
            ("and down again", share("40%"), 3, 1, None),
            ("within a range", range("[1-2]"), 5, 4, Some(1)),
            ("at its end", range("[1-2]"), 5, 3, Some(0)),
            ("beyond it", range("[1-2]"), 5, 2, None),
            ("before it", range("[1-2]"), 5, 5, None),
        ] {
            let found = match limit(&trigger, expected, healthy, 1) {
                Limit::Allowed(more) => Some(more),
                Limit::Restricted(_) => None,
                Limit::Invalid(why) => panic!("{what}: {why}"),
            };
            assert_eq!(found, allowed, "{what}");
        }
        assert!(matches!(limit(&range("[5-2]"), 1, 1, 0), Limit::Invalid(_)));
        assert!(matches!(limit(&share("many"), 1, 1, 0), Limit::Invalid(_)));
    }
}
