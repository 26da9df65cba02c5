//! Where the bytes of each input of the program's state are, and whether they are of the type that its graph promises.

use m2m_record::{DType, Data, Dim, Severity, Type};

use crate::Error;
use crate::notes::Notes;
use crate::state::{Held, State};
use crate::weights::DataOf;

/// Looks inputs up, and remembers which have no bytes.
pub(crate) struct Finder<'f> {
    state: &'f State,
    data: &'f DataOf<'f>,
    notes: &'f mut Notes,
    absent: Vec<String>,
}

/// Most names that a message lists.
const MAX_LISTED: usize = 5;

impl<'f> Finder<'f> {
    /// Looks in `state`; what is strange goes to `notes`.
    pub fn new(state: &'f State, data: &'f DataOf<'f>, notes: &'f mut Notes) -> Self {
        Self { state, data, notes, absent: Vec::new() }
    }

    /// The data of the input `value` of type `ty`, whose qualified name is `name`.
    ///
    /// # Errors
    /// When the archive holds a tensor of another type or shape.
    pub fn find(&mut self, name: &str, value: &str, ty: &Type, is_weight: bool) -> Result<Option<Data>, Error> {
        if let Type::Object(class) = ty {
            self.object(value, format!("{name} is an object that only its class can read: {class}"));
            return Ok(None);
        }
        match self.state.find(name, is_weight) {
            Some(Held::Tensor(placed)) => {
                check(name, ty, placed.dtype, &placed.sizes)?;
                Ok(Some(self.data.of(name, placed)))
            }
            Some(Held::Absent { dtype, sizes }) => {
                check(name, ty, *dtype, sizes)?;
                self.absent.push(name.to_owned());
                Ok(Some(Data::Missing))
            }
            None => {
                self.absent.push(name.to_owned());
                Ok(Some(Data::Missing))
            }
            Some(Held::Object { entry }) => {
                self.object(value, format!("{name} is an object that only its class can read, in entry {entry:?}"));
                Ok(None)
            }
            Some(Held::Subclass { class, tensors, others }) => {
                let inner: Vec<String> = tensors.iter().map(|(attribute, _)| format!("{name}.{attribute}")).collect();
                let rest: Vec<String> =
                    others.iter().map(|(attribute, words)| format!("{attribute}={words}")).collect();
                let (inner, rest) = (inner.join(", "), rest.join(", "));
                let message =
                    format!("{name} is a {class}, whose tensors are records of their own: {inner}; attributes {rest}");
                self.notes.tell(Severity::Note, "tensor-subclass", Some(value), message);
                Ok(None)
            }
        }
    }

    fn object(&mut self, value: &str, message: String) {
        self.notes.tell(Severity::Warning, "opaque-object", Some(value), message);
    }

    /// Says which weights have no bytes.
    pub fn finish(self) {
        let count = self.absent.len();
        if count == 0 {
            return;
        }
        let more = if count > MAX_LISTED { ", ..." } else { "" };
        let some = self.absent.into_iter().take(MAX_LISTED).collect::<Vec<_>>().join(", ");
        let message = format!("the archive has no bytes for {count} weights ({some}{more})");
        let hint = "supply them from a safetensors file under the same names";
        self.notes.advise(Severity::Warning, "weights-absent", message, hint);
    }
}

/// The archive and the graph must agree on what a tensor is.
fn check(name: &str, ty: &Type, dtype: DType, sizes: &[i64]) -> Result<(), Error> {
    let promised = match ty {
        Type::Tensor(t) if t.dtype == dtype && t.static_shape().as_deref() == Some(sizes) => return Ok(()),
        Type::Tensor(t) => {
            let shape: Vec<String> = t.shape.iter().map(Dim::to_string).collect();
            format!("{} [{}]", t.dtype, shape.join(", "))
        }
        _ => "no tensor".to_owned(),
    };
    Err(Error::Tensor {
        name: name.to_owned(),
        entry: "state".to_owned(),
        detail: format!("the archive has {dtype} {sizes:?}; the graph has {promised}"),
    })
}
