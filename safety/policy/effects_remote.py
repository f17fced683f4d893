"""What commands do to what is not on this machine, or not in files: networks, clouds, containers, databases, published packages.

No snapshot holds any of it. A tool's own dry run does nothing, its help neither.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from safety.policy import places
from safety.policy.operands import read, spec
from safety.policy.patterns import Pattern
from safety.policy.scene import Scene, leak, names_secret, secret_path, writing
from safety.policy.shell import Command, Word
from safety.policy.sql import sql_effects
from safety.policy.values import Action, Effect

_LOCAL_HOST = Pattern(
    r"(?:[a-z+]+://)?(?:[^/@\s]*@)?(?:localhost|127(?:\.\d+){3}|0\.0\.0\.0|\[::1\]|[\w.-]+\.(?:local|localhost"
    r"|test))(?::\d+)?(?:[/?].*)?",
    re.I,
)
_STORE_PORT = Pattern(r":(?:9200|9300|8086|5984|6333|8983|7474|8529|2379|8500|8200)\b")
_DRY = Pattern(r"--?(?:dry-?run|what-?if|no-?act|noop|check|plan-only|preview)(?:=(?!none|false).*)?|--?help|-h|help|--version")


def remote_effects(command: Command, scene: Scene) -> Iterator[Effect]:
    """What the program does over a network or to a service."""
    name = command.name
    words = [word.text for word in command.words[1:]]
    if name in _NETWORK:
        yield from _NETWORK[name](command, scene)
    if name in _SQL_CLIENTS:
        yield from _sql_client(command, scene)
        return
    if name not in _TOOLS and name not in _NAMED:
        return
    if name in ("python", "python3") and words[:1] == ["-m"] and words[1:2] and words[1] in _TOOLS:
        name, words = words[1], words[2:]
    if any(_DRY.fullmatch(text) for text in words) and name not in ("curl", "redis-cli", "redis", "mysql"):
        return
    if name in _NAMED:
        yield from _NAMED[name](command, words, scene)
    text = " ".join(_verbs(words))[:2000]
    for pattern, weight, kind in _TOOLS.get(name, ()):
        if re.search(pattern, text):
            if weight != "allow":  # a row that lets pass ends the search
                yield Effect(kind, f"{name} {' '.join(_verbs(words)[:6])}", weight, instead=_INSTEAD.get(name, ""))
            return


def _verbs(words: list[str]) -> list[str]:
    """The words without quoted sentences: what a person wrote as text is no verb. Of very many words the first ones tell."""
    return [word for word in words[:100] if " " not in word or word.startswith("-")]


# ---- tables: what of a tool destroys something -----------------------------------------------------------------------------------

# A pattern over the words of a command, compiled when the tool is first seen.
_Row = tuple[str, Action, str]


def _rows(*lines: _Row) -> tuple[_Row, ...]:
    return lines


_D = "service.destroy"
_P = "remote.publish"
_DESTROYING = (
    r"(?:^|[ :-])(?:delete|destroy|remove|rm|purge|terminate|uninstall|wipe|drop|reset|del|erase|teardown|nuke|unpublish"
    r"|deprovision|rb)"
    r"(?:$|[ :-])"
)
_GENERIC = _rows((_DESTROYING, "ask", _D))

_TERRAFORM = _rows(
    (r"(?:^| )plan(?: |$)", "allow", _D),
    (r"(?:^| )(?:destroy)(?: |$).*-?-auto-approve|(?:^| )apply .*-destroy.*-auto-approve|-auto-approve.* destroy", "deny", _D),
    (r"(?:^| )(?:destroy|apply)(?: |$)", "ask", _D),
    (
        r"(?:^| )state (?:rm|mv|push|replace-provider)(?: |$)|(?:^| )(?:force-unlock|taint)(?: |$)|(?:^| )workspace delete",
        "ask",
        _D,
    ),
    (r"(?:^| )run-all (?:destroy|apply)", "deny", _D),
)
_NODE_PUBLISH = _rows(
    (r"^(?:-\S+ )*(?:\S+ )*?run(?:-script)? ", "allow", _P),
    (
        r"^(?:-\S+(?:[= ]\S+)? )*(?:npm )?(?:publish|unpublish|deprecate|owner (?:rm|add)|access |dist-tag (?:add|rm)|team"
        r" (?:rm|destroy)|token (?:revoke|create)|hook rm|org rm)(?: |$)",
        "ask",
        _P,
    ),
    (r"^(?:workspaces foreach|-r|--recursive|--filter\S*(?: \S+)?) .*(?:npm )?publish(?: |$)", "ask", _P),
)
_KUBECTL = _rows(
    (
        r"(?:^| )delete (?:ns|namespaces?|node|nodes|pvc?|persistentvolume(?:claim)?s?|crds?|customresourcedefinitions?"
        r"|all)(?: |/|$)|(?:^| )delete .*--all(?: |$)",
        "deny",
        _D,
    ),
    (r"(?:^| )(?:delete|drain)(?: |$)", "ask", _D),
    (
        r"(?:^| )replace .*--force|(?:^| )apply .*--prune|(?:^| )scale .*--replicas[= ]0(?: |$)|(?:^| )taint .*NoExecute",
        "ask",
        _D,
    ),
    (r"(?:^| )get secrets?(?: |/).*(?:-o|--output)", "ask", "secret.leak"),
    (r"(?:^| )rollout undo(?: |$)|(?:^| )(?:cordon)(?: |$)|(?:^| )project delete", "ask", _D),
)
_AWS = _rows(
    (r"(?:^| )help(?: |$)|--dryrun(?: |$)", "allow", _D),
    (r"(?:^| )s3 rm .*--recursive|(?:^| )s3 .*--recursive.* rm |(?:^| )s3 rb ", "deny", _D),
    (r"(?:^| )s3 (?:rm|mv|sync .*--delete)(?: |$)|(?:^| )s3api (?:delete|put-bucket-(?:policy|acl|lifecycle))", "ask", _D),
    (
        r"(?:^| )(?:rds|dynamodb|docdb|neptune|redshift|elasticache|opensearch|es|efs|fsx|backup|kms|cloudformation|eks|ecs"
        r"|organizations) "
        r"(?:delete|schedule-key-deletion|terminate|remove)-",
        "deny",
        _D,
    ),
    (r"(?:^| )ec2 (?:terminate-instances|delete-(?:volume|snapshot|vpc))", "deny", _D),
    (
        r"(?:^| )(?:\w[\w-]*) (?:delete|terminate|remove|purge|deregister|disable|stop|reset|revoke|detach|release|cancel"
        r"|batch-delete)-[\w-]+",
        "ask",
        _D,
    ),
    (
        r"(?:^| )secretsmanager get-secret-value|(?:^| )ssm get-parameters?(?:-by-path)? .*--with-decryption|(?:^| )sts"
        r" get-session-token"
        r"|(?:^| )iam create-access-key|(?:^| )ecr get-login-password(?! \|)|(?:^| )configure export-credentials",
        "ask",
        "secret.leak",
    ),
)
_GCLOUD = _rows(
    (
        r"(?:^| )(?:projects|sql instances|sql databases|container clusters|compute disks|spanner \w+|bigtable \w+|firestore"
        r" databases|storage buckets) delete(?: |$)"
        r"|(?:^| )storage (?:rm|buckets delete)(?: |$).*",
        "deny",
        _D,
    ),
    (
        r"(?:^| )(?:delete|destroy|remove-iam-policy-binding|stop|reset|purge|rm|abandon-instances|delete-instances|versions"
        r" destroy)(?: |$)",
        "ask",
        _D,
    ),
    (
        r"(?:^| )auth (?:print-access-token|print-identity-token|application-default print-access-token)|(?:^| )secrets"
        r" versions access",
        "ask",
        "secret.leak",
    ),
)
_AZ = _rows(
    (
        r"(?:^| )group delete(?: |$)|(?:^| )(?:sql|postgres|mysql|cosmosdb|storage account|keyvault|aks|vm|disk)(?: [\w-]+)*"
        r" (?:delete|purge)(?: |$)",
        "deny",
        _D,
    ),
    (r"(?:^| )(?:delete|delete-batch|purge|deallocate|stop|remove)(?: |$)", "ask", _D),
    (r"(?:^| )keyvault secret show|(?:^| )account get-access-token|(?:^| )storage account keys list", "ask", "secret.leak"),
)
_GSUTIL = _rows(
    (r"(?:^| )rm (?:\S+ )*?-\w*[rR]|(?:^| )rb(?: |$)|(?:^| )-\w*m\w* rm .*-\w*r", "deny", _D),
    (r"(?:^| )(?:rm|mv)(?: |$)|(?:^| )rsync .*-\w*d", "ask", _D),
)
_GH = _rows(
    (r"^repo delete(?: |$)", "deny", "remote.delete"),
    (r"^(?:pr|issue) .*(?:--delete-branch|-d)(?: |$)", "ask", "remote.delete"),
    (
        r"^(?:mr|release|issue|gist|run|secret|variable|label|ssh-key|gpg-key|codespace|project|environment|deploy-key|ruleset"
        r"|release-asset) (?:delete|remove|delete-asset|rm)(?: |$)",
        "ask",
        "remote.delete",
    ),
    (
        r"^repo (?:archive|rename|transfer)(?: |$)|^repo edit .*--visibility|^repo sync .*--force|^repo deploy-key delete"
        r"|^project (?:item-delete|field-delete)"
        r"|^workflow disable|^pr merge .*--admin",
        "ask",
        "remote.delete",
    ),
    (r"^release (?:upload .*--clobber)", "ask", "remote.overwrite"),
    (r"^gist (?:create|new)(?: |$)", "ask", "network.send"),
    (r"^auth (?:token|status .*(?:--show-token|-t))(?: |$)", "ask", "secret.leak"),
    (r"^auth (?:logout)(?: |$)", "ask", "config.write"),
    (r"^repo (?:create .*--public)(?:.*--push|.*--source)", "ask", "network.send"),
    (r"^api .*(?:-X|--method)[= ]?DELETE|^api .*-XDELETE|^api .*--method=DELETE", "ask", "remote.delete"),
)
_DOCKER = _rows(
    (r"^(?:-\S+ )*(?:system|volume) prune .*(?:--volumes|-a|--all|-\w*a\w*)", "deny", _D),
    (
        r"(?:^| )(?:system prune|system reset|volume (?:rm|remove|prune)|container prune|machine (?:rm|reset)|swarm leave"
        r" .*(?:--force|-f)|stack (?:rm|down)"
        r"|service rm|secret rm|config rm|node rm|context rm|buildx rm|pod (?:rm|prune)|kube down|plugin rm)(?: |$)",
        "ask",
        _D,
    ),
    (r"(?:^| )(?:compose|docker-compose)(?: \S+)* (?:down|rm)(?: \S+)* (?:-v|--volumes|-\w*v\w*)(?: |$)", "ask", _D),
)
_COMPOSE = _rows((r"(?:^| )(?:down|rm)(?: \S+)* (?:-v|--volumes|-\w*v\w*)(?: |$)", "ask", _D))
_PULUMI = _rows(
    (r"(?:^| )destroy .*(?:--yes|-y|-f|--skip-preview)", "deny", _D),
    (r"(?:^| )(?:destroy|stack rm|state (?:delete|edit|rename)|up|update|cancel|refresh|stack import)(?: |$)", "ask", _D),
)
_HELM = _rows(
    (
        r"(?:^| )(?:uninstall|delete|un|del|rollback|destroy|plugin uninstall)(?: |$)|(?:^| )upgrade .*(?:--force"
        r"|--reset-values)",
        "ask",
        _D,
    )
)
_PUBLISH = _rows((r"(?:^| )(?:publish|upload|push|yank|release|deploy|unpublish|register)(?: |$)", "ask", _P))

_TOOLS: dict[str, tuple[_Row, ...]] = {
    **dict.fromkeys(("terraform", "tofu", "terragrunt", "terramate"), _TERRAFORM),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), _NODE_PUBLISH),
    **dict.fromkeys(("kubectl", "oc", "k", "microk8s", "k3s"), _KUBECTL),
    **dict.fromkeys(("docker", "podman", "nerdctl"), _DOCKER),
    **dict.fromkeys(("docker-compose", "podman-compose"), _COMPOSE),
    **dict.fromkeys(("gh", "glab", "hub", "tea"), _GH),
    "aws": _AWS,
    "awslocal": _AWS,
    "gcloud": _GCLOUD,
    "az": _AZ,
    "gsutil": _GSUTIL,
    "pulumi": _PULUMI,
    "helm": _HELM,
    "helmfile": _HELM,
    "bq": _rows((r"(?:^| )rm (?:\S+ )*-\w*r|(?:^| )rm -r", "deny", _D), (r"(?:^| )rm(?: |$)", "ask", _D)),
    "cdk": _rows((r"(?:^| )destroy(?: |$)", "ask", _D), (r"(?:^| )deploy .*--require-approval[= ]never", "ask", _D)),
    "cdktf": _rows((r"(?:^| )(?:destroy|deploy)(?: |$)", "ask", _D)),
    "twine": _PUBLISH,
    "poetry": _rows((r"^(?:-\S+ )*publish(?: |$)", "ask", _P)),
    "uv": _rows((r"^(?:-\S+ )*publish(?: |$)", "ask", _P)),
    "hatch": _rows((r"^(?:-\S+ )*publish(?: |$)", "ask", _P)),
    "flit": _PUBLISH,
    "pdm": _rows((r"^(?:-\S+ )*publish(?: |$)", "ask", _P)),
    "maturin": _rows((r"^(?:publish|upload)(?: |$)", "ask", _P)),
    "cargo": _rows((r"^(?:\+\S+ |-\S+ )*(?:publish|yank|owner)(?: |$)", "ask", _P)),
    "gem": _rows((r"^(?:push|yank|owner)(?: |$)", "ask", _P)),
    "mvn": _rows(
        (r"(?:^| )(?:deploy|release:perform|nexus-staging:release)(?: |$)", "ask", _P),
        (r"(?:^| )(?:flyway:clean|liquibase:dropAll)(?: |$)", "deny", "data.destroy"),
    ),
    "gradle": _rows((r"(?:^| ):?(?:\w+:)*publish\w*(?: |$)", "ask", _P), (r"(?:^| )flywayClean(?: |$)", "deny", "data.destroy")),
    "gradlew": _rows(
        (r"(?:^| ):?(?:\w+:)*publish(?!ToMavenLocal)\w*(?: |$)", "ask", _P),
        (r"(?:^| )flywayClean(?: |$)", "deny", "data.destroy"),
    ),
    "dotnet": _rows(
        (r"^nuget (?:push|delete)(?: |$)", "ask", _P),
        (r"^ef database drop(?: |$)", "deny", "data.destroy"),
        (r"^ef database update 0(?: |$)", "ask", "data.destroy"),
    ),
    "nuget": _rows((r"^(?:push|delete)(?: |$)", "ask", _P)),
    "vsce": _rows((r"^(?:publish|unpublish)(?: |$)", "ask", _P)),
    "ovsx": _rows((r"^publish(?: |$)", "ask", _P)),
    "goreleaser": _rows((r"^release .*--snapshot", "allow", _P), (r"^(?:release|publish)(?: |$)", "ask", _P)),
    "lerna": _rows((r"^publish(?: |$)", "ask", _P)),
    "changeset": _rows((r"^publish(?: |$)", "ask", _P)),
    "semantic-release": _rows((r"^(?!.*--dry-run|-d)", "ask", _P)),
    "dart": _rows((r"^pub publish(?: |$)", "ask", _P)),
    "flutter": _rows((r"^pub publish(?: |$)", "ask", _P)),
    "pod": _rows((r"^(?:trunk push|repo push|trunk delete)(?: |$)", "ask", _P)),
    "composer": _rows((r"^(?!)", "ask", _P)),
    **dict.fromkeys(
        """heroku fly flyctl vercel vc netlify wrangler firebase doctl linode-cli hcloud scw oci ibmcloud cf eb sam copilot
        amplify serverless sls argocd flux istioctl kind minikube k3d eksctl kops vagrant multipass lxc nomad consul
        vault etcdctl s3cmd mc b2 supabase planetscale pscale turso neonctl railway render aiven doppler cloudflared
        tailscale virsh VBoxManage proxmox qm pct ansible-galaxy rabbitmqctl rabbitmqadmin kafka-topics
        kafka-topics.sh nats influx weaviate minio-client ngrok expo eas rke exo civo hasura temporal atlas snow
        databricks dvc wandb huggingface-cli hf gitlab jira linear sentry-cli launchdarkly op kubectx rancher kubeadm
        talosctl velero crossplane dapr""".split(),
        _GENERIC,
    ),
}
_TOOLS["heroku"] = _rows(
    (
        r"(?:^| )(?:\w+:)?(?:destroy|reset|delete|remove|unset|rollback|leave|revoke|clear)(?: |$)|(?:^|"
        r" )pg:(?:reset|killall|promote|copy|push|pull)(?: |$)|(?:^| )ps:(?:stop|kill)(?: |$)|(?:^|"
        r" )ps:scale .*=0\b|(?:^| )maintenance:on",
        "ask",
        _D,
    ),
    (r"^config(?: |$)(?!:)|^config:get ", "ask", "secret.leak"),
)
_TOOLS["railway"] = _rows((r"^(?:down|delete|unlink|environment delete|volume delete)(?: |$)", "ask", _D))
_TOOLS["fly"] = _TOOLS["flyctl"] = (*_rows((r"(?:^| )scale (?:count )?(?:\S+=)?0(?: |$)", "ask", _D)), *_GENERIC)
_TOOLS["vault"] = _rows(
    (
        r"(?:^| )(?:delete|destroy|purge|metadata delete|secrets disable|auth disable|lease revoke|token"
        r" revoke|seal|disable)(?: |$)",
        "ask",
        _D,
    ),
    (r"^(?:kv get|read)(?: |$)|^print token", "ask", "secret.leak"),
)
_TOOLS["rclone"] = _rows(
    (r"^(?:delete|purge|deletefile|rmdirs|cleanup)(?: |$)|^(?:sync|move|moveto|bisync)(?: |$)", "ask", "remote.delete")
)
_TOOLS["op"] = _rows(
    (r"(?:^| )(?:delete|item delete|vault delete)(?: |$)", "ask", _D), (r"^(?:read|item get)(?: |$)", "ask", "secret.leak")
)
_TOOLS["pass"] = _rows((r"^(?:rm|remove|delete|init)(?: |$)", "ask", _D), (r"^(?:show |[\w-]+/[\w/-]+$)", "ask", "secret.leak"))
_TOOLS["security"] = _rows(
    (r"^(?:find-(?:generic|internet)-password .*(?:-w|-g)|dump-keychain|export)", "ask", "secret.leak"), (r"^delete-", "ask", _D)
)
_TOOLS["gpg"] = _rows(
    (r"(?:^| )--delete-(?:secret-)?(?:and-public-)?keys?", "ask", _D), (r"(?:^| )--export-secret", "deny", "secret.leak")
)
_TOOLS["gpg2"] = _TOOLS["gpg"]
_TOOLS["ngrok"] = _rows((r"^(?:http|tcp|tls|start)(?: |$)", "ask", "network.send"))
_TOOLS["bfg"] = _rows((r"", "ask", "history.rewrite"))
_TOOLS["tmutil"] = _rows((r"^(?:delete|deletelocalsnapshots|disable)", "deny", "disk.destroy"))

_INSTEAD = {
    "terraform": "terraform plan",
    "tofu": "tofu plan",
    "pulumi": "pulumi preview",
    "kubectl": "the same with --dry-run=server",
    "npm": "npm publish --dry-run",
    "aws": "the same with --dryrun, where the service knows it",
    "twine": "twine check dist/*",
    "cargo": "cargo publish --dry-run",
}

# ---- data: frameworks and stores -------------------------------------------------------------------------------------------------

_X = "data.destroy"
_FRAMEWORK: dict[str, tuple[_Row, ...]] = {
    "prisma": _rows((r"^migrate reset|^db push .*(?:--force-reset|--accept-data-loss)|^db execute .*drop", "ask", _X)),
    "alembic": _rows((r"(?:^| )downgrade(?: |$)(?!.*--sql)", "ask", _X)),
    "manage.py": _rows(
        (
            r"^(?:flush|reset_db|sqlreset|drop_test_database|clear_cache|delete_\w+|dbrestore)(?: |$)|^migrate \S+ (?:zero"
            r"|0\d+\S*)(?: |$)(?!.*--plan)",
            "ask",
            _X,
        )
    ),
    "rails": _rows(
        (
            r"(?:^| )db:(?:drop|reset|purge|schema:load|structure:load|migrate:(?:reset|down|redo)|rollback|seed:replant"
            r"|truncate_all|setup|environment:set)(?::\w+)?(?: |$)",
            "ask",
            _X,
        )
    ),
    "artisan": _rows((r"^(?:migrate:(?:fresh|reset|refresh|rollback)|db:wipe|queue:flush|queue:clear)(?: |$)", "ask", _X)),
    "sequelize": _rows((r"^(?:db:drop|db:migrate:undo(?::all)?|db:seed:undo(?::all)?)(?: |$)", "ask", _X)),
    "knex": _rows((r"^migrate:(?:rollback|down)(?: |$)", "ask", _X)),
    "typeorm": _rows((r"^(?:schema:drop|migration:revert|schema:sync)(?: |$)", "ask", _X)),
    "mix": _rows((r"^(?:ecto\.(?:drop|reset|rollback)|hex\.(?:publish|retire))(?: |$)", "ask", _X)),
    "flask": _rows((r"^(?:\S+ )*db downgrade(?: |$)", "ask", _X)),
    "diesel": _rows((r"^(?:database (?:reset|drop)|migration (?:revert|redo))(?: |$)", "ask", _X)),
    "supabase": _rows((r"^(?:db reset|projects delete|branches delete|functions delete|secrets unset)(?: |$)", "ask", _X)),
    "console": _rows(
        (r"^doctrine:(?:schema:drop|database:drop|migrations:(?:migrate (?:first|prev))|fixtures:load)(?: |$)", "ask", _X)
    ),
    "liquibase": _rows((r"(?:^| )(?:drop-?all|rollback\S*)(?: |$)", "ask", _X)),
    "flyway": _rows((r"(?:^| )(?:clean|undo)(?: |$)", "ask", _X)),
    "dbmate": _rows((r"(?:^| )(?:drop|down|rollback)(?: |$)", "ask", _X)),
    "goose": _rows((r"(?:^| )(?:reset|down|down-to|redo)(?: |$)", "ask", _X)),
    "migrate": _rows((r"(?:^| )(?:drop|down|force)(?: |$)", "ask", _X)),
    "sqlx": _rows((r"^(?:database|db) (?:drop|reset)(?: |$)|^migrate revert(?: |$)", "ask", _X)),
    "atlas": _rows((r"^schema clean(?: |$)|^schema apply .*--auto-approve|^migrate down", "ask", _X)),
    "drizzle-kit": _rows((r"^drop(?: |$)|^push .*--force", "ask", _X)),
    "dropdb": _rows((r"", "deny", _X)),
    "dropuser": _rows((r"", "ask", _X)),
    "mysqladmin": _rows((r"(?:^| )(?:drop|flush-hosts)(?: |$)", "deny", _X)),
    "mongorestore": _rows((r"--drop(?: |$)", "ask", _X)),
    "pg_restore": _rows((r"(?:--clean|(?:^| )-\w*c\w*)(?: |$)", "ask", _X)),
    "aerich": _rows((r"^downgrade(?: |$)", "ask", _X)),
    "gel": _rows((r"(?:^| )(?:drop|wipe|destroy)(?: |$)", "ask", _X)),
    "edgedb": _rows((r"(?:^| )(?:drop|wipe|destroy)(?: |$)", "ask", _X)),
    "influx": _rows((r"(?:^| )(?:delete|bucket delete|org delete)(?: |$)", "ask", _X)),
    "etcdctl": _rows(
        (r"(?:^| )del .*--(?:prefix|from-key)", "deny", _X), (r"(?:^| )(?:del|rm|rmdir|member remove)(?: |$)", "ask", _X)
    ),
    "rabbitmqctl": _rows((r"(?:^| )(?:reset|force_reset|purge_queue|delete_\w+|stop_app|stop)(?: |$)", "ask", _X)),
    "kafka-topics": _rows((r"--delete(?: |$)", "ask", _X)),
    "kafka-topics.sh": _rows((r"--delete(?: |$)", "ask", _X)),
    "celery": _rows((r"(?:^| )purge(?: |$)", "ask", _X)),
    "odoo-bin": _rows((r"(?:^| )db drop", "ask", _X)),
    "wp": _rows((r"^db (?:drop|reset|clean|import)(?: |$)|^site empty", "ask", _X)),
    "drush": _rows((r"^sql[:-](?:drop|sync)(?: |$)|^site[:-]install", "ask", _X)),
}
for _name, _lines in _FRAMEWORK.items():
    _TOOLS[_name] = (*_lines, *_TOOLS.get(_name, ()))
for _name in ("rake", "bin/rails"):
    _TOOLS[_name] = _TOOLS["rails"]
_TOOLS["sequelize-cli"] = _TOOLS["sequelize"]
_TOOLS["django-admin"] = _TOOLS["manage.py"]

_SQL_CLIENTS: dict[str, tuple[str, tuple[str, ...]]] = {
    # options with a value, and which of them hold SQL
    "psql": ("c|command= f|file= h|host= p|port= U|username= d|dbname= v|variable= o|output= P= F= R= T= L= set=", ("command",)),
    "pgcli": ("c|command= h|host= p|port= U|username= d|dbname=", ("command",)),
    "mysql": ("e|execute= h|host= P|port= u|user= D|database= S|socket= p|password=?", ("execute",)),
    "mariadb": ("e|execute= h|host= P|port= u|user= D|database= S|socket= p|password=?", ("execute",)),
    "mycli": ("e|execute= h|host= P|port= u|user= D|database=", ("execute",)),
    "cockroach": ("e|execute= host= url= d|database=", ("execute",)),
    "sqlcmd": ("Q= q= S= U= P= d= i= o=", ("Q", "q")),
    "clickhouse-client": ("q|query= h|host= u|user= d|database= password= port=", ("query",)),
    "clickhouse": ("q|query= h|host= u|user= d|database= password= port=", ("query",)),
    "cqlsh": ("e|execute= u= p= k= f|file=", ("execute",)),
    "snowsql": ("q|query= a= u= d= s= w= f=", ("query",)),
    "trino": ("execute= server= catalog= schema= f|file=", ("execute",)),
    "presto": ("execute= server= catalog= schema= f|file=", ("execute",)),
    "hive": ("e= f=", ("e",)),
    "beeline": ("e= f= u= n= p=", ("e",)),
    "duckdb": ("c= s= cmd= init=", ("c", "s", "cmd")),
    "sqlite3": ("cmd= init= separator= newline= nullvalue=", ("cmd",)),
    "sqlite": ("cmd= init=", ("cmd",)),
    "litecli": ("e|execute= d|database=", ("execute",)),
    "usql": ("c|command= f|file=", ("command",)),
    "db2": ("", ()),
    "isql": ("", ()),
    "fbcli": ("", ()),
}


def _sql_client(command: Command, scene: Scene) -> Iterator[Effect]:
    """SQL in an option, in an operand (sqlite3, db2), on standard input."""
    name = command.name
    options, holders = _SQL_CLIENTS[name]
    given = read(command.words[1:], spec(options, abbreviates=False))
    if given.has("help", "version"):
        return
    in_file = name in ("sqlite3", "sqlite", "duckdb", "litecli")
    texts = given.values(*holders)
    if in_file:
        texts += given.operands[1:]
    elif name in ("db2", "isql", "fbcli"):
        texts += given.operands
    if command.stdin is not None and name not in ("cockroach",):
        texts.append(Word(command.stdin))
    database = given.operands[0] if in_file and given.operands else None
    for text in texts:
        for effect in sql_effects(text.text, name):
            if database is not None and database.text in (":memory:", ""):
                continue
            if database is None or not database.certain:
                yield effect
                continue
            for written in writing(scene.target(database, command.cwd), scene):
                yield Effect(
                    effect.kind,
                    f"{effect.target} in {database.text}",
                    effect.weight,
                    question=written.question,
                    instead=effect.instead,
                )
        for shell in re.findall(r"^[ \t]*(?:\\!|\.shell|\.system)[ \t]+(.+)$", text.text, re.M):
            yield from scene.again(shell, command.cwd)


_REDIS = Pattern(
    r"(?i)\b(?:flushall|flushdb|swapdb|shutdown|debug segfault|config set|script flush|function flush|cluster reset"
    r"|replicaof|slaveof)\b"
)
_MONGO = Pattern(
    r"\.(?:dropDatabase|dropIndexes|drop|deleteMany|deleteOne|remove|findOneAndDelete|renameCollection|dropUser|dropAllUsers"
    r"|bulkWrite)\s*\("
)


def _redis(command: Command, words: list[str], scene: Scene) -> Iterator[Effect]:
    given = read(command.words[1:], spec("h= p= a= n= u= s= r= i= d= x X eval= pass= user= raw", abbreviates=False, stops=True))
    text = " ".join(word.text for word in given.operands)
    for line in [text, *(command.stdin or "").splitlines()]:
        if _REDIS.match(line.strip()):
            grave = re.match(r"(?i)flush", line.strip())
            yield Effect(_X, f"redis: {line.strip()}", "deny" if grave else "ask")
        elif re.match(r"(?i)(?:del|unlink|expire|rename|restore|getdel)\b", line.strip()) or (
            given.has("eval") and "del" in text.lower()
        ):
            yield Effect(_X, f"redis: {line.strip()}", "ask")


def _mongo(command: Command, words: list[str], scene: Scene) -> Iterator[Effect]:
    texts = [word.text for word in command.words[1:]] + [command.stdin or ""]
    for text in texts:
        found = _MONGO.search(_without_quoted(text))
        if found:
            grave = "drop" in found[0].lower() or re.search(r"(?:deleteMany|remove)\(\s*(?:\{\s*\})?\s*\)", text)
            yield Effect(_X, f"mongo: {found[0].strip('.(')}", "deny" if grave else "ask")


def _without_quoted(text: str) -> str:
    return re.sub(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", '""', text)


def _docker(command: Command, words: list[str], scene: Scene) -> Iterator[Effect]:
    """Containers that are removed with what they hold; one that is started with the host's folders is followed by the parse."""
    given = read(command.words[1:], spec("H= l= log-level= context= c= config= host=", abbreviates=False, stops=True))
    verbs = [word for word in given.rest if word.text != "container"]
    if not verbs or verbs[0].text not in ("rm", "remove", "kill", "stop"):
        return
    inner = read(verbs[1:], spec("f|force v|volumes l|link s= t= a|all", abbreviates=False))
    unsure = any(not word.certain for word in inner.operands) or command.appended
    if verbs[0].text in ("rm", "remove") and (inner.has("force", "volumes", "all") or unsure):
        yield Effect(_D, f"{command.name} containers: {' '.join(word.text for word in inner.operands)}", "ask")
    elif unsure or inner.has("all"):
        yield Effect("service.stop", f"every container of {command.name}", "ask")


