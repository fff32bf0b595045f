//! Sorting that is compiled once for all types. The compiler makes a copy of the standard library's sort for
//! each type and key, about 2,400 lines of LLVM code; `docs/design/build.md` has the figures.

use std::cmp::Ordering;

/// Sorts by a key; equal items keep their order.
pub fn sort_by_key<T, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K) {
    sort_by(items, &|a, b| key(a).cmp(&key(b)));
}

pub fn sort_by<T>(items: &mut [T], compare: &dyn Fn(&T, &T) -> Ordering) {
    let order = sorted_places(items.len(), &|a, b| compare(&items[a], &items[b]));
    for place in 0..order.len() {
        // The item may have been swapped away already; its place then tells where to.
        let mut from = order[place];
        while from < place {
            from = order[from];
        }
        items.swap(place, from);
    }
}

fn sorted_places(count: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut places: Vec<usize> = (0..count).collect();
    places.sort_by(|a, b| compare(*a, *b));
    places
}

#[cfg(test)]
mod tests {
    use super::sort_by_key;

    #[test]
    fn items_are_in_order_and_equal_ones_keep_theirs() {
        let mut items: Vec<(u32, usize)> = (0..200).map(|n| ((n * 7919) as u32 % 13, n)).collect();
        let mut expected = items.clone();
        expected.sort_by_key(|(key, _)| *key);
        sort_by_key(&mut items, |(key, _)| *key);
        assert_eq!(items, expected);
    }
}
