//! PNG and PDF from the SVG of a figure.
//!
//! The font is the one that text was measured in. Where a text has characters that it lacks, the
//! fonts of the system are asked too: only then does a picture depend on the machine.

use std::sync::Arc;

use krilla::geom::Size;
use krilla::page::PageSettings;
use krilla_svg::{SurfaceExt as _, SvgSettings};
use png::{BitDepth, ColorType, Encoder, EncodingError, PixelDimensions, Unit};
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{ImageHrefResolver, Options, Tree, fontdb};

use crate::error::FigureError;
use crate::font;

/// The most pixels of a PNG.
const MOST_PIXELS: f64 = 1e8;
const INCH: f64 = 96.0;

/// A PNG of an SVG with `dpi` pixels to the inch, which it carries as its resolution.
///
/// # Errors
/// The text is not an SVG, `dpi` is not within 10 to 2400, or the picture would have more than
/// 100 million pixels.
pub fn png(svg: &str, dpi: f64) -> Result<Vec<u8>, FigureError> {
    if !(10.0..=2400.0).contains(&dpi) {
        return Err(FigureError::Spec(format!("`dpi` is {dpi}; it must be 10 to 2400")));
    }
    let tree = tree(svg)?;
    let scale = dpi / INCH;
    let pixels = |length: f32| (f64::from(length) * scale).round().max(1.0);
    let (width, height) = (pixels(tree.size().width()), pixels(tree.size().height()));
    if width * height > MOST_PIXELS {
        return Err(FigureError::Render(format!(
            "{width} by {height} pixels are more than 100 million: lower the dpi"
        )));
    }
    let mut pixmap = Pixmap::new(width as u32, height as u32)
        .ok_or_else(|| FigureError::Render("it has no size".to_string()))?;
    let (x, y) = (width as f32 / tree.size().width(), height as f32 / tree.size().height());
    resvg::render(&tree, Transform::from_scale(x, y), &mut pixmap.as_mut());
    encoded(pixmap, dpi).map_err(|e| FigureError::Render(e.to_string()))
}

/// The PNG of a picture with its resolution.
fn encoded(pixmap: Pixmap, dpi: f64) -> Result<Vec<u8>, EncodingError> {
    let metre = (dpi / 0.0254).round() as u32;
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, pixmap.width(), pixmap.height());
    encoder.set_color(ColorType::Rgba);
    encoder.set_depth(BitDepth::Eight);
    let resolution = PixelDimensions { xppu: metre, yppu: metre, unit: Unit::Meter };
    encoder.set_pixel_dims(Some(resolution));
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&pixmap.take_demultiplied())?;
    writer.finish()?;
    Ok(bytes)
}

/// A PDF of one page as large as the SVG, with its text as text.
///
/// # Errors
/// The text is not an SVG.
pub fn pdf(svg: &str) -> Result<Vec<u8>, FigureError> {
    let tree = tree(svg)?;
    let points = |length: f32| length * 72.0 / INCH as f32;
    let size = Size::from_wh(points(tree.size().width()), points(tree.size().height()))
        .ok_or_else(|| FigureError::Render("it has no size".to_string()))?;
    let mut document = krilla::Document::new();
    let mut page = document.start_page_with(PageSettings::new(size));
    let mut surface = page.surface();
    surface.draw_svg(&tree, size, SvgSettings::default());
    surface.finish();
    page.finish();
    document.finish().map_err(|e| FigureError::Render(format!("{e:?}")))
}

fn tree(svg: &str) -> Result<Tree, FigureError> {
    let mut fonts = fontdb::Database::new();
    fonts.load_font_data(font::bytes(false).to_vec());
    fonts.load_font_data(font::bytes(true).to_vec());
    fonts.set_sans_serif_family("DejaVu Sans");
    if svg.chars().any(|c| !c.is_control() && !font::has(c)) {
        fonts.load_system_fonts();
    }
    let options = Options {
        fontdb: Arc::new(fonts),
        font_family: "DejaVu Sans".to_string(),
        // Files and pictures that an SVG refers to are not read: our figures have none.
        image_href_resolver: ImageHrefResolver {
            resolve_data: Box::new(|_, _, _| None),
            resolve_string: Box::new(|_, _| None),
        },
        ..Options::default()
    };
    Tree::from_str(svg, &options).map_err(|e| FigureError::Render(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SVG: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"2.54cm\" height=\"1.27cm\" \
                       viewBox=\"0 0 96 48\"><text x=\"5\" y=\"20\" font-size=\"12\">n = 3</text></svg>";

    #[test]
    fn a_png_has_the_pixels_of_its_centimetres_and_says_its_resolution() {
        let bytes = png(SVG, 300.0).unwrap();
        assert_eq!(&bytes[16..24], [0, 0, 1, 44, 0, 0, 0, 150]);
        assert_eq!(&bytes[37..41], b"pHYs");
        assert_eq!(u32::from_be_bytes(bytes[41..45].try_into().unwrap()), 11811);
        assert_eq!(bytes, png(SVG, 300.0).unwrap());
        let pixmap = Pixmap::decode_png(&bytes).unwrap();
        assert!(pixmap.pixels().iter().any(|p| p.alpha() > 200), "the text is drawn");
    }

    #[test]
    fn a_pdf_is_as_large_as_the_picture_and_the_same_twice() {
        let bytes = pdf(SVG).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert!(text.starts_with("%PDF-"), "{text}");
        assert!(text.contains("72 36]") && text.contains("DejaVuSans"), "{text}");
        assert_eq!(bytes, pdf(SVG).unwrap());
    }

    #[test]
    fn what_is_not_a_picture_or_too_large_is_refused() {
        assert!(matches!(png("<svg", 96.0), Err(FigureError::Render(_))));
        let range = "`dpi` is 0; it must be 10 to 2400".to_string();
        assert_eq!(png(SVG, 0.0), Err(FigureError::Spec(range)));
        let huge = SVG.replace("2.54cm", "2000cm").replace("1.27cm", "2000cm");
        assert!(matches!(png(&huge, 300.0), Err(FigureError::Render(_))));
    }
}
