//! Builds the argument list of a `liza` command.

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arguments(Vec<String>);

impl Arguments {
    pub(crate) fn new<const N: usize>(words: [&str; N]) -> Self {
        Self(words.map(str::to_owned).to_vec())
    }

    pub(crate) fn option(mut self, name: &str, value: Option<&str>) -> Self {
        self.0.extend(value.into_iter().flat_map(|value| [name.to_owned(), value.to_owned()]));
        self
    }

    /// Adds an option once for each value.
    pub(crate) fn repeated(self, name: &str, values: &[String]) -> Self {
        values.iter().fold(self, |arguments, value| arguments.option(name, Some(value)))
    }

    pub(crate) fn words(mut self, words: &[String]) -> Self {
        self.0.extend_from_slice(words);
        self
    }

    pub(crate) fn flag(mut self, name: &str, set: bool) -> Self {
        self.0.extend(set.then(|| name.to_owned()));
        self
    }
}

impl AsRef<[String]> for Arguments {
    fn as_ref(&self) -> &[String] {
        &self.0
    }
}
