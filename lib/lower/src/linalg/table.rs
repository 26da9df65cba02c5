//! Every operator that lowers to linalg directly, one row each.
//!
//! A plain operator is a row with its arithmetic; an operator that needs thought has a rule of its own. The order has
//! no meaning but is kept sorted. Whatever has no row here is decomposed into operators that have one, or refused.

use super::cx::{Cx, Val};
use super::elementwise::binary::{self, Binary};
use super::elementwise::select;
use super::elementwise::special::{self, bessel, gamma, orthogonal};
use super::elementwise::unary::{self, Unary};
use super::scalar::Compare;
use super::{
    bits, check, complex, control, conv, create, index, matmul, pad, pool, random, reduce, scan, scatter, solve, sort,
    upsample, view,
};
use crate::error::{Error, Result};
use m2m_aten::bind::Bound;
use m2m_record::Node;

/// A rule of its own.
pub type Rule = for<'c> fn(&mut Cx<'c>, &Node, &Bound<'_>) -> Result<Vec<Val<'c>>>;

/// The file that an operator's rule is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each family is the file of its name")]
pub enum Family {
    Unary,
    Binary,
    Special,
    Select,
    View,
    Matmul,
    Create,
    Conv,
    Pool,
    Resample,
    Reduce,
    Scan,
    Sort,
    Index,
    Check,
    Complex,
    Control,
    Random,
    Solve,
}

/// How an operator is lowered.
#[derive(Clone, Copy)]
#[allow(missing_docs, reason = "each variant names the builder in `elementwise` that runs it")]
pub enum Kind {
    Unary(Unary),
    Predicate(Unary),
    Binary(Binary),
    Compare(Compare),
    Logical(Binary),
    Wide(Unary),
    WidePair(Binary),
    Rule(Rule),
    Control(control::Rule),
}

/// One operator.
pub struct Row {
    /// Its name with the overload.
    pub op: &'static str,
    /// Where its rule is.
    pub family: Family,
    /// The structured operation that its result comes from.
    pub emits: &'static str,
    /// How.
    pub kind: Kind,
}

impl Row {
    /// Runs the row for a node.
    pub fn lower<'c>(&self, cx: &mut Cx<'c>, node: &Node, bound: &Bound<'_>) -> Result<Vec<Val<'c>>> {
        match self.kind {
            Kind::Unary(body) => unary::lower(cx, node, bound, body),
            Kind::Predicate(body) => unary::lower_predicate(cx, node, bound, body),
            Kind::Binary(body) => binary::lower(cx, node, bound, body),
            Kind::Compare(op) => binary::lower_compare(cx, node, bound, op),
            Kind::Logical(body) => binary::lower_logical(cx, node, bound, body),
            Kind::Wide(body) => special::lower(cx, node, bound, body),
            Kind::WidePair(body) => special::lower_pair(cx, node, bound, body),
            Kind::Rule(rule) => rule(cx, node, bound),
            Kind::Control(_) => Err(Error::Graph(format!("{} is called outside a walk", self.op))),
        }
    }
}

/// The row of an operator.
pub fn find(op: &str) -> Option<&'static Row> {
    TABLE.binary_search_by_key(&op, |row| row.op).ok().map(|at| &TABLE[at])
}

const fn row(op: &'static str, family: Family, emits: &'static str, kind: Kind) -> Row {
    Row { op, family, emits, kind }
}

const fn unary_row(op: &'static str, body: Unary) -> Row {
    row(op, Family::Unary, "linalg.generic", Kind::Unary(body))
}

const fn predicate(op: &'static str, body: Unary) -> Row {
    row(op, Family::Unary, "linalg.generic", Kind::Predicate(body))
}

const fn binary_row(op: &'static str, body: Binary) -> Row {
    row(op, Family::Binary, "linalg.generic", Kind::Binary(body))
}

const fn wide(op: &'static str, body: Unary) -> Row {
    row(op, Family::Special, "linalg.generic", Kind::Wide(body))
}

const fn wide_pair(op: &'static str, body: Binary) -> Row {
    row(op, Family::Special, "linalg.generic", Kind::WidePair(body))
}

const fn degree(op: &'static str, body: Binary) -> Row {
    row(op, Family::Special, "linalg.generic", Kind::Binary(body))
}

const fn compare(op: &'static str, comparison: Compare) -> Row {
    row(op, Family::Binary, "linalg.generic", Kind::Compare(comparison))
}

const fn logical(op: &'static str, body: Binary) -> Row {
    row(op, Family::Binary, "linalg.generic", Kind::Logical(body))
}

