//! The handshake on one connection, in the eras of a plan.

use mcp_host_model::Era;

use crate::error::ConnectError;
use crate::session::handshake::discover::ProbeOutcome;
use crate::session::handshake::failure::HandshakeFailure;
use crate::session::handshake::request::HandshakeConnection;
use crate::session::handshake::silence::{
    PROBE_GRACE, PROBE_SILENCE, known_modern_probe_timeout, wait_for_silence,
};
use crate::session::negotiated::NegotiatedSession;
use crate::session::negotiated::era_reason::EraReason;
use crate::session::options::Eras;
use crate::transport::HandshakeMode;

/// The eras to try, and the era that the server spoke last time.
#[derive(Clone, Copy)]
pub(super) struct EraPlan {
    pub(super) eras: Eras,
    pub(super) known_era: Option<Era>,
    /// Why only the legacy era is tried.
    pub(super) legacy_reason: EraReason,
    /// Whether a server that was not available for the probe is connected again.
    pub(super) may_probe_again: bool,
}

impl EraPlan {
    /// Both eras, for a server of which nothing is known.
    pub(super) const ANY: EraPlan = EraPlan {
        eras: Eras::Both,
        known_era: None,
        legacy_reason: EraReason::Configured,
        may_probe_again: true,
    };

    /// Whether the server may be of either era and spoke this one last time.
    pub(super) fn is_known(self, era: Era) -> bool {
        self.eras == Eras::Both && self.known_era == Some(era)
    }
}

impl HandshakeConnection<'_> {
    /// Performs the handshake on a connection, in the eras of `plan`. A known legacy server gets `initialize` first; a
    /// known modern server has more time to answer the probe.
    pub(super) async fn negotiate(self, plan: EraPlan) -> Result<NegotiatedSession, HandshakeFailure> {
        match plan.eras {
            Eras::Legacy => Ok(self.initialize().await?.with_era_reason(plan.legacy_reason)),
            Eras::Modern => match self.discover().await {
                ProbeOutcome::Modern(negotiated) => Ok(negotiated),
                ProbeOutcome::Legacy(failure) | ProbeOutcome::Failed(failure) => Err(failure),
            },
            Eras::Both if plan.is_known(Era::Legacy) => match self.initialize().await {
                // The server was probably replaced or updated since.
                Err(HandshakeFailure::Rejected(_) | HandshakeFailure::Other(_)) => self.probe(plan).await,
                outcome => Ok(outcome?.with_era_reason(EraReason::Known)),
            },
            Eras::Both => self.probe(plan).await,
        }
    }

    /// Performs a handshake in either era, or `initialize` alone for a dial that resumes a session. For a connection
    /// that only tests whether the server speaks a transport.
    pub(crate) async fn negotiate_any(self) -> Result<NegotiatedSession, HandshakeFailure> {
        match self.dial.handshake_mode() {
            HandshakeMode::Negotiate => self.negotiate(EraPlan::ANY).await,
            HandshakeMode::Resume => self.initialize().await,
        }
    }

    /// Sends `server/discover`, and `initialize` after an error or after a silence.
    async fn probe(self, plan: EraPlan) -> Result<NegotiatedSession, HandshakeFailure> {
        let silence_timeout = if plan.is_known(Era::Modern) {
            known_modern_probe_timeout(self.options.limits.startup)
        } else {
            PROBE_SILENCE
        };
        let mut discover = std::pin::pin!(self.discover());
        let first = tokio::select! {
            probe = &mut discover => Some(probe),
            () = wait_for_silence(self.dial, silence_timeout) => None,
        };
        match first {
            Some(ProbeOutcome::Modern(negotiated)) => return Ok(negotiated),
            Some(ProbeOutcome::Failed(failure)) => return Err(failure),
            Some(ProbeOutcome::Legacy(failure)) => {
                let legacy = self.initialize().await?;
                let legacy = legacy.with_era_reason(failure.era_reason());
                return if plan.may_probe_again && is_unavailable(&failure) {
                    Err(HandshakeFailure::Restart { eras: Eras::Both, legacy: Box::new(legacy) })
                } else {
                    Ok(legacy)
                };
            }
            None => {}
        }
        // Both requests are now pending.
        let restart =
            |legacy| Err(HandshakeFailure::Restart { eras: Eras::Modern, legacy: Box::new(legacy) });
        let mut initialize = std::pin::pin!(self.initialize());
        tokio::select! {
            biased;
            outcome = &mut initialize => match outcome {
                // The server runs now: if it knows the probe, its answer follows at once.
                Ok(legacy) => match tokio::time::timeout(PROBE_GRACE, discover).await {
                    Ok(ProbeOutcome::Modern(_)) => restart(legacy),
                    Ok(ProbeOutcome::Legacy(failure) | ProbeOutcome::Failed(failure)) => {
                        Ok(legacy.with_era_reason(failure.era_reason()))
                    }
                    Err(_) => Ok(legacy.with_era_reason(EraReason::ProbeIgnored)),
                },
                // A server that does not know `initialize` may still answer the probe.
                Err(failure) => tokio::select! {
                    probe = discover => match probe {
                        ProbeOutcome::Modern(negotiated) => Ok(negotiated),
                        ProbeOutcome::Legacy(_) | ProbeOutcome::Failed(_) => Err(failure),
                    },
                    () = wait_for_silence(self.dial, PROBE_SILENCE) => Err(failure),
                },
            },
            probe = &mut discover => match probe {
                ProbeOutcome::Modern(negotiated) => match tokio::time::timeout(PROBE_SILENCE, initialize).await {
                    Ok(Ok(legacy)) => restart(legacy),
                    Ok(Err(_)) | Err(_) => Ok(negotiated),
                },
                ProbeOutcome::Legacy(failure) | ProbeOutcome::Failed(failure) => {
                    Ok(initialize.await?.with_era_reason(failure.era_reason()))
                }
            },
        }
    }
}

/// Whether the probe failed because the server, or a gateway in front of it, was temporarily not available. Such a
/// failure says nothing about the server's era.
fn is_unavailable(failure: &HandshakeFailure) -> bool {
    match failure {
        HandshakeFailure::Other(ConnectError::Refused(error)) => {
            matches!(error.status(), Some(429 | 502..=504)) && error.rpc_error().is_none()
        }
        HandshakeFailure::Other(_)
        | HandshakeFailure::Rejected(_)
        | HandshakeFailure::Ended(_)
        | HandshakeFailure::Restart { .. } => false,
    }
}
