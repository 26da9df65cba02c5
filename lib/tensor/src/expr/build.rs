//! Constructors that keep expressions canonical: flattened, folded, like terms collected, operands in order.

use super::{Cmp, Expr};

/// `a + b + …`
pub fn add(terms: impl IntoIterator<Item = Expr>) -> Expr {
    let mut flat: Vec<(i128, Expr)> = Vec::new();
    let (mut int, mut float, mut is_float) = (0i128, 0f64, false);
    let mut stack: Vec<Expr> = terms.into_iter().collect();
    stack.reverse();
    while let Some(term) = stack.pop() {
        match term {
            Expr::Add(inner) => stack.extend(inner.into_iter().rev()),
            Expr::Int(n) => int += i128::from(n),
            Expr::Float(x) => {
                float += x;
                is_float = true;
            }
            other => collect_term(&mut flat, other),
        }
    }
    let mut out: Vec<Expr> = Vec::with_capacity(flat.len() + 1);
    for (n, rest) in flat {
        let part = |n| if n == 1 { rest.clone() } else { mul([Expr::Int(n), rest.clone()]) };
        out.extend(within_64_bits(n).into_iter().map(part));
    }
    out.sort_by(compare_terms);
    if is_float {
        out.push(Expr::Float(float + int as f64));
    } else if int != 0 || out.is_empty() {
        out.extend(within_64_bits(int).into_iter().map(Expr::Int));
    }
    match out.len() {
        0 => Expr::Int(0),
        1 => out.remove(0),
        _ => Expr::Add(out),
    }
}

/// A sum of integers as the fewest integers of 64 bits, always the same ones; none for 0.
fn within_64_bits(mut n: i128) -> Vec<i64> {
    let mut parts = Vec::new();
    while n != 0 {
        let part = n.clamp((-i64::MAX).into(), i64::MAX.into());
        parts.push(part as i64);
        n -= part;
    }
    parts
}

/// Adds `n * rest` to the collected terms, joining a term that has the same rest.
fn collect_term(flat: &mut Vec<(i128, Expr)>, term: Expr) {
    let (n, rest) = split_coefficient(term);
    match flat.iter_mut().find(|(_, other)| *other == rest) {
        Some((count, _)) => *count += i128::from(n),
        None => flat.push((n.into(), rest)),
    }
}

/// `3*a*b` as 3 and `a*b`.
fn split_coefficient(term: Expr) -> (i64, Expr) {
    match term {
        Expr::Mul(mut factors) => match factors.first() {
            Some(Expr::Int(n)) => {
                let n = *n;
                factors.remove(0);
                let rest = if factors.len() == 1 { factors.remove(0) } else { Expr::Mul(factors) };
                (n, rest)
            }
            _ => (1, Expr::Mul(factors)),
        },
        other => (1, other),
    }
}

/// Number of symbol factors, for the order of a sum.
fn degree(e: &Expr) -> i64 {
    match e {
        Expr::Int(_) | Expr::Float(_) | Expr::Bool(_) => 0,
        Expr::Mul(factors) => factors.iter().map(degree).sum(),
        Expr::Pow(base, exp) => degree(base).saturating_mul(exp.as_int().unwrap_or(1)),
        _ => 1,
    }
}

fn compare_terms(a: &Expr, b: &Expr) -> std::cmp::Ordering {
    degree(b)
        .cmp(&degree(a))
        .then_with(|| without_number(a).cmp(&without_number(b)))
        .then_with(|| a.to_string().cmp(&b.to_string()))
}

/// The text of a term without its leading number, so that a term keeps its place when its sign changes.
fn without_number(term: &Expr) -> String {
    match term {
        Expr::Mul(factors) if matches!(factors.first(), Some(Expr::Int(_) | Expr::Float(_))) => {
            factors.iter().skip(1).map(|f| format!("{f}*")).collect()
        }
        other => format!("{other}*"),
    }
}

/// `a - b`
pub fn sub(a: Expr, b: Expr) -> Expr {
    add([a, mul([Expr::Int(-1), b])])
}

