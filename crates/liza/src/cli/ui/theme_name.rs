//! The colours of the screen, as the command line names them.

/// The colours of the screen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ThemeName {
    /// Dark or light, as the terminal says.
    #[default]
    Auto,
    /// For a dark background.
    Dark,
    /// For a light background.
    Light,
    /// Without colours.
    Plain,
}
