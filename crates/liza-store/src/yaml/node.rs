//! Parses a YAML text into a tree in which every node has its position. Refuses duplicate keys and alias
//! bombs. Does not interpret scalars.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::Range;

use granit_parser::{Event, Parser, ScalarStyle, StructureStyle};

use super::scalar::Style;

/// The number of nodes that all aliases together may add: enough for normal use, too few for a bomb.
const ALIAS_BUDGET: usize = 10_000;
const DEPTH_LIMIT: usize = 64;

/// Both start at 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub line: u32,
    pub column: u32,
}

impl Position {
    pub(crate) fn new(line: usize, column: usize) -> Self {
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Self { line: number(line), column: number(column) }
    }

    /// This position in a text that has `lines` more lines before it.
    #[must_use]
    pub(crate) fn below(self, lines: u32) -> Self {
        Self { line: self.line.saturating_add(lines), ..self }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct YamlError {
    pub message: String,
    pub position: Option<Position>,
    pub key: Option<String>,
}

impl YamlError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), position: None, key: None }
    }

    pub(crate) fn at(message: impl Into<String>, position: Position) -> Self {
        Self { position: Some(position), ..Self::new(message) }
    }
}

/// Syntax that makes a block depend on more than its own lines, so that it cannot be edited in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NonLocalSyntax {
    Anchor,
    Tag,
    /// `---`, `...` or a directive.
    Marker,
    /// A key that is not a scalar, or `<<`.
    Key,
}

#[derive(Debug, Clone)]
pub(crate) struct Node<'a> {
    pub(crate) position: Position,
    /// Start and end, in bytes. The end of a block collection is not reliable.
    start: u32,
    end: u32,
    pub(crate) kind: NodeKind<'a>,
}

#[derive(Debug, Clone)]
pub(crate) enum NodeKind<'a> {
    Scalar(Cow<'a, str>, Style),
    /// A sequence; true for `[…]`.
    List(Vec<Node<'a>>, bool),
    /// A mapping; true for `{…}`.
    Map(Vec<(Node<'a>, Node<'a>)>, bool),
}

impl Node<'_> {
    /// A null without a position.
    pub(crate) const fn null() -> Self {
        let position = Position { line: 1, column: 1 };
        Self { position, start: 0, end: 0, kind: NodeKind::Scalar(Cow::Borrowed(""), Style::Plain) }
    }
}

impl<'a> Node<'a> {
    /// A node. The text is smaller than 4 GB, which the parsers check.
    pub(super) fn new(position: Position, range: Range<usize>, kind: NodeKind<'a>) -> Self {
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Self { position, start: number(range.start), end: number(range.end), kind }
    }

    /// This list with the start of its first entry. None if that is a block scalar, which starts elsewhere.
    pub(super) fn starting_at_first_item(self) -> Option<Self> {
        let first = self.items().first()?;
        let (position, start) = (first.position, first.start);
        let is_block = matches!(first.kind, NodeKind::Scalar(_, Style::Block));
        (!is_block).then_some(Self { position, start, ..self })
    }

    pub(crate) fn range(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match &self.kind {
            NodeKind::Scalar(text, _) => Some(text),
            NodeKind::List(..) | NodeKind::Map(..) => None,
        }
    }

    pub(crate) fn entries(&self) -> &[(Node<'a>, Node<'a>)] {
        match &self.kind {
            NodeKind::Map(entries, _) => entries,
            NodeKind::Scalar(..) | NodeKind::List(..) => &[],
        }
    }

    pub(crate) fn items(&self) -> &[Node<'a>] {
        match &self.kind {
            NodeKind::List(items, _) => items,
            NodeKind::Scalar(..) | NodeKind::Map(..) => &[],
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Node<'a>> {
        self.entries().iter().find(|(name, _)| name.text() == Some(key)).map(|(_, value)| value)
    }

    /// A mapping at the same position with other entries.
    pub(crate) fn with_entries(&self, entries: Vec<(Node<'a>, Node<'a>)>) -> Node<'a> {
        Node {
            position: self.position,
            start: self.start,
            end: self.end,
            kind: NodeKind::Map(entries, false),
        }
    }

    /// True for `null`, `~` and an empty text.
    pub(crate) fn is_null(&self) -> bool {
        matches!(&self.kind, NodeKind::Scalar(text, Style::Plain) if super::scalar::is_null(text))
    }

    /// For an error.
    pub(crate) fn describe(&self) -> String {
        match &self.kind {
            NodeKind::Scalar(..) if self.is_null() => "no value".to_owned(),
            NodeKind::Scalar(text, _) => format!("{text:?}"),
            NodeKind::List(..) => "a list".to_owned(),
            NodeKind::Map(..) => "a mapping".to_owned(),
        }
    }

    fn size(&self) -> usize {
        1 + match &self.kind {
            NodeKind::Scalar(..) => 0,
            NodeKind::List(items, _) => items.iter().map(Node::size).sum(),
            NodeKind::Map(entries, _) => entries.iter().map(|(key, value)| key.size() + value.size()).sum(),
        }
    }
}

/// Parses one document. An empty one is a null scalar.
pub(crate) fn parse(text: &str) -> Result<(Node<'_>, Option<NonLocalSyntax>), YamlError> {
    if u32::try_from(text.len()).is_err() {
        return Err(YamlError::new("the text is larger than 4 GB"));
    }
    let mut builder = TreeBuilder::default();
    for next in events(text, false) {
        let (event, span) = next.map_err(|error| not_yaml(&error))?;
        let at = Position::new(span.start.line(), span.start.col() + 1);
        let bytes =
            |marker: granit_parser::Marker| u32::try_from(marker.byte_offset().unwrap_or(0)).unwrap_or(0);
        builder.take(event, at, bytes(span.start)..bytes(span.end))?;
    }
    Ok((builder.root.unwrap_or_else(Node::null), builder.non_local))
}

