//! What the values of a graph are over many sets of inputs: ranges, histograms, percentiles.
//!
//! Tensors are taken one by one as they are computed and not kept: memory grows with values times bins. What is recorded
//! depends neither on the order of sets nor on how elements are divided among them; `m2m_record::Histogram` and
//! `m2m_record::Percentile` define it.

use crate::args::{Args, Method};
use crate::error::Error;
use crate::golden;
use crate::graph;
use crate::inputs::Inputs;
use crate::number::floats;
use crate::plan::Story;
use indexmap::IndexMap;
use m2m_graph::Program;
use m2m_record::{Arg, Float, Histogram, InputRole, Kwargs, Observation, Percentile, Tool, Type, Writer};
use m2m_torch::{Engine, Value};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Float values by graph and name.
#[derive(Default)]
struct Observers {
    known: IndexMap<(String, String), Observer>,
}

/// What is known of one value.
#[derive(Clone, Debug, Default)]
struct Observer {
    sets: u64,
    last_set: Option<usize>,
    count: u64,
    nonfinite: u64,
    range: Option<(f64, f64)>,
    bins: Bins,
}

/// Elements by the number of their bin, at a width that is two to the `exponent`.
#[derive(Clone, Debug, Default, PartialEq)]
struct Bins {
    exponent: i32,
    first: i64,
    counts: Vec<u64>,
}

/// The greatest exponent of an f64; four bins of that width hold every one.
const MOST_EXPONENT: i32 = 1023;

/// Two to an exponent that an f64 has; subnormal numbers included.
fn power(exponent: i32) -> f64 {
    let exponent = exponent.clamp(-1074, 1023);
    f64::from_bits(if exponent >= -1022 { ((exponent + 1023) as u64) << 52 } else { 1 << (exponent + 1074) })
}

/// The number of an element's bin. Dividing by a power of two is exact, so an element is where it would be with any
/// other elements at the same width.
fn bin(x: f64, exponent: i32) -> i64 {
    // Two factors, since two to the power of -1074 has no reciprocal.
    let (half, rest) = (exponent / 2, exponent - exponent / 2);
    (x * 2f64.powi(-half) * 2f64.powi(-rest)).floor() as i64
}

/// The exponent of the greatest power of two that is not above a positive number.
fn exponent_of(x: f64) -> i32 {
    let field = ((x.to_bits() >> 52) & 0x7FF) as i32;
    if field > 0 { field - 1023 } else { -1011 - x.to_bits().leading_zeros().cast_signed() }
}

/// The exponent of the width with which at most `bins` bins reach from `min` to `max`.
fn width_of(min: f64, max: f64, bins: u64) -> i32 {
    let most = min.abs().max(max.abs());
    if most == 0.0 {
        return 0;
    }
    let fits = |exponent: i32| (bin(max, exponent) as i128 - bin(min, exponent) as i128) < i128::from(bins);
    let mut exponent = (exponent_of(most) - 23).max(-1074);
    while !fits(exponent) && exponent < MOST_EXPONENT {
        exponent += 1;
    }
    exponent
}

impl Bins {
    /// Puts neighbours together until the width is two to the `exponent`.
    fn widen(&mut self, exponent: i32) {
        while self.exponent < exponent {
            let first = self.first.div_euclid(2);
            let mut counts = Vec::with_capacity(self.counts.len() / 2 + 1);
            for (k, count) in (self.first..).zip(&self.counts) {
                let at = usize::try_from(k.div_euclid(2) - first).unwrap_or(0);
                counts.resize(counts.len().max(at + 1), 0);
                counts[at] += count;
            }
            (self.first, self.counts) = (first, counts);
            self.exponent += 1;
        }
    }

    /// Counts the finite elements, all of which are between the bounds; so are those that were counted before.
    fn add(&mut self, elements: &[f64], (min, max): (f64, f64), exponent: i32) {
        if self.counts.is_empty() {
            self.exponent = exponent;
            self.first = bin(min, exponent);
        }
        self.widen(exponent);
        let (first, last) = (bin(min, self.exponent), bin(max, self.exponent));
        let before = usize::try_from(self.first - first).unwrap_or(0);
        self.counts.splice(..0, std::iter::repeat_n(0, before));
        self.first = self.first.min(first);
        let length = usize::try_from(last - self.first + 1).unwrap_or(0);
        self.counts.resize(self.counts.len().max(length), 0);
        for x in elements.iter().filter(|x| x.is_finite()) {
            let at = usize::try_from(bin(*x, self.exponent) - self.first).unwrap_or(0);
            if let Some(count) = self.counts.get_mut(at) {
                *count += 1;
            }
        }
    }

