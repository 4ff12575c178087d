"""The parts of scripts/gpu.sh, which sets the environment and the time limits.

    python scripts/bench/gpu_parts.py --list | --table | PART...  [--out FOLDER]

A part prints JSON lines, adds them to OUT/gpu.jsonl and raises where something is not as it must
be. With a GPU it runs at the size that its figures are meant for, without one at a tiny size on the
CPU: `Machine.gpu` says which.
"""
import argparse
import json
import math
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time

import compare
import gpu_cases
import gpu_models
import torch

LIMIT_S = 150  # of one of our programs

PARTS = {}


def part(function):
    PARTS[function.__name__] = function
    return function


class Machine:
    """What parts run on, and how they run our programs there."""

    def __init__(self, folder, out):
        self.gpu = torch.cuda.is_available()
        self.device = "cuda" if self.gpu else "cpu"
        self.folder, self.out = pathlib.Path(folder), pathlib.Path(out)
        self.name = torch.cuda.get_device_name() if self.gpu else platform.processor() or "a CPU"

    def ours(self, *command, expect=0, env=None):
        """Runs one of our programs with the libraries that were carried along."""
        try:
            done = subprocess.run(
                [str(compare.PROGRAMS / command[0]), *map(str, command[1:])], cwd=self.folder,
                env={**os.environ, "LD_LIBRARY_PATH": os.environ.get("SCALETRAIN_LIBRARIES", ""),
                     **(env or {})}, capture_output=True, text=True, check=False, timeout=LIMIT_S)
        except subprocess.TimeoutExpired as error:
            raise RuntimeError(f"{command}: not over after {LIMIT_S} s\n"
                               f"{(error.stderr or b'')[-2000:]}") from error
        if done.returncode not in (expect if isinstance(expect, tuple) else (expect,)):
            raise RuntimeError(f"{command}: exit {done.returncode}, not {expect}\n"
                               f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
        return done

    def shards(self, samples, size, encoding, classes=10):
        """The shards of drawn shapes, made once."""
        folder = self.folder / f"{encoding.split(':')[0]}-{size}-{samples}"
        if not folder.exists():
            self.ours("scaletrain-data", "synth", folder, "--samples", samples, "--size", size,
                      "--encoding", encoding, "--classes", classes, "--shard-bytes", "64MB")
        return sorted(map(str, folder.glob("*.tar")))

    def tokens(self):
        """The files of a text's bytes, made once."""
        folder = self.folder / "tokens"
        if not folder.exists():
            text = self.folder / "text.txt"
            text.write_text("the quick brown fox jumps over the lazy dog\n" * 40000, encoding="utf-8")
            self.ours("scaletrain-data", "tokenize", text, "--tokenizer", "bytes", "--out", folder)
        return sorted(map(str, folder.glob("*.bin")))

    def recipe(self, name, **changes):
        """The file of a short run on small drawn shapes, `changes` merged at the top level."""
        shards = self.shards(512 if self.gpu else 64, 32, "png")
        first = {"name": name, "seed": 7, "device": self.device,
                 "model": {"name": "resnet18" if self.gpu else "mlp", "num_classes": 10},
                 "data": {"train": {"shards": shards}, "image_size": 32},
                 "batch": {"per_device": 16}, "steps": 20 if self.gpu else 4,
                 "optimizer": {"name": "sgd", "lr": 0.0005}, "log": {"every": {"steps": 1}},
                 "output": str(self.folder / name)}
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps({**first, **changes}), encoding="utf-8")
        return path

    def train(self, name, *flags, expect=0, env=None, **changes):
        """Trains recipe() and returns the folder of the run and what the launcher said."""
        path = self.recipe(name, **changes)
        done = self.ours("scaletrain", "launch", "--nproc", 1, *flags, path, expect=expect, env=env)
        return self.folder / name, done.stderr

    def train_pair(self, name, *flags, **more):
        """Two ranks with Gloo, on a GPU both on the one device (lib/dist/device.h)."""
        env = {"SCALETRAIN_SHARE_DEVICE": "1", **more.pop("env", {})}
        return self.train(name, "--nproc", 2, *flags, env=env,
                          **{"device": "auto" if self.gpu else "cpu", **more})

    def digest(self, run):
        done = self.ours("scaletrain", "checkpoint", "inspect", run, "--json")
        return json.loads(done.stdout)["model_digest"]

    def report(self, name, **values):
        line = json.dumps({"part": name, "device": self.name, "gpu": self.gpu,
                           "torch": torch.__version__, **values})
        print(line, flush=True)
        with open(self.out / "gpu.jsonl", "a", encoding="utf-8") as file:
            file.write(line + "\n")


