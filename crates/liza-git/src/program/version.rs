use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct GitVersion(pub u32, pub u32);

impl GitVersion {
    /// The first version that can merge without a checkout.
    pub const OLDEST: Self = Self(2, 38);

    /// Reads the output of `git version`.
    pub fn parse(output: &str) -> Option<Self> {
        let mut numbers = output.trim_start_matches("git version ").split('.').map(|part| part.parse().ok());
        Some(Self(numbers.next()??, numbers.next()??))
    }
}

impl fmt::Display for GitVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}
