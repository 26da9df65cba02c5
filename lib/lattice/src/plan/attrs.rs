//! The attributes of a plan operation, taken by name and kind.

use crate::schema::{AFFINE, Field, Kind, OpDef, PackingKind, SYMBOL};
use m2m_record::{Arg, DType, Kwargs};

/// How a weight is packed, as its attribute says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packing {
    pub bits: u32,
    pub group_size: u32,
    pub scale_dtype: DType,
}

/// The attributes of one operation.
pub(crate) struct Attrs<'a> {
    def: &'static OpDef,
    attrs: &'a Kwargs,
}

impl<'a> Attrs<'a> {
    /// Checks that all are there, of their kind, and no other.
    pub fn new(def: &'static OpDef, attrs: &'a Kwargs) -> Result<Self, String> {
        // A symbol is allowed on any operation, and means something on `weight` only.
        if let Some(key) = attrs.keys().find(|key| def.attribute(key).is_none() && *key != SYMBOL) {
            let known: Vec<&str> = def.attributes.iter().map(|each| each.name).collect();
            return Err(format!("unknown attribute {key:?}; it has {}", known.join(", ")));
        }
        let attrs = Attrs { def, attrs };
        def.attributes.iter().try_for_each(|field| attrs.check(field))?;
        Ok(attrs)
    }

    fn get(&self, name: &str) -> Result<&'a Arg, String> {
        self.attrs.get(name).ok_or_else(|| format!("attribute {name:?} is missing"))
    }

    fn check(&self, field: &Field) -> Result<(), String> {
        match field.kind {
            Kind::I64Triple => self.ints(field.name).map(drop),
            Kind::F64Triple => self.floats(field.name).map(drop),
            Kind::F32 => self.f32(field.name).map(drop),
            Kind::I64 => self.int(field.name).map(drop),
            Kind::Str => self.text(field.name).map(drop),
            Kind::Own("packing") => self.packing().map(drop),
            Kind::Own(mnemonic) => {
                let text = self.text(field.name)?;
                let values = crate::schema::ATTRIBUTES.iter().find(|each| each.mnemonic == mnemonic);
                let values = values.map_or(&[][..], |each| each.values);
                match values.contains(&text) {
                    true => Ok(()),
                    false => Err(format!("attribute {:?} is {text:?}; expected {}", field.name, values.join(", "))),
                }
            }
        }
    }

    pub fn text(&self, name: &str) -> Result<&'a str, String> {
        match self.get(name)? {
            Arg::Str(text) => Ok(text),
            other => Err(format!("attribute {name:?} is {other:?}; expected a string")),
        }
    }

    /// The symbol, empty where there is none.
    pub fn symbol(&self) -> String {
        self.text(SYMBOL).unwrap_or_default().to_owned()
    }

    pub fn int(&self, name: &str) -> Result<i64, String> {
        match self.get(name)? {
            Arg::Int(n) => Ok(*n),
            other => Err(format!("attribute {name:?} is {other:?}; expected an integer")),
        }
    }

    /// The value of an f32 attribute, which the plan widens.
    pub fn f32(&self, name: &str) -> Result<f32, String> {
        number(self.get(name)?)
            .map(|x| x as f32)
            .ok_or_else(|| format!("attribute {name:?} is not a number; expected a float"))
    }

    fn triple<T: Copy + Default>(&self, name: &str, what: &str, one: fn(&Arg) -> Option<T>) -> Result<[T; 3], String> {
        let wrong = || format!("attribute {name:?} is not a list of three {what}");
        let Arg::List(items) = self.get(name)? else { return Err(wrong()) };
        let items: Option<Vec<T>> = items.iter().map(one).collect();
        items.and_then(|items| items.try_into().ok()).ok_or_else(wrong)
    }

    pub fn ints(&self, name: &str) -> Result<[i64; 3], String> {
        self.triple(name, "integers", |arg| match arg {
            Arg::Int(n) => Some(*n),
            _ => None,
        })
    }

    pub fn floats(&self, name: &str) -> Result<[f64; 3], String> {
        self.triple(name, "numbers", number)
    }

    /// The variant of a keyword attribute, which [`Attrs::new`] has found in its set.
    pub fn keyword<T>(&self, name: &str, parse: fn(&str) -> Option<T>) -> Result<T, String> {
        let text = self.text(name)?;
        parse(text).ok_or_else(|| format!("attribute {name:?} is {text:?}, which is no keyword of its set"))
    }

    /// How the weight is packed; `None` when it is dense.
    pub fn packing(&self) -> Result<Option<Packing>, String> {
        debug_assert!(self.def.attribute("packing").is_some());
        let wrong = |what: &str| format!("attribute \"packing\" {what}");
        let Arg::Map(map) = self.get("packing")? else { return Err(wrong("is not a map")) };
        let keys = ["kind", "group_size", "scale_dtype", "mode"];
        if let Some(key) = map.keys().find(|key| !keys.contains(&key.as_str())) {
            return Err(wrong(&format!("has key {key:?}; expected {}", keys.join(", "))));
        }
        let text = |key: &str| match map.get(key) {
            None | Some(Arg::Null) => Ok(""),
            Some(Arg::Str(text)) => Ok(text.as_str()),
            Some(_) => Err(wrong(&format!("has a {key} that is no string"))),
        };
        let size = match map.get("group_size") {
            None => 0,
            Some(Arg::Int(n)) => *n,
            Some(_) => return Err(wrong("has a group_size that is no integer")),
        };
        let kind = PackingKind::parse(text("kind")?)
            .ok_or_else(|| wrong(&format!("has kind {:?}; expected dense, int4 or int8", map.get("kind"))))?;
        let bits = match kind {
            PackingKind::Dense if text("scale_dtype")?.is_empty() && text("mode")?.is_empty() => return Ok(None),
            PackingKind::Dense => return Err(wrong("is dense and has a scale_dtype or a mode")),
            PackingKind::Int4 => 4,
            PackingKind::Int8 => 8,
        };
        let scale_dtype = match text("scale_dtype")? {
            "f16" => DType::F16,
            "f32" => DType::F32,
            other => return Err(wrong(&format!("has scale_dtype {other:?}; expected f16 or f32"))),
        };
        if text("mode")? != AFFINE {
            return Err(wrong(&format!("has mode {:?}; expected {AFFINE}", text("mode")?)));
        }
        let group_size = u32::try_from(size).ok().filter(|size| *size > 0);
        let group_size = group_size.ok_or_else(|| wrong(&format!("has group_size {size}; expected 32, 64 or 128")))?;
        Ok(Some(Packing { bits, group_size, scale_dtype }))
    }
}

fn number(arg: &Arg) -> Option<f64> {
    match arg {
        Arg::Float(x) => Some(x.0),
        Arg::Int(n) => Some(*n as f64),
        _ => None,
    }
}
