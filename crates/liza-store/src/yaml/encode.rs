//! Converts any serializable record into a plain value, so that two records can be compared key by key. Keeps
//! a [`Timestamp`] as a time: a text that looks like a time must stay text.

use std::fmt;

use liza_core::model::{Fields, Timestamp, Value};
use serde::ser::{self, Serialize, Serializer};

use super::node::YamlError;

pub(crate) fn to_value<T: Serialize + ?Sized>(record: &T) -> Result<Value, YamlError> {
    record.serialize(ToValue)
}

impl ser::Error for YamlError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }
}

struct ToValue;

macro_rules! whole_numbers {
    ($($method:ident: $type:ty),+) => {$(
        fn $method(self, value: $type) -> Result<Value, YamlError> {
            Ok(Value::Int(i64::from(value)))
        }
    )+};
}

impl Serializer for ToValue {
    type Ok = Value;
    type Error = YamlError;
    type SerializeSeq = ListBuilder;
    type SerializeTuple = ser::Impossible<Value, YamlError>;
    type SerializeTupleStruct = ser::Impossible<Value, YamlError>;
    type SerializeTupleVariant = ser::Impossible<Value, YamlError>;
    type SerializeMap = MapBuilder;
    type SerializeStruct = MapBuilder;
    type SerializeStructVariant = VariantBuilder;

    whole_numbers! {
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32
    }

    fn serialize_u64(self, value: u64) -> Result<Value, YamlError> {
        i64::try_from(value)
            .map(Value::Int)
            .map_err(|_| ser::Error::custom(format!("{value} is too large for YAML")))
    }

    fn serialize_bool(self, value: bool) -> Result<Value, YamlError> {
        Ok(Value::Bool(value))
    }

    fn serialize_f32(self, value: f32) -> Result<Value, YamlError> {
        Ok(Value::Float(f64::from(value)))
    }

    fn serialize_f64(self, value: f64) -> Result<Value, YamlError> {
        Ok(Value::Float(value))
    }

    fn serialize_char(self, value: char) -> Result<Value, YamlError> {
        Ok(Value::Text(value.to_string()))
    }

    fn serialize_str(self, value: &str) -> Result<Value, YamlError> {
        Ok(Value::from(value))
    }

    fn serialize_bytes(self, _value: &[u8]) -> Result<Value, YamlError> {
        Err(no_form("a byte string"))
    }

    fn serialize_none(self) -> Result<Value, YamlError> {
        Ok(Value::Null)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Value, YamlError> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Value, YamlError> {
        Ok(Value::Null)
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<Value, YamlError> {
        Ok(Value::Null)
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
    ) -> Result<Value, YamlError> {
        Ok(Value::from(variant))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<Value, YamlError> {
        let inner = value.serialize(self)?;
        if name != Timestamp::SERDE_NAME {
            return Ok(inner);
        }
        let time = inner.as_text().and_then(|text| text.parse::<Timestamp>().ok());
        Ok(time.map_or(inner, Value::Time))
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Value, YamlError> {
        Ok(Value::Map(Fields::from_iter([(variant.to_owned(), value.serialize(self)?)])))
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<ListBuilder, YamlError> {
        Ok(ListBuilder(Vec::with_capacity(length.unwrap_or(0))))
    }

    fn serialize_tuple(self, _length: usize) -> Result<Self::SerializeTuple, YamlError> {
        Err(no_form("a tuple"))
    }

    fn serialize_tuple_struct(
        self,
        name: &'static str,
        _length: usize,
    ) -> Result<Self::SerializeTupleStruct, YamlError> {
        Err(no_form(name))
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _length: usize,
    ) -> Result<Self::SerializeTupleVariant, YamlError> {
        Err(no_form(variant))
    }

    fn serialize_map(self, _length: Option<usize>) -> Result<MapBuilder, YamlError> {
        Ok(MapBuilder { fields: Fields::new(), key: None })
    }

    fn serialize_struct(self, _name: &'static str, _length: usize) -> Result<MapBuilder, YamlError> {
        self.serialize_map(None)
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _length: usize,
    ) -> Result<VariantBuilder, YamlError> {
        Ok(VariantBuilder { variant, fields: MapBuilder { fields: Fields::new(), key: None } })
    }
}

fn no_form(what: &str) -> YamlError {
    ser::Error::custom(format!("{what} has no YAML form"))
}

struct ListBuilder(Vec<Value>);

impl ser::SerializeSeq for ListBuilder {
    type Ok = Value;
    type Error = YamlError;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), YamlError> {
        self.0.push(value.serialize(ToValue)?);
        Ok(())
    }

    fn end(self) -> Result<Value, YamlError> {
        Ok(Value::List(self.0))
    }
}

struct MapBuilder {
    fields: Fields,
    key: Option<String>,
}

impl ser::SerializeMap for MapBuilder {
    type Ok = Value;
    type Error = YamlError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), YamlError> {
        self.key = match key.serialize(ToValue)? {
            Value::Text(text) => Some(text),
            Value::Int(number) => Some(number.to_string()),
            Value::Null
            | Value::Bool(_)
            | Value::Float(_)
            | Value::Time(_)
            | Value::List(_)
            | Value::Map(_) => {
                return Err(ser::Error::custom("a key must be text or a whole number"));
            }
        };
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), YamlError> {
        let key =
            self.key.take().ok_or_else(|| <YamlError as ser::Error>::custom("a value without a key"))?;
        self.fields.insert(key, value.serialize(ToValue)?);
        Ok(())
    }

    fn end(self) -> Result<Value, YamlError> {
        Ok(Value::Map(self.fields))
    }
}

impl ser::SerializeStruct for MapBuilder {
    type Ok = Value;
    type Error = YamlError;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), YamlError> {
        self.fields.insert(key.to_owned(), value.serialize(ToValue)?);
        Ok(())
    }

    fn end(self) -> Result<Value, YamlError> {
        Ok(Value::Map(self.fields))
    }
}

/// A word with a map, as the other variants with a value.
struct VariantBuilder {
    variant: &'static str,
    fields: MapBuilder,
}

impl ser::SerializeStructVariant for VariantBuilder {
    type Ok = Value;
    type Error = YamlError;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), YamlError> {
        ser::SerializeStruct::serialize_field(&mut self.fields, key, value)
    }

    fn end(self) -> Result<Value, YamlError> {
        let inner = ser::SerializeStruct::end(self.fields)?;
        Ok(Value::Map(Fields::from_iter([(self.variant.to_owned(), inner)])))
    }
}
