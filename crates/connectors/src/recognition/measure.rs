//! The size of a picture, by its header. Nothing is decoded.
//!
//! A PNG file of a few kilobytes can expand to gigabytes, so tesseract gets only pictures whose size is known and within bounds. It
//! takes standard input without the signature of a picture for a list of files, so the signature is checked at the same place as there.

/// Maximum number of pages of a file.
pub(super) const MAX_PAGES: usize = 500;

/// Maximum number of pixels of a picture. One with three bytes a pixel takes 900 MB in tesseract 5.3.
pub(super) const MAX_PIXELS: u64 = 80_000_000;

const PNG: &[u8] = b"\x89PNG\r\n\x1A\n";
const JPEG: &[u8] = b"\xFF\xD8\xFF";
const TIFF: [&[u8]; 2] = [b"II*\0", b"MM\0*"];

/// Returns true if a file is a picture of a kind that is recognized. Cameras write files of their own kinds that begin like a TIFF
/// file, so that needs the extension, if there is one.
pub(crate) fn is_picture(head: &[u8], extension: &str) -> bool {
    head.starts_with(PNG)
        || head.starts_with(JPEG)
        || is_tiff(head) && matches!(extension, "" | "tif" | "tiff")
}

/// Returns the number of pages of a picture, all of them within bounds. Decodes nothing.
///
/// # Errors
///
/// The text says why the picture is not recognized: it is too large, broken, or of another kind.
pub fn picture_pages(bytes: &[u8]) -> Result<usize, String> {
    let (name, sizes) = if bytes.starts_with(PNG) {
        ("PNG", png_size(bytes).map(|size| vec![size]))
    } else if bytes.starts_with(JPEG) {
        ("JPEG", jpeg_size(bytes).map(|size| vec![size]))
    } else if is_tiff(bytes) {
        ("TIFF", tiff_sizes(bytes)?)
    } else {
        return Err("it is no picture in PNG, JPEG or TIFF".to_owned());
    };
    let sizes = sizes
        .filter(|sizes| !sizes.is_empty() && sizes.iter().all(|(width, height)| *width > 0 && *height > 0))
        .ok_or_else(|| format!("it is no complete {name} file: its width and height are not known"))?;
    for (width, height) in &sizes {
        if u64::from(*width) * u64::from(*height) > MAX_PIXELS {
            return Err(format!(
                "it has {width} x {height} pixels, and text is recognized in pictures of at most {} million; make it smaller",
                MAX_PIXELS / 1_000_000
            ));
        }
    }
    Ok(sizes.len())
}

fn is_tiff(bytes: &[u8]) -> bool {
    TIFF.iter().any(|signature| bytes.starts_with(signature))
}

/// Returns the size in the first chunk, which is `IHDR`.
fn png_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let header = bytes.get(PNG.len() + 4..)?.strip_prefix(b"IHDR")?;
    Some((big_endian(header.get(..4)?), big_endian(header.get(4..8)?)))
}

/// Returns the size in the frame header, behind segments of any number.
fn jpeg_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut rest = bytes.get(2..)?;
    loop {
        rest = rest.strip_prefix(b"\xFF")?;
        while let Some(after) = rest.strip_prefix(b"\xFF") {
            rest = after;
        }
        let (marker, after) = rest.split_first()?;
        rest = after;
        match marker {
            // Markers without a segment.
            0x01 | 0xD0..=0xD8 => continue,
            // The end, or the data without a frame before it.
            0x00 | 0xD9 | 0xDA => return None,
            _ => {}
        }
        let length = usize::try_from(big_endian(rest.get(..2)?)).ok()?;
        let segment = rest.get(2..length)?;
        if matches!(marker, 0xC0..=0xCF) && !matches!(marker, 0xC4 | 0xC8 | 0xCC) {
            return Some((big_endian(segment.get(3..5)?), big_endian(segment.get(1..3)?)));
        }
        rest = rest.get(length..)?;
    }
}

/// Returns the sizes of all pages, or `None` for a file that is not complete.
///
/// # Errors
///
/// There are too many pages. A list that has a cycle never ends.
fn tiff_sizes(bytes: &[u8]) -> Result<Option<Vec<(u32, u32)>>, String> {
    let number: fn(&[u8]) -> u32 = if bytes.starts_with(b"II") { little_endian } else { big_endian };
    let number_at = |at: usize, length: usize| bytes.get(at..at.checked_add(length)?).map(number);
    let mut sizes = Vec::new();
    let mut next = number_at(4, 4);
    while let Some(at @ 1..) = next {
        if sizes.len() >= MAX_PAGES {
            return Err(format!("it has more than {MAX_PAGES} pages; divide it"));
        }
        let Some((size, following)) = tiff_page(at, &number_at) else { return Ok(None) };
        sizes.push(size);
        next = Some(following);
    }
    Ok(next.map(|_end| sizes))
}

