//! The folders of the operating system that every program needs, and the sockets of its services.

pub(super) const READABLE: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/proc",
    "/sys",
    "/nix",
    "/gnu",
    "/snap",
    "/run/current-system",
    "/run/opengl-driver",
    // The targets of /etc/resolv.conf.
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/run/NetworkManager",
    "/mnt/wsl/resolv.conf",
    "/home/linuxbrew",
    "/var/lib/dpkg",
    "/var/lib/gems",
    "/var/cache/fontconfig",
];

pub(super) const ETC: &str = "/etc";

/// Devices for programs; no disks, no memory, no cameras. Not `/dev/pts` with the person's terminals: a
/// session's own are opened for it.
pub(super) const DEVICES: &[&str] =
    &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx"];

pub(super) const SHARED_MEMORY: &str = "/dev/shm";

/// Sockets of services that would act for a session outside its confinement. `{uid}` is the user's number.
pub(super) const SERVICES: &[(&str, &str)] = &[
    ("tmux", "/tmp/tmux-{uid}/default"),
    ("systemd --user", "/run/user/{uid}/systemd/private"),
    ("D-Bus of the session", "/run/user/{uid}/bus"),
    ("D-Bus of the system", "/run/dbus/system_bus_socket"),
    ("gpg-agent", "/run/user/{uid}/gnupg/S.gpg-agent"),
    ("X11", "/tmp/.X11-unix/X0"),
];

/// The same for services that start containers.
pub(super) const CONTAINERS: &[(&str, &str)] = &[
    ("docker", "/run/docker.sock"),
    ("docker of the user", "/run/user/{uid}/docker.sock"),
    ("podman", "/run/podman/podman.sock"),
    ("podman of the user", "/run/user/{uid}/podman/podman.sock"),
    ("containerd", "/run/containerd/containerd.sock"),
];

/// Sockets that only answer questions about users.
pub(super) const USER_SERVICES: &[&str] = &["/var/lib/sss/pipes/nss", "/run/systemd/userdb"];

/// Sockets that answer questions about hosts. With a name, data can leave the machine.
pub(super) const HOST_SERVICES: &[&str] = &["/run/nscd/socket", "/run/systemd/resolve/io.systemd.Resolve"];

pub(super) const PLAIN_DEVICES: &[&str] =
    &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// The folders for temporary files and shared memory, which a room has for itself.
pub(super) const OWN_FOLDERS: [&str; 2] = ["/tmp", "/dev/shm"];
