//! The room: its members, its plan and its connection.

use potluck_panel::{Connection, LoadPhase, MemberStatus, MemberView, PlanStatus};

table! {
    /// A text for each [`LoadPhase`].
    PhaseTexts {
        /// What it has and lacks is found out.
        find = "Finding the parts";
        /// Bytes come.
        download = "Downloading";
        /// Bytes are compared with their hashes.
        check = "Checking";
        /// Bytes go to the GPU.
        upload = "Moving to the GPU";
        /// Kernels are compiled.
        kernels = "Preparing kernels";
        /// Kernels are tested.
        self_test = "Testing kernels";
        /// Done.
        ready = "Ready";
    }
}

table! {
    /// A step for each [`LoadPhase`].
    StepTexts {
        /// What it has and lacks is found out.
        find = "find";
        /// Bytes come.
        download = "download";
        /// Bytes are compared with their hashes.
        check = "check";
        /// Bytes go to the GPU.
        upload = "upload";
        /// Kernels are compiled.
        kernels = "prepare kernels";
        /// Kernels are tested.
        self_test = "self-test";
        /// Done.
        ready = "ready";
    }
}

table! {
    /// A text for each [`MemberStatus`].
    MemberTexts {
        /// It has asked the host.
        asking = "wants to join";
        /// It only chats.
        guest = "guest";
        /// It loads its part.
        loading = "loading";
        /// It works.
        ready = "ready";
        /// It has no work.
        spare = "spare";
        /// It cannot take part.
        failed = "failed";
        /// Nothing was heard of it lately.
        silent = "no answer";
        /// It is fine, but browsers slow hidden tabs down.
        hidden = "tab hidden, slower";
    }
}

table! {
    /// A text for each combination of roles.
    RoleTexts {
        /// Both.
        host_and_worker = "host, lends its GPU";
        /// Only the host.
        host = "host";
        /// Only a worker.
        worker = "lends its GPU";
        /// Neither.
        guest = "guest";
    }
}

table! {
    /// A text for each [`PlanStatus`], and for a room without a plan.
    PlanTexts {
        /// Ready to answer.
        up = "ready";
        /// The switch to a new plan is under way.
        committing = "almost ready";
        /// Devices load; nothing is known of how far.
        preparing = "loading";
        /// Devices load.
        preparing_share(percent: Number) = "loading { $percent }%";
        /// Too little memory is lent.
        short_of_memory = "waiting for more memory";
        /// No plan yet, nothing missing.
        waiting = "getting ready";
        /// This host opens its model.
        opening_model = "opening the model";
        /// The model could not be opened.
        no_model = "no model";
        /// This guest has not seen the room yet.
        joining = "joining";
    }
}

table! {
    /// A text for each [`Connection`] that keeps a tab out of the room.
    ConnectionTexts {
        /// Dialling.
        connecting = "connecting";
        /// Lost.
        reconnecting(attempt: Number) = "reconnecting, attempt { $attempt }";
        /// The host is asked.
        waiting_for_host = "waiting for the host";
        /// It ended.
        closed = "closed";
        /// The heading of a room that is closed to this tab.
        closed_heading = "You are not in this room";
        /// The button.
        try_again = "Try again";
        /// The button.
        go_to_front = "Go to the front page";
        /// The heading while it is lost.
        lost = "The connection to the relay is lost";
        /// What happens then.
        trying(attempt: Number) = "Reconnecting (attempt { $attempt }). Any answer in progress continues once the connection is back.";
        /// Requests reach the relay and sockets do not.
        sockets_refused(attempt: Number) = "cannot connect, attempt { $attempt }";
        /// The heading then.
        sockets_refused_heading = "This browser can load the page, but cannot open a live connection (WebSocket) to the relay";
        /// Why that can be.
        sockets_refused_why = "iPhones and iPads do this until the relay's certificate is installed. Elsewhere, an extension or a proxy may be the cause.";
        /// The link to the page that helps.
        install_certificate = "Install the certificate";
    }
}

