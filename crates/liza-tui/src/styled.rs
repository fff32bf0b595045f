//! Text of the command line as lines of the screen: its styles become those of the theme, other controls are
//! removed.

use liza_core::text::is_unprintable;
use liza_core::text::shell_word;
use liza_host::columns::width;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use crate::theme::Theme;

/// The width of a tab.
const TAB: &str = "    ";

/// The lines of a text with the styles of the command line.
pub(crate) fn lines(text: &str, theme: &Theme) -> Vec<Line<'static>> {
    let mut style = Style::new();
    text.lines().map(|line| styled_line(line, &mut style, theme)).collect()
}

/// The lines with those that are too long on several.
pub(crate) fn wrapped(lines: Vec<Line<'static>>, columns: usize) -> Vec<Line<'static>> {
    lines
        .into_iter()
        .flat_map(|line| if line.width() <= columns { vec![line] } else { broken(&line, columns.max(2)) })
        .collect()
}

/// A line broken at the edge, so that code and paths keep every character.
fn broken(line: &Line<'static>, columns: usize) -> Vec<Line<'static>> {
    let (mut lines, mut spans, mut used) = (Vec::new(), Vec::new(), 0);
    for span in &line.spans {
        let mut text = String::new();
        for c in span.content.chars() {
            let width = width(c.encode_utf8(&mut [0; 4]));
            if used + width > columns {
                spans.push(Span::styled(std::mem::take(&mut text), span.style));
                lines.push(Line::from(std::mem::take(&mut spans)));
                used = 0;
            }
            text.push(c);
            used += width;
        }
        spans.push(Span::styled(text, span.style));
    }
    lines.push(Line::from(spans));
    lines
}

fn styled_line(text: &str, style: &mut Style, theme: &Theme) -> Line<'static> {
    let mut parts = text.split('\u{1b}');
    let mut spans = Vec::new();
    let mut push = |text: &str, style: Style| {
        let text = printable(text);
        if !text.is_empty() {
            spans.push(Span::styled(text, style));
        }
    };
    push(parts.next().unwrap_or_default(), *style);
    for part in parts {
        match part.strip_prefix('[').and_then(|rest| rest.split_once('m')) {
            Some((codes, rest)) if codes.bytes().all(|byte| byte.is_ascii_digit() || byte == b';') => {
                *style = codes.split(';').fold(*style, |style, code| with_code(style, code, theme));
                push(rest, *style);
            }
            Some(_) | None => push(part, *style),
        }
    }
    Line::from(spans)
}

fn with_code(style: Style, code: &str, theme: &Theme) -> Style {
    match code {
        "1" => style.add_modifier(Modifier::BOLD),
        "2" => style.patch(theme.dim),
        "31" => style.patch(theme.bad),
        "32" => style.patch(theme.good),
        "33" => style.patch(theme.warning),
        "36" => style.patch(theme.name),
        _ => Style::new(),
    }
}

/// The text without characters that must not reach a terminal.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => shown.push_str(TAB),
            c if is_unprintable(c) => {}
            c => shown.push(c),
        }
    }
    shown
}

/// The words of a command as a person types them into a shell.
pub(crate) fn shell_line(words: &[String]) -> String {
    let quoted = words.iter().map(|word| shell_word(word));
    std::iter::once("liza".into()).chain(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::ThemeName;

    /// Covers: IS-09, UI-01
    #[test]
    fn only_our_styles_survive() {
        let theme = Theme::new(ThemeName::Dark, None);
        let text = "\u{1b}[1m\u{1b}[31mbad\u{1b}[0m \u{1b}[2Jx\u{202e}y\u{7}\t|\u{1b}]0;t";
        let [line] = lines(text, &theme).try_into().unwrap();
        assert_eq!(line.to_string(), "bad [2Jxy    |]0;t");
        assert_eq!(line.spans[0].style, theme.bad);
        assert_eq!(line.spans[1].style, Style::new());
    }

    /// Covers: AX-19
    #[test]
    fn a_refusal_of_several_lines_is_red_to_its_end() {
        let theme = Theme::new(ThemeName::Dark, None);
        let shown = lines("\u{1b}[1m\u{1b}[31m↳ exit 1, refused by Liza\n    why\u{1b}[0m\nnext", &theme);
        let styles: Vec<Style> = shown.iter().map(|line| line.spans[0].style).collect();
        assert_eq!(styles, [theme.bad, theme.bad, Style::new()]);
    }

    /// Covers: UI-01
    #[test]
    fn a_command_can_be_copied_into_a_shell() {
        let words = ["answer", "t-1", "it's $5", ""].map(str::to_owned);
        assert_eq!(shell_line(&words), "liza answer t-1 'it'\\''s $5' ''");
    }
}
