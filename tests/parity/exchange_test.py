"""What ranks get of given gradients by each compression is what PyTorch's DistributedDataParallel gets by
its communication hooks: bf16_compress_hook, fp16_compress_hook and powerSGD_hook."""

import json
import multiprocessing
import os
import pathlib
import subprocess
import tempfile
import unittest

import torch
import torch.distributed as dist
from free_port import free_port
from safetensors.torch import load_file, save_file
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

PROGRAM = pathlib.Path(os.environ["SCALETRAIN_BIN"]) / "exchange_program"
RANKS, STEPS, WARMUP = 2, 6, 2  # before its third step PyTorch may not begin
SHAPES = {"conv.weight": (24, 4, 3, 3), "fc.bias": (48,), "fc.weight": (48, 32), "thin.weight": (20, 2)}
TIMEOUT_S = 120


def gradients():
    """Of each parameter [ranks, steps, ...]: a part that all ranks share, so that there is something to
    find in few columns, and noise."""
    torch.manual_seed(0)
    result = {}
    for name, shape in SHAPES.items():
        shared = torch.randn(1, STEPS, *shape)
        result[name] = shared + 0.5 * torch.randn(RANKS, STEPS, *shape)
    return result


class Model(torch.nn.Module):
    """Parameters whose gradients are those that forward is given."""

    def __init__(self):
        super().__init__()
        self.held = torch.nn.ParameterList([torch.ones(shape) for shape in SHAPES.values()])

    def forward(self, given):
        return sum((one * given[name]).sum() for name, one in zip(SHAPES, self.held, strict=True))


def with_first_factors(state, first, names):
    """powerSGD_hook that begins with the factors of `first`, not with its own draws."""

    def hook(state, bucket):
        index = bucket.index()
        if state.iter >= state.start_powerSGD_iter and index not in state.p_memory_dict:
            ps, qs = 0, []
            for parameter in bucket.parameters():
                q = first.get(f"own/q/{names[parameter.data_ptr()]}")
                if q is None:
                    continue
                ps += parameter.shape[0] * q.shape[1]
                qs.append(q.flatten())
            state.p_memory_dict[index] = torch.empty(ps)
            state.q_memory_dict[index] = torch.cat(qs)
        return powerSGD_hook.powerSGD_hook(state, bucket)

    return hook


def peer(rank, port, compress, first, out):
    """Rank `rank` of PyTorch's; writes its means."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank,
                            world_size=RANKS)
    model = Model()
    parallel = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    if compress["name"] == "powersgd":
        state = powerSGD_hook.PowerSGDState(dist.group.WORLD, compress["rank"], WARMUP,
                                            min_compression_rate=2)
        names = {one.data_ptr(): name for name, one in zip(SHAPES, model.held, strict=True)}
        parallel.register_comm_hook(state, with_first_factors(state, first, names))
    else:
        hook = getattr(default_hooks, f"{compress['name']}_compress_hook")
        parallel.register_comm_hook(None, hook)
    given = gradients()
    means = {name: [] for name in SHAPES}
    for step in range(STEPS):
        parallel.zero_grad()
        parallel({name: all_[rank][step] for name, all_ in given.items()}).backward()
        for name, one in zip(SHAPES, model.held, strict=True):
            means[name].append(one.grad.clone())
    if rank == 0:
        save_file({name: torch.stack(of_steps) for name, of_steps in means.items()}, out)
    dist.barrier()
    os._exit(0)  # at an orderly end its threads abort the process now and then


def ours(compress, folder):
    """What each rank of our program wrote."""
    save_file({name: one.contiguous() for name, one in gradients().items()}, folder / "gradients")
    port, started = free_port(), []
    for rank in range(RANKS):
        environment = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(RANKS),
                           LOCAL_WORLD_SIZE=str(RANKS), MASTER_ADDR="127.0.0.1",
                           MASTER_PORT=str(port))
        started.append(subprocess.Popen([PROGRAM, json.dumps(compress), folder / "gradients",
                                         folder / f"ours-{rank}"], env=environment))
    if any([one.wait(TIMEOUT_S) for one in started]):
        raise AssertionError("exchange_program failed")
    return [load_file(folder / f"ours-{rank}") for rank in range(RANKS)]


def theirs(compress, first, folder):
    context = multiprocessing.get_context("fork")  # torch is imported
    port, started = free_port(), []
    for rank in range(RANKS):
        started.append(context.Process(target=peer,
                                       args=(rank, port, compress, first, folder / "theirs")))
        started[-1].start()
    for one in started:
        one.join(TIMEOUT_S)
    if any(one.exitcode != 0 for one in started):
        raise AssertionError("PyTorch failed")
    return load_file(folder / "theirs")


class Exchange(unittest.TestCase):
    def compare(self, compress, tolerance):
        with tempfile.TemporaryDirectory(prefix="exchange_test_") as name:
            folder = pathlib.Path(name)
            ranks = ours(compress, folder)
            expected = theirs(compress, ranks[0], folder)
        for parameter in SHAPES:
            self.assertTrue(torch.equal(ranks[0][f"mean/{parameter}"], ranks[1][f"mean/{parameter}"]))
            for step in range(STEPS):
                got, want = ranks[0][f"mean/{parameter}"][step], expected[parameter][step]
                apart = ((got - want).abs().max() / want.abs().max()).item()
                self.assertLessEqual(apart, tolerance, f"{compress}: {parameter}, step {step}")

    def test_halves(self):
        for name in ("bf16", "fp16"):
            with self.subTest(name):
                self.compare({"name": name}, 0)

    def test_powersgd(self):
        for rank in (1, 2, 4):  # of the first two PyTorch orthogonalises by Gram and Schmidt
            with self.subTest(rank=rank):
                self.compare({"name": "powersgd", "rank": rank, "warmup": WARMUP}, 2e-5)


if __name__ == "__main__":
    torch.set_num_threads(1)  # it has no threads that a fork would lose
    unittest.main()
