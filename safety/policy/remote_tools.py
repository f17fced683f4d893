"""Which words of tools for clouds, containers, packages and databases destroy or publish something, tool by tool.

A row is a pattern over the words of a command, joined by spaces, with what it weighs; the first one that meets decides.
"""

from __future__ import annotations

from safety.policy.values import Action

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

TOOLS: dict[str, tuple[_Row, ...]] = {
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
TOOLS["heroku"] = _rows(
    (
        r"(?:^| )(?:\w+:)?(?:destroy|reset|delete|remove|unset|rollback|leave|revoke|clear)(?: |$)|(?:^|"
        r" )pg:(?:reset|killall|promote|copy|push|pull)(?: |$)|(?:^| )ps:(?:stop|kill)(?: |$)|(?:^|"
        r" )ps:scale .*=0\b|(?:^| )maintenance:on",
        "ask",
        _D,
    ),
    (r"^config(?: |$)(?!:)|^config:get ", "ask", "secret.leak"),
)
TOOLS["railway"] = _rows((r"^(?:down|delete|unlink|environment delete|volume delete)(?: |$)", "ask", _D))
TOOLS["fly"] = TOOLS["flyctl"] = (*_rows((r"(?:^| )scale (?:count )?(?:\S+=)?0(?: |$)", "ask", _D)), *_GENERIC)
TOOLS["vault"] = _rows(
    (
        r"(?:^| )(?:delete|destroy|purge|metadata delete|secrets disable|auth disable|lease revoke|token"
        r" revoke|seal|disable)(?: |$)",
        "ask",
        _D,
    ),
    (r"^(?:kv get|read)(?: |$)|^print token", "ask", "secret.leak"),
)
TOOLS["rclone"] = _rows(
    (r"^(?:delete|purge|deletefile|rmdirs|cleanup)(?: |$)|^(?:sync|move|moveto|bisync)(?: |$)", "ask", "remote.delete")
)
TOOLS["op"] = _rows(
    (r"(?:^| )(?:delete|item delete|vault delete)(?: |$)", "ask", _D), (r"^(?:read|item get)(?: |$)", "ask", "secret.leak")
)
TOOLS["pass"] = _rows((r"^(?:rm|remove|delete|init)(?: |$)", "ask", _D), (r"^(?:show |[\w-]+/[\w/-]+$)", "ask", "secret.leak"))
TOOLS["security"] = _rows(
    (r"^(?:find-(?:generic|internet)-password .*(?:-w|-g)|dump-keychain|export)", "ask", "secret.leak"), (r"^delete-", "ask", _D)
)
TOOLS["gpg"] = _rows(
    (r"(?:^| )--delete-(?:secret-)?(?:and-public-)?keys?", "ask", _D), (r"(?:^| )--export-secret", "deny", "secret.leak")
)
TOOLS["gpg2"] = TOOLS["gpg"]
TOOLS["ngrok"] = _rows((r"^(?:http|tcp|tls|start)(?: |$)", "ask", "network.send"))
TOOLS["bfg"] = _rows((r"", "ask", "history.rewrite"))
TOOLS["tmutil"] = _rows((r"^(?:delete|deletelocalsnapshots|disable)", "deny", "disk.destroy"))

INSTEAD = {
    "terraform": "terraform plan",
    "tofu": "tofu plan",
    "pulumi": "pulumi preview",
    "kubectl": "the same with --dry-run=server",
    "npm": "npm publish --dry-run",
    "aws": "the same with --dryrun, where the service knows it",
    "twine": "twine check dist/*",
    "cargo": "cargo publish --dry-run",
}

_X = "data.destroy"
FRAMEWORK: dict[str, tuple[_Row, ...]] = {
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
for _name, _lines in FRAMEWORK.items():
    TOOLS[_name] = (*_lines, *TOOLS.get(_name, ()))
for _name in ("rake", "bin/rails"):
    TOOLS[_name] = TOOLS["rails"]
TOOLS["sequelize-cli"] = TOOLS["sequelize"]
TOOLS["django-admin"] = TOOLS["manage.py"]
