//! A YAML text as a tree in which every node knows its place.
//!
//! Built from parser events. Duplicate keys and alias bombs are refused here; what a node means is decided later.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::Range;

use granit_parser::{Event, Parser, ScalarStyle, StructureStyle};

use super::scalar::Style;

/// How many nodes all aliases together may add: room for honest use, none for a bomb.
const ALIAS_BUDGET: usize = 10_000;
/// How deep collections may be nested.
const DEPTH_LIMIT: usize = 64;

/// A line and a column, both counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line.
    pub line: u32,
    /// The column, in characters.
    pub column: u32,
}

impl Place {
    /// This place within a text that begins `lines` lines further down.
    #[must_use]
    pub fn below(self, lines: u32) -> Self {
        Self { line: self.line.saturating_add(lines), ..self }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// Why a text is not the YAML that it should be, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct YamlError {
    /// What is wrong.
    pub message: String,
    /// Where.
    pub place: Option<Place>,
    /// The key whose value is wrong, where one is known.
    pub key: Option<String>,
}

impl YamlError {
    pub(crate) fn at(message: impl Into<String>, place: Place) -> Self {
        Self { message: message.into(), place: Some(place), key: None }
    }
}

/// What makes a text unfit for editing in place: a block then depends on more than its own lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Oddity {
    /// An anchor or an alias.
    Anchor,
    /// An explicit tag.
    Tag,
    /// `---`, `...` or a directive.
    Marker,
    /// A key that is not a scalar, or `<<`.
    Key,
}

/// One node of the tree.
#[derive(Debug, Clone)]
pub(crate) struct Node<'a> {
    pub(crate) place: Place,
    /// Where it begins and ends, in bytes. The end of a block collection is not reliable.
    start: u32,
    end: u32,
    pub(crate) kind: Kind<'a>,
}

/// What a node holds.
#[derive(Debug, Clone)]
pub(crate) enum Kind<'a> {
    /// A text with the way in which it was written.
    Scalar(Cow<'a, str>, Style),
    /// A sequence; true for `[…]`.
    List(Vec<Node<'a>>, bool),
    /// A mapping; true for `{…}`.
    Map(Vec<(Node<'a>, Node<'a>)>, bool),
}

impl Node<'_> {
    /// A null that stands nowhere.
    pub(crate) const fn nothing() -> Self {
        let place = Place { line: 1, column: 1 };
        Self { place, start: 0, end: 0, kind: Kind::Scalar(Cow::Borrowed(""), Style::Plain) }
    }
}

impl<'a> Node<'a> {
    /// A node; positions beyond 4 GB are refused before any is made.
    pub(super) fn new(place: Place, range: Range<usize>, kind: Kind<'a>) -> Self {
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Self { place, start: number(range.start), end: number(range.end), kind }
    }

    /// The same list, beginning where its first entry begins; lines after `|` begin elsewhere.
    pub(super) fn begun_by_first_item(self) -> Option<Self> {
        let first = self.items().first()?;
        let (place, start) = (first.place, first.start);
        let is_block = matches!(first.kind, Kind::Scalar(_, Style::Block));
        (!is_block).then_some(Self { place, start, ..self })
    }

    pub(crate) fn range(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Scalar(text, _) => Some(text),
            Kind::List(..) | Kind::Map(..) => None,
        }
    }

    pub(crate) fn entries(&self) -> &[(Node<'a>, Node<'a>)] {
        match &self.kind {
            Kind::Map(entries, _) => entries,
            Kind::Scalar(..) | Kind::List(..) => &[],
        }
    }

    pub(crate) fn items(&self) -> &[Node<'a>] {
        match &self.kind {
            Kind::List(items, _) => items,
            Kind::Scalar(..) | Kind::Map(..) => &[],
        }
    }

    /// The value under a key of a mapping.
    pub(crate) fn get(&self, key: &str) -> Option<&Node<'a>> {
        self.entries().iter().find(|(name, _)| name.text() == Some(key)).map(|(_, value)| value)
    }

    /// A mapping at the same place with other entries.
    pub(crate) fn with_entries(&self, entries: Vec<(Node<'a>, Node<'a>)>) -> Node<'a> {
        Node { place: self.place, start: self.start, end: self.end, kind: Kind::Map(entries, false) }
    }

    /// Whether it is `null`, `~` or nothing.
    pub(crate) fn is_null(&self) -> bool {
        matches!(&self.kind, Kind::Scalar(text, Style::Plain) if super::scalar::is_null(text))
    }

    /// What to call it in an error.
    pub(crate) fn describe(&self) -> String {
        match &self.kind {
            Kind::Scalar(..) if self.is_null() => "nothing".to_owned(),
            Kind::Scalar(text, _) => format!("{text:?}"),
            Kind::List(..) => "a list".to_owned(),
            Kind::Map(..) => "a mapping".to_owned(),
        }
    }

    fn size(&self) -> usize {
        1 + match &self.kind {
            Kind::Scalar(..) => 0,
            Kind::List(items, _) => items.iter().map(Node::size).sum(),
            Kind::Map(entries, _) => entries.iter().map(|(key, value)| key.size() + value.size()).sum(),
        }
    }
}