SKIPPED = 77  # of a test program none of whose cases could run


def doctest_result(done):
    """The line that says how many cases passed."""
    lines = done.stdout.splitlines()
    return next((line for line in lines if line.startswith("[doctest] test cases")), "all skipped")


def must(condition, what):
    if not condition:
        raise RuntimeError(what)


@part
def tests(machine):
    """The unit tests that are skipped without a GPU."""
    for program in ("test_dist", "test_input", "test_nn", "test_precision", "test_train"):
        done = machine.ours(program, "--test-case=*CUDA*,*GPU*,*cuDNN*,*on a device*",
                            expect=(0,) if machine.gpu else (0, SKIPPED))
        machine.report("tests", program=program, result=doctest_result(done))


@part
def nccl(machine):
    """NCCL's group with one rank: sums, the watch, the abort and the end."""
    done = machine.ours("test_dist", "--test-case=*NCCL*")
    machine.report("nccl", result=doctest_result(done), ran=machine.gpu)


@part
def deterministic(machine):
    """The same recipe twice gives the same bits."""
    digests = [machine.digest(machine.train(f"deterministic-{i}", deterministic=True)[0])
               for i in range(2)]
    machine.report("deterministic", same=digests[0] == digests[1], model_digest=digests[0])
    must(digests[0] == digests[1], "two runs gave different models")


@part
def resume(machine):
    """A run that is stopped half way and resumed gives the bits of one that was not."""
    half = 10 if machine.gpu else 2
    whole, _ = machine.train("whole", deterministic=True, steps=2 * half)
    run, _ = machine.train("halves", deterministic=True, steps=2 * half, expect=137,
                           checkpoint={"every": {"steps": half}},
                           env={"SCALETRAIN_FAULT": f"kill@{half + 1}"})
    machine.ours("scaletrain", "resume", run)
    same = machine.digest(whole) == machine.digest(run)
    machine.report("resume", same=same)
    must(same, "the resumed run gave another model")


@part
def killed(machine):
    """Of two ranks the one that was killed is named."""
    _, said = machine.train_pair("killed", expect=137, env={"SCALETRAIN_FAULT": "kill@3,1"})
    machine.report("killed", named="rank 1 " in said)
    must("rank 1 " in said, said)


@part
def stopped(machine):
    """A rank that stands still is named in time, and nothing is left."""
    _, said = machine.train_pair("stopped", "--hang-timeout", "10s" if machine.gpu else "2s",
                                 expect=75, env={"SCALETRAIN_FAULT": "stop@3,1"})
    machine.report("stopped", named="rank 1 " in said)
    must("rank 1 " in said, said)


def layout_recipes(ranks):
    """name -> what the recipe has of its own on so many ranks, a number that 2 divides, or on four:
    `parallel`, and what goes with it."""
    rows = {"copies": {}}
    for level in ("optimizer", "gradients", "parameters"):
        rows[f"shard-{level}"] = {"shard": ranks, "shard_level": level}
    if ranks > 2:
        rows["shard-2"] = {"shard": 2}
    rows["tensor"] = {"tensor": 2}
    rows["sequence"] = {"tensor": ranks, "sequence": True}
    for schedule in ("gpipe", "1f1b", "interleaved", "zero_bubble"):
        rows[f"pipeline-{schedule}"] = {"pipeline": ranks, "schedule": schedule}
    rows["context"] = {"context": 2}
    rows["shard-tensor"] = {"shard": 2, "tensor": 2}
    rows["pipeline-shard"] = {"pipeline": 2, "shard": 2, "shard_level": "gradients"}
    every = {name: {"parallel": parallel} for name, parallel in rows.items()}
    for name, parallel in {"copies": {}, "experts": {"expert": 2},
                           "experts-shard": {"expert": 2, "shard": 2}}.items():
        every[f"mixtral-{name}"] = {"model": gpu_cases.MIXTRAL, "parallel": parallel}
    for name in ("bf16", "powersgd"):
        every[f"compress-{name}"] = {"compress": name}
    every["diloco"] = {"sync": {"name": "diloco", "steps": 2, "fragments": 2}}
    return every


