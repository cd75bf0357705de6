//! Draws every kind of figure in each theme, and narrow: `gallery DIR` writes SVG and PNG files.

#[path = "samples.rs"]
mod samples;

use std::error::Error;
use std::fs;
use std::path::PathBuf;

use galeras_figures::{Theme, draw, embed, pdf, png};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args_os().nth(1).ok_or("usage: gallery DIR")?);
    fs::create_dir_all(&folder)?;
    let mut captions = String::new();
    for (name, spec, data) in samples::all()? {
        let looks = [
            ("light", Theme::Light, spec.width),
            ("dark", Theme::Dark, spec.width),
            ("print", Theme::Print, spec.width),
            ("narrow", Theme::Light, Some(8.0)),
        ];
        for (look, theme, width) in looks {
            let mut spec = spec.clone();
            (spec.theme, spec.width) = (Some(theme), width);
            let picture = draw(&spec, &data)?;
            fs::write(folder.join(format!("{name}-{look}.svg")), embed(&picture.svg))?;
            fs::write(folder.join(format!("{name}-{look}.png")), png(&picture.svg, 110.0)?)?;
            if theme == Theme::Print {
                fs::write(folder.join(format!("{name}.pdf")), pdf(&picture.svg)?)?;
            }
            if look == "light" {
                captions.push_str(&format!("{name}\n  {}\n  {}\n", picture.caption, picture.alt));
            }
        }
    }
    fs::write(folder.join("captions.txt"), captions)?;
    Ok(())
}
