//! Shaking hands with a server of git's older protocols, which say among their capabilities what a
//! symbolic reference points to (`symref=HEAD:refs/heads/main`).
//!
//! gix-protocol panics if such a reference is not among those that follow. So it is not told of
//! them: they are taken out of the capabilities, and put into the references afterwards.

use std::any::Any;
use std::borrow::Cow;

use gix::bstr::{BStr, BString, ByteSlice};
use gix_protocol::Handshake;
use gix_protocol::handshake::Ref;
use gix_transport::client::blocking_io::{RequestWriter, SetServiceResponse, Transport};
use gix_transport::client::capabilities::Capability;
use gix_transport::client::{Capabilities, Error, MessageKind, TransportWithoutIO, WriteMode};
use gix_transport::{Protocol, Service};

use super::meter::Meter;

/// Asks for `git-upload-pack`, as nobody in particular.
///
/// # Errors
/// Those of the transport, and of what the server says.
pub(super) fn handshake(
    transport: &mut (dyn Transport + Send),
    meter: &mut Meter,
) -> gix::error::Result<Handshake> {
    let mut told = Told { transport, symrefs: Vec::new() };
    let nobody = |_| Ok(None);
    let mut shaken =
        gix_protocol::handshake(&mut told, Service::UploadPack, nobody, Vec::new(), meter)?;
    let symrefs = told.symrefs;
    for reference in shaken.refs.iter_mut().flatten() {
        let Ref::Direct { full_ref_name, object } = reference else { continue };
        let symref = symrefs.iter().find(|symref| symref.name == *full_ref_name);
        if let Some(symref) = symref {
            *reference = Ref::Symbolic {
                full_ref_name: std::mem::take(full_ref_name),
                target: symref.target.clone(),
                tag: None,
                object: *object,
            };
        }
    }
    Ok(shaken)
}

/// A symbolic reference and what it points to.
#[derive(Debug, PartialEq, Eq)]
struct Symref {
    name: BString,
    target: BString,
}

impl Symref {
    /// What a capability says, if it can be understood; what cannot is left to gix-protocol, which
    /// refuses it.
    fn of(capability: &Capability<'_>) -> Option<Self> {
        let value = capability.value().filter(|_| capability.name() == "symref")?;
        let (name, target) = value.split_at_checked(value.find_byte(b':')?)?;
        let target = target.get(1..).filter(|_| !name.is_empty())?;
        Some(Self { name: name.into(), target: target.into() })
    }
}

/// The capabilities without symbolic references, and those.
fn parted(capabilities: &Capabilities) -> (Option<Capabilities>, Vec<Symref>) {
    // What stands before a zero byte is the name of the first reference.
    let (mut rest, mut symrefs) = (b"\0".to_vec(), Vec::new());
    for capability in capabilities.iter() {
        if let Some(symref) = Symref::of(&capability) {
            symrefs.push(symref);
            continue;
        }
        rest.extend_from_slice(capability.name());
        if let Some(value) = capability.value() {
            rest.push(b'=');
            rest.extend_from_slice(value);
        }
        rest.push(b' ');
    }
    if rest.len() == 1 {
        rest.push(b' ');
    }
    // A target `(null)` is out of sight: the reference is as if it were none.
    symrefs.retain(|symref| symref.target != "(null)");
    (Capabilities::from_bytes(&rest).ok().map(|(capabilities, _)| capabilities), symrefs)
}

/// A transport whose handshake tells of no symbolic references.
struct Told<'a> {
    transport: &'a mut (dyn Transport + Send),
    symrefs: Vec<Symref>,
}

impl TransportWithoutIO for Told<'_> {
    fn to_url(&self) -> Cow<'_, BStr> {
        self.transport.to_url()
    }

    fn supported_protocol_versions(&self) -> &[Protocol] {
        self.transport.supported_protocol_versions()
    }

    fn connection_persists_across_multiple_requests(&self) -> bool {
        self.transport.connection_persists_across_multiple_requests()
    }

    fn configure(&mut self, config: &dyn Any) -> gix::error::Result {
        self.transport.configure(config)
    }
}

impl Transport for Told<'_> {
    fn handshake<'a>(
        &mut self,
        service: Service,
        extra_parameters: &'a [(&'a str, Option<&'a str>)],
    ) -> Result<SetServiceResponse<'_>, Error> {
        let mut response = self.transport.handshake(service, extra_parameters)?;
        // Only servers of the older protocols send references at once.
        if response.refs.is_some() {
            let (rest, symrefs) = parted(&response.capabilities);
            if let Some(rest) = rest {
                response.capabilities = rest;
                self.symrefs = symrefs;
            }
        }
        Ok(response)
    }

    fn request(
        &mut self,
        write_mode: WriteMode,
        on_into_read: MessageKind,
        trace: bool,
    ) -> Result<RequestWriter<'_>, Error> {
        self.transport.request(write_mode, on_into_read, trace)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn symbolic_references_are_told_apart_from_other_capabilities() {
        let all =
            b"\0multi_ack symref=HEAD:refs/heads/main symref=bad symref=x:(null) agent=git/2=1";
        let (capabilities, _) = Capabilities::from_bytes(all).unwrap();
        let (rest, symrefs) = parted(&capabilities);
        let head = Symref { name: "HEAD".into(), target: "refs/heads/main".into() };
        assert_eq!(symrefs, [head]);
        let rest = rest.unwrap();
        assert!(rest.contains("multi_ack"));
        assert_eq!(rest.capability("agent").unwrap().value().unwrap(), "git/2=1");
        assert_eq!(rest.capability("symref").unwrap().value().unwrap(), "bad");
        let (alone, _) = Capabilities::from_bytes(b"\0symref=HEAD:refs/heads/main").unwrap();
        assert!(!parted(&alone).0.unwrap().contains("symref"));
    }
}