/// `a * b * …`
pub fn mul(factors: impl IntoIterator<Item = Expr>) -> Expr {
    let (mut ints, mut float, mut is_float) = (Vec::new(), 1f64, false);
    let mut rest: Vec<Expr> = Vec::new();
    let mut stack: Vec<Expr> = factors.into_iter().collect();
    stack.reverse();
    while let Some(factor) = stack.pop() {
        match factor {
            Expr::Mul(inner) => stack.extend(inner.into_iter().rev()),
            Expr::Int(n) => ints.push(n),
            Expr::Float(x) => {
                float *= x;
                is_float = true;
            }
            other => rest.push(other),
        }
    }
    if ints.contains(&0) && !is_float {
        return Expr::Int(0);
    }
    if rest.len() > 1 {
        for factor in &mut rest {
            if let Some((content, primitive)) = split_content(factor) {
                ints.push(content);
                *factor = primitive;
            }
        }
    }
    let ints = products(ints);
    let mut rest = collect_powers(rest);
    rest.sort_by_cached_key(|e| e.to_string());
    if let ([int], [Expr::Add(terms)], false) = (ints.as_slice(), rest.as_slice(), is_float) {
        return add(terms.iter().map(|t| mul([Expr::Int(*int), t.clone()])));
    }
    let mut out = Vec::with_capacity(rest.len() + 1);
    if is_float {
        out.push(Expr::Float(ints.into_iter().fold(float, |x, n| x * n as f64)));
    } else {
        out.extend(ints.into_iter().map(Expr::Int));
    }
    out.extend(rest);
    match out.len() {
        0 => Expr::Int(1),
        1 => out.remove(0),
        _ => Expr::Mul(out),
    }
}

/// A product of integers as few integers of 64 bits, always the same ones, the sign with the first; none for 1.
fn products(ints: Vec<i64>) -> Vec<i64> {
    if let [single] = ints.as_slice() {
        return if *single == 1 { Vec::new() } else { ints };
    }
    let is_negative = ints.iter().filter(|n| **n < 0).count() % 2 == 1;
    // The magnitude of the least integer has no positive twin of 64 bits, but its factors have.
    let magnitudes = ints.iter().flat_map(|n| match n.checked_abs() {
        Some(n) => vec![n],
        None => vec![2, 1 << 62],
    });
    let mut folded = fold_magnitudes(magnitudes.collect());
    match (folded.first_mut(), is_negative) {
        (Some(first), true) => *first = -*first,
        (None, true) => folded.push(-1),
        _ => {}
    }
    folded
}

/// Multiplies neighbours in rising order for as long as any product stays within 64 bits.
fn fold_magnitudes(mut ints: Vec<i64>) -> Vec<i64> {
    loop {
        ints.sort_unstable();
        let mut out: Vec<i64> = Vec::with_capacity(ints.len());
        for &n in ints.iter().filter(|n| **n != 1) {
            match out.last_mut() {
                Some(last) if last.checked_mul(n).is_some() => *last *= n,
                _ => out.push(n),
            }
        }
        if out.len() == ints.len() {
            return out;
        }
        ints = out;
    }
}