def _php(command: Command, words: list[str], scene: Scene) -> Iterator[Effect]:
    """A framework's own script behind an interpreter."""
    operands = [word.text for word in command.words[1:] if not word.text.startswith("-")]
    script = operands[0].rpartition("/")[2] if operands else ""
    if script in ("manage.py", "artisan", "rails"):
        yield from _framework_code(command, words, scene)
    if script in ("artisan", "console", "manage.py", "wp", "odoo-bin", "rails", "drush"):
        rest = words[words.index(operands[0]) + 1 :]
        for pattern, weight, kind in _FRAMEWORK.get(script, ()):
            if re.search(pattern, " ".join(rest)):
                yield Effect(kind, f"{script} {' '.join(rest[:4])}", weight)
                return


def _ansible(command: Command, words: list[str], scene: Scene) -> Iterator[Effect]:
    """An ad-hoc command on other machines: what it would do here, it does there."""
    given = read(
        command.words[1:], spec("m|module-name= a|args= i|inventory= u|user= b|become l|limit= e|extra-vars= f= C|check")
    )
    module = (given.value("module-name") or "command").rpartition(".")[2]
    text = given.value("args") or ""
    if given.has("check"):
        return
    if module in ("shell", "command", "raw") and any(effect.weight != "allow" for effect in scene.again(text, None)):
        yield Effect(_D, f"on other machines: {text}", "ask")
    elif re.search(r"state=(?:absent|stopped)|force=yes", text):
        yield Effect(_D, f"on other machines: {module} {text}", "ask")


