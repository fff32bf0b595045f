//! Addresses of webhooks are secrets: whoever has one can post. Masked in what is shown and logged; a mask that is
//! written back means the address. Works on text, so that it also works on a blackboard that cannot be read.

/// The key of an address, in the settings and in the shared file.
const KEY: &str = "escalation_webhook";

const MASK: &str = "(masked address";

/// The addresses in a text, each with its mask.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct MaskedAddresses(Vec<(String, String)>);

impl MaskedAddresses {
    /// Finds them behind their key, in any form: YAML, JSON, or an argument of a command.
    pub(crate) fn in_text(text: &str) -> Self {
        let mut found = Self::default();
        for (at, _) in text.match_indices(KEY) {
            let rest = &text[at + KEY.len()..];
            let value = rest.trim_start_matches(|c: char| c.is_whitespace() || "\"':=\\".contains(c));
            let ends = |c: char| c.is_whitespace() || "\"'\\,}".contains(c);
            let address = value.split(ends).next().unwrap_or_default();
            if address.contains("://") && found.0.iter().all(|(known, _)| known != address) {
                let mask = match found.0.len() {
                    0 => format!("{MASK})"),
                    more => format!("{MASK} {})", more + 1),
                };
                found.0.push((address.to_owned(), mask));
            }
        }
        found
    }

    pub(crate) fn mask(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (address, mask)| text.replace(address, mask))
    }

    pub(crate) fn mask_json(&self, value: serde_json::Value) -> serde_json::Value {
        if self.0.is_empty() {
            return value;
        }
        // No character of an address is escaped in JSON.
        serde_json::from_str(&self.mask(&value.to_string())).unwrap_or_default()
    }

    /// The text with the addresses in the places of their masks.
    pub(crate) fn unmask(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (address, mask)| text.replace(mask, address))
    }

    /// True if a text may have a mask.
    pub(crate) fn are_masked_in(text: &str) -> bool {
        text.contains(MASK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: AX-13
    #[test]
    fn addresses_are_found_in_every_form() {
        for text in [
            "config:\n  escalation_webhook: https://h.example/x#y  # why",
            "escalation_webhook: \"https://h.example/x#y\"",
            "{\"escalation_webhook\":\"https://h.example/x#y\",\"a\":1}",
            "yq -i '.config.escalation_webhook = \"https://h.example/x#y\"' f",
            "escalation_webhook https://h.example/x#y",
        ] {
            let found = MaskedAddresses::in_text(text);
            let masked = found.mask(text);
            assert!(!masked.contains("h.example") && masked.contains("(masked address)"), "{masked}");
            assert_eq!(found.unmask(&masked), text);
        }
        let two = "escalation_webhook: a://one\nvalues: {escalation_webhook: b://two}";
        let found = MaskedAddresses::in_text(two);
        assert!(found.mask(two).ends_with("{escalation_webhook: (masked address 2)}"));
        assert_eq!(found.unmask(&found.mask(two)), two);
        assert_eq!(MaskedAddresses::in_text("escalation_webhook: null"), MaskedAddresses::default());
    }
}