/// The comments of a text, each from its `#` to the end of its line.
pub(crate) fn comments(text: &str) -> Result<Vec<Range<usize>>, YamlError> {
    let mut found = Vec::new();
    for next in events(text, true) {
        let (event, span) = next.map_err(|error| not_yaml(&error))?;
        if let (Event::Comment(..), Some(start), Some(end)) =
            (event, span.start.byte_offset(), span.end.byte_offset())
        {
            found.push(start..end);
        }
    }
    found.sort_by_key(|comment| comment.start);
    Ok(found)
}

fn events(text: &str, comments: bool) -> Parser<'_, granit_parser::StrInput<'_>> {
    let options = granit_parser::options! {
        flow_nesting_limit: DEPTH_LIMIT,
        block_nesting_limit: DEPTH_LIMIT,
        emit_comments: comments,
    };
    Parser::new_from_str_with_options(text, options)
}

fn not_yaml(error: &granit_parser::ScanError) -> YamlError {
    let marker = error.marker();
    let position = Position::new(marker.line(), marker.col() + 1);
    YamlError::at(format!("not valid YAML: {}", error.info()), position)
}

/// A collection whose end has not been parsed yet.
struct OpenCollection<'a> {
    node: Node<'a>,
    key: Option<Node<'a>>,
    seen: HashSet<String>,
    anchor: usize,
}

#[derive(Default)]
struct TreeBuilder<'a> {
    open: Vec<OpenCollection<'a>>,
    root: Option<Node<'a>>,
    anchors: HashMap<usize, Node<'a>>,
    expanded: usize,
    documents: usize,
    non_local: Option<NonLocalSyntax>,
}

impl<'a> TreeBuilder<'a> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the parser may add events, which hold no node")]
    fn take(&mut self, event: Event<'a>, at: Position, bytes: Range<u32>) -> Result<(), YamlError> {
        let (start, end) = (bytes.start, bytes.end);
        let node = |kind| Node { position: at, start, end, kind };
        match event {
            Event::DocumentStart(explicit, version) => self.document(explicit || version.is_some(), at),
            Event::Scalar(text, style, anchor, tag) => {
                let style = scalar_style(style, tag.as_deref());
                self.note(anchor, tag.is_some());
                self.add_node(node(NodeKind::Scalar(text, style)), anchor)
            }
            Event::SequenceStart(style, anchor, tag) => {
                self.note(anchor, tag.is_some());
                self.begin(node(NodeKind::List(Vec::new(), style == StructureStyle::Flow)), anchor);
                Ok(())
            }
            Event::MappingStart(style, anchor, tag) => {
                self.note(anchor, tag.is_some());
                self.begin(node(NodeKind::Map(Vec::new(), style == StructureStyle::Flow)), anchor);
                Ok(())
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(mut done) = self.open.pop() else { return Ok(()) };
                done.node.end = end;
                self.add_node(done.node, done.anchor)
            }
            Event::Alias(id) => self.alias(id, at),
            // The other events hold no node.
            _ => Ok(()),
        }
    }

    fn document(&mut self, marked: bool, at: Position) -> Result<(), YamlError> {
        self.documents += 1;
        if self.documents > 1 {
            return Err(YamlError::at("a second document starts here; a file can have only one", at));
        }
        if marked {
            self.non_local.get_or_insert(NonLocalSyntax::Marker);
        }
        Ok(())
    }

    fn note(&mut self, anchor: usize, tagged: bool) {
        if anchor != 0 {
            self.non_local.get_or_insert(NonLocalSyntax::Anchor);
        }
        if tagged {
            self.non_local.get_or_insert(NonLocalSyntax::Tag);
        }
    }

    fn begin(&mut self, node: Node<'a>, anchor: usize) {
        self.open.push(OpenCollection { node, key: None, seen: HashSet::new(), anchor });
    }

    fn alias(&mut self, id: usize, at: Position) -> Result<(), YamlError> {
        self.non_local.get_or_insert(NonLocalSyntax::Anchor);
        let Some(target) = self.anchors.get(&id) else {
            return Err(YamlError::at("this alias refers to a node that contains it", at));
        };
        self.expanded += target.size();
        if self.expanded > ALIAS_BUDGET {
            return Err(YamlError::at("the aliases expand to too many values; write the values out", at));
        }
        let copy = Node { position: at, ..target.clone() };
        self.add_node(copy, 0)
    }

    fn add_node(&mut self, node: Node<'a>, anchor: usize) -> Result<(), YamlError> {
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        let Some(parent) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match &mut parent.node.kind {
            NodeKind::List(items, _) => items.push(node),
            NodeKind::Map(entries, _) => match parent.key.take() {
                Some(key) => entries.push((key, node)),
                None => {
                    let Some(name) = node.text() else {
                        return Err(YamlError::at("a key must be plain or quoted text", node.position));
                    };
                    if name == "<<" {
                        self.non_local.get_or_insert(NonLocalSyntax::Key);
                    }
                    if !parent.seen.insert(name.to_owned()) {
                        let message =
                            format!("the key {name:?} appears twice in the same mapping; remove one");
                        return Err(YamlError {
                            key: Some(name.to_owned()),
                            ..YamlError::at(message, node.position)
                        });
                    }
                    parent.key = Some(node);
                }
            },
            NodeKind::Scalar(..) => {}
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