impl PhaseTexts {
    /// The text of a phase.
    #[must_use]
    pub const fn of(&self, phase: LoadPhase) -> &'static str {
        match phase {
            LoadPhase::Find => self.find,
            LoadPhase::Download => self.download,
            LoadPhase::Check => self.check,
            LoadPhase::Upload => self.upload,
            LoadPhase::Kernels => self.kernels,
            LoadPhase::SelfTest => self.self_test,
            LoadPhase::Ready => self.ready,
        }
    }
}

impl StepTexts {
    /// The step of a phase.
    #[must_use]
    pub const fn of(&self, phase: LoadPhase) -> &'static str {
        match phase {
            LoadPhase::Find => self.find,
            LoadPhase::Download => self.download,
            LoadPhase::Check => self.check,
            LoadPhase::Upload => self.upload,
            LoadPhase::Kernels => self.kernels,
            LoadPhase::SelfTest => self.self_test,
            LoadPhase::Ready => self.ready,
        }
    }
}

impl MemberTexts {
    /// One or two words. A hidden tab is named unless something worse is.
    #[must_use]
    pub const fn of(&self, status: MemberStatus, hidden: bool) -> &'static str {
        match status {
            MemberStatus::Asking => self.asking,
            MemberStatus::Failed => self.failed,
            MemberStatus::Silent => self.silent,
            _ if hidden => self.hidden,
            MemberStatus::Guest => self.guest,
            MemberStatus::Loading => self.loading,
            MemberStatus::Ready => self.ready,
            MemberStatus::Spare => self.spare,
        }
    }
}

impl RoleTexts {
    /// The text of a member's roles.
    #[must_use]
    pub const fn of(&self, member: &MemberView) -> &'static str {
        match (member.coordinator, member.lent.is_some()) {
            (true, true) => self.host_and_worker,
            (true, false) => self.host,
            (false, true) => self.worker,
            (false, false) => self.guest,
        }
    }
}

impl PlanTexts {
    /// How far a plan is. `short`: memory is missing; `percent` of what the devices load.
    #[must_use]
    pub fn of(&self, status: PlanStatus, short: bool, percent: Option<u64>) -> String {
        match (status, percent) {
            (PlanStatus::Up, _) => self.up.to_owned(),
            (PlanStatus::Committing, _) => self.committing.to_owned(),
            (PlanStatus::Preparing, Some(percent)) => self.preparing_share(percent),
            (PlanStatus::Preparing, None) => self.preparing.to_owned(),
            (PlanStatus::Waiting, _) if short => self.short_of_memory.to_owned(),
            (PlanStatus::Waiting, _) => self.waiting.to_owned(),
            (PlanStatus::Failed, _) => self.no_model.to_owned(),
        }
    }
}

impl ConnectionTexts {
    /// What keeps a tab out of the room; nothing if nothing does.
    #[must_use]
    pub fn of(&self, connection: &Connection) -> Option<String> {
        match connection {
            Connection::Connecting => Some(self.connecting.to_owned()),
            Connection::Reconnecting { attempt, .. } => Some(self.reconnecting(attempt)),
            Connection::SocketsRefused { attempt } => Some(self.sockets_refused(attempt)),
            Connection::WaitingForHost => Some(self.waiting_for_host.to_owned()),
            Connection::Closed { .. } => Some(self.closed.to_owned()),
            Connection::Idle | Connection::Connected => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::texts;

    #[test]
    fn a_hidden_tab_is_named_unless_something_worse_is() {
        assert_eq!(texts().member.of(MemberStatus::Ready, true), "tab hidden, slower");
        assert_eq!(texts().member.of(MemberStatus::Failed, true), "failed");
    }

    #[test]
    fn loading_names_its_share_once_it_is_known() {
        assert_eq!(texts().plan.of(PlanStatus::Preparing, false, Some(41)), "loading 41%");
        assert_eq!(texts().plan.of(PlanStatus::Preparing, false, None), "loading");
        assert_eq!(texts().plan.of(PlanStatus::Waiting, true, None), "waiting for more memory");
    }
}