    /// The lower edge of a bin.
    fn edge(&self, at: usize) -> f64 {
        (self.first + at as i64) as f64 * power(self.exponent)
    }

    /// The outer edge of the bin that has the element of a rank, counted from above or from below.
    fn ranked(&self, rank: u64, from_above: bool) -> f64 {
        let mut passed = 0;
        let mut reaches = |at: usize| {
            passed += self.counts.get(at).copied().unwrap_or(0);
            passed >= rank
        };
        let bins = 0..self.counts.len();
        if from_above {
            return self.edge(bins.rev().find(|at| reaches(*at)).unwrap_or(0));
        }
        self.edge(bins.into_iter().find(|at| reaches(*at)).map_or(self.counts.len(), |at| at + 1))
    }
}

impl Observer {
    /// Takes the elements that one set of inputs gave the value; with bins if a histogram is needed.
    fn take(&mut self, elements: &[f64], set: usize, bins: Option<u64>) {
        if self.last_set != Some(set) {
            self.last_set = Some(set);
            self.sets += 1;
        }
        let finite = elements.iter().filter(|x| x.is_finite()).count() as u64;
        self.count += finite;
        self.nonfinite += elements.len() as u64 - finite;
        // Adding zero makes one number of both zeros.
        for x in elements.iter().filter(|x| x.is_finite()).map(|x| x + 0.0) {
            self.range = Some(self.range.map_or((x, x), |(min, max)| (min.min(x), max.max(x))));
        }
        if let (Some((min, max)), Some(bins), true) = (self.range, bins, finite > 0) {
            self.bins.add(elements, (min, max), width_of(min, max, bins));
        }
    }

