"""Checkpoints as docs/reference/formats/checkpoint.md describes them, written by Python."""

import hashlib
import json

NO_TENSORS = b"\2\0\0\0\0\0\0\0{}"


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def state_of(step, **changes):
    """state.json of a run that has done `step` steps, 3 at least, in its third epoch."""
    return {"format": 1, "step": step, "epoch": 2, "step_in_epoch": 1, "samples": 64 * step,
            "global_batch": 64, "order_digest": "00000000000004d2", "order_version": 1,
            "trained_s": 1.5, "best_metric": -1, "best_step": -1, "skipped_steps": 0,
            "schedule": {"step": step}, "scaler": {}, "random": {}, "bucket_layout": [[1, 0]],
            "world_size": 4, "threads": 1, "cpu_capability": "AVX2", "torch_version": "2.11.0",
            "device": "cpu", **changes}


def write_manifest(folder, step):
    files = {path.name: {"bytes": path.stat().st_size, "sha256": sha256(path.read_bytes())}
             for path in folder.iterdir() if path.name != "manifest.json"}
    text = json.dumps({"format": 1, "program": "scaletrain 0.1.0", "step": step, "files": files})
    body = text[:-1]
    (folder / "manifest.json").write_text(
        body + ',\n "manifest_sha256": "' + sha256(body.encode()) + '"\n}\n')


def write_checkpoint(run_folder, state, recipe, model=NO_TENSORS, optimizer=NO_TENSORS):
    """A whole checkpoint of `state`; its folder."""
    folder = run_folder / "checkpoints" / f"step-{state['step']:08}"
    folder.mkdir(parents=True)
    for name, content in {"state.json": json.dumps(state), "recipe.json": recipe,
                          "classes.json": '["zero", "one"]'}.items():
        (folder / name).write_text(content)
    (folder / "model.safetensors").write_bytes(model)
    (folder / "optimizer.safetensors").write_bytes(optimizer)
    write_manifest(folder, state["step"])
    return folder