# Where the last rank is lost in step 3: the layout, and the collective that it enters.
LOST = {"copies": "step consensus", "shard-parameters": "reduce-scatter", "tensor": "row-parallel sum",
        "pipeline-1f1b": "broadcast", "mixtral-experts": "tokens of the experts"}


@part
def cases(machine):
    """What a recipe can ask for: the losses are those of a CPU."""
    failed = []
    for line in gpu_cases.run_all(machine, machine.tokens()):
        machine.report("cases", **line)
        failed += [line["case"]] if "failed" in line else []
    must(not failed, f"failed: {', '.join(failed)}")


@part
def layouts(machine):
    """Several GPUs: each layout over NCCL ends with the loss of copies, on the same samples, and
    names a rank that is killed in its exchange."""
    gpus = torch.cuda.device_count()
    ranks = gpus // 2 * 2 if machine.gpu else 2
    if ranks < 2:
        machine.report("layouts", skipped="needs two GPUs or more")
        return
    common = {"model": {**gpu_cases.LLAMA, "depth": 2 * ranks, "heads": 8, "kv_heads": 8,
                        "tied": False},
              "data": {"train": {"tokens": machine.tokens()}, "context": 64},
              "batch": {"global": 8 * ranks, "per_device": 2},
              "device": "auto" if machine.gpu else "cpu"}
    rows = {}
    for name, own in layout_recipes(ranks).items():
        sizes = [size for axis, size in own.get("parallel", {}).items()
                 if axis in ("pipeline", "shard", "tensor", "context")]
        needed = max(ranks, math.prod(sizes))
        if machine.gpu and needed > gpus:
            machine.report("layouts", layout=name, skipped=f"needs {needed} GPUs")
        else:
            rows[name] = (needed, {**common, **own})
    found = {}
    for name, (count, recipe) in rows.items():
        run, _ = machine.train(name, "--nproc", count, **recipe)
        found[name] = compare.train_lines(run)[-1]
        machine.report("layouts", layout=name, ranks=count, loss=found[name]["loss"])
    for name, line in found.items():
        copies = found["mixtral-copies" if name.startswith("mixtral") else "copies"]
        is_exact = not name.startswith(("compress", "diloco"))
        off = abs(line["loss"] - copies["loss"])
        must(off < (1e-3 if is_exact else gpu_cases.ROUGH) * copies["loss"],
             f"{name}: the loss is {off} off")
        must(name == "diloco" or line["order_digest"] == copies["order_digest"],
             f"{name}: other samples")
    for name, collective in LOST.items():
        count, recipe = rows[name]
        _, said = machine.train(f"lost-{name}", "--nproc", count, expect=137, **recipe,
                                env={"SCALETRAIN_FAULT": f"kill@3,{count - 1},{collective}"})
        named = f"rank {count - 1} failed first: killed by SIGKILL" in said
        machine.report("layouts", layout=name, lost_in=collective, named=named)
        must(named, said)


for model in gpu_models.MODELS:
    PARTS[model] = lambda machine, name=model: gpu_models.measure(machine, name)


