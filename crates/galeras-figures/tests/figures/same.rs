//! The same input gives the same bytes.

use std::process::Command;

use galeras_figures::{draw, embed, font_css, pdf, png};

use crate::samples;

/// A hash of the bytes of every sample (FNV-1a, 64 bits).
fn fingerprint() -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for (_, spec, data) in samples::all().unwrap() {
        let picture = draw(&spec, &data).unwrap();
        let pdf = pdf(&picture.svg).unwrap();
        let texts = picture.svg + &picture.caption + &picture.alt;
        for byte in texts.bytes().chain(pdf) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
    format!("fingerprint {hash:016x}")
}

#[test]
fn two_processes_and_four_threads_draw_the_same() {
    let own = fingerprint();
    if std::env::var_os("FIGURES_CHILD").is_some() {
        println!("{own}");
        return;
    }
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "same::two_processes_and_four_threads_draw_the_same", "--nocapture"])
        .env("FIGURES_CHILD", "1")
        .output()
        .unwrap();
    let said = String::from_utf8(child.stdout).unwrap();
    assert!(said.contains(&own), "{own} is not in {said}");
    let threads: Vec<_> = (0..3).map(|_| std::thread::spawn(fingerprint)).collect();
    threads.into_iter().for_each(|t| assert_eq!(t.join().unwrap(), own));
}

#[test]
fn a_report_of_thirty_figures_is_small() {
    let samples = samples::all().unwrap();
    let svg = |(_, spec, data): &(_, _, _)| draw(spec, data).unwrap().svg;
    let svgs: Vec<String> = samples.iter().map(svg).collect();
    let all: usize = svgs.iter().map(String::len).sum();
    let named: Vec<&str> = svgs.iter().map(String::as_str).collect();
    let css = font_css(&named).len();
    assert!(css < 60_000, "{css}");
    assert!((all * 30 / svgs.len()) + css < 1_000_000, "{all}");
    let embedded: usize = svgs.iter().map(|s| embed(s).len()).sum();
    assert!(embedded * 30 / svgs.len() < 2_000_000, "{embedded}");
    assert_eq!(embed(&embed(&svgs[0])), embed(&svgs[0]));
}

#[test]
fn a_picture_is_as_large_as_asked_for() {
    for (name, mut spec, data) in samples::all().unwrap() {
        (spec.width, spec.height) = (Some(17.5), Some(24.0));
        let svg = draw(&spec, &data).unwrap().svg;
        assert!(svg.contains("width=\"17.5cm\" height=\"24cm\""), "{name}");
        let png = png(&svg, 50.8).unwrap();
        assert_eq!(png[16..24], [0, 0, 1, 94, 0, 0, 1, 224], "{name}");
    }
}