/// Returns the size of a page, and the place of the next one. That of the last one is 0.
fn tiff_page(at: u32, number_at: &dyn Fn(usize, usize) -> Option<u32>) -> Option<((u32, u32), u32)> {
    let at = usize::try_from(at).ok()?;
    let entries = usize::try_from(number_at(at, 2)?).ok()?;
    let (mut width, mut height) = (0, 0);
    for entry in 0..entries {
        let entry = at.checked_add(2 + entry * 12)?;
        // Numbers of two bytes are at the start of the four.
        let value = || match number_at(entry + 2, 2)? {
            3 => number_at(entry + 8, 2),
            4 => number_at(entry + 8, 4),
            _ => None,
        };
        match number_at(entry, 2)? {
            256 => width = value()?,
            257 => height = value()?,
            _ => {}
        }
    }
    Some(((width, height), number_at(at + 2 + entries * 12, 4)?))
}

fn big_endian(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn little_endian(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png(width: u32, height: u32) -> Vec<u8> {
        [PNG, b"\0\0\0\rIHDR", &width.to_be_bytes(), &height.to_be_bytes(), b"\x08\0\0\0\0"].concat()
    }

    /// Returns a file with pages of these sizes. The place of a page after the last one is `end`.
    fn tiff(sizes: &[(u16, u32)], end: u32) -> Vec<u8> {
        let mut bytes = b"II*\0\x08\0\0\0".to_vec();
        for (number, (width, height)) in sizes.iter().enumerate() {
            bytes.extend(b"\x02\0\0\x01\x03\0\x01\0\0\0");
            bytes.extend([&width.to_le_bytes()[..], b"\xFF\xFF", b"\x01\x01\x04\0\x01\0\0\0"].concat());
            bytes.extend(height.to_le_bytes());
            let next = if number + 1 == sizes.len() { end } else { u32::try_from(bytes.len()).unwrap() + 4 };
            bytes.extend(next.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn headers_have_sizes() {
        let jpeg = |height: &[u8]| {
            let start = b"\xFF\xD8\xFF\xE0\0\x04ab\xFF\xFF\xC4\0\x03x\xFF\xC2\0\x0B\x08";
            [start.as_slice(), height, b"\0\x80\x01\x01\x11\0"].concat()
        };
        let big = tiff(&[(100, 100)], 0);
        let big: Vec<u8> = [b"MM\0*\0\0\0\x08\0\x02\x01\0\0\x03\0\0\0\x01\0\x64\0\0", &big[22..]].concat();
        for (bytes, expect) in [
            (png(10_000, 8_000), Ok(1)),
            (png(10_000, 10_000), Err("10000 x 10000 pixels")),
            (png(u32::MAX, u32::MAX), Err("4294967295 x 4294967295")),
            (png(0, 8), Err("no complete PNG file")),
            (PNG.to_vec(), Err("no complete PNG file")),
            (jpeg(b"\0\x40"), Ok(1)),
            (jpeg(b"\0\0"), Err("no complete JPEG file")),
            (b"\xFF\xD8\xFF\xE0\0\0\xFF\xE0".to_vec(), Err("no complete JPEG file")),
            (b"\xFF\xD8\xFF\xDA\0\x02".to_vec(), Err("no complete JPEG file")),
            (tiff(&[(100, 50), (20, 70_000)], 0), Ok(2)),
            (tiff(&[(100, 50), (u16::MAX, 70_000)], 0), Err("65535 x 70000 pixels")),
            // A page that is followed by the first one.
            (tiff(&[(100, 50)], 8), Err("more than 500 pages")),
            (tiff(&[(100, 50)], 4_000), Err("no complete TIFF file")),
            (tiff(&[(0, 50)], 0), Err("no complete TIFF file")),
            (b"II*\0\0\0\0\0".to_vec(), Err("no complete TIFF file")),
            (b"II*\0".to_vec(), Err("no complete TIFF file")),
            (b"/etc/passwd\n".to_vec(), Err("no picture")),
            (big, Err("no complete TIFF file")),
        ] {
            match (picture_pages(&bytes), expect) {
                (Ok(pages), Ok(expect)) => assert_eq!(pages, expect),
                (Err(problem), Err(expect)) => assert!(problem.contains(expect), "{problem}"),
                (measured, expect) => panic!("{measured:?} is not {expect:?}"),
            }
        }
    }

    #[test]
    fn files_of_cameras_are_no_tiff_pictures() {
        for (head, extension, expect) in [
            (b"II*\0".as_slice(), "tif", true),
            (b"MM\0*", "", true),
            (b"II*\0", "cr2", false),
            (JPEG, "dat", true),
            (PNG, "", true),
            (b"x", "png", false),
        ] {
            assert_eq!(is_picture(head, extension), expect, "{extension}");
        }
    }
}
