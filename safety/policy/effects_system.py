"""What commands do to disks, processes, services, packages and accounts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from safety.policy.operands import Given
from safety.policy.programs import program
from safety.policy.scene import Scene
from safety.policy.shell import Command
from safety.policy.values import Effect


@program(
    "mke2fs mkswap wipefs blkdiscard sgdisk sfdisk cfdisk fdisk gdisk parted hdparm badblocks nwipe scrub",
    "a|all n|no-act l|list p|print h L V o= t|types= f|force B|backup I i",
    abbreviates=False,
)
def _disk(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    reads = (
        given.has("list", "print", "no-act")
        or (command.name == "wipefs" and not given.has("all", "o"))
        or (command.name == "parted" and any(word.text == "print" for word in given.operands))
        or (command.name == "hdparm" and given.has("I", "i"))
    )
    for word in given.operands:
        if word.text.startswith("/dev/") and not reads:
            yield Effect("disk.destroy", word.text, "deny")
            return


@program(
    "cryptsetup lvremove vgremove pvremove zpool zfs btrfs mdadm dmsetup diskutil losetup lvreduce lvresize",
    "",
    abbreviates=False,
)
def _volumes(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    words = {word.text.lower() for word in command.words[1:]}
    grave = {
        "luksformat",
        "lukserase",
        "erase",
        "destroy",
        "delete",
        "labelclear",
        "--zero-superblock",
        "remove",
        "remove_all",
        "erasedisk",
        "erasevolume",
        "partitiondisk",
        "reformat",
        "secureerase",
        "zerodisk",
        "rollback",
    }
    if command.name in ("lvremove", "vgremove", "pvremove", "lvreduce") or words & grave:
        yield Effect("disk.destroy", " ".join(word.text for word in command.words), "deny")


def mkfs(command: Command) -> Iterator[Effect]:
    """Every ``mkfs.*``."""
    if command.name == "mkfs" or command.name.startswith(("mkfs.", "newfs")):
        yield Effect("disk.destroy", command.words[-1].text, "deny")


@program("crontab", "l e r i u= T=", abbreviates=False)
def _crontab(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    if given.has("r"):
        yield Effect("system.change", "the user's crontab", "ask", instead="crontab -l > crontab.bak first")
    elif given.operands or (not given.has("l", "e", "T") and (command.stdin is not None or command.piped_from)):
        yield Effect("system.change", "the user's crontab is written anew", "ask", instead="crontab -l > crontab.bak first")


@program("atrm userdel groupdel deluser delgroup usermod passwd chpasswd visudo chsh", "")
def _users(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    yield Effect("system.change", " ".join(word.text for word in command.words[:3]), "ask")


@program("shutdown reboot poweroff halt", "c k")
def _off(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    if not given.has("c", "k"):
        yield Effect("system.change", "the machine stops", "ask")


@program("iptables ip6tables nft ufw firewall-cmd pfctl", "", abbreviates=False)
def _firewall(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    words = {word.text for word in command.words[1:]}
    if words & {"-F", "--flush", "flush", "disable", "reset", "-X", "-D", "delete", "-d"}:
        yield Effect("system.change", "the firewall", "ask")


@program(
    "apt apt-get aptitude dpkg dnf yum zypper pacman apk brew snap flatpak rpm port emerge",
    "s|dry-run simulate just-print y q h",
    abbreviates=False,
)
def _packages(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    words = [word.text for word in given.operands]
    removes = {"remove", "purge", "autoremove", "uninstall", "erase", "del", "rm", "autopurge", "zap"}
    letters = [word.text for word in command.words[1:] if re.match(r"-(?:R|e$|P$|r$|-remove|-purge|-erase)", word.text)]
    if given.has("dry-run", "simulate", "just-print") and command.name.startswith(("apt", "dpkg")):
        return
    if command.name == "brew" and words[:1] == ["services"] and words[1:2] in (["stop"], ["kill"]):
        yield Effect("service.stop", " ".join(words[2:]) or "every service", "ask")
    elif (words and words[0] in removes) or (command.name in ("pacman", "dpkg", "rpm") and letters):
        yield Effect("system.change", f"installed packages: {' '.join(words[1:]) or 'those no longer needed'}", "ask")


@program("kill", "s|signal= l|list L n= 9 15 1 2", abbreviates=False)
def _kill(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    words = [word.text for word in command.words[1:]]
    lists = [other.name for other in scene.parsed.commands if other.name in ("pgrep", "pidof")]
    unsure = any(not word.certain for word in command.words[1:]) or command.appended
    if words[-1:] in (["-1"], ["0"]) and len(words) > 1 or words[-1:] == ["1"]:
        yield Effect("process.kill", "every process of the user", "deny")
    elif unsure and (lists or "ps" in command.piped_from):
        yield Effect("process.kill", "every process of that name", "ask", instead="kill the one process by its id")


@program("pkill killall skill", "f|full u|euid= t= P|parent= x|exact g= signal= s= v|verbose q i o n w e l", abbreviates=False)
def _pkill(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    if command.name == "killall" and given.has("l"):
        return
    name = " ".join(word.text for word in given.operands)
    own = "safety" in name
    signal_0 = any(word.text in ("-0", "--signal=0") for word in command.words)
    if not signal_0:
        yield Effect(
            "self.defense" if own else "process.kill",
            f"every process that matches {name}",
            "ask",
            instead="kill the one process by its id",
        )


@program("fuser", "k|kill m|mount M s= n= v u i", abbreviates=True)
def _fuser(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    if given.has("kill") and given.has("mount", "m", "M", "c"):
        yield Effect("process.kill", "every process that uses the file system", "ask")


@program("systemctl service supervisorctl pm2 launchctl rc-service sv initctl", "", abbreviates=False)
def _services(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    words = [word.text for word in given.operands]
    stops = {
        "stop",
        "disable",
        "mask",
        "kill",
        "isolate",
        "delete",
        "unload",
        "bootout",
        "remove",
        "shutdown",
        "poweroff",
        "reboot",
        "halt",
        "rescue",
        "emergency",
        "down",
        "hibernate",
        "suspend",
    }
    verb = words[1] if command.name in ("service", "rc-service") and len(words) > 1 else (words[0] if words else "")
    if verb in stops:
        yield Effect("service.stop", " ".join(word for word in words if word != verb) or verb, "ask")


@program("trash-empty")
def _trash(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    yield Effect("path.remove", "the trash", "ask")
