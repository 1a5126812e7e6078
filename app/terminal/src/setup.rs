//! How a node in this process is set up.

use std::path::Path;
use std::time::Duration;

use potluck_node::native::{Network, platform, random};
use potluck_node::node::NodeOptions;
use potluck_node::platform::Platform;
use potluck_panel::KeySeed;
use potluck_plan::Arithmetic;
use potluck_trust::IdentityKeys;

use crate::failure::Failure;
use crate::options::{Contribution, DEFAULT_TIMEOUT, DeviceOptions, GuessArguments, NetworkOptions};
use crate::secret_file::device_key;
use crate::signals::Stop;

/// The relay's origin where there is no network.
pub const NO_RELAY: &str = "http://localhost";
/// How long waiting goes on without progress, unless told otherwise.
const PATIENCE: Duration = Duration::from_secs(DEFAULT_TIMEOUT);

/// A node before it starts. Who measures or tests changes what the command line cannot.
pub struct Setup {
    /// The relay's origin.
    pub relay: String,
    /// The name that others see.
    pub name: String,
    /// By which rooms know this device again; without one nobody knows it.
    pub device_key: Option<KeySeed>,
    /// What the node needs of the world.
    pub platform: Platform,
    /// The node's own options.
    pub node: NodeOptions,
    /// How long waiting goes on without progress.
    pub patience: Duration,
    /// Who may stop the program.
    pub stop: Stop,
}

impl Setup {
    /// A device that nobody knows, with this folder for downloaded weights.
    pub fn in_folder(network: &Network, cache: &Path) -> Self {
        Self {
            relay: network.relay.clone(),
            name: NetworkOptions::DEFAULT_NAME.to_owned(),
            device_key: None,
            platform: platform(cache.to_path_buf(), network),
            node: NodeOptions::default(),
            patience: PATIENCE,
            stop: Stop::never(),
        }
    }

    /// A device that nobody knows.
    ///
    /// # Errors
    /// There is no folder for what it downloads.
    pub fn new(network: &Network, device: &DeviceOptions) -> Result<Self, Failure> {
        let node = NodeOptions { gpu: device.gpu(), ..NodeOptions::default() };
        let patience = Duration::from_secs(device.timeout);
        Ok(Self { node, patience, ..Self::in_folder(network, &device.cache_folder()?) })
    }

    /// A device that nobody knows, without a room.
    ///
    /// # Errors
    /// There is no folder for what it downloads.
    pub(crate) fn alone(network: &Network, device: &DeviceOptions, arithmetic: Arithmetic) -> Result<Self, Failure> {
        let mut setup = Self::new(network, device)?;
        setup.node.gpu.matrix_units = arithmetic == Arithmetic::Matrix;
        Ok(setup)
    }

    /// The device that earlier runs with this cache folder were.
    ///
    /// # Errors
    /// The file with the device's key cannot be read or written.
    pub fn of_this_device(network: &NetworkOptions, relay: &str, device: &DeviceOptions) -> Result<Self, Failure> {
        let fresh = KeySeed(*IdentityKeys::generate(random).device);
        let key = device_key(&device.cache_folder()?, fresh).map_err(Failure::Failed)?;
        let setup = Self::new(&network.network(relay), device)?;
        Ok(Self { name: network.name.clone(), device_key: Some(key), ..setup })
    }

    /// Who may stop the program.
    #[must_use]
    pub(crate) fn stopped_by(self, stop: &Stop) -> Self {
        Self { stop: stop.clone(), ..self }
    }

    /// Sets who guesses experts, and which one makes room.
    pub(crate) fn guess(&mut self, guesses: &GuessArguments, contribution: &Contribution) {
        self.node.guesses = guesses.guesses();
        self.node.guesses.eviction = contribution.eviction;
        self.node.hints = guesses.hints();
    }
}