/// A sum as the common divisor of its coefficients, with the sign of the first, times the rest; so that `2*(a+b)*c`
/// and `(2*a+2*b)*c` are one. A float coefficient has no divisor but does have a sign.
fn split_content(e: &Expr) -> Option<(i64, Expr)> {
    let Expr::Add(terms) = e else { return None };
    let coefficient = |t: &Expr| match t {
        Expr::Int(n) => (n.unsigned_abs(), *n < 0),
        Expr::Float(x) => (1, *x < 0.0),
        Expr::Mul(factors) => match factors.first() {
            Some(Expr::Int(n)) => (n.unsigned_abs(), *n < 0),
            Some(Expr::Float(x)) => (1, *x < 0.0),
            _ => (1, false),
        },
        _ => (1, false),
    };
    let divisor = terms.iter().map(coefficient).fold(0, |a, (n, _)| gcd(a, n));
    let divisor = i64::try_from(divisor).ok().filter(|d| *d > 0)?;
    let is_negative = terms.first().is_some_and(|t| coefficient(t).1);
    let content = if is_negative { -divisor } else { divisor };
    let part = |t: &Expr| match t {
        Expr::Int(n) => Some(Expr::Int(n.checked_div(content)?)),
        whole if divisor == 1 => Some(mul([Expr::Int(content), whole.clone()])),
        other => {
            let (n, rest) = split_coefficient(other.clone());
            Some(mul([Expr::Int(n.checked_div(content)?), rest]))
        }
    };
    if content == 1 {
        return None;
    }
    Some((content, add(terms.iter().map(part).collect::<Option<Vec<_>>>()?)))
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Joins equal factors: `a*a` is `a**2`.
fn collect_powers(factors: Vec<Expr>) -> Vec<Expr> {
    let mut out: Vec<(Expr, i64)> = Vec::new();
    for factor in factors {
        let (base, n) = match factor {
            Expr::Pow(base, exp) => match *exp {
                Expr::Int(n) => (*base, n),
                other => (Expr::Pow(base, Box::new(other)), 1),
            },
            other => (other, 1),
        };
        match out.iter_mut().find(|(b, _)| *b == base) {
            Some((_, count)) => *count = count.saturating_add(n),
            None => out.push((base, n)),
        }
    }
    out.into_iter()
        .filter(|(_, n)| *n != 0)
        .map(|(base, n)| if n == 1 { base } else { pow(base, Expr::Int(n)) })
        .collect()
}

/// `a ** b`
pub fn pow(a: Expr, b: Expr) -> Expr {
    if let (Some(base), Some(exp)) = (a.as_int(), b.as_int())
        && let Some(value) = u32::try_from(exp).ok().and_then(|exp| base.checked_pow(exp))
    {
        return Expr::Int(value);
    }
    match b.as_int() {
        Some(1) => a,
        Some(0) => Expr::Int(1),
        _ => Expr::Pow(Box::new(a), Box::new(b)),
    }
}

/// `a / b`, of floats
pub fn div(a: Expr, b: Expr) -> Expr {
    Expr::Div(Box::new(a), Box::new(b))
}

/// `a // b`
pub fn floor_div(a: Expr, b: Expr) -> Expr {
    match (&a, b.as_int()) {
        (_, Some(1)) => return a,
        (Expr::Int(n), Some(d)) if d != 0 => {
            if let Some(q) = super::eval::floor_div(*n, d) {
                return Expr::Int(q);
            }
        }
        (_, Some(d)) if d > 1 => {
            if let Some(quotient) = divide_exactly(&a, d) {
                return quotient;
            }
        }
        _ => {}
    }
    if a == b && !matches!(a, Expr::Int(_)) {
        return Expr::Int(1);
    }
    Expr::FloorDiv(Box::new(a), Box::new(b))
}

/// `a / d` when every coefficient of `a` is a multiple of `d`.
fn divide_exactly(a: &Expr, d: i64) -> Option<Expr> {
    let term = |e: &Expr| match e {
        Expr::Int(n) => (n % d == 0).then(|| Expr::Int(n / d)),
        Expr::Mul(factors) => match factors.first() {
            Some(Expr::Int(n)) if n % d == 0 => {
                Some(mul(std::iter::once(Expr::Int(n / d)).chain(factors.iter().skip(1).cloned())))
            }
            _ => None,
        },
        _ => None,
    };
    match a {
        Expr::Add(terms) => Some(add(terms.iter().map(term).collect::<Option<Vec<_>>>()?)),
        other => term(other),
    }
}

/// `a % b`
pub fn modulo(a: Expr, b: Expr) -> Expr {
    match (&a, b.as_int()) {
        (_, Some(1)) => return Expr::Int(0),
        (Expr::Int(n), Some(d)) if d != 0 => {
            if let Some(r) = super::eval::modulo(*n, d) {
                return Expr::Int(r);
            }
        }
        (_, Some(d)) if d > 1 && divide_exactly(&a, d).is_some() => return Expr::Int(0),
        _ => {}
    }
    Expr::Mod(Box::new(a), Box::new(b))
}

/// Flattens and sorts the operands of an associative, idempotent operation, and folds its integers.
fn idempotent(
    items: impl IntoIterator<Item = Expr>,
    open: fn(Expr) -> Result<Vec<Expr>, Expr>,
    fold: fn(i64, i64) -> i64,
) -> Vec<Expr> {
    let mut int: Option<i64> = None;
    let mut out: Vec<Expr> = Vec::new();
    for item in items {
        for item in open(item).unwrap_or_else(|single| vec![single]) {
            match item {
                Expr::Int(n) => int = Some(int.map_or(n, |m| fold(m, n))),
                other if out.contains(&other) => {}
                other => out.push(other),
            }
        }
    }
    out.sort_by_cached_key(|e| e.to_string());
    out.extend(int.map(Expr::Int));
    out
}

fn single_or(mut items: Vec<Expr>, make: fn(Vec<Expr>) -> Expr) -> Expr {
    if items.len() == 1 { items.remove(0) } else { make(items) }
}

/// `max(a,b,…)`; needs at least one operand.
pub fn max(items: impl IntoIterator<Item = Expr>) -> Expr {
    let open = |e| if let Expr::Max(v) = e { Ok(v) } else { Err(e) };
    single_or(idempotent(items, open, i64::max), Expr::Max)
}

/// `min(a,b,…)`; needs at least one operand.
pub fn min(items: impl IntoIterator<Item = Expr>) -> Expr {
    let open = |e| if let Expr::Min(v) = e { Ok(v) } else { Err(e) };
    single_or(idempotent(items, open, i64::min), Expr::Min)
}

/// `ceil(a)`
pub fn ceil(a: Expr) -> Expr {
    if let Expr::Int(_) = a { a } else { Expr::Ceil(Box::new(a)) }
}

/// `floor(a)`
pub fn floor(a: Expr) -> Expr {
    if let Expr::Int(_) = a { a } else { Expr::Floor(Box::new(a)) }
}

/// `trunc(a)`
pub fn trunc(a: Expr) -> Expr {
    if let Expr::Int(_) = a { a } else { Expr::Trunc(Box::new(a)) }
}

/// `where(c,a,b)`
pub fn select(c: Expr, a: Expr, b: Expr) -> Expr {
    match c {
        Expr::Bool(true) => a,
        Expr::Bool(false) => b,
        c => Expr::Where(Box::new(c), Box::new(a), Box::new(b)),
    }
}

/// A comparison.
pub fn cmp(op: Cmp, a: Expr, b: Expr) -> Expr {
    if let (Some(x), Some(y)) = (a.as_int(), b.as_int()) {
        return Expr::Bool(match op {
            Cmp::Eq => x == y,
            Cmp::Ne => x != y,
            Cmp::Lt => x < y,
            Cmp::Le => x <= y,
            Cmp::Gt => x > y,
            Cmp::Ge => x >= y,
        });
    }
    Expr::Cmp(op, Box::new(a), Box::new(b))
}

/// `a and b and …`
pub fn and(items: impl IntoIterator<Item = Expr>) -> Expr {
    logical(items, true, Expr::And)
}

/// `a or b or …`
pub fn or(items: impl IntoIterator<Item = Expr>) -> Expr {
    logical(items, false, Expr::Or)
}

fn logical(items: impl IntoIterator<Item = Expr>, neutral: bool, make: fn(Vec<Expr>) -> Expr) -> Expr {
    let mut out: Vec<Expr> = Vec::new();
    for item in items {
        match item {
            Expr::Bool(b) if b == neutral => {}
            Expr::Bool(b) => return Expr::Bool(b),
            Expr::And(v) if neutral => out.extend(v),
            Expr::Or(v) if !neutral => out.extend(v),
            other => out.push(other),
        }
    }
    if out.is_empty() { Expr::Bool(neutral) } else { single_or(out, make) }
}

/// `not a`
pub fn not(a: Expr) -> Expr {
    match a {
        Expr::Bool(b) => Expr::Bool(!b),
        Expr::Not(inner) => *inner,
        other => Expr::Not(Box::new(other)),
    }
}