_DELETES_ALL = Pattern(
    r"\.(?:delete_all|destroy_all|delete\(\)|drop_table|truncate|flush)|drop_all\(|->(?:delete|truncate|forceDelete)\("
    r"|::truncate\("
)


def _framework_code(command: Command, words: list[str], scene: Scene) -> Iterator[Effect]:
    """Code for a framework's console: ``manage.py shell -c``, ``rails runner``, ``artisan tinker --execute``."""
    if {"shell", "shell_plus", "runner", "r", "tinker", "console"} & set(words):
        for text in words:
            if _DELETES_ALL.search(text):
                yield Effect(_X, text[:100], "ask")


def _sql_in(command: Command, words: list[str], scene: Scene) -> Iterator[Effect]:
    """Tools of clouds that carry SQL to a database: ``bq query``, ``heroku pg:psql -c``."""
    if {"query", "pg:psql", "psql", "sql", "execute"} & set(words):
        for text in [*words[:50], command.stdin or ""]:
            yield from sql_effects(text)


def _mirrors(command: Command, words: list[str], scene: Scene) -> Iterator[Effect]:
    if any(
        re.search(r"mirror\b.*--delete|(?:^|;)\s*(?:rm|mrm|glob rm)\b|-R\b.*--delete", text)
        for text in [*words, command.stdin or ""]
    ):
        yield Effect("remote.delete", "files on another machine", "ask")


