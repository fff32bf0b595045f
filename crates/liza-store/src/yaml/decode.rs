//! Decodes a tree into typed values; an error has its position. The requested type decides the meaning of a
//! scalar; without a type, `scalar::resolve` does.

use std::fmt;

use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, Expected, MapAccess, SeqAccess, Unexpected,
    VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::node::{Node, NodeKind, YamlError, parse};
use super::scalar::{self, Style};
use liza_core::model::Value;

/// Reads a YAML document other than the blackboard as `T`.
pub fn read<T: de::DeserializeOwned>(text: &str) -> Result<T, YamlError> {
    let (node, _) = parse(text)?;
    decode(&node)
}

pub(crate) fn decode<'n, T: de::Deserialize<'n>>(node: &'n Node<'n>) -> Result<T, YamlError> {
    T::deserialize(NodeDecoder(node)).map_err(|error| error.or_at(node))
}

impl de::Error for YamlError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(format!("expected {expected}, found {}", in_yaml_words(found)))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn invalid_length(length: usize, expected: &dyn Expected) -> Self {
        Self::new(format!("expected {expected}, found {length} entries"))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Self::new(format!("{variant:?} is not valid; expected one of {}", expected.join(", ")))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::new(format!("the key {field:?} is not known; expected one of {}", expected.join(", ")))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(format!("the key {field:?} is missing"))
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::new(format!("the key {field:?} appears twice"))
    }
}

/// Describes a value without the names of types in the program.
fn in_yaml_words(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(value) => value.to_string(),
        Unexpected::Unsigned(value) => value.to_string(),
        Unexpected::Signed(value) => value.to_string(),
        Unexpected::Float(value) => value.to_string(),
        Unexpected::Char(value) => format!("{value:?}"),
        Unexpected::Str(value) => format!("{value:?}"),
        Unexpected::Unit | Unexpected::Option => "no value".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "a mapping".to_owned(),
        Unexpected::Bytes(_)
        | Unexpected::NewtypeStruct
        | Unexpected::Enum
        | Unexpected::UnitVariant
        | Unexpected::NewtypeVariant
        | Unexpected::TupleVariant
        | Unexpected::StructVariant => "something else".to_owned(),
        Unexpected::Other(other) => other.to_owned(),
    }
}

impl YamlError {
    /// Sets the position of the node, unless a deeper one is known.
    fn or_at(mut self, node: &Node<'_>) -> Self {
        self.position.get_or_insert(node.position);
        self
    }

    fn under(mut self, key: &str) -> Self {
        self.key.get_or_insert_with(|| key.to_owned());
        self
    }
}

struct NodeDecoder<'n>(&'n Node<'n>);

impl<'n> NodeDecoder<'n> {
    fn expected(&self, what: &str) -> YamlError {
        YamlError::at(format!("expected {what}, found {}", self.0.describe()), self.0.position)
    }

    fn plain(&self) -> Option<&'n str> {
        match &self.0.kind {
            NodeKind::Scalar(text, Style::Plain) => Some(text),
            NodeKind::Scalar(..) | NodeKind::List(..) | NodeKind::Map(..) => None,
        }
    }

    /// A whole number. Leading zeros are padding, not another base.
    fn integer<T: std::str::FromStr>(&self) -> Result<T, YamlError> {
        let digits = self.plain().map(|text| text.strip_prefix('+').unwrap_or(text));
        digits.and_then(|text| text.parse().ok()).ok_or_else(|| self.expected("a whole number"))
    }
}

macro_rules! integers {
    ($($method:ident => $visit:ident),+) => {$(
        fn $method<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, YamlError> {
            visitor.$visit(self.integer()?)
        }
    )+};
}

impl<'n> Deserializer<'n> for NodeDecoder<'n> {
    type Error = YamlError;

    fn deserialize_any<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, YamlError> {
        match &self.0.kind {
            NodeKind::Scalar(text, style) => match scalar::resolve(text, *style) {
                Value::Null => visitor.visit_unit(),
                Value::Bool(value) => visitor.visit_bool(value),
                Value::Int(value) => visitor.visit_i64(value),
                Value::Float(value) => visitor.visit_f64(value),
                Value::Text(_) | Value::Time(_) | Value::List(_) | Value::Map(_) => {
                    visitor.visit_borrowed_str(text)
                }
            },
            NodeKind::List(items, _) => visitor.visit_seq(ListDecoder(items.iter())),
            NodeKind::Map(entries, _) => {
                visitor.visit_map(MapDecoder { entries: entries.iter(), value: None })
            }
        }
    }

    fn deserialize_bool<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, YamlError> {
        let value = self.plain().and_then(scalar::as_bool);
        visitor.visit_bool(value.ok_or_else(|| self.expected("true or false"))?)
    }

    integers! {
        deserialize_i8 => visit_i8, deserialize_i16 => visit_i16, deserialize_i32 => visit_i32,
        deserialize_i64 => visit_i64, deserialize_u8 => visit_u8, deserialize_u16 => visit_u16,
        deserialize_u32 => visit_u32, deserialize_u64 => visit_u64
    }

    fn deserialize_f32<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, YamlError> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_f64<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, YamlError> {
        let value = self.plain().and_then(|text| match text.trim_start_matches('+') {
            ".inf" => Some(f64::INFINITY),
            "-.inf" => Some(f64::NEG_INFINITY),
            ".nan" => Some(f64::NAN),
            text => text.parse().ok(),
        });
        visitor.visit_f64(value.ok_or_else(|| self.expected("a number"))?)
    }

    fn deserialize_str<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, YamlError> {
        match &self.0.kind {
            NodeKind::Scalar(text, _) if !self.0.is_null() => visitor.visit_borrowed_str(text),
            NodeKind::Scalar(..) | NodeKind::List(..) | NodeKind::Map(..) => Err(self.expected("text")),
        }
    }

    fn deserialize_string<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, YamlError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_identifier<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, YamlError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, YamlError> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'n>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, YamlError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, YamlError> {
        match &self.0.kind {
            NodeKind::List(items, _) => visitor.visit_seq(ListDecoder(items.iter())),
            // `tasks:` without a value is an empty list.
            NodeKind::Scalar(..) if self.0.is_null() => visitor.visit_seq(ListDecoder([].iter())),
            NodeKind::Scalar(..) | NodeKind::Map(..) => Err(self.expected("a list")),
        }
    }

    fn deserialize_map<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, YamlError> {
        match &self.0.kind {
            NodeKind::Map(entries, _) => {
                visitor.visit_map(MapDecoder { entries: entries.iter(), value: None })
            }
            NodeKind::Scalar(..) if self.0.is_null() => {
                visitor.visit_map(MapDecoder { entries: [].iter(), value: None })
            }
            NodeKind::Scalar(..) | NodeKind::List(..) => Err(self.expected("a mapping")),
        }
    }

    fn deserialize_struct<V: Visitor<'n>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, YamlError> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'n>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, YamlError> {
        match &self.0.kind {
            NodeKind::Scalar(..) => visitor.visit_enum(VariantDecoder { name: self.0, value: None }),
            NodeKind::Map(entries, _) => match entries.as_slice() {
                [(name, value)] => visitor.visit_enum(VariantDecoder { name, value: Some(value) }),
                [] | [..] => Err(self.expected("one word")),
            },
            NodeKind::List(..) => Err(self.expected("one word")),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, YamlError> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        <V: Visitor<'n>> i128 u128 char bytes byte_buf unit unit_struct tuple tuple_struct
    }
}

