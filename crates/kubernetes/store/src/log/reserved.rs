//! Space at the end of a segment that is reserved and not written yet: zeros.

/// How much is compared at a time.
const BLOCK: [u8; 4096] = [0; 4096];

/// Length of the bytes without the zeros at their end. A start reads megabytes of them, so it goes by blocks.
pub(super) fn length_written(bytes: &[u8]) -> usize {
    let mut end = bytes.len();
    while end > 0 {
        let begin = end.saturating_sub(BLOCK.len());
        let block = &bytes[begin..end];
        if *block != BLOCK[..block.len()] {
            return block.iter().rposition(|byte| *byte != 0).map_or(begin, |at| begin + at + 1);
        }
        end = begin;
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_byte_that_is_not_zero_ends_what_is_written() {
        for length in [0, 1, 4095, 4096, 4097, 10_000] {
            let mut bytes = vec![0; length];
            assert_eq!(length_written(&bytes), 0, "{length}");
            for at in [0, 1, 4095, 4096, 4097, 9_999].into_iter().filter(|at| *at < length) {
                bytes[at] = 1;
                assert_eq!(length_written(&bytes), at + 1, "{at} of {length}");
            }
        }
    }
}