def _hands_on(command: Command, words: list[str], scene: Scene) -> Iterator[Effect]:
    """``yarn prisma ...``: a tool of the project behind the package manager's name."""
    at = next(
        (number for number, text in enumerate(words) if not text.startswith("-") and text not in ("exec", "run", "dlx")),
        len(words),
    )
    tool = words[at] if at < len(words) else ""
    for pattern, weight, kind in _FRAMEWORK.get(tool, ()):
        if re.search(pattern, " ".join(_verbs(words[at + 1 :]))):
            yield Effect(kind, f"{tool} {' '.join(words[at + 1 : at + 5])}", weight)
            return


_NAMED = {
    "ansible": _ansible,
    **dict.fromkeys(
        ("bq", "heroku", "flyctl", "fly", "aws", "gcloud", "supabase", "snow", "wrangler", "turso", "doctl"), _sql_in
    ),
    **dict.fromkeys(("lftp", "ncftp", "sftp", "ftp"), _mirrors),
    **dict.fromkeys(("rails", "manage.py", "django-admin"), _framework_code),
    **dict.fromkeys(("yarn", "pnpm", "bun", "npm"), _hands_on),
    "redis-cli": _redis,
    "valkey-cli": _redis,
    "keydb-cli": _redis,
    "mongosh": _mongo,
    "mongo": _mongo,
    "docker": _docker,
    "podman": _docker,
    "nerdctl": _docker,
    **dict.fromkeys(("php", "python", "python3", "python2", "py", "pypy3", "ruby", "node"), _php),
}

