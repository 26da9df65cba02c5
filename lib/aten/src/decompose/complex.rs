//! Complex tensors: their parts, and what is written in them.

use super::identity;
use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::promote::{complex_of, real_of};
use crate::value::V;
use m2m_record::Arg;

/// A complex tensor as two real ones; a real tensor has no imaginary part.
#[derive(Clone)]
pub(super) struct Pair {
    pub re: V,
    pub im: Option<V>,
}

impl Pair {
    /// The parts of a tensor.
    pub fn of(e: &mut Expander<'_, '_>, x: &V) -> Result<Pair, Error> {
        if !x.dtype.is_complex() {
            return Ok(Pair { re: x.clone(), im: None });
        }
        let part = real_of(x.dtype);
        let re = e.call1("aten.real.default", vec![x.arg()], &[], part, &x.shape)?;
        let im = e.call1("aten.imag.default", vec![x.arg()], &[], part, &x.shape)?;
        Ok(Pair { re, im: Some(im) })
    }

    /// The tensor of these parts.
    pub fn join(&self, e: &mut Expander<'_, '_>) -> Result<V, Error> {
        let part = self.re.dtype;
        let dtype = complex_of(part).ok_or_else(|| Error::unsupported(format!("complex numbers of {part}")))?;
        let im = match &self.im {
            Some(im) => im.clone(),
            None => e.full(&self.re.shape, part, Arg::Int(0))?,
        };
        e.call1("aten.complex.default", vec![self.re.arg(), im.arg()], &[], dtype, &self.re.shape)
    }

    /// Both parts, each as `f` makes it.
    pub fn map(&self, f: &mut dyn FnMut(&V) -> Result<V, Error>) -> Result<Pair, Error> {
        Ok(Pair { re: f(&self.re)?, im: self.im.as_ref().map(f).transpose()? })
    }

    /// The complex conjugate.
    pub fn conj(&self, e: &mut Expander<'_, '_>) -> Result<Pair, Error> {
        let im = self.im.as_ref().map(|im| e.unary("neg", im)).transpose()?;
        Ok(Pair { re: self.re.clone(), im })
    }

    /// The product with another.
    pub fn mul(&self, e: &mut Expander<'_, '_>, other: &Pair) -> Result<Pair, Error> {
        let re = e.mul(&self.re, &other.re)?;
        match (&self.im, &other.im) {
            (None, None) => Ok(Pair { re, im: None }),
            (Some(x), None) => Ok(Pair { re, im: Some(e.mul(x, &other.re)?) }),
            (None, Some(y)) => Ok(Pair { re, im: Some(e.mul(&self.re, y)?) }),
            (Some(x), Some(y)) => {
                let (low, a, b) = (e.mul(x, y)?, e.mul(&self.re, y)?, e.mul(x, &other.re)?);
                Ok(Pair { re: e.sub(&re, &low)?, im: Some(e.add(&a, &b)?) })
            }
        }
    }
}

/// `conj`: the imaginary part changes its sign; a real tensor is its own conjugate.
pub(super) fn conj(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    if !x.dtype.is_complex() {
        return identity::same(e, b);
    }
    one(e.unary("conj_physical", &x)?)
}

/// `_neg_view`: `-x`
pub(super) fn neg_view(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    one(e.unary("neg", &x)?)
}

/// `real`: a real tensor itself; the real part is the target's.
pub(super) fn real(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    if !x.dtype.is_complex() {
        return identity::same(e, b);
    }
    if !e.is_lowerable(b.op()) {
        return Err(Error::unsupported(format!("the target has no {}", b.op())));
    }
    e.emit(b.node)
}

/// `abs`: of a complex number, for a target that computes with real ones only, the length of its parts.
pub(super) fn abs(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    if !x.dtype.is_complex() || e.is_lowerable("aten.conj_physical.default") {
        return e.emit(b.node);
    }
    let parts = Pair::of(e, &x)?;
    let im = parts.im.unwrap_or_else(|| parts.re.clone());
    one(e.call1("aten.hypot.default", vec![parts.re.arg(), im.arg()], &[], parts.re.dtype, &x.shape)?)
}

/// `isreal`: whether the imaginary part is 0.
pub(super) fn isreal(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    one(match Pair::of(e, &x)?.im {
        Some(im) => e.compare("eq", &im, 0i64)?,
        None => e.full(&x.shape, m2m_record::DType::Bool, true)?,
    })
}

/// `mH`, `adjoint`, `matrix_H`: the last two dimensions exchanged, each element's conjugate.
pub(super) fn adjoint(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let y = if x.rank() < 2 { x } else { e.transpose(&x, x.from_end(2)?, x.from_end(1)?)? };
    one(if y.dtype.is_complex() { e.unary("conj_physical", &y)? } else { y })
}
