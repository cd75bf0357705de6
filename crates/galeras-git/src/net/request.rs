//! One request for objects, and the pack that answers it.
//!
//! What is sent and how the answer is read and verified.
//!
//! `gix_protocol::fetch()` is not used because it always asks for thin packs in protocol 2, which
//! need objects that a partial repository may not have.

use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use gix::ObjectId;
use gix_pack::bundle::write::{Options, Outcome};
use gix_protocol::Command;
use gix_protocol::fetch::{Arguments, Response};
use gix_transport::Protocol;
use gix_transport::client::blocking_io::{ExtendedBufRead, TransportV2Ext};

use super::explain::{at, cut, explain, explain_gix, of_server};
use super::link::{Link, agent};
use super::meter::Meter;
use super::wire::Wire;
use crate::error::{GitError, GitErrorKind};
use crate::limits::{ADVERTISED_BYTES, PACK_MEMORY};

/// How much is read after an error, to hear what the server says about it (bytes).
const DRAIN: u64 = 4 << 20;

/// Features of older protocols that are used if the server has them. Thin packs are not.
const FEATURES: [&str; 5] =
    ["multi_ack_detailed", "side-band-64k", "side-band", "ofs-delta", "filter"];

type Reader<'a> = Box<dyn ExtendedBufRead<'a> + Unpin + 'a>;

/// What to ask for.
pub(super) struct Request<'a> {
    pub(super) wants: &'a [ObjectId],
    pub(super) haves: &'a [ObjectId],
    pub(super) filter: Option<&'a str>,
}

impl Request<'_> {
    /// Sends the request over `link` and writes the pack and its index into `folder`.
    ///
    /// # Errors
    /// Those of the network and the server; `Damaged` if the pack is not right.
    pub(super) fn run(
        &self,
        link: &mut Link,
        url: &str,
        wire: &Arc<Wire>,
        folder: &Path,
    ) -> Result<Outcome, GitError> {
        wire.attempt();
        wire.check()?;
        wire.allow(ADVERTISED_BYTES);
        let version = link.version();
        let mut reader = self.send(link, url, wire)?;
        if version == Protocol::V2 {
            reader.reset(Protocol::V2);
            // Over HTTP, gix takes the line of an error for an unknown part of the answer.
            if let Some(Ok(Ok(line))) = reader.peek_data_line()
                && line.starts_with(b"ERR ")
            {
                return Err(at(url, of_server(&String::from_utf8_lossy(line))));
            }
        }
        let response = Response::from_line_reader(version, &mut reader, true, false)
            .map_err(|error| explain_gix(wire, url, &error))?;
        if !response.shallow_updates().is_empty() {
            let message = "it is a shallow clone itself, so a part of its history is missing";
            return Err(at(url, GitError::other(message)));
        }
        if !response.has_pack() {
            return Err(explain(wire, url, io::Error::from(io::ErrorKind::UnexpectedEof)));
        }
        wire.allow(u64::MAX);
        receive(reader, url, wire, folder)
    }

    fn send<'a>(&self, link: &'a mut Link, url: &str, wire: &Wire) -> Result<Reader<'a>, GitError> {
        let version = link.version();
        let mut features = Command::Fetch.default_features(version, &link.handshake.capabilities);
        let reader = match version {
            Protocol::V2 => {
                features.push(agent());
                let features = features.into_iter().filter(|(_, value)| value.is_some());
                let lines = |word: &str, ids: &[ObjectId]| -> Vec<_> {
                    ids.iter().map(|id| format!("{word} {id}").into()).collect()
                };
                let mut arguments = vec!["ofs-delta".into()];
                arguments.extend(self.filter.map(|filter| format!("filter {filter}").into()));
                arguments.extend(lines("want", self.wants));
                arguments.extend(lines("have", self.haves));
                arguments.push("done".into());
                let arguments = Some(arguments.into_iter());
                link.transport.invoke(Command::Fetch.as_str(), features, arguments, false)
            }
            Protocol::V0 | Protocol::V1 => {
                features.retain(|(name, _)| FEATURES.contains(name));
                Response::check_required_features(version, &features)
                    .map_err(|error| explain_gix(wire, url, &error))?;
                features.push(agent());
                let mut arguments = Arguments::new(version, features, false);
                if let Some(filter) = self.filter {
                    if !arguments.can_use_filter() {
                        let message = "the server does not send parts of a repository";
                        return Err(at(url, GitError::other(message)));
                    }
                    arguments.filter(filter);
                }
                self.wants.iter().for_each(|id| arguments.want(id));
                self.haves.iter().for_each(|id| arguments.have(id));
                arguments.send(&mut link.transport, true)
            }
        };
        reader.map_err(|error| explain(wire, url, error))
    }
}

fn receive(
    mut reader: Reader<'_>,
    url: &str,
    wire: &Arc<Wire>,
    folder: &Path,
) -> Result<Outcome, GitError> {
    let told = Arc::clone(wire);
    reader.set_progress_handler(Some(Box::new(move |is_error, text: &[u8]| {
        if is_error {
            told.say(text);
        } else {
            told.doing(text);
        }
        if told.interrupted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })));
    let options = Options {
        index_version: gix_pack::index::Version::V2,
        alloc_limit_bytes: Some(PACK_MEMORY),
        ..Options::default()
    };
    let written = gix_pack::Bundle::write_to_directory(
        &mut reader,
        Some(folder),
        &mut Meter::new(Arc::clone(wire)),
        wire.interrupt(),
        // Nothing is looked up: a pack that needs objects from elsewhere is refused.
        None::<gix::objs::find::Never>,
        gix::hash::Kind::Sha1,
        options,
    );
    // What follows the pack: the end of the message, or the server's words about an error.
    let drain = if wire.interrupted() { 0 } else { DRAIN };
    let rest = io::copy(&mut reader.by_ref().take(drain), &mut io::sink());
    let complete = rest.is_ok() && reader.stopped_at().is_some();
    drop(reader);
    match written {
        Ok(outcome) if complete => Ok(outcome),
        // The pack is whole. That the connection cannot be used again is for the next request.
        Ok(outcome) if !wire.interrupted() => Ok(outcome),
        Ok(_) => Err(GitError::interrupted()),
        Err(error) => {
            let explained = explain_gix(wire, url, &error);
            let damaged = complete && explained.kind == GitErrorKind::Transient;
            if damaged {
                let message = format!("its pack is damaged ({})", error.probable_cause());
                return Err(at(url, GitError::new(GitErrorKind::Damaged, message)));
            }
            let unclear = !complete && explained.kind == GitErrorKind::Damaged;
            Err(if unclear && wire.has_ended() { at(url, cut()) } else { explained })
        }
    }
}
