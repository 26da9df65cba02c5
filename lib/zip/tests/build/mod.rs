//! A small writer of archives for tests: as PyTorch writes them, and wrong in any way that a test asks for.
#![allow(dead_code, reason = "each test file uses a part")]

/// One entry, and what to lie about.
#[derive(Clone)]
pub struct Item {
    pub name: String,
    pub data: Vec<u8>,
    pub method: u16,
    pub flags: u16,
    /// Overrides in the central directory: header offset, compressed size, uncompressed size, CRC.
    pub header: Option<u32>,
    pub packed: Option<u32>,
    pub unpacked: Option<u32>,
    pub crc: Option<u32>,
    /// Another name in the local header.
    pub local_name: Option<String>,
}

/// An ordinary entry.
pub fn item(name: &str, data: impl Into<Vec<u8>>) -> Item {
    Item {
        name: name.into(),
        data: data.into(),
        method: 0,
        flags: 0x808,
        header: None,
        packed: None,
        unpacked: None,
        crc: None,
        local_name: None,
    }
}

fn u16s(out: &mut Vec<u8>, values: &[u16]) {
    values.iter().for_each(|v| out.extend(v.to_le_bytes()));
}

fn u32s(out: &mut Vec<u8>, values: &[u32]) {
    values.iter().for_each(|v| out.extend(v.to_le_bytes()));
}

/// Writes the archive: 64-byte aligned data behind padded extra fields, sizes in data descriptors.
pub fn zip(items: &[Item]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut directory = Vec::new();
    for item in items {
        let header = out.len();
        let crc = crc32fast::hash(&item.data);
        let local_name = item.local_name.as_ref().unwrap_or(&item.name);
        let padding = (64 - (header + 30 + local_name.len() + 4) % 64) % 64;
        u32s(&mut out, &[0x0403_4b50]);
        u16s(&mut out, &[0, item.flags, item.method, 0, 0]);
        u32s(&mut out, &[0, 0, 0]);
        u16s(&mut out, &[local_name.len() as u16, 4 + padding as u16]);
        out.extend(local_name.as_bytes());
        u16s(&mut out, &[0x4246, padding as u16]);
        out.extend(std::iter::repeat_n(b'Z', padding));
        out.extend(&item.data);
        u32s(&mut out, &[0x0807_4b50, crc, item.data.len() as u32, item.data.len() as u32]);
        u32s(&mut directory, &[0x0201_4b50]);
        u16s(&mut directory, &[0, 0, item.flags, item.method, 0, 0]);
        u32s(
            &mut directory,
            &[
                item.crc.unwrap_or(crc),
                item.packed.unwrap_or(item.data.len() as u32),
                item.unpacked.unwrap_or(item.data.len() as u32),
            ],
        );
        u16s(&mut directory, &[item.name.len() as u16, 0, 0, 0, 0]);
        u32s(&mut directory, &[0, item.header.unwrap_or(header as u32)]);
        directory.extend(item.name.as_bytes());
    }
    let start = out.len() as u32;
    out.extend(&directory);
    u32s(&mut out, &[0x0605_4b50]);
    u16s(&mut out, &[0, 0, items.len() as u16, items.len() as u16]);
    u32s(&mut out, &[directory.len() as u32, start]);
    u16s(&mut out, &[0]);
    out
}
