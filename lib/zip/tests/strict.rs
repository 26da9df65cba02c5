//! What is read, and each way in which an archive is refused.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod build;

use build::{item, zip};
use m2m_zip::{Error, Packing, Zip};

fn refused(bytes: &[u8]) -> Error {
    Zip::open(bytes).expect_err("the archive is wrong")
}

#[test]
fn finds_data_by_name_and_by_place() {
    let bytes = zip(&[item("m/a", "hello"), item("m/empty", ""), item("m/b", vec![7; 100])]);
    let archive = Zip::open(&bytes).unwrap();
    let a = archive.find("m/a").unwrap();
    assert_eq!((archive.bytes(a), a.start % 64), (b"hello".as_slice(), 0));
    let b = archive.find("m/b").unwrap();
    assert_eq!(archive.find_at(b.start + 99), Some(b));
    assert_eq!(archive.find_at(b.start + 100), None);
    assert_eq!(archive.find_at(a.start - 1), None);
    assert_eq!(archive.checked_bytes(b).unwrap().len(), 100);
    assert_eq!(archive.entries().iter().map(|e| e.name.as_str()).collect::<Vec<_>>(), ["m/a", "m/empty", "m/b"]);
}

#[test]
fn every_truncation_is_refused() {
    let bytes = zip(&[item("a", "hello"), item("b", "world")]);
    for len in 0..bytes.len() {
        Zip::open(&bytes[..len]).expect_err("a torn archive");
    }
}

#[test]
fn bytes_after_the_end_are_refused() {
    let mut bytes = zip(&[item("a", "hello")]);
    bytes.push(0);
    assert!(matches!(refused(&bytes), Error::Trailing { .. }));
}

#[test]
fn compression_is_refused_with_its_claim() {
    let mut bomb = item("a", "hello");
    (bomb.method, bomb.unpacked) = (8, Some(4_000_000_000));
    assert_eq!(
        refused(&zip(&[bomb])).to_string(),
        "entry \"a\" is compressed (method 8, 5 bytes that claim 4000000000); only stored entries are read"
    );
}

#[test]
fn a_stored_entry_has_one_size() {
    let mut two = item("a", "hello");
    two.unpacked = Some(4_000_000_000);
    assert!(matches!(refused(&zip(&[two])), Error::Sizes { packed: 5, .. }));
}

#[test]
fn encryption_is_refused() {
    let mut secret = item("a", "hello");
    secret.flags |= 1;
    assert!(matches!(refused(&zip(&[secret])), Error::Encrypted { .. }));
}

#[test]
fn entries_stay_inside_and_apart() {
    let mut far = item("a", "hello");
    far.header = Some(1 << 30);
    assert!(matches!(refused(&zip(&[far])), Error::OutOfBounds { .. }));
    let mut long = item("a", "hello");
    (long.packed, long.unpacked) = (Some(5000), Some(5000));
    assert!(matches!(refused(&zip(&[long])), Error::OutOfBounds { .. }));
    let mut over = item("a", "hello");
    (over.packed, over.unpacked) = (Some(70), Some(70));
    let error = refused(&zip(&[over, item("b", vec![1; 200])]));
    assert!(matches!(&error, Error::Overlap { name, other, .. } if name == "b" && other == "a"), "{error}");
}

#[test]
fn two_records_of_one_header_are_refused() {
    let mut again = item("a2", "");
    (again.header, again.packed, again.unpacked) = (Some(0), Some(5), Some(5));
    assert!(matches!(refused(&zip(&[item("a", "hello"), again])), Error::Mismatch { .. }));
}

#[test]
fn names_are_unique_and_harmless() {
    assert!(matches!(refused(&zip(&[item("a", "1"), item("a", "2")])), Error::Duplicate { .. }));
    for name in ["", "/etc/passwd", "a/../../b", "a\nb", "a\\b"] {
        assert!(matches!(refused(&zip(&[item(name, "1")])), Error::Name { .. }), "{name:?}");
    }
}

#[test]
fn header_and_directory_agree() {
    let mut other = item("a", "hello");
    other.local_name = Some("b".into());
    assert!(matches!(refused(&zip(&[other])), Error::Mismatch { .. }));
}

#[test]
fn damage_is_found_by_who_asks() {
    let mut bytes = zip(&[item("a", "hello")]);
    let start = Zip::open(&bytes).unwrap().find("a").unwrap().start as usize;
    bytes[start] ^= 1;
    let archive = Zip::open(&bytes).unwrap();
    let error = archive.checked_bytes(archive.find("a").unwrap()).unwrap_err();
    assert!(matches!(error, Error::Crc { len: 5, .. }));
}

#[test]
fn no_corruption_panics() {
    let bytes = zip(&[item("m/a", "hello"), item("m/b", vec![7; 100])]);
    for at in 0..bytes.len() {
        for flip in [1u8, 0x80, 0xff] {
            let mut wrong = bytes.clone();
            wrong[at] ^= flip;
            if let Ok(archive) = Zip::open(&wrong) {
                archive.entries().iter().for_each(|e| drop(archive.checked_bytes(e)));
            }
        }
    }
}

/// An entry of `data` deflated, as Python's zipfile writes it.
fn deflated(name: &str, data: &[u8]) -> build::Item {
    let mut packed = item(name, miniz_oxide::deflate::compress_to_vec(data, 6));
    (packed.method, packed.unpacked, packed.crc) = (8, Some(data.len() as u32), Some(crc32fast::hash(data)));
    packed
}

#[test]
fn deflated_entries_are_read_where_they_are_asked_for() {
    let text = "abcabcabc".repeat(50);
    let bytes = zip(&[deflated("a", text.as_bytes()), deflated("empty", b""), item("b", "plain")]);
    assert!(matches!(refused(&bytes), Error::Compressed { method: 8, .. }));
    let archive = Zip::open_packed(&bytes).unwrap();
    let contents = |name: &str| archive.contents(archive.find(name).unwrap()).unwrap();
    assert_eq!(contents("a"), text.as_bytes());
    assert_eq!((contents("empty").len(), contents("b").as_ref()), (0, b"plain".as_slice()));
    let a = archive.find("a").unwrap();
    assert_eq!((a.packing, a.unpacked), (Packing::Deflated, 450));
}

#[test]
fn an_entry_unpacks_to_what_it_claims_or_not_at_all() {
    let text = "abcabcabc".repeat(50);
    let read = |change: &dyn Fn(&mut build::Item)| {
        let mut packed = deflated("a", text.as_bytes());
        change(&mut packed);
        let bytes = zip(&[packed]);
        let archive = Zip::open_packed(&bytes)?;
        archive.contents(archive.find("a").unwrap()).map(|contents| contents.len())
    };
    assert_eq!(read(&|_| ()), Ok(450));
    assert!(matches!(read(&|item| item.unpacked = Some(449)), Err(Error::Inflate { .. })));
    assert!(matches!(read(&|item| item.unpacked = Some(451)), Err(Error::Inflate { .. })));
    assert!(matches!(read(&|item| item.unpacked = Some(u32::MAX)), Err(Error::Sizes { .. })));
    assert!(matches!(read(&|item| item.crc = Some(1)), Err(Error::Crc { expected: 1, .. })));
    assert!(matches!(read(&|item| item.data[3] ^= 0xff), Err(Error::Inflate { .. } | Error::Crc { .. })));
}
