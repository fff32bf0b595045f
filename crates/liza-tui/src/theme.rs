//! The colours of the screen. Only those that a terminal lets its user choose, on the terminal's own background.

use ratatui::style::{Color, Modifier, Style};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ThemeName {
    /// Dark or light as the terminal reports it in COLORFGBG, else dark.
    #[default]
    Auto,
    Dark,
    Light,
    /// No colour: bold, dim and reversed text only.
    Plain,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Theme {
    pub heading: Style,
    /// The heading of the panel that has the keys.
    pub focused: Style,
    pub selected: Style,
    /// A line with the text that was looked for.
    pub sought: Style,
    pub dim: Style,
    pub name: Style,
    pub good: Style,
    pub warning: Style,
    pub bad: Style,
}

impl Theme {
    /// The theme of that name. `colorfgbg` is the variable in which some terminals report their colours.
    pub fn new(name: ThemeName, colorfgbg: Option<&str>) -> Self {
        let light = colorfgbg.and_then(|value| value.rsplit(';').next()).is_some_and(|back| {
            // White, or light grey.
            matches!(back, "7" | "15")
        });
        match name {
            ThemeName::Plain => Self::with(None, None, None, None),
            ThemeName::Auto if light => Self::light(),
            ThemeName::Light => Self::light(),
            ThemeName::Auto | ThemeName::Dark => {
                Self::with(Some(Color::Cyan), Some(Color::Green), Some(Color::Yellow), Some(Color::LightRed))
            }
        }
    }

    /// Yellow and cyan cannot be read on white.
    fn light() -> Self {
        Self::with(Some(Color::Blue), Some(Color::Green), Some(Color::Magenta), Some(Color::Red))
    }

    fn with(name: Option<Color>, good: Option<Color>, warning: Option<Color>, bad: Option<Color>) -> Self {
        let colored = |color: Option<Color>| color.map_or(Style::new(), |color| Style::new().fg(color));
        let bold = Style::new().add_modifier(Modifier::BOLD);
        Self {
            heading: bold,
            focused: bold.add_modifier(Modifier::REVERSED),
            selected: Style::new().add_modifier(Modifier::REVERSED),
            sought: bold.add_modifier(Modifier::UNDERLINED),
            dim: Style::new().add_modifier(Modifier::DIM),
            name: colored(name),
            good: colored(good),
            warning: colored(warning),
            bad: colored(bad).add_modifier(Modifier::BOLD),
        }
    }
}