/// Reads one document. An empty one is a null scalar.
pub(crate) fn parse(text: &str) -> Result<(Node<'_>, Option<Oddity>), YamlError> {
    if u32::try_from(text.len()).is_err() {
        return Err(YamlError { message: "larger than 4 GB".to_owned(), place: None, key: None });
    }
    let options =
        granit_parser::options! { flow_nesting_limit: DEPTH_LIMIT, block_nesting_limit: DEPTH_LIMIT };
    let mut builder = Builder::default();
    for next in Parser::new_from_str_with_options(text, options) {
        let (event, span) = next.map_err(|error| {
            let marker = error.marker();
            YamlError::at(format!("not valid YAML: {}", error.info()), place(marker.line(), marker.col()))
        })?;
        let at = place(span.start.line(), span.start.col());
        let bytes =
            |marker: granit_parser::Marker| u32::try_from(marker.byte_offset().unwrap_or(0)).unwrap_or(0);
        builder.take(event, at, bytes(span.start)..bytes(span.end))?;
    }
    Ok((builder.root.unwrap_or_else(Node::nothing), builder.oddity))
}

fn place(line: usize, column: usize) -> Place {
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Place { line: number(line), column: number(column).saturating_add(1) }
}

/// A collection that is still open.
struct Open<'a> {
    node: Node<'a>,
    key: Option<Node<'a>>,
    seen: HashSet<String>,
    anchor: usize,
}

#[derive(Default)]
struct Builder<'a> {
    open: Vec<Open<'a>>,
    root: Option<Node<'a>>,
    anchors: HashMap<usize, Node<'a>>,
    expanded: usize,
    documents: usize,
    oddity: Option<Oddity>,
}

impl<'a> Builder<'a> {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the parser's enum may grow; what is new holds no node"
    )]
    fn take(&mut self, event: Event<'a>, at: Place, bytes: Range<u32>) -> Result<(), YamlError> {
        let (start, end) = (bytes.start, bytes.end);
        let node = |kind| Node { place: at, start, end, kind };
        match event {
            Event::DocumentStart(explicit, version) => self.document(explicit || version.is_some(), at),
            Event::Scalar(text, style, anchor, tag) => {
                let style = scalar_style(style, tag.as_deref());
                self.note(anchor, tag.is_some());
                self.place_node(node(Kind::Scalar(text, style)), anchor)
            }
            Event::SequenceStart(style, anchor, tag) => {
                self.note(anchor, tag.is_some());
                self.begin(node(Kind::List(Vec::new(), style == StructureStyle::Flow)), anchor);
                Ok(())
            }
            Event::MappingStart(style, anchor, tag) => {
                self.note(anchor, tag.is_some());
                self.begin(node(Kind::Map(Vec::new(), style == StructureStyle::Flow)), anchor);
                Ok(())
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(mut done) = self.open.pop() else { return Ok(()) };
                done.node.end = end;
                self.place_node(done.node, done.anchor)
            }
            Event::Alias(id) => self.alias(id, at),
            // Anchor names and unresolved aliases are not asked for; the rest holds no node.
            _ => Ok(()),
        }
    }

    fn document(&mut self, marked: bool, at: Place) -> Result<(), YamlError> {
        self.documents += 1;
        if self.documents > 1 {
            return Err(YamlError::at("a second document begins here; only one is read", at));
        }
        if marked {
            self.oddity.get_or_insert(Oddity::Marker);
        }
        Ok(())
    }

    fn note(&mut self, anchor: usize, tagged: bool) {
        if anchor != 0 {
            self.oddity.get_or_insert(Oddity::Anchor);
        }
        if tagged {
            self.oddity.get_or_insert(Oddity::Tag);
        }
    }

    fn begin(&mut self, node: Node<'a>, anchor: usize) {
        self.open.push(Open { node, key: None, seen: HashSet::new(), anchor });
    }

    fn alias(&mut self, id: usize, at: Place) -> Result<(), YamlError> {
        self.oddity.get_or_insert(Oddity::Anchor);
        let Some(target) = self.anchors.get(&id) else {
            return Err(YamlError::at("an alias to a node that contains it", at));
        };
        self.expanded += target.size();
        if self.expanded > ALIAS_BUDGET {
            return Err(YamlError::at("aliases expand to too much; write the values out", at));
        }
        let copy = Node { place: at, ..target.clone() };
        self.place_node(copy, 0)
    }

    fn place_node(&mut self, node: Node<'a>, anchor: usize) -> Result<(), YamlError> {
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        let Some(parent) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match &mut parent.node.kind {
            Kind::List(items, _) => items.push(node),
            Kind::Map(entries, _) => match parent.key.take() {
                Some(key) => entries.push((key, node)),
                None => {
                    let Some(name) = node.text() else {
                        return Err(YamlError::at("a key must be a plain or quoted text", node.place));
                    };
                    if name == "<<" {
                        self.oddity.get_or_insert(Oddity::Key);
                    }
                    if !parent.seen.insert(name.to_owned()) {
                        let message = format!("the key {name:?} appears twice in the same mapping");
                        return Err(YamlError {
                            key: Some(name.to_owned()),
                            ..YamlError::at(message, node.place)
                        });
                    }
                    parent.key = Some(node);
                }
            },
            Kind::Scalar(..) => {}
        }
        Ok(())
    }
}

fn scalar_style(style: ScalarStyle, tag: Option<&granit_parser::Tag>) -> Style {
    let text_tag = tag.is_some_and(|tag| tag.is_yaml_core_schema_tag("str"));
    match style {
        ScalarStyle::Plain if !text_tag => Style::Plain,
        ScalarStyle::Plain | ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => Style::Quoted,
        ScalarStyle::Literal | ScalarStyle::Folded => Style::Block,
    }
}
