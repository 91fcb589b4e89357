//! Resamples of blocks as multiplicities.

/// How often each unit is drawn, resample by resample.
///
/// Each block of a resample adds 1 to a run of neighbouring units; the last unit's neighbour is the first one. A block
/// that exceeds the resample's size is shortened, and those after it are ignored.
///
/// # Arguments
///
/// * `lengths` - of each block, resample by resample; a resample's lengths add up to at least `units`
/// * `first` - the first unit of each block
/// * `resamples` - their number
/// * `units` - the number of units, and of those drawn per resample
pub fn block_multiplicities(lengths: &[i64], first: &[i64], resamples: usize, units: usize) -> Vec<i32> {
    let blocks = (lengths.len() / resamples.max(1)).max(1);
    let mut result = vec![0_i32; resamples * units];
    let rows = result.chunks_exact_mut(units.max(1));
    for ((lengths, first), times) in lengths.chunks_exact(blocks).zip(first.chunks_exact(blocks)).zip(rows) {
        let mut missing = units;
        for (length, first) in lengths.iter().zip(first) {
            let (length, first) = (missing.min(*length as usize), *first as usize);
            missing -= length;
            let end = first + length;
            times[first] += 1; // steps first: their running sum is the multiplicity
            if end > units {
                times[0] += 1;
                times[end - units] -= 1;
            } else if end < units {
                times[end] -= 1;
            }
            if missing == 0 {
                break;
            }
        }
        let mut sum = 0;
        for step in times {
            sum += *step;
            *step = sum;
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::block_multiplicities;

    #[test]
    fn a_block_continues_at_the_start_and_the_last_one_is_shortened() {
        // 3 4 0, then 1 of 1 2 3; then 0, 2, 4, 1 and 3, one by one; then all from the second unit on.
        let lengths = [3, 4, 9, 9, 9, 1, 1, 1, 1, 1, 5, 1, 1, 1, 1];
        let first = [3, 1, 0, 0, 0, 0, 2, 4, 1, 3, 1, 4, 4, 4, 4];
        let result = block_multiplicities(&lengths, &first, 3, 5);
        assert_eq!(result, [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
    }

    #[test]
    fn a_unit_is_drawn_as_often_as_blocks_contain_it() {
        assert_eq!(block_multiplicities(&[2, 2, 7], &[1, 1, 2], 1, 5), [0, 2, 3, 0, 0]);
        assert_eq!(block_multiplicities(&[4, 9], &[3, 3], 1, 5), [1, 1, 0, 2, 1]);
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        assert_eq!(block_multiplicities(&[], &[], 0, 5), [0_i32; 0]);
        assert_eq!(block_multiplicities(&[1], &[0], 1, 0), [0_i32; 0]);
    }
}
