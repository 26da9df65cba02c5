//! Ten thousand corruptions of small programs: any may be refused, none may panic or hang.
//!
//! A flip in a file is mostly caught by a checksum, so most corruptions change an entry's content and write the archive
//! anew around it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use m2m_zip::Zip;
use support::build::{Item, item, zip};
use support::*;

/// A counter-based generator: splitmix64.
fn random(counter: &mut u64) -> u64 {
    *counter = counter.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *counter;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Changes, removes, repeats or inserts a few bytes.
fn spoil(bytes: &mut Vec<u8>, counter: &mut u64) {
    for _ in 0..=random(counter) % 3 {
        if bytes.is_empty() {
            return;
        }
        let at = random(counter) as usize % bytes.len();
        match random(counter) % 6 {
            0 => bytes[at] ^= 1 << (random(counter) % 8),
            1 => bytes[at] = random(counter) as u8,
            2 => drop(bytes.drain(at..(at + random(counter) as usize % 9).min(bytes.len()))),
            3 => bytes.truncate(at),
            4 => {
                let end = (at + random(counter) as usize % 40).min(bytes.len());
                let copy = bytes[at..end].to_vec();
                bytes.splice(at..at, copy);
            }
            _ => {
                let words: [&[u8]; 8] =
                    [b"9223372036854775807", b"-1", b"null", b"[]", b"{}", b"\xff\xff\xff\xff", b"\"s0//s0\"", b"NaN"];
                let word = words[random(counter) as usize % words.len()];
                bytes.splice(at..(at + word.len()).min(bytes.len()), word.iter().copied());
            }
        }
    }
}

fn items(file: &[u8]) -> Vec<Item> {
    let archive = Zip::open(file).unwrap();
    archive.entries().iter().map(|e| item(&e.name, archive.bytes(e))).collect()
}

#[test]
fn ten_thousand_corruptions() {
    let program = program();
    let files = [raw(&program), flat(&program), pickled(&program, &state_pickle())];
    let mut counter = 1;
    for round in 0..10_000 {
        let file = &files[round % files.len()];
        if round % 10 == 0 {
            let mut wrong = file.clone();
            spoil(&mut wrong, &mut counter);
            m2m_pt2::fuzz::archive(&wrong);
            continue;
        }
        let mut items = items(file);
        let at = random(&mut counter) as usize % items.len();
        if let Ok(inner) = Zip::open(&items[at].data) {
            let mut inner: Vec<Item> = inner.entries().iter().map(|e| item(&e.name, inner.bytes(e))).collect();
            let at = random(&mut counter) as usize % inner.len();
            spoil(&mut inner[at].data, &mut counter);
            items[at % 4].data = zip(&inner);
        } else {
            spoil(&mut items[at].data, &mut counter);
        }
        m2m_pt2::fuzz::archive(&zip(&items));
    }
}

#[test]
fn spoiled_pickles() {
    let mut counter = 2;
    for round in 0..10_000 {
        let mut pickle = if round % 2 == 0 { state_pickle() } else { samples_pickle() };
        spoil(&mut pickle, &mut counter);
        m2m_pt2::fuzz::pickle(&pickle);
    }
}

#[test]
fn pickles_that_would_grow_without_end() {
    // Forty lists, each holding the one before twice, described as attributes of a subclass would be 2^40 words.
    let mut bomb = b"\x80\x02]q\x00".to_vec();
    for slot in 0..40u8 {
        bomb.extend([b']', b'q', slot + 1, b'(', b'h', slot, b'h', slot, b'e']);
    }
    bomb.push(b'.');
    m2m_pt2::fuzz::pickle(&bomb);
    // One long tuple, copied by torch.Size again and again.
    let mut copies = b"\x80\x02(".to_vec();
    copies.extend(std::iter::repeat_n(b'N', 100_000));
    copies.extend(b"tq\x000ctorch\nSize\nq\x010");
    for _ in 0..100_000 {
        copies.extend(b"h\x01h\x00\x85R0");
    }
    copies.extend(b"N.");
    let error = m2m_pt2::pickle::load(&copies, m2m_pt2::pickle::Policy::Tensors).unwrap_err();
    assert!(error.to_string().contains("endless copies"), "{error}");
}
