//! Typed decoding of a node tree, with the place of whatever does not fit.
//!
//! The type that is asked for decides what a scalar means; only untyped values are guessed at, and then with care.

use std::fmt;

use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::node::{Kind, Node, YamlError, parse};
use super::scalar::{self, Style};
use liza_core::model::Value;

/// Reads a document that is not the blackboard's as `T`; an error says where.
///
/// # Errors
///
/// When it is not YAML, or not what `T` wants.
pub fn read<T: de::DeserializeOwned>(text: &str) -> Result<T, YamlError> {
    let (node, _) = parse(text)?;
    decode(&node)
}

/// Decodes a node as `T`.
pub(crate) fn decode<'n, T: de::Deserialize<'n>>(node: &'n Node<'n>) -> Result<T, YamlError> {
    T::deserialize(NodeDecoder(node)).map_err(|error| error.settle(node))
}

impl de::Error for YamlError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self { message: message.to_string(), place: None, key: None }
    }
}

impl YamlError {
    /// Takes the node's place unless a deeper one is known.
    fn settle(mut self, node: &Node<'_>) -> Self {
        self.place.get_or_insert(node.place);
        self
    }

    fn under(mut self, key: &str) -> Self {
        self.key.get_or_insert_with(|| key.to_owned());
        self
    }
}

struct NodeDecoder<'n>(&'n Node<'n>);

impl<'n> NodeDecoder<'n> {
    fn wanted(&self, what: &str) -> YamlError {
        YamlError::at(format!("expected {what}, found {}", self.0.describe()), self.0.place)
    }

    fn plain(&self) -> Option<&'n str> {
        match &self.0.kind {
            Kind::Scalar(text, Style::Plain) => Some(text),
            Kind::Scalar(..) | Kind::List(..) | Kind::Map(..) => None,
        }
    }

    /// A whole number; leading zeros are a person's padding, not another base.
    fn integer<T: std::str::FromStr>(&self) -> Result<T, YamlError> {
        let digits = self.plain().map(|text| text.strip_prefix('+').unwrap_or(text));
        digits.and_then(|text| text.parse().ok()).ok_or_else(|| self.wanted("a whole number"))
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
            Kind::Scalar(text, style) => match scalar::resolve(text, *style) {
                Value::Null => visitor.visit_unit(),
                Value::Bool(value) => visitor.visit_bool(value),
                Value::Int(value) => visitor.visit_i64(value),
                Value::Float(value) => visitor.visit_f64(value),
                Value::Text(_) | Value::Time(_) | Value::List(_) | Value::Map(_) => {
                    visitor.visit_borrowed_str(text)
                }
            },
            Kind::List(items, _) => visitor.visit_seq(Items(items.iter())),
            Kind::Map(entries, _) => visitor.visit_map(Entries { entries: entries.iter(), value: None }),
        }
    }

    fn deserialize_bool<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, YamlError> {
        let value = self.plain().and_then(scalar::as_bool);
        visitor.visit_bool(value.ok_or_else(|| self.wanted("true or false"))?)
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
        visitor.visit_f64(value.ok_or_else(|| self.wanted("a number"))?)
    }

    fn deserialize_str<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, YamlError> {
        match &self.0.kind {
            Kind::Scalar(text, _) if !self.0.is_null() => visitor.visit_borrowed_str(text),
            Kind::Scalar(..) | Kind::List(..) | Kind::Map(..) => Err(self.wanted("a text")),
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
            Kind::List(items, _) => visitor.visit_seq(Items(items.iter())),
            // `tasks:` with nothing below it is an empty list to whoever wrote it.
            Kind::Scalar(..) if self.0.is_null() => visitor.visit_seq(Items([].iter())),
            Kind::Scalar(..) | Kind::Map(..) => Err(self.wanted("a list")),
        }
    }

    fn deserialize_map<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, YamlError> {
        match &self.0.kind {
            Kind::Map(entries, _) => visitor.visit_map(Entries { entries: entries.iter(), value: None }),
            Kind::Scalar(..) if self.0.is_null() => {
                visitor.visit_map(Entries { entries: [].iter(), value: None })
            }
            Kind::Scalar(..) | Kind::List(..) => Err(self.wanted("a mapping")),
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
            Kind::Scalar(..) => visitor.visit_enum(Choice { name: self.0, value: None }),
            Kind::Map(entries, _) => match entries.as_slice() {
                [(name, value)] => visitor.visit_enum(Choice { name, value: Some(value) }),
                [] | [..] => Err(self.wanted("one word")),
            },
            Kind::List(..) => Err(self.wanted("one word")),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, YamlError> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        <V: Visitor<'n>> i128 u128 char bytes byte_buf unit unit_struct tuple tuple_struct
    }
}