# ---- networks --------------------------------------------------------------------------------------------------------------------

_CURL = spec(
    "X|request= d|data= data-raw= data-binary= data-ascii= data-urlencode= json= F|form= form-string= T|upload-file= o"
    "|output= O|remote-name"
    " H|header= A|user-agent= u|user= b|cookie= c|cookie-jar= e|referer= x|proxy= L|location s|silent S|show-error f|fail k"
    "|insecure v|verbose"
    " i|include I|head G|get m|max-time= connect-timeout= retry= retry-delay= w|write-out= K|config= E|cert= key= cacert="
    " url= r|range= C|continue-at="
    " output-dir= resolve= interface= D|dump-header= Y= y= z= Q= P= t= n|netrc netrc-file= aws-sigv4= oauth2-bearer="
    " limit-rate= create-dirs"
    " compressed J|remote-header-name N|no-buffer R|remote-time Z|parallel a|append 4 6 0 1 2 3 # g j l p q",
    abbreviates=True,
)


def _curl(command: Command, scene: Scene) -> Iterator[Effect]:
    given = read(command.words[1:], _CURL)
    urls = [*given.operands, *given.values("url")]
    local = bool(urls) and all(_LOCAL_HOST.fullmatch(word.text) for word in urls)
    host = urls[0].text if urls else "an address that is not known"
    yield Effect("network.contact", host, "allow")
    method = (given.value("request") or "").upper()
    if method == "DELETE" and not (local and not _STORE_PORT.search(host)):
        yield Effect("remote.delete", host, "ask")
    if given.values("data", "data-raw", "data-binary", "json") and _STORE_PORT.search(host) and "_delete_by_query" in host:
        yield Effect("remote.delete", host, "ask")
    for text in given.values("data", "data-raw", "data-binary", "json"):
        if "mutation" in text.text and re.search(r"(?i)\b(?:delete|remove|destroy|purge)", text.text):
            yield Effect("remote.delete", host, "ask")
    for name, value in given.options:
        if value is None:
            continue
        if name in ("data", "data-binary", "data-ascii", "json", "data-urlencode"):
            at = value.text.find("@")
            if at == 0 or (name == "data-urlencode" and at > 0):
                yield from _sent(Word(value.text[at + 1 :], value.certain), command, scene, host, local, whole=False)
            elif value.made_by:
                yield from _sent_output(value, command, scene, host, local)
        elif name == "form" and re.search(r"=[@<]", value.text):
            path = re.split(r"=[@<]", value.text, maxsplit=1)[1].partition(";")[0]
            yield from _sent(Word(path, value.certain), command, scene, host, local, whole=True)
        elif name == "upload-file":
            yield from _sent(value, command, scene, host, local, whole=True)
        elif name in ("output", "cookie-jar", "dump-header"):
            folder = places.absolute(given.value("output-dir") or ".", command.cwd)
            yield from writing(scene.target(value, folder), scene)
        elif name == "header" and value.text.startswith("@"):
            yield from leak(scene.target(Word(value.text[1:]), command.cwd), scene, sent=True)
    if given.has("remote-name"):
        folder = places.absolute(given.value("output-dir") or ".", command.cwd)
        for url in urls:
            name = url.text.partition("?")[0].rstrip("/").rpartition("/")[2]
            if name and url.certain:
                yield from writing(scene.target(Word(name), folder), scene)


