"""Which paths are, by their names alone, files with credentials. Apart from the rest, as a call that reads needs no more than this."""

from __future__ import annotations

import posixpath
import re

from safety.policy.patterns import Pattern

_SECRET_NAMES = Pattern(
    r"\.env(?:\..+)?|.+\.env|\.envrc|\.netrc|_netrc|\.pgpass|\.my\.cnf|\.git-credentials|\.htpasswd|\.pypirc|\.npmrc"
    r"|\.dockercfg|\.s3cfg|\.boto"
    r"|id_(?:rsa|dsa|ecdsa|ed25519)(?:_\w+)?|.+\.(?:pem|key|p12|pfx|jks|keystore|kdbx|ppk|asc|gpg|tfvars|tfstate)"
    r"|credentials(?:\.(?:json|ya?ml|toml|ini|csv|db))?|client_secrets?.*\.json|service[-_]?account.*\.json"
    r"|secrets?\.(?:json|ya?ml|toml|ini|env|txt)|wallet\.dat|\.vault[-_]?(?:pass|token).*|vault[-_]pass(?:word)?(?:\.txt)?"
    r"|terraform\.tfstate.*"
    r"|application_default_credentials\.json|access_tokens\.db|\.terraformrc|auth\.json|hosts\.yml|kubeconfig"
)
_NO_SECRET = Pattern(
    r".*(?:example|sample|template|dist|defaults?|test|ci|schema|pub|tpl|pub\.asc)|.*\.(?:d\.ts|md|py|js|ts|go|rs)", re.I
)
_SECRET_FOLDERS = (
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".config/gcloud",
    ".config/gh",
    ".config/op",
    ".config/sops",
    ".password-store",
    ".docker/config.json",
    ".local/share/keyrings",
    ".mozilla",
    ".config/google-chrome",
    ".config/chromium",
    "Library/Keychains",
    ".oci",
    ".doctl",
    ".config/doctl",
    ".fly",
    ".terraform.d/credentials.tfrc.json",
    ".cargo/credentials.toml",
    ".m2/settings.xml",
    ".gem/credentials",
    ".config/rclone",
    ".config/hub",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".bitcoin",
    ".electrum",
    ".ethereum",
)
_PUBLIC_IN_SECRET_FOLDERS = Pattern(r".*\.pub|known_hosts.*|config|authorized_keys")
_SYSTEM_SECRETS = (
    "/etc/shadow",
    "/etc/gshadow",
    "/etc/sudoers",
    "/etc/ssl/private",
    "/root/.ssh",
    "/run/secrets",
    "/var/run/secrets",
)
_PROCESS_ENVIRONMENT = Pattern(r"/proc/(?:self|\d+|\*)/(?:environ|mem|cmdline)")


def inside(path: str, folder: str) -> bool:
    """Whether ``path`` is ``folder`` or below it."""
    return path == folder or folder == "/" or path.startswith(folder + "/")


def is_secret_path(path: str, home: str) -> bool:
    """Whether the path is, by its name, a file with credentials or a folder of them. Templates and public keys are not."""
    name = posixpath.basename(path)
    if inside(path, home) and path != home:
        below = path[len(home) + 1 :]
        for folder in _SECRET_FOLDERS:
            if inside(below, folder):
                public = _PUBLIC_IN_SECRET_FOLDERS.fullmatch(name) and folder in (".ssh", ".aws", ".gnupg")
                return not public
    if path.startswith(("/etc", "/root", "/run", "/var", "/proc")) and (
        any(inside(path, place) for place in _SYSTEM_SECRETS) or _PROCESS_ENVIRONMENT.fullmatch(path)
    ):
        return True
    return bool(_SECRET_NAMES.fullmatch(name)) and not _NO_SECRET.fullmatch(name)