/// What a choice without anything below it holds.
static NOTHING: Node<'static> = Node::nothing();

/// One of several things: a word, or a word with what belongs to it below.
struct Choice<'n> {
    name: &'n Node<'n>,
    value: Option<&'n Node<'n>>,
}

impl<'n> Choice<'n> {
    /// Decodes what belongs to the word; where nothing does, an error is at the word.
    fn inner<T>(&self, read: impl FnOnce(NodeDecoder<'n>) -> Result<T, YamlError>) -> Result<T, YamlError> {
        let name = self.name.text().unwrap_or_default();
        match self.value {
            Some(value) => read(NodeDecoder(value)).map_err(|error| error.settle(value).under(name)),
            None => read(NodeDecoder(&NOTHING))
                .map_err(|error| YamlError { place: Some(self.name.place), ..error.under(name) }),
        }
    }
}

impl<'n> EnumAccess<'n> for Choice<'n> {
    type Error = YamlError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'n>>(self, seed: V) -> Result<(V::Value, Self), YamlError> {
        let name: &str = self.name.text().unwrap_or_default();
        let word = seed
            .deserialize(de::value::BorrowedStrDeserializer::new(name))
            .map_err(|error: YamlError| error.settle(self.name))?;
        Ok((word, self))
    }
}

impl<'n> VariantAccess<'n> for Choice<'n> {
    type Error = YamlError;

    fn unit_variant(self) -> Result<(), YamlError> {
        match self.value {
            Some(value) if !value.is_null() => Err(NodeDecoder(value).wanted("one word")),
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

struct Items<'n>(std::slice::Iter<'n, Node<'n>>);

impl<'n> SeqAccess<'n> for Items<'n> {
    type Error = YamlError;

    fn next_element_seed<T: DeserializeSeed<'n>>(&mut self, seed: T) -> Result<Option<T::Value>, YamlError> {
        let Some(node) = self.0.next() else { return Ok(None) };
        seed.deserialize(NodeDecoder(node)).map(Some).map_err(|error| error.settle(node))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

struct Entries<'n> {
    entries: std::slice::Iter<'n, (Node<'n>, Node<'n>)>,
    value: Option<(&'n Node<'n>, &'n Node<'n>)>,
}

impl<'n> MapAccess<'n> for Entries<'n> {
    type Error = YamlError;

    fn next_key_seed<K: DeserializeSeed<'n>>(&mut self, seed: K) -> Result<Option<K::Value>, YamlError> {
        let Some((key, value)) = self.entries.next() else { return Ok(None) };
        self.value = Some((key, value));
        // A key is its text, whatever it looks like: `1:` and `no:` are names.
        let name: &str = key.text().unwrap_or_default();
        seed.deserialize(de::value::BorrowedStrDeserializer::new(name))
            .map(Some)
            .map_err(|e: YamlError| e.settle(key))
    }

    fn next_value_seed<T: DeserializeSeed<'n>>(&mut self, seed: T) -> Result<T::Value, YamlError> {
        let Some((key, value)) = self.value.take() else {
            return Err(de::Error::custom("a value without a key"));
        };
        seed.deserialize(NodeDecoder(value))
            .map_err(|error| error.settle(value).under(key.text().unwrap_or_default()))
    }
}