    fn record(&self, (graph, value): &(String, String), what: &Asked) -> Observation {
        let histogram = Histogram {
            bins: what.bins,
            width: Float(power(self.bins.exponent)),
            first: self.bins.first,
            counts: self.bins.counts.clone(),
        };
        let rank = ((what.percent / 100.0 * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let percentile = self.range.map(|(min, max)| Percentile {
            percent: Float(what.percent),
            low: Float(self.bins.ranked(rank, true).max(min)),
            high: Float(self.bins.ranked(rank, false).min(max)),
        });
        Observation {
            graph: graph.clone(),
            value: value.clone(),
            sets: self.sets,
            count: self.count,
            nonfinite: self.nonfinite,
            min: self.range.map(|(min, _)| Float(min)),
            max: self.range.map(|(_, max)| Float(max)),
            histogram: (what.method == Method::Histogram && self.range.is_some()).then_some(histogram),
            percentile: percentile.filter(|_| what.method == Method::Percentile),
        }
    }
}

/// What the flags ask for.
pub struct Asked {
    method: Method,
    bins: u64,
    percent: f64,
}

impl Asked {
    /// Of `--observe`, `--bins` and `--percentile`.
    pub fn of(args: &Args, method: Method) -> Asked {
        Asked { method, bins: args.bins, percent: args.percentile }
    }

    fn needs_bins(&self) -> Option<u64> {
        (self.method != Method::Minmax).then_some(self.bins)
    }

    /// Options that change what is recorded.
    fn options(&self, seed: Option<u64>) -> Kwargs {
        let mut options: Kwargs = [("observe".to_owned(), Arg::Str(self.method.word().to_owned()))].into();
        if self.needs_bins().is_some() {
            options.insert("bins".to_owned(), Arg::Int(self.bins.cast_signed()));
        }
        if self.method == Method::Percentile {
            options.insert("percentile".to_owned(), Arg::Float(Float(self.percent)));
        }
        options.extend(seed.map(|seed| ("random".to_owned(), golden::seed(seed))));
        options
    }
}

/// What a program's values were.
#[derive(Default)]
pub struct Observed {
    observers: Observers,
    files: Vec<m2m_record::ToolInput>,
    /// The guards that could not be read.
    pub unread_guards: Vec<String>,
}

/// Executes the current graph once for every file of inputs, or for the inputs of the seed.
pub fn observe(
    args: &Args,
    asked: &Asked,
    graphs: &Program,
    story: &Story,
    root: Option<&Path>,
) -> Result<Observed, Vec<Error>> {
    let one = |error: Error| vec![error];
    let engine = Engine::start(args.threads).map_err(|error| one(error.into()))?;
    let mut observed = Observed::default();
    let sets: Vec<Option<&PathBuf>> =
        if args.inputs.is_empty() { vec![None] } else { args.inputs.iter().map(Some).collect() };
    for (set, path) in sets.into_iter().enumerate() {
        let inputs = Inputs::of_set(args, path.map(PathBuf::as_path), story, Some(graphs), root).map_err(one)?;
        observed.files.extend(inputs.file.as_ref().map(golden::tool_input));
        observed.observers.take_inputs(graphs, story, &inputs, set, asked.needs_bins());
        let outcome = graph::run(args, &engine, graphs, story, &inputs, root, &mut |graph, node, results| {
            for (result, value) in node.results.iter().zip(results) {
                if let (Some(name), Value::Tensor(tensor)) = (&result.value, value)
                    && tensor.dtype()?.is_float()
                {
                    let elements = floats(tensor.dtype()?, &tensor.to_bytes()?).unwrap_or_default();
                    observed.observers.take(&graph.id, name, &elements, set, asked.needs_bins());
                }
            }
            Ok(())
        });
        let outcome = outcome.map_err(|errors| errors.into_iter().map(Error::from).collect::<Vec<_>>())?;
        observed.unread_guards = outcome.unread_guards;
    }
    Ok(observed)
}

impl Observers {
    fn take(&mut self, graph: &str, value: &str, elements: &[f64], set: usize, bins: Option<u64>) {
        let observer = self.known.entry((graph.to_owned(), value.to_owned())).or_default();
        observer.take(elements, set, bins);
    }

    /// The float tensors that users give; those that lack are found out when the graph is executed.
    fn take_inputs(&mut self, graphs: &Program, story: &Story, inputs: &Inputs, set: usize, bins: Option<u64>) {
        for input in graphs.root.inputs.iter().filter(|input| input.role == InputRole::UserInput) {
            let key = story.leaf(&input.value).unwrap_or_else(|| input.value.clone());
            let Some(view) = inputs.get(&key).or_else(|| inputs.get(&input.value)) else { continue };
            if matches!(input.ty, Type::Tensor(_)) && view.dtype.is_float() {
                let elements = floats(view.dtype, view.bytes).unwrap_or_default();
                self.take(&graphs.root.id, &input.value, &elements, set, bins);
            }
        }
    }
}

impl Observed {
    /// Appends the tool's record and one for every value: inputs and nodes of the root graph, then the nested graphs'.
    /// Values that nothing computed, as of a branch that was not taken, have none.
    pub fn append<W: Write>(
        &self,
        writer: &mut Writer<W>,
        graphs: &Program,
        asked: &Asked,
        seed: Option<u64>,
    ) -> io::Result<()> {
        let (name, version) = ("m2m-run".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        writer.write(&Tool { name, version, options: asked.options(seed), inputs: self.files.clone() })?;
        for graph in std::iter::once(&graphs.root).chain(graphs.nested.values()) {
            let inputs = graph.inputs.iter().map(|input| &input.value);
            let results = graph.nodes.iter().flat_map(|node| &node.results);
            for value in inputs.chain(results.filter_map(|result| result.value.as_ref())) {
                let key = (graph.id.clone(), value.clone());
                if let Some(observer) = self.observers.known.get(&key) {
                    writer.write(&observer.record(&key, asked))?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(sets: &[&[f64]], bins: u64) -> Observer {
        let mut observer = Observer::default();
        sets.iter().enumerate().for_each(|(set, elements)| observer.take(elements, set, Some(bins)));
        observer
    }

    fn recorded(observer: &Observer, method: Method, bins: u64, percent: f64) -> Observation {
        observer.record(&("g".to_owned(), "v".to_owned()), &Asked { method, bins, percent })
    }

    #[test]
    fn a_bin_is_as_wide_as_the_range_needs() {
        // From 0 to 7.5 in at most 4 bins: a width of 2 has bins 0 to 3.
        let observer = observed(&[&[0.0, 1.5, 2.0, 7.5]], 4);
        let histogram = recorded(&observer, Method::Histogram, 4, 100.0).histogram.unwrap();
        assert_eq!((histogram.width.0, histogram.first, histogram.counts), (2.0, 0, vec![2, 1, 0, 1]));
        // From -3 to 3: bins of 2 begin at -4, and there are bins -2, -1, 0, 1.
        let observer = observed(&[&[-3.0, -0.5, 3.0]], 4);
        let histogram = recorded(&observer, Method::Histogram, 4, 100.0).histogram.unwrap();
        assert_eq!((histogram.width.0, histogram.first, histogram.counts), (2.0, -2, vec![1, 1, 0, 1]));
    }

    #[test]
    fn neither_order_nor_division_into_sets_matters() {
        let elements: Vec<f64> = (0..200).map(|n| f64::from((n * 7919) % 1009 - 300) * 0.37).collect();
        let whole = observed(&[&elements], 16);
        let parts: Vec<&[f64]> = elements.chunks(7).rev().collect();
        let divided = observed(&parts, 16);
        assert_eq!((divided.bins.clone(), divided.range, divided.count), (whole.bins, whole.range, whole.count));
        assert_eq!(divided.sets, 29);
        assert_eq!(divided.bins.counts.iter().sum::<u64>(), 200);
    }

    #[test]
    fn what_is_not_finite_is_counted_apart() {
        let observer = observed(&[&[f64::NAN, f64::INFINITY], &[1.0, -0.0]], 8);
        let record = recorded(&observer, Method::Minmax, 8, 100.0);
        assert_eq!((record.count, record.nonfinite, record.sets), (2, 2, 2));
        assert_eq!((record.min, record.max), (Some(Float(0.0)), Some(Float(1.0))));
        let none = recorded(&observed(&[&[f64::NAN]], 8), Method::Histogram, 8, 100.0);
        assert_eq!((none.count, none.min, none.histogram), (0, None, None));
    }

    #[test]
    fn percentiles_are_ranks_from_both_ends() {
        // 0 to 99 in bins of 1: the 90th least is 89, whose bin ends at 90; the 90th greatest is 10, whose bin begins there.
        let elements: Vec<f64> = (0..100).map(f64::from).collect();
        let record = recorded(&observed(&[&elements], 128), Method::Percentile, 128, 90.0);
        let percentile = record.percentile.unwrap();
        // 128 bins of 1 reach from 0 to 99, and so do 128 of no smaller power of two.
        assert_eq!((percentile.low.0, percentile.high.0), (10.0, 90.0));
        let whole = recorded(&observed(&[&elements], 128), Method::Percentile, 128, 100.0).percentile.unwrap();
        assert_eq!((whole.low.0, whole.high.0), (0.0, 99.0));
    }

    #[test]
    fn constants_and_extremes_have_bins() {
        let zeros = recorded(&observed(&[&[0.0; 3]], 4), Method::Histogram, 4, 100.0).histogram.unwrap();
        assert_eq!((zeros.width.0, zeros.first, zeros.counts), (1.0, 0, vec![3]));
        // 2^-23 of 4, as it is the largest power of two in 5.
        let fives = recorded(&observed(&[&[5.0; 2]], 4), Method::Histogram, 4, 100.0).histogram.unwrap();
        assert_eq!((fives.width.0, fives.first, fives.counts), (2f64.powi(-21), 5 << 21, vec![2]));
        let small = f64::from_bits(1);
        let least = recorded(&observed(&[&[small, 0.0]], 4), Method::Histogram, 4, 100.0).histogram.unwrap();
        assert_eq!((least.width.0, least.first, least.counts), (small, 0, vec![1, 1]));
        let most = recorded(&observed(&[&[f64::MAX, f64::MIN]], 4), Method::Histogram, 4, 100.0).histogram.unwrap();
        assert_eq!((most.width.0, most.first, most.counts), (2f64.powi(1023), -2, vec![1, 0, 0, 1]));
    }
}
