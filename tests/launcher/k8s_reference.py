"""Writes k8s_reference.json: the fields of manifests that the API models of Kubernetes and Kubeflow accept.

    scripts/setup.sh --peer kubeflow
    for kind in indexed-job jobset pytorchjob; do scaletrain k8s --kind $kind ...; done |
      .deps/peer-kubeflow/bin/python tests/launcher/k8s_reference.py > tests/launcher/k8s_reference.json

Reads YAML from stdin. A manifest that the models change, since they do not know a field or since it has another
type, ends it with 1. SCALETRAIN_LONG=1 tests/launcher/k8s_test.py makes the file again, of the manifests of its
cases, and compares.
"""
import json
import re
import sys
import types

COMMAND = "scripts/setup.sh --peer kubeflow; tests/launcher/k8s_reference.py"
MODELS = {
    "ConfigMap": "IoK8sApiCoreV1ConfigMap",
    "Service": "IoK8sApiCoreV1Service",
    "Job": "IoK8sApiBatchV1Job",
    "JobSet": "JobsetV1alpha2JobSet",
}
# Maps whose keys are a user's.
OPEN = re.compile(r"(^data|\.(annotations|labels|limits|matchLabels|requests|selector|nodeSelector))\.[^.]*"
                  r"(\.[^.]*)*: ")


def fields(value, path=""):
    """Each field as "spec.containers[].image: str"."""
    if isinstance(value, dict):
        return {field for key, part in value.items()
                for field in fields(part, f"{path}.{key}" if path else key)} or {f"{path}: dict"}
    if isinstance(value, list):
        return {field for part in value for field in fields(part, f"{path}[]")} or {f"{path}: list"}
    return {OPEN.sub(r"\1.*: ", f"{path}: {type(value).__name__}")}


def fields_by_kind(manifests):
    found = {}
    for manifest in manifests:
        found.setdefault(manifest["kind"], set()).update(fields(manifest))
    return {kind: sorted(names) for kind, names in sorted(found.items())}


def through_models(manifest):
    """The object as it is after the API's models have read and written it: what they do not know is
    gone, what has another type is refused."""
    from kubeflow.training import ApiClient
    from kubeflow_trainer_api import models

    if manifest["kind"] == "PyTorchJob":
        client = ApiClient()
        response = types.SimpleNamespace(data=json.dumps(manifest))
        return client.sanitize_for_serialization(
            client.deserialize(response, "KubeflowOrgV1PyTorchJob"))
    return getattr(models, MODELS[manifest["kind"]]).from_dict(manifest).to_dict()


def main():
    import importlib.metadata

    import yaml

    manifests = list(yaml.safe_load_all(sys.stdin))
    for manifest in manifests:
        if manifest != through_models(manifest):
            sys.exit(f"the models change {manifest['kind']}:\n{json.dumps(manifest)}\n"
                     f"{json.dumps(through_models(manifest))}")
    versions = {name: importlib.metadata.version(name)
                for name in ("kubeflow-trainer-api", "kubeflow-training")}
    json.dump({"peer": versions, "command": COMMAND, "fields": fields_by_kind(manifests)}, sys.stdout,
              indent=1)
    print()


if __name__ == "__main__":
    main()
