//! The ranks of the nearest-rank quantiles of resamples among the ascending values of a sample.

/// Ranks from 0, fraction by fraction, of every resample; -1 if a resample has no value.
///
/// Between two known values a resample is assumed to hold the sample's values in their proportions.
///
/// # Arguments
///
/// * `at_or_below` - number of the sample's values at or below each known one; the last is their total number
/// * `counts` - the same of every resample, resample by resample
/// * `fractions` - 0 to 1; ascending ones are fastest
pub fn resampled_ranks(at_or_below: &[i64], counts: &[i64], fractions: &[f64]) -> Vec<i64> {
    let points = at_or_below.len().max(1);
    let resamples = counts.len() / points;
    let mut ranks = vec![-1; fractions.len() * resamples];
    for (resample, known) in counts.chunks_exact(points).enumerate() {
        let n = known[points - 1];
        if n == 0 {
            continue;
        }
        let mut place = 0; // of the first known value that is above the quantile's rank, or at it
        for (fraction, row) in fractions.iter().zip(ranks.chunks_exact_mut(resamples)) {
            let rank = ((n as f64 * fraction) as i64).min(n - 1); // rounded down
            if place > 0 && known[place - 1] > rank {
                place = 0;
            }
            while known[place] <= rank {
                place += 1;
            }
            let (low, start) = if place > 0 { (known[place - 1], at_or_below[place - 1]) } else { (0, 0) };
            let step = at_or_below[place] - start;
            // Most known values are single ones: a division would dominate the time.
            row[resample] = if step == 1 { start } else { start + (rank - low) * step / (known[place] - low) };
        }
    }
    ranks
}

/// Ranks from 0, resample by resample and fraction by fraction, if all values are known; -1 if a resample has no value.
///
/// # Arguments
///
/// * `weights` - how often each unit is drawn, resample by resample
/// * `units` - number of units
/// * `unit_of_value` - the unit of each value, in the ascending order of the values
/// * `fractions` - 0 to 1; ascending ones are fastest
pub fn weighted_ranks(weights: &[i32], units: usize, unit_of_value: &[u32], fractions: &[f64]) -> Vec<i64> {
    let mut values_of_unit = vec![0_i64; units];
    for unit in unit_of_value {
        values_of_unit[*unit as usize] += 1;
    }
    let mut ranks = Vec::with_capacity(weights.len() / units.max(1) * fractions.len());
    for drawn in weights.chunks_exact(units.max(1)) {
        let n: i64 = drawn.iter().zip(&values_of_unit).map(|(times, values)| i64::from(*times) * values).sum();
        if n == 0 {
            ranks.extend(fractions.iter().map(|_| -1));
            continue;
        }
        let (mut place, mut below) = (0, 0); // the value at this place, and how many are drawn of those before it
        for fraction in fractions {
            let rank = ((n as f64 * fraction) as i64).min(n - 1); // rounded down
            if rank < below {
                (place, below) = (0, 0);
            }
            loop {
                let at_or_below = below + i64::from(drawn[unit_of_value[place] as usize]);
                if at_or_below > rank {
                    break;
                }
                (place, below) = (place + 1, at_or_below);
            }
            ranks.push(place as i64);
        }
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::{resampled_ranks, weighted_ranks};

    /// Of a sample of 100 known at its 20th, 40th and last value.
    const AT_OR_BELOW: [i64; 3] = [20, 40, 100];

    #[test]
    fn ranks_are_interpolated_between_known_values() {
        // Of 20 values the places 0, 2, 4, 10, 11 and 19: 2 * 20 / 4; 20; 40; 40 + 60 / 10; 40 + 9 * 60 / 10.
        let result = resampled_ranks(&AT_OR_BELOW, &[4, 10, 20], &[0.0, 0.1, 0.2, 0.5, 0.55, 1.0]);
        assert_eq!(result, [0, 10, 20, 40, 46, 94]);
    }

    #[test]
    fn resamples_are_adjacent_in_the_result_and_an_empty_one_has_no_rank() {
        let result = resampled_ranks(&AT_OR_BELOW, &[4, 10, 20, 0, 0, 0, 0, 0, 8], &[0.1, 1.0]);
        assert_eq!(result, [10, -1, 40, 94, -1, 92]);
    }

    #[test]
    fn fractions_may_come_in_any_order() {
        assert_eq!(resampled_ranks(&AT_OR_BELOW, &[4, 10, 20], &[0.55, 0.1, 0.2, 0.0]), [46, 10, 20, 0]);
    }

    #[test]
    fn a_sample_without_values_has_no_ranks() {
        assert_eq!(resampled_ranks(&[], &[], &[0.5]), [0_i64; 0]);
    }

    #[test]
    fn every_value_counts_as_often_as_its_unit_is_drawn() {
        // Six values of three units. The resamples hold 0 0 2 2 4 5; 0 1 1 2 3 3; nothing; 4 5.
        let unit_of_value = [0, 1, 0, 1, 2, 2];
        let weights = [2, 0, 1, 1, 2, 0, 0, 0, 0, 0, 0, 1];
        let result = weighted_ranks(&weights, 3, &unit_of_value, &[0.0, 0.6, 1.0, 0.2]);
        assert_eq!(result, [0, 2, 5, 0, 0, 2, 3, 1, -1, -1, -1, -1, 4, 5, 5, 4]);
    }

    #[test]
    fn without_units_or_values_nothing_is_ranked() {
        assert_eq!(weighted_ranks(&[], 0, &[], &[0.5]), [0_i64; 0]);
        assert_eq!(weighted_ranks(&[1, 2], 1, &[], &[0.5]), [-1, -1]);
    }
}
