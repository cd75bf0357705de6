//! The S3 server of the tests as a program, for scripts: `s3 FOLDER BUCKET` prints the variables of
//! its environment as `NAME=VALUE` lines and an empty line, and serves until its input ends.

use std::io::{self, Read as _, Write as _};
use std::path::Path;

use galeras_test_servers::s3_api::S3Api;

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(folder), Some(bucket)) = (arguments.next(), arguments.next()) else {
        return Err(io::Error::other("give a folder and the name of a bucket"));
    };
    let api = S3Api::start(Path::new(&folder));
    api.bucket(&bucket);
    let mut out = io::stdout();
    for (name, value) in api.env() {
        writeln!(out, "{name}={value}")?;
    }
    writeln!(out)?;
    out.flush()?;
    io::stdin().read_to_end(&mut Vec::new()).map(|_| ())
}