def _sent(word: Word, command: Command, scene: Scene, host: str, local: bool, *, whole: bool) -> Iterator[Effect]:
    """A file, or what comes through the pipe (``-``), goes to a host. ``whole``: as a file rather than as the body of a request."""
    if word.text in ("-", "/dev/stdin", "."):
        yield from _piped_secret(command, scene, host, local)
        return
    target = scene.target(word, command.cwd)
    if secret_path(target, scene):
        yield Effect("secret.leak", target.path or word.text, "ask" if local else "deny", detail=f"sent to {host}")
    elif (
        not local
        and whole
        and not places.made_again(word.text)
        or not local
        and not re.search(r"\.(?:json|xml|ya?ml|graphql|gql|txt|csv|form|html|ndjson|proto|bin|body|payload)$", word.text)
    ):
        yield Effect("network.send", f"{word.text} to {host}", "ask")


def _sent_output(word: Word, command: Command, scene: Scene, host: str, local: bool) -> Iterator[Effect]:
    """What another command prints goes to a host inside a word: ``-d "$(cat .env)"``."""
    if not local and word.made_by in ("env", "printenv", "set"):
        yield Effect("secret.leak", f"the environment to {host}", "deny")
    elif not local and word.made_by in ("tar", "zip", "base64", "gzip", "cat", "git", "find"):
        weight: Action = "deny" if any(_gives_secret(other, scene) for other in scene.parsed.commands) else "ask"
        yield Effect("network.send", f"what {word.made_by} prints to {host}", weight)


