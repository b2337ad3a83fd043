#!/bin/sh
# Run by mmdebstrap on the building host: $1 is the new root file system.
set -eu
root=$1
in_root() { chroot "$root" "$@"; }

cp -rT --no-preserve=mode,ownership "$FAIRTRIAL_FILES" "$root"
chmod 0755 "$root/usr/lib/fairtrial/conmon"

in_root useradd --uid 1000 --user-group --create-home --home-dir /var/lib/runner --shell /bin/sh runner
in_root useradd --system --user-group --no-create-home --shell /usr/sbin/nologin egress
echo runner:100000:65536 > "$root/etc/subuid"
echo runner:100000:65536 > "$root/etc/subgid"
mkdir -p "$root/var/lib/systemd/linger" "$root/scratch" "$root/var/lib/fairtrial/images"
touch "$root/var/lib/systemd/linger/runner"
mkdir -p "$root/var/lib/runner/.config/containers"
cp "$root/etc/containers/storage.conf" "$root/var/lib/runner/.config/containers/storage.conf"
in_root chown -R runner:runner /var/lib/runner

# Names in the guest: none but its own.
echo fairtrial > "$root/etc/hostname"
echo '127.0.0.1 localhost fairtrial' > "$root/etc/hosts"
rm -f "$root/etc/resolv.conf"; : > "$root/etc/resolv.conf"
sed -i 's/^hosts:.*/hosts: files/' "$root/etc/nsswitch.conf"

# One host key, made now and pinned by the controller; the moduli are never used.
rm -f "$root"/etc/ssh/ssh_host_* "$root/etc/ssh/moduli"
in_root ssh-keygen -q -t ed25519 -N '' -C '' -f /etc/ssh/ssh_host_ed25519_key
in_root usermod --password '*' root  # no password, yet not locked: sshd refuses locked accounts

in_root systemctl --quiet mask timers.target getty.target console-getty.service getty@.service serial-getty@.service \
  ssh.service ssh.socket podman.service podman.socket podman-auto-update.service podman-restart.service \
  systemd-udevd.service systemd-udevd-control.socket systemd-udevd-kernel.socket systemd-udev-trigger.service \
  systemd-udev-settle.service systemd-timesyncd.service systemd-random-seed.service systemd-pstore.service \
  systemd-update-utmp.service systemd-update-utmp-runlevel.service systemd-machine-id-commit.service e2scrub_reap.service \
  networking.service systemd-firstboot.service systemd-ask-password-wall.path systemd-ask-password-console.path \
  systemd-journal-flush.service systemd-binfmt.service proc-sys-fs-binfmt_misc.automount dev-hugepages.mount \
  modprobe@.service kmod-static-nodes.service systemd-sysusers.service \
  sys-kernel-debug.mount sys-kernel-tracing.mount sys-kernel-config.mount sys-fs-fuse-connections.mount systemd-remount-fs.service \
  systemd-user-sessions.service systemd-logind-varlink.socket systemd-boot-update.service ldconfig.service \
  nftables.service rc-local.service getty-static.service cryptdisks.service
in_root systemctl --quiet --global mask podman.socket podman.service podman-auto-update.timer podman-restart.service dirmngr.socket \
  gpg-agent.socket gpg-agent-ssh.socket gpg-agent-extra.socket gpg-agent-browser.socket ssh-agent.service
in_root systemctl --quiet enable fairtrial-ssh.service fairtrial-network.service fairtrial-disks.service fairtrial-egress.socket
in_root systemctl --quiet --global enable fairtrial-engine.service
in_root systemctl --quiet set-default multi-user.target

echo 5f1d7a5c0fa14c7fa2a75d3bb5a3c5a1 > "$root/etc/machine-id"
rm -f "$root"/etc/apt/apt.conf.d/99mmdebstrap "$root"/etc/apt/sources.list.d/* "$root"/etc/apt/sources.list
rm -rf "$root"/usr/share/doc/* "$root"/usr/share/man/* "$root"/usr/share/locale/* "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* \
  "$root"/var/log/*.log "$root"/boot/initrd.img* "$root"/boot/System.map*
