use std::fmt::Write as _;
use std::io;

/// That many random bytes, in hexadecimal.
pub fn random_hex(bytes: usize) -> io::Result<String> {
    let mut random = vec![0; bytes];
    getrandom::fill(&mut random).map_err(|_| io::Error::other("the system has no random numbers"))?;
    Ok(random.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

/// Compares two texts in a time that doesn't depend on where they differ.
pub fn is_equal(one: &str, other: &str) -> bool {
    let differences = one.bytes().zip(other.bytes()).fold(0, |all, (one, other)| all | (one ^ other));
    one.len() == other.len() && differences == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_differ_and_are_compared_whole() {
        let (one, other) = (random_hex(16).unwrap(), random_hex(16).unwrap());
        assert_eq!(one.len(), 32);
        assert!(is_equal(&one, &one.clone()) && !is_equal(&one, &other) && !is_equal(&one, &one[1..]));
    }
}