static NULL: Node<'static> = Node::null();

/// A variant of an enum: a word, or a mapping of a word to its value.
struct VariantDecoder<'n> {
    name: &'n Node<'n>,
    value: Option<&'n Node<'n>>,
}

impl<'n> VariantDecoder<'n> {
    /// Decodes the value of the variant. Without a value, an error is at the word.
    fn inner<T>(&self, read: impl FnOnce(NodeDecoder<'n>) -> Result<T, YamlError>) -> Result<T, YamlError> {
        let name = self.name.text().unwrap_or_default();
        match self.value {
            Some(value) => read(NodeDecoder(value)).map_err(|error| error.or_at(value).under(name)),
            None => read(NodeDecoder(&NULL))
                .map_err(|error| YamlError { position: Some(self.name.position), ..error.under(name) }),
        }
    }
}

impl<'n> EnumAccess<'n> for VariantDecoder<'n> {
    type Error = YamlError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'n>>(self, seed: V) -> Result<(V::Value, Self), YamlError> {
        let name: &str = self.name.text().unwrap_or_default();
        let word = seed
            .deserialize(de::value::BorrowedStrDeserializer::new(name))
            .map_err(|error: YamlError| error.or_at(self.name))?;
        Ok((word, self))
    }
}

impl<'n> VariantAccess<'n> for VariantDecoder<'n> {
    type Error = YamlError;

    fn unit_variant(self) -> Result<(), YamlError> {
        match self.value {
            Some(value) if !value.is_null() => Err(NodeDecoder(value).expected("one word")),
            Some(_) | None => Ok(()),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'n>>(self, seed: T) -> Result<T::Value, YamlError> {
        self.inner(|decoder| seed.deserialize(decoder))
    }

    fn tuple_variant<V: Visitor<'n>>(self, _length: usize, visitor: V) -> Result<V::Value, YamlError> {
        self.inner(|decoder| decoder.deserialize_seq(visitor))
    }

    fn struct_variant<V: Visitor<'n>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, YamlError> {
        self.inner(|decoder| decoder.deserialize_map(visitor))
    }
}

struct ListDecoder<'n>(std::slice::Iter<'n, Node<'n>>);

impl<'n> SeqAccess<'n> for ListDecoder<'n> {
    type Error = YamlError;

    fn next_element_seed<T: DeserializeSeed<'n>>(&mut self, seed: T) -> Result<Option<T::Value>, YamlError> {
        let Some(node) = self.0.next() else { return Ok(None) };
        seed.deserialize(NodeDecoder(node)).map(Some).map_err(|error| error.or_at(node))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

struct MapDecoder<'n> {
    entries: std::slice::Iter<'n, (Node<'n>, Node<'n>)>,
    value: Option<(&'n Node<'n>, &'n Node<'n>)>,
}

impl<'n> MapAccess<'n> for MapDecoder<'n> {
    type Error = YamlError;

    fn next_key_seed<K: DeserializeSeed<'n>>(&mut self, seed: K) -> Result<Option<K::Value>, YamlError> {
        let Some((key, value)) = self.entries.next() else { return Ok(None) };
        self.value = Some((key, value));
        // A key is always text: `1:` and `no:` are names.
        let name: &str = key.text().unwrap_or_default();
        seed.deserialize(de::value::BorrowedStrDeserializer::new(name))
            .map(Some)
            .map_err(|e: YamlError| e.or_at(key))
    }

    fn next_value_seed<T: DeserializeSeed<'n>>(&mut self, seed: T) -> Result<T::Value, YamlError> {
        let Some((key, value)) = self.value.take() else {
            return Err(de::Error::custom("a value without a key"));
        };
        seed.deserialize(NodeDecoder(value))
            .map_err(|error| error.or_at(value).under(key.text().unwrap_or_default()))
    }
}