@part
def first_step(machine):
    """Seconds from the command to the end of the first step of ResNet-50, 32 images."""
    model = gpu_models.MODELS["resnet50"]
    image, batch = (224, 32) if machine.gpu else (32, 4)
    shards = machine.shards(512 if machine.gpu else 64, image, "raw")

    def ours():
        begin = time.time()
        run, _ = machine.train(
            f"first-{time.monotonic_ns()}", model={**model.recipe, "num_classes": 1000}, steps=1,
            data={"train": {"shards": shards}, "image_size": image}, precision="bf16",
            batch={"per_device": batch})
        return compare.train_lines(run)[0]["time"] - begin

    def peer():
        begin = time.time()
        return gpu_models.run_peer(machine, model, "--batch", batch, "--image-size", image,
                                   "--warmup", 1, "--steps", 0)["first_step"] - begin

    median = compare.in_turn({"ours": ours, "eager": peer}, 3 if machine.gpu else 1)
    machine.report("first_step", **median)


@part
def commands(machine):
    """A checkpoint is measured, and continued as text, on the device as on a CPU."""
    images = machine.shards(512 if machine.gpu else 64, 32, "png")
    run, _ = machine.train("images")
    texts, _ = machine.train("texts", model=gpu_cases.LLAMA, batch={"per_device": 8},
                             data={"train": {"tokens": machine.tokens()}, "context": 64})
    losses, said = [], []
    for device in (machine.device, "cpu"):
        seen = machine.ours("scaletrain", "eval", run, "--device", device, "--json", "--data",
                            *images)
        losses.append(json.loads(seen.stdout)["measures"]["loss"])
        said.append(machine.ours("scaletrain", "generate", texts, "--device", device,
                                 "--temperature", 0, "--max-tokens", 32, "--prompt", "the quick",
                                 "--tokenizer", "bytes").stdout)
    machine.report("commands", losses=losses, texts=said)
    must(abs(losses[0] - losses[1]) < 1e-4 * losses[1], f"the losses differ: {losses}")
    must(said[0] == said[1], f"the texts differ: {said}")


@part
def memory(machine):
    """A micro-batch that fills the device, and one that it has no room for."""
    if not machine.gpu:
        machine.report("memory", skipped="a CPU's memory has no end of its own")
        return
    model = {"model": {"name": "resnet50", "num_classes": 10}, "precision": "bf16",
             "deterministic": True}  # cuDNN tries its kernels for no size
    data = {"train": {"shards": machine.shards(512, 32, "png")}, "image_size": 224}
    run, _ = machine.train("fill", batch={"per_device": "auto", "global": 256}, steps=2, data=data,
                           **model)
    last = compare.train_lines(run)[-1]
    machine.report("memory", memory_bytes=last["memory_bytes"], samples=last["samples"])
    _, said = machine.train("too-much", batch={"per_device": 512}, steps=2, expect=71,
                            data={**data, "image_size": 2048}, **model)
    machine.report("memory", said=said[-1500:])
    must("out of memory" in said, said)


def write_table(out):
    """The newest figures of every model as a table for docs/lab/gpu-results.md."""
    newest = {}
    lines = out / "gpu.jsonl"
    for text in lines.read_text(encoding="utf-8").splitlines() if lines.exists() else []:
        line = json.loads(text)
        if line["gpu"] and "rate" in line:
            newest[line["part"], line["data"]] = line
    (out / "gpu-results.md").write_text(gpu_models.table(newest.values()), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*", metavar="PART", choices=[[], *PARTS])
    parser.add_argument("--list", action="store_true", help="the parts, one a line")
    parser.add_argument("--table", action="store_true", help="writes OUT/gpu-results.md")
    parser.add_argument("--out", default="build/gpu-results")
    options = parser.parse_args()
    if options.list:
        print("\n".join(PARTS))
    if options.table:
        write_table(pathlib.Path(options.out))
    for name in options.parts:
        with tempfile.TemporaryDirectory(prefix="scaletrain-gpu-") as folder:
            machine = Machine(folder, options.out)
            if not machine.gpu:
                print(f"{name}: no NVIDIA GPU here: tried on the CPU at a tiny size",
                      file=sys.stderr)
            PARTS[name](machine)


if __name__ == "__main__":
    main()
