//! The texts that the program brings along, and where they go.

/// A vision document to fill in.
pub(super) const VISION: &str = include_str!("../../templates/vision-template.md");

/// What `liza setup` writes below `~/.liza/`. The contracts (CORE.md, PAIRING_MODE.md, MULTI_AGENT_MODE.md) belong
/// here too.
pub(super) const FILES: [(&str, &str); 3] = [
    ("templates/vision-template.md", VISION),
    ("templates/adr-template.md", include_str!("../../templates/adr-template.md")),
    ("templates/README.md", include_str!("../../templates/README.md")),
];