def _gives_secret(command: Command, scene: Scene) -> bool:
    return any(secret_path(scene.target(word, command.cwd), scene) for word in command.words[1:])


def _piped_secret(command: Command, scene: Scene, host: str, local: bool) -> Iterator[Effect]:
    """What stands before the pipe to a host: credentials, the environment, or files."""
    source = command.fed_by
    if local:
        return
    if any(
        redirect.op == "<" and secret_path(scene.target(redirect.target, command.cwd), scene) for redirect in command.redirects
    ):
        yield Effect("secret.leak", f"credentials to {host}", "deny")
    if source is None and {"env", "printenv", "set", "export", "declare", "history"} & set(command.piped_from):
        yield Effect("secret.leak", f"the environment to {host}", "deny")
    while source is not None:
        if source.name in ("echo", "printf") and any(names_secret(word) for word in source.words[1:]):
            yield Effect("secret.leak", f"a secret variable to {host}", "deny")
            return
        if source.name == "history":
            yield Effect("network.send", f"the shell's history to {host}", "ask")
            return
        if source.name in ("env", "printenv", "set", "export", "declare") and len(source.words) == 1:
            yield Effect("secret.leak", f"the environment to {host}", "deny")
            return
        if _gives_secret(source, scene) or any(
            redirect.op == "<" and secret_path(scene.target(redirect.target, source.cwd), scene) for redirect in source.redirects
        ):
            yield Effect("secret.leak", f"credentials to {host}", "deny")
            return
        if source.name in ("tar", "zip", "git", "find", "cpio", "pg_dump", "mysqldump", "mongodump", "sqlite3") or (
            source.name in ("cat", "gzip", "base64", "head", "tail")
            and len(source.words) > 1
            and source.fed_by is None
            and source.stdin is None
            and not any(word.text.endswith((".json", ".txt", ".csv")) for word in source.words)
        ):
            yield Effect("network.send", f"what {source.name} prints to {host}", "ask")
            return
        source = source.fed_by


def _wget(command: Command, scene: Scene) -> Iterator[Effect]:
    given = read(
        command.words[1:],
        spec(
            "O|output-document= q|quiet post-file= post-data= body-file= body-data= method="
            " header= P|directory-prefix= c|continue"
            " nc|no-clobber N o|output-file= a= i|input-file= e|execute= U|user-agent= t= T= w="
            " l= A= R= D= X= np r m"
        ),
    )
    host = given.operands[0].text if given.operands else "an address"
    local = bool(_LOCAL_HOST.fullmatch(host))
    yield Effect("network.contact", host, "allow")
    for value in given.values("post-file", "body-file"):
        yield from _sent(value, command, scene, host, local, whole=True)
    for value in given.values("post-data", "body-data"):
        yield from _sent_output(value, command, scene, host, local)
    if (given.value("method") or "").upper() == "DELETE" and not (local and not _STORE_PORT.search(host)):
        yield Effect("remote.delete", host, "ask")
    output = given.values("output-document")
    if output and output[-1].text != "-":
        yield from writing(scene.target(output[-1], command.cwd), scene)