const fn rule(op: &'static str, family: Family, emits: &'static str, rule: Rule) -> Row {
    row(op, family, emits, Kind::Rule(rule))
}

const fn control(op: &'static str, emits: &'static str, rule: control::Rule) -> Row {
    row(op, Family::Control, emits, Kind::Control(rule))
}

/// All rows, sorted by operator.
pub const TABLE: &[Row] = &[
    rule("aten._adaptive_avg_pool2d.default", Family::Pool, "linalg.generic", pool::adaptive::average2d),
    rule("aten._adaptive_avg_pool3d.default", Family::Pool, "linalg.generic", pool::adaptive::average3d),
    rule("aten._assert_async.default", Family::Check, "cf.assert", check::assert_async),
    rule("aten._assert_async.msg", Family::Check, "cf.assert", check::assert_async),
    rule("aten._assert_scalar.default", Family::Check, "cf.assert", check::assert_scalar),
    rule("aten._convolution.default", Family::Conv, "linalg.conv_2d_nchw_fchw", conv::convolution),
    rule("aten._convolution.deprecated", Family::Conv, "linalg.conv_2d_nchw_fchw", conv::convolution),
    rule("aten._linalg_eigh.default", Family::Solve, "linalg.generic", solve::jacobi::eigh),
    rule("aten._linalg_svd.default", Family::Solve, "linalg.generic", solve::jacobi::svd),
    rule("aten._local_scalar_dense.default", Family::Check, "tensor.extract", check::item),
    unary_row("aten._to_copy.default", unary::identity),
    rule("aten._unsafe_index.Tensor", Family::Index, "linalg.generic", index::index),
    rule("aten._unsafe_index_put.default", Family::Index, "scf.for", scatter::put::index_put),
    rule("aten._upsample_nearest_exact1d.default", Family::Resample, "linalg.generic", upsample::nearest_exact),
    rule("aten._upsample_nearest_exact1d.vec", Family::Resample, "linalg.generic", upsample::nearest_exact),
    rule("aten._upsample_nearest_exact2d.default", Family::Resample, "linalg.generic", upsample::nearest_exact),
    rule("aten._upsample_nearest_exact2d.vec", Family::Resample, "linalg.generic", upsample::nearest_exact),
    rule("aten._upsample_nearest_exact3d.default", Family::Resample, "linalg.generic", upsample::nearest_exact),
    rule("aten._upsample_nearest_exact3d.vec", Family::Resample, "linalg.generic", upsample::nearest_exact),
    unary_row("aten.abs.default", unary::abs),
    unary_row("aten.acos.default", unary::acos),
    unary_row("aten.acosh.default", unary::acosh),
    rule("aten.adaptive_avg_pool1d.default", Family::Pool, "linalg.generic", pool::adaptive::average1d),
    rule("aten.adaptive_avg_pool2d.default", Family::Pool, "linalg.generic", pool::adaptive::average2d),
    rule("aten.adaptive_avg_pool3d.default", Family::Pool, "linalg.generic", pool::adaptive::average3d),
    rule("aten.adaptive_max_pool1d.default", Family::Pool, "linalg.generic", pool::adaptive::max1d),
    rule("aten.adaptive_max_pool2d.default", Family::Pool, "linalg.generic", pool::adaptive::max2d),
    rule("aten.adaptive_max_pool3d.default", Family::Pool, "linalg.generic", pool::adaptive::max3d),
    binary_row("aten.add.Scalar", binary::add),
    binary_row("aten.add.Tensor", binary::add),
    rule("aten.all.default", Family::Reduce, "linalg.reduce", reduce::all),
    rule("aten.all.dim", Family::Reduce, "linalg.reduce", reduce::all),
    rule("aten.all.dims", Family::Reduce, "linalg.reduce", reduce::all),
    rule("aten.amax.default", Family::Reduce, "linalg.reduce", reduce::amax),
    rule("aten.amin.default", Family::Reduce, "linalg.reduce", reduce::amin),
    rule("aten.aminmax.default", Family::Reduce, "linalg.reduce", reduce::aminmax),
    rule("aten.angle.default", Family::Complex, "linalg.generic", complex::angle),
    rule("aten.any.default", Family::Reduce, "linalg.reduce", reduce::any),
    rule("aten.any.dim", Family::Reduce, "linalg.reduce", reduce::any),
    rule("aten.any.dims", Family::Reduce, "linalg.reduce", reduce::any),
    rule("aten.arange.start_step", Family::Create, "linalg.generic", create::arange),
    rule("aten.argmax.default", Family::Reduce, "linalg.generic", reduce::arg::argmax),
    rule("aten.argmin.default", Family::Reduce, "linalg.generic", reduce::arg::argmin),
    rule("aten.argsort.default", Family::Sort, "linalg.generic", sort::argsort),
    rule("aten.argsort.stable", Family::Sort, "linalg.generic", sort::argsort),
    rule("aten.argwhere.default", Family::Index, "linalg.generic", index::nonzero::nonzero),
    unary_row("aten.asin.default", unary::asin),
    unary_row("aten.asinh.default", unary::asinh),
    unary_row("aten.atan.default", unary::atan),
    binary_row("aten.atan2.default", binary::atan2),
    unary_row("aten.atanh.default", unary::atanh),
    rule("aten.avg_pool1d.default", Family::Pool, "linalg.pooling_ncw_sum", pool::average::avg_pool1d),
    rule("aten.avg_pool2d.default", Family::Pool, "linalg.pooling_nchw_sum", pool::average::avg_pool2d),
    rule("aten.avg_pool3d.default", Family::Pool, "linalg.generic", pool::average::avg_pool3d),
    rule("aten.bincount.default", Family::Index, "scf.for", scatter::count::bincount),
    binary_row("aten.bitwise_and.Scalar", binary::bitwise_and),
    binary_row("aten.bitwise_and.Tensor", binary::bitwise_and),
    binary_row("aten.bitwise_left_shift.Tensor", binary::shift_left),
    binary_row("aten.bitwise_left_shift.Tensor_Scalar", binary::shift_left),
    unary_row("aten.bitwise_not.default", unary::bitwise_not),
    binary_row("aten.bitwise_or.Scalar", binary::bitwise_or),
    binary_row("aten.bitwise_or.Tensor", binary::bitwise_or),
    binary_row("aten.bitwise_right_shift.Tensor", binary::shift_right),
    binary_row("aten.bitwise_right_shift.Tensor_Scalar", binary::shift_right),
    binary_row("aten.bitwise_xor.Scalar", binary::bitwise_xor),
    binary_row("aten.bitwise_xor.Tensor", binary::bitwise_xor),
    rule("aten.bmm.default", Family::Matmul, "linalg.batch_matmul", matmul::bmm),
    rule("aten.bucketize.Scalar", Family::Index, "linalg.generic", index::search::bucketize),
    rule("aten.bucketize.Tensor", Family::Index, "linalg.generic", index::search::bucketize),
    rule("aten.cat.default", Family::View, "tensor.insert_slice", view::cat),
    unary_row("aten.ceil.default", unary::ceil),
    rule("aten.clamp.Tensor", Family::Select, "linalg.generic", select::clamp_tensor),
    rule("aten.clamp.default", Family::Select, "linalg.generic", select::clamp),
    unary_row("aten.clone.default", unary::identity),
    rule("aten.complex.default", Family::Complex, "linalg.generic", complex::complex),
    unary_row("aten.conj_physical.default", unary::conj),
    rule("aten.constant_pad_nd.default", Family::View, "tensor.pad", view::constant_pad),
    rule("aten.convolution.default", Family::Conv, "linalg.conv_2d_nchw_fchw", conv::convolution),
    binary_row("aten.copysign.Tensor", binary::copysign),
    unary_row("aten.cos.default", unary::cos),
    unary_row("aten.cosh.default", unary::cosh),
    rule("aten.count_nonzero.default", Family::Reduce, "linalg.reduce", reduce::count_nonzero),
    rule("aten.count_nonzero.dim_IntList", Family::Reduce, "linalg.reduce", reduce::count_nonzero),
    rule("aten.cummax.default", Family::Scan, "scf.for", scan::cummax),
    rule("aten.cummin.default", Family::Scan, "scf.for", scan::cummin),
    rule("aten.cumprod.default", Family::Scan, "scf.for", scan::cumprod),
    rule("aten.cumsum.default", Family::Scan, "scf.for", scan::cumsum),
    binary_row("aten.div.Scalar", binary::div),
    binary_row("aten.div.Scalar_mode", binary::div),
    binary_row("aten.div.Tensor", binary::div),
    binary_row("aten.div.Tensor_mode", binary::div),
    unary_row("aten.elu.default", unary::elu),
    rule("aten.embedding.default", Family::Index, "linalg.generic", index::embedding),
    compare("aten.eq.Scalar", Compare::Eq),
    compare("aten.eq.Tensor", Compare::Eq),
    unary_row("aten.erf.default", unary::erf),
    unary_row("aten.erfc.default", unary::erfc),
    unary_row("aten.exp.default", unary::exp),
    unary_row("aten.exp2.default", unary::exp2),
    rule("aten.expand.default", Family::View, "linalg.broadcast", view::expand),
    unary_row("aten.expm1.default", unary::expm1),
    rule("aten.flip.default", Family::Index, "linalg.generic", index::shift::flip),
    unary_row("aten.floor.default", unary::floor),
    binary_row("aten.floor_divide.Scalar", binary::floor_divide),
    binary_row("aten.floor_divide.default", binary::floor_divide),
    binary_row("aten.fmod.Scalar", binary::fmod),
    binary_row("aten.fmod.Tensor", binary::fmod),
    rule("aten.full.default", Family::Create, "linalg.fill", create::full),
    rule("aten.gather.default", Family::Index, "linalg.generic", index::gather),
    binary_row("aten.gcd.default", binary::gcd),
    compare("aten.ge.Scalar", Compare::Ge),
    compare("aten.ge.Tensor", Compare::Ge),
    unary_row("aten.gelu.default", unary::gelu),
    rule("aten.geqrf.default", Family::Solve, "linalg.generic", solve::qr::geqrf),
    rule("aten.grid_sampler.default", Family::Resample, "linalg.generic", upsample::grid::grid_sampler),
    rule("aten.grid_sampler_2d.default", Family::Resample, "linalg.generic", upsample::grid::grid_sampler),
    rule("aten.grid_sampler_3d.default", Family::Resample, "linalg.generic", upsample::grid::grid_sampler),
    compare("aten.gt.Scalar", Compare::Gt),
    compare("aten.gt.Tensor", Compare::Gt),
    unary_row("aten.hardshrink.default", unary::hardshrink),
    unary_row("aten.hardsigmoid.default", unary::hardsigmoid),
    unary_row("aten.hardswish.default", unary::hardswish),
    unary_row("aten.hardtanh.default", unary::hardtanh),
    wide("aten.i0.default", bessel::i0),
    wide_pair("aten.igamma.default", gamma::igamma),
    wide_pair("aten.igammac.default", gamma::igammac),
    rule("aten.im2col.default", Family::Resample, "linalg.generic", pad::im2col),
    rule("aten.imag.default", Family::Complex, "linalg.generic", complex::imag),
    rule("aten.index.Tensor", Family::Index, "linalg.generic", index::index),
    rule("aten.index_add.default", Family::Index, "scf.for", scatter::rows::index_add),
    rule("aten.index_copy.default", Family::Index, "scf.for", scatter::rows::index_copy),
    rule("aten.index_fill.int_Scalar", Family::Index, "scf.for", scatter::rows::index_fill),
    rule("aten.index_fill.int_Tensor", Family::Index, "scf.for", scatter::rows::index_fill),
    rule("aten.index_put.default", Family::Index, "scf.for", scatter::put::index_put),
    rule("aten.index_reduce.default", Family::Index, "scf.for", scatter::rows::index_reduce),
    rule("aten.index_select.default", Family::Index, "linalg.generic", index::index_select),
    predicate("aten.isfinite.default", unary::isfinite),
    rule("aten.isin.Tensor_Tensor", Family::Index, "linalg.generic", index::search::isin),
    predicate("aten.isinf.default", unary::isinf),
    predicate("aten.isnan.default", unary::isnan),
    rule("aten.item.default", Family::Check, "tensor.extract", check::item),
    rule("aten.kthvalue.default", Family::Sort, "linalg.generic", sort::select::kthvalue),
    compare("aten.le.Scalar", Compare::Le),
    compare("aten.le.Tensor", Compare::Le),
    unary_row("aten.leaky_relu.default", unary::leaky_relu),
    rule("aten.linalg_cholesky_ex.default", Family::Solve, "linalg.generic", solve::cholesky::cholesky),
    rule("aten.linalg_lu_factor_ex.default", Family::Solve, "linalg.generic", solve::lu::factor),
    rule("aten.linalg_qr.default", Family::Solve, "linalg.generic", solve::qr::qr),
    rule("aten.linalg_solve_triangular.default", Family::Solve, "linalg.generic", solve::triangular::solve),
    rule("aten.linalg_vector_norm.default", Family::Reduce, "linalg.reduce", reduce::norm::vector_norm),
    rule("aten.linear.default", Family::Matmul, "linalg.matmul", matmul::linear),
    unary_row("aten.log.default", unary::log),
    unary_row("aten.log10.default", unary::log10),
    unary_row("aten.log1p.default", unary::log1p),
    unary_row("aten.log2.default", unary::log2),
    unary_row("aten.log_sigmoid.default", unary::log_sigmoid),
    rule("aten.logcumsumexp.default", Family::Scan, "scf.for", scan::logcumsumexp),
    logical("aten.logical_and.default", binary::bitwise_and),
    predicate("aten.logical_not.default", unary::logical_not),
    logical("aten.logical_or.default", binary::bitwise_or),
    logical("aten.logical_xor.default", binary::bitwise_xor),
    compare("aten.lt.Scalar", Compare::Lt),
    compare("aten.lt.Tensor", Compare::Lt),
    rule("aten.lu_unpack.default", Family::Solve, "linalg.generic", solve::lu::unpack),
    rule("aten.masked_fill.Scalar", Family::Select, "linalg.generic", select::masked_fill),
    rule("aten.masked_fill.Tensor", Family::Select, "linalg.generic", select::masked_fill),
    rule("aten.masked_scatter.default", Family::Index, "linalg.generic", index::nonzero::masked_scatter),
    rule("aten.masked_select.default", Family::Index, "linalg.generic", index::nonzero::masked_select),
    rule("aten.max.dim", Family::Reduce, "linalg.generic", reduce::arg::max_dim),
    rule(
        "aten.max_pool1d_with_indices.default",
        Family::Pool,
        "linalg.pooling_ncw_max",
        pool::max::max_pool1d_with_indices,
    ),
    rule(
        "aten.max_pool2d_with_indices.default",
        Family::Pool,
        "linalg.pooling_nchw_max",
        pool::max::max_pool2d_with_indices,
    ),
    rule("aten.max_pool2d_with_indices_backward.default", Family::Pool, "scf.for", pool::back::max_pool_backward),
    rule("aten.max_pool3d_with_indices.default", Family::Pool, "linalg.generic", pool::max::max_pool3d_with_indices),
    rule("aten.max_pool3d_with_indices_backward.default", Family::Pool, "scf.for", pool::back::max_pool_backward),
    rule("aten.max_unpool2d.default", Family::Pool, "scf.for", pool::back::unpool),
    rule("aten.max_unpool3d.default", Family::Pool, "scf.for", pool::back::unpool),
    binary_row("aten.maximum.default", binary::maximum),
    rule("aten.mean.default", Family::Reduce, "linalg.reduce", reduce::moments::mean),
    rule("aten.mean.dim", Family::Reduce, "linalg.reduce", reduce::moments::mean),
    rule("aten.median.default", Family::Sort, "linalg.generic", sort::select::median_all),
    rule("aten.median.dim", Family::Sort, "linalg.generic", sort::select::median_dim),
    rule("aten.min.dim", Family::Reduce, "linalg.generic", reduce::arg::min_dim),
    binary_row("aten.minimum.default", binary::minimum),
    unary_row("aten.mish.default", unary::mish),
    rule("aten.mm.default", Family::Matmul, "linalg.matmul", matmul::mm),
    binary_row("aten.mul.Scalar", binary::mul),
    binary_row("aten.mul.Tensor", binary::mul),
    rule("aten.nanmedian.default", Family::Sort, "linalg.generic", sort::select::nanmedian_all),
    rule("aten.nanmedian.dim", Family::Sort, "linalg.generic", sort::select::nanmedian_dim),
    rule("aten.nansum.default", Family::Reduce, "linalg.reduce", reduce::nansum),
    compare("aten.ne.Scalar", Compare::Ne),
    compare("aten.ne.Tensor", Compare::Ne),
    unary_row("aten.neg.default", unary::neg),
    rule("aten.nonzero.default", Family::Index, "linalg.generic", index::nonzero::nonzero),
    rule("aten.norm.Scalar", Family::Reduce, "linalg.reduce", reduce::norm::p_norm),
    rule("aten.norm.ScalarOpt_dim", Family::Reduce, "linalg.reduce", reduce::norm::p_norm),
    rule("aten.norm.ScalarOpt_dim_dtype", Family::Reduce, "linalg.reduce", reduce::norm::p_norm),
    rule("aten.norm.ScalarOpt_dtype", Family::Reduce, "linalg.reduce", reduce::norm::p_norm),
    rule("aten.permute.default", Family::View, "linalg.transpose", view::permute),
    rule("aten.polar.default", Family::Complex, "linalg.generic", complex::polar),
    binary_row("aten.pow.Scalar", binary::pow),
    binary_row("aten.pow.Tensor_Scalar", binary::pow),
    binary_row("aten.pow.Tensor_Tensor", binary::pow),
    rule("aten.prod.default", Family::Reduce, "linalg.reduce", reduce::prod),
    rule("aten.prod.dim_int", Family::Reduce, "linalg.reduce", reduce::prod),
    rule("aten.put.default", Family::Index, "scf.for", scatter::put::put),
    rule("aten.rand.default", Family::Random, "linalg.generic", random::rand),
    rule("aten.randint.low", Family::Random, "linalg.generic", random::randint),
    rule("aten.randn.default", Family::Random, "linalg.generic", random::randn),
    rule("aten.real.default", Family::Complex, "linalg.generic", complex::real),
    unary_row("aten.reciprocal.default", unary::reciprocal),
    rule("aten.reflection_pad1d.default", Family::Resample, "linalg.generic", pad::reflection),
    rule("aten.reflection_pad2d.default", Family::Resample, "linalg.generic", pad::reflection),
    rule("aten.reflection_pad3d.default", Family::Resample, "linalg.generic", pad::reflection),
    unary_row("aten.relu.default", unary::relu),
    unary_row("aten.relu6.default", unary::relu6),
    binary_row("aten.remainder.Scalar", binary::remainder),
    binary_row("aten.remainder.Scalar_Tensor", binary::remainder),
    binary_row("aten.remainder.Tensor", binary::remainder),
    rule("aten.repeat_interleave.Tensor", Family::Index, "linalg.generic", index::nonzero::repeated_places),
    rule("aten.repeat_interleave.self_Tensor", Family::Index, "linalg.generic", index::nonzero::repeated_elements),
    rule("aten.repeat_interleave.self_int", Family::Index, "linalg.generic", index::shift::repeat_interleave),
    rule("aten.replication_pad1d.default", Family::Resample, "linalg.generic", pad::replication),
    rule("aten.replication_pad2d.default", Family::Resample, "linalg.generic", pad::replication),
    rule("aten.replication_pad3d.default", Family::Resample, "linalg.generic", pad::replication),
    rule("aten.roll.default", Family::Index, "linalg.generic", index::shift::roll),
    unary_row("aten.round.default", unary::round),
    unary_row("aten.rsqrt.default", unary::rsqrt),
    rule("aten.scatter.reduce", Family::Index, "scf.for", scatter::scatter_reduced),
    rule("aten.scatter.src", Family::Index, "scf.for", scatter::scatter_src),
    rule("aten.scatter.value", Family::Index, "scf.for", scatter::scatter_value),
    rule("aten.scatter.value_reduce", Family::Index, "scf.for", scatter::scatter_value_reduced),
    rule("aten.scatter_add.default", Family::Index, "scf.for", scatter::scatter_add),
    rule("aten.scatter_reduce.two", Family::Index, "scf.for", scatter::scatter_reduce),
    rule("aten.searchsorted.Scalar", Family::Index, "linalg.generic", index::search::searchsorted),
    rule("aten.searchsorted.Tensor", Family::Index, "linalg.generic", index::search::searchsorted),
    rule("aten.select.int", Family::View, "tensor.extract_slice", view::select),
    rule("aten.select_scatter.default", Family::Index, "tensor.insert_slice", scatter::slices::select_scatter),
    unary_row("aten.sgn.default", unary::sign),
    unary_row("aten.sigmoid.default", unary::sigmoid),
    unary_row("aten.sign.default", unary::sign),
    unary_row("aten.silu.default", unary::silu),
    unary_row("aten.sin.default", unary::sin),
    unary_row("aten.sinh.default", unary::sinh),
    rule("aten.slice.Tensor", Family::View, "tensor.extract_slice", view::slice),
    rule("aten.slice_scatter.default", Family::Index, "tensor.insert_slice", scatter::slices::slice_scatter),
    unary_row("aten.softplus.default", unary::softplus),
    unary_row("aten.softshrink.default", unary::softshrink),
    rule("aten.sort.default", Family::Sort, "linalg.generic", sort::sort),
    rule("aten.sort.stable", Family::Sort, "linalg.generic", sort::sort),
    wide("aten.special_airy_ai.default", bessel::airy),
    wide("aten.special_bessel_j0.default", bessel::j0),
    wide("aten.special_bessel_j1.default", bessel::j1),
    wide("aten.special_bessel_y0.default", bessel::y0),
    wide("aten.special_bessel_y1.default", bessel::y1),
    degree("aten.special_chebyshev_polynomial_t.default", orthogonal::chebyshev_t),
    degree("aten.special_chebyshev_polynomial_t.n_scalar", orthogonal::chebyshev_t),
    degree("aten.special_chebyshev_polynomial_t.x_scalar", orthogonal::chebyshev_t),
    degree("aten.special_chebyshev_polynomial_u.default", orthogonal::chebyshev_u),
    degree("aten.special_chebyshev_polynomial_u.n_scalar", orthogonal::chebyshev_u),
    degree("aten.special_chebyshev_polynomial_u.x_scalar", orthogonal::chebyshev_u),
    degree("aten.special_chebyshev_polynomial_v.default", orthogonal::chebyshev_v),
    degree("aten.special_chebyshev_polynomial_v.n_scalar", orthogonal::chebyshev_v),
    degree("aten.special_chebyshev_polynomial_v.x_scalar", orthogonal::chebyshev_v),
    degree("aten.special_chebyshev_polynomial_w.default", orthogonal::chebyshev_w),
    degree("aten.special_chebyshev_polynomial_w.n_scalar", orthogonal::chebyshev_w),
    degree("aten.special_chebyshev_polynomial_w.x_scalar", orthogonal::chebyshev_w),
    wide("aten.special_entr.default", special::entr),
    wide("aten.special_erfcx.default", special::erfcx),
    degree("aten.special_hermite_polynomial_h.default", orthogonal::hermite_h),
    degree("aten.special_hermite_polynomial_h.n_scalar", orthogonal::hermite_h),
    degree("aten.special_hermite_polynomial_h.x_scalar", orthogonal::hermite_h),
    degree("aten.special_hermite_polynomial_he.default", orthogonal::hermite_he),
    degree("aten.special_hermite_polynomial_he.n_scalar", orthogonal::hermite_he),
    degree("aten.special_hermite_polynomial_he.x_scalar", orthogonal::hermite_he),
    wide("aten.special_i0e.default", bessel::i0e),
    wide("aten.special_i1.default", bessel::i1),
    wide("aten.special_i1e.default", bessel::i1e),
    degree("aten.special_laguerre_polynomial_l.default", orthogonal::laguerre),
    degree("aten.special_laguerre_polynomial_l.n_scalar", orthogonal::laguerre),
    degree("aten.special_laguerre_polynomial_l.x_scalar", orthogonal::laguerre),
    degree("aten.special_legendre_polynomial_p.default", orthogonal::legendre),
    degree("aten.special_legendre_polynomial_p.n_scalar", orthogonal::legendre),
    degree("aten.special_legendre_polynomial_p.x_scalar", orthogonal::legendre),
    wide("aten.special_log_ndtr.default", special::log_ndtr),
    wide("aten.special_modified_bessel_k0.default", bessel::k0),
    wide("aten.special_modified_bessel_k1.default", bessel::k1),
    wide("aten.special_ndtri.default", special::ndtri),
    wide("aten.special_scaled_modified_bessel_k0.default", bessel::k0_scaled),
    wide("aten.special_scaled_modified_bessel_k1.default", bessel::k1_scaled),
    degree("aten.special_shifted_chebyshev_polynomial_t.default", orthogonal::shifted_t),
    degree("aten.special_shifted_chebyshev_polynomial_t.n_scalar", orthogonal::shifted_t),
    degree("aten.special_shifted_chebyshev_polynomial_t.x_scalar", orthogonal::shifted_t),
    degree("aten.special_shifted_chebyshev_polynomial_u.default", orthogonal::shifted_u),
    degree("aten.special_shifted_chebyshev_polynomial_u.n_scalar", orthogonal::shifted_u),
    degree("aten.special_shifted_chebyshev_polynomial_u.x_scalar", orthogonal::shifted_u),
    degree("aten.special_shifted_chebyshev_polynomial_v.default", orthogonal::shifted_v),
    degree("aten.special_shifted_chebyshev_polynomial_v.n_scalar", orthogonal::shifted_v),
    degree("aten.special_shifted_chebyshev_polynomial_v.x_scalar", orthogonal::shifted_v),
    degree("aten.special_shifted_chebyshev_polynomial_w.default", orthogonal::shifted_w),
    degree("aten.special_shifted_chebyshev_polynomial_w.n_scalar", orthogonal::shifted_w),
    degree("aten.special_shifted_chebyshev_polynomial_w.x_scalar", orthogonal::shifted_w),
    wide("aten.special_spherical_bessel_j0.default", bessel::spherical_j0),
    wide_pair("aten.special_xlog1py.default", special::xlog1py),
    wide_pair("aten.special_xlog1py.other_scalar", special::xlog1py),
    wide_pair("aten.special_xlog1py.self_scalar", special::xlog1py),
    wide_pair("aten.special_zeta.default", gamma::zeta),
    wide_pair("aten.special_zeta.other_scalar", gamma::zeta),
    wide_pair("aten.special_zeta.self_scalar", gamma::zeta),
    unary_row("aten.sqrt.default", unary::sqrt),
    binary_row("aten.sub.Scalar", binary::sub),
    binary_row("aten.sub.Tensor", binary::sub),
    rule("aten.sum.default", Family::Reduce, "linalg.reduce", reduce::sum),
    rule("aten.sum.dim_IntList", Family::Reduce, "linalg.reduce", reduce::sum),
    rule("aten.sym_constrain_range.default", Family::Check, "cf.assert", check::constrain_range),
    rule("aten.sym_constrain_range_for_size.default", Family::Check, "cf.assert", check::constrain_range),
    rule("aten.take.default", Family::Index, "linalg.generic", index::take),
    unary_row("aten.tan.default", unary::tan),
    unary_row("aten.tanh.default", unary::tanh),
    unary_row("aten.threshold.default", unary::threshold),
    rule("aten.topk.default", Family::Sort, "linalg.generic", sort::select::topk),
    rule("aten.tril.default", Family::Create, "linalg.generic", create::tril),
    rule("aten.triu.default", Family::Create, "linalg.generic", create::triu),
    unary_row("aten.trunc.default", unary::trunc),
    rule("aten.upsample_bicubic2d.default", Family::Resample, "linalg.generic", upsample::cubic),
    rule("aten.upsample_bicubic2d.vec", Family::Resample, "linalg.generic", upsample::cubic),
    rule("aten.upsample_bilinear2d.default", Family::Resample, "linalg.generic", upsample::linear),
    rule("aten.upsample_bilinear2d.vec", Family::Resample, "linalg.generic", upsample::linear),
    rule("aten.upsample_linear1d.default", Family::Resample, "linalg.generic", upsample::linear),
    rule("aten.upsample_linear1d.vec", Family::Resample, "linalg.generic", upsample::linear),
    rule("aten.upsample_nearest1d.default", Family::Resample, "linalg.generic", upsample::nearest),
    rule("aten.upsample_nearest1d.vec", Family::Resample, "linalg.generic", upsample::nearest),
    rule("aten.upsample_nearest2d.default", Family::Resample, "linalg.generic", upsample::nearest),
    rule("aten.upsample_nearest2d.vec", Family::Resample, "linalg.generic", upsample::nearest),
    rule("aten.upsample_nearest3d.default", Family::Resample, "linalg.generic", upsample::nearest),
    rule("aten.upsample_nearest3d.vec", Family::Resample, "linalg.generic", upsample::nearest),
    rule("aten.upsample_trilinear3d.default", Family::Resample, "linalg.generic", upsample::linear),
    rule("aten.upsample_trilinear3d.vec", Family::Resample, "linalg.generic", upsample::linear),
    rule("aten.var.correction", Family::Reduce, "linalg.generic", reduce::moments::var),
    rule("aten.var_mean.correction", Family::Reduce, "linalg.generic", reduce::moments::var_mean),
    rule("aten.view.default", Family::View, "tensor.expand_shape", view::view),
    rule("aten.view.dtype", Family::View, "linalg.generic", bits::view),
    rule("aten.view_as_complex.default", Family::Complex, "linalg.generic", complex::view_as_complex),
    rule("aten.view_as_real.default", Family::Complex, "linalg.generic", complex::view_as_real),
    rule("aten.where.self", Family::Select, "linalg.generic", select::where_self),
    control("higher_order.associative_scan", "scf.for", control::associative_scan),
    control("higher_order.cond", "scf.if", control::cond),
    control("higher_order.invoke_subgraph", "func.call", control::invoke_subgraph),
    control("higher_order.map", "scf.for", control::map),
    control("higher_order.map_impl", "scf.for", control::map),
    control("higher_order.scan", "scf.for", control::scan),
    control("higher_order.while_loop", "scf.while", control::while_loop),
    rule("torchvision.nms.default", Family::Index, "scf.for", index::nms::nms),
];

/// The support table as text, one operator a line, sorted: operator, family, and the operation that its result comes
/// from; or `decomposed` for an operator that becomes others first. Names keep their case.
pub fn list_ops() -> String {
    let rows = TABLE.iter().map(|row| (row.op, format!("{:?}\t{}", row.family, row.emits).to_lowercase()));
    let decomposed = m2m_aten::decompose::operators().into_iter().filter(|op| find(op).is_none());
    let mut all: Vec<(&str, String)> = rows.chain(decomposed.map(|op| (op, "decomposed\t-".to_owned()))).collect();
    all.sort();
    all.iter().map(|(op, rest)| format!("{op}\t{rest}\n")).collect()
}
