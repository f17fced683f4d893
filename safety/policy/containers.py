"""Which commands of container and cluster tools run a command elsewhere, and where it starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Inside(NamedTuple):
    """``operands``: how many words (container, image, pod) stand before the command. ``dashes``: it stands behind ``--`` if there is
    one. ``text``: its words are joined and read by a shell."""

    values: str = ""
    longs: str = ""
    operands: int = 1
    dashes: bool = False
    text: bool = False


_EXEC = Inside("ewu", "--env --env-file --user --workdir --detach-keys --index")
_RUN = Inside(
    "aceghlmpuvw",
    "--add-host --annotation --attach --blkio-weight --cap-add --cap-drop --cgroup-parent --cidfile --cpus --cpuset-cpus --cpu-shares "
    "--device --dns --entrypoint --env --env-file --expose --gpus --group-add --health-cmd --hostname --init-path --ip --ipc --isolation "
    "--label --label-file --link --log-driver --log-opt --mac-address --memory --memory-swap --mount --name --net --network "
    "--network-alias --pid --platform --publish --pull --restart --runtime --security-opt --shm-size --stop-signal --stop-timeout "
    "--storage-opt --sysctl --tmpfs --ulimit --user --userns --uts --volume --volume-driver --volumes-from --workdir",
)
_DOCKER = (
    (("compose", "exec"), _EXEC), (("compose", "run"), _RUN), (("container", "exec"), _EXEC), (("container", "run"), _RUN),
    (("exec",), _EXEC), (("run",), _RUN),
)  # fmt: skip
_KUBECTL = (
    (("exec",), Inside("cnf", "--container --namespace --context --kubeconfig", 1, True)),
    (("run",), Inside("nl", "--image --namespace --context --kubeconfig --restart --env --labels", 1, True)),
    (("debug",), Inside("ncf", "--image --namespace --target", 1, True)),
)
CONTAINERS: Mapping[str, tuple[tuple[tuple[str, ...], Inside], ...]] = {
    **dict.fromkeys(("docker", "podman", "nerdctl", "finch"), _DOCKER),
    **dict.fromkeys(("docker-compose", "podman-compose"), ((("exec",), _EXEC), (("run",), _RUN))),
    **dict.fromkeys(("kubectl", "oc", "k3s", "microk8s", "minikube"), _KUBECTL),
    **dict.fromkeys(("lxc", "incus"), ((("exec",), Inside("", "--cwd --user --env", 1, True)),)),
    "vagrant": ((("ssh",), Inside("", "", 0, False, True)),),
    "heroku": ((("run",), Inside("a", "--app --size", 0, False, True)),),
    "wsl": ((("-e",), Inside("", "", 0)), (("--exec",), Inside("", "", 0)), (("--",), Inside("", "", 0))),
    "toolbox": ((("run",), Inside("c", "--container", 0)),),
    "distrobox": ((("enter",), Inside("n", "--name", 1, True)),),
}