def _httpie(command: Command, scene: Scene) -> Iterator[Effect]:
    words = [word for word in command.words[1:] if not word.text.startswith("-")]
    yield Effect("network.contact", words[0].text if words else "an address", "allow")
    method = words[0].text.upper() if words else ""
    host = words[1].text if len(words) > 1 and method.isalpha() else (words[0].text if words else "")
    local = bool(_LOCAL_HOST.fullmatch(host) or host.startswith(":"))
    if method == "DELETE" and not (local and not _STORE_PORT.search(host)):
        yield Effect("remote.delete", host, "ask")
    for word in words[1:]:
        if "@" in word.text and not word.text.startswith("http"):
            yield from _sent(Word(word.text.rpartition("@")[2]), command, scene, host, local, whole=True)
    yield from _piped_secret(command, scene, host, local)


def _netcat(command: Command, scene: Scene) -> Iterator[Effect]:
    given = read(command.words[1:], spec("e|exec= c|sh-exec= l|listen z w= p= s= i= q= k u n v", abbreviates=False))
    words = [word.text for word in command.words[1:]]
    host = " ".join(word.text for word in given.operands)
    if (
        any("EXEC:" in text.upper() or "SYSTEM:" in text.upper() for text in words)
        and command.name == "socat"
        or given.has("exec", "sh-exec")
    ):
        yield Effect("network.shell", host or "whoever connects", "deny")
    elif any(name in ("sh", "bash", "zsh", "dash", "ksh") for name in command.piped_from):
        yield Effect("network.shell", host, "deny")
    elif not given.has("z", "listen") and not _LOCAL_HOST.fullmatch((given.operands or [Word("")])[0].text):
        yield Effect("network.contact", host, "allow")
        yield from _piped_secret(command, scene, host, local=False)
        reads_file = any(redirect.op == "<" and redirect.target.text not in ("/dev/null",) for redirect in command.redirects)
        if reads_file and not any(
            secret_path(scene.target(redirect.target, command.cwd), scene) for redirect in command.redirects if redirect.op == "<"
        ):
            yield Effect("network.send", f"a file to {host}", "ask")


def _ssh(command: Command, scene: Scene) -> Iterator[Effect]:
    yield Effect(
        "network.contact", next((word.text for word in command.words[1:] if not word.text.startswith("-")), "a host"), "allow"
    )
    if command.fed_by is not None:
        yield from (
            effect for effect in _piped_secret(command, scene, "another machine", local=False) if effect.kind == "secret.leak"
        )


def _mail(command: Command, scene: Scene) -> Iterator[Effect]:
    yield Effect("network.contact", "mail", "allow")
    for word in command.words[1:]:
        yield from leak(scene.target(word, command.cwd), scene, sent=True)
    yield from _piped_secret(command, scene, "mail", local=False)


def _sends_files(command: Command, scene: Scene) -> Iterator[Effect]:
    """Tools of clouds and hosts that copy files away: only what is secret counts."""
    words = {word.text for word in command.words[1:]}
    if words & {"cp", "mv", "sync", "copy", "put", "upload", "create", "push", "object", "new"}:
        for word in command.words[2:]:
            yield from leak(scene.target(word, command.cwd), scene, sent=True)
        if command.name == "gh" and "gist" in words:
            yield from _piped_secret(command, scene, "a gist", local=False)


def _dns(command: Command, scene: Scene) -> Iterator[Effect]:
    if any(not word.certain for word in command.words[1:]) and any(
        _gives_secret(other, scene) for other in scene.parsed.commands
    ):
        yield Effect("secret.leak", "credentials within a name that is looked up", "deny")


_NETWORK = {
    "curl": _curl,
    "wget": _wget,
    **dict.fromkeys(("http", "https", "xh", "xhs"), _httpie),
    **dict.fromkeys(("nc", "ncat", "netcat", "socat", "telnet"), _netcat),
    **dict.fromkeys(("ssh", "mosh", "ftp", "lftp", "tftp", "smbclient"), _ssh),
    **dict.fromkeys(("mail", "mailx", "mutt", "sendmail", "msmtp", "swaks"), _mail),
    **dict.fromkeys(
        (
            "aws",
            "gsutil",
            "gcloud",
            "az",
            "s3cmd",
            "rclone",
            "mc",
            "gh",
            "glab",
            "kubectl",
            "docker",
            "croc",
            "wormhole",
            "transfer",
            "b2",
        ),
        _sends_files,
    ),
    **dict.fromkeys(("dig", "nslookup", "host", "ping", "drill"), _dns),
}


def sql_client(name: str) -> bool:
    return name in _SQL_CLIENTS


_SHELLS = frozenset("sh bash zsh dash ksh fish source . eval iex Invoke-Expression".split())
_LISTENS = frozenset("openssl telnet nc ncat socat".split())
_FETCHES = frozenset("curl wget irm iwr Invoke-WebRequest Invoke-RestMethod http aria2c".split())


def fed_by_network(command: Command) -> Iterator[Effect]:
    """A shell that reads its commands from a connection, or from what was fetched."""
    name = command.name
    if name in _SHELLS:
        if _LISTENS & set(command.piped_from):
            yield Effect("network.shell", "whoever is on the other side", "deny")
        elif not command.runs_download and (
            _FETCHES & set(command.piped_from) or any(redirect.target.made_by in _FETCHES for redirect in command.redirects)
        ):
            yield from _ran_unread()
    elif name in ("deno", "bun", "npx", "bunx", "pnpx", "uvx", "pipx") and any(
        re.match(r"(?:git\+)?https?://(?!(?:[\w.-]+\.)?(?:deno\.land|jsr\.io|esm\.sh))", word.text) for word in command.words[1:3]
    ):
        yield from _ran_unread()


def _ran_unread() -> Iterator[Effect]:
    yield Effect("network.run", "code fetched from the network", "ask", instead="fetch it into a file, read it, then run it")


def runs_download(command: Command) -> Iterator[Effect]:
    """Code from the network that is run without anybody having read it."""
    if command.runs_download:
        yield Effect("network.run", "code fetched from the network", "ask", instead="fetch it into a file, read it, then run it")
