"""What torch.save writes is read here with every value, or refused; nothing in it is run. What is
written here, torch.load(weights_only=True) reads."""

import collections
import io
import json
import os
import pickle
import subprocess
import tempfile
import unittest
import zipfile

import safetensors.torch
import torch
import torchvision

PROGRAM = os.path.join(os.environ["SCALETRAIN_BIN"], "pt_program")
DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32,
          torch.int16, torch.int8, torch.uint8, torch.bool, torch.float8_e4m3fn, torch.float8_e5m2,
          torch.uint16, torch.uint32, torch.uint64]


def flattened(value, path=()):
    """The tensors of nested containers by their dotted path."""
    if isinstance(value, torch.Tensor):
        return {".".join(path): value.detach()}
    found = {}
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(
        value, (list, tuple)) else []
    for key, item in items:
        found |= flattened(item, (*path, str(key)))
    return found


def bits(tensor):
    """What compares equal only where every byte does: NaN is NaN, -0 is not 0."""
    return tensor.contiguous().reshape(-1).view(torch.uint8)


class Trap:
    """A pickle of this makes a file when it is run."""

    def __init__(self, call, *arguments):
        self.call = call
        self.arguments = arguments

    def __reduce__(self):
        return self.call, self.arguments


class PtTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        torch.manual_seed(1)

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_program(self, *arguments, status=0):
        done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=600)
        self.assertEqual(status, done.returncode, done.stderr)
        return done.stdout if status == 0 else done.stderr

    def read(self, path):
        self.run_program("read", path, self.path("out"))
        return safetensors.torch.load_file(self.path("out"))

    def saved(self, value, **options):
        torch.save(value, self.path("a.pt"), **options)
        return self.path("a.pt")

    def compare(self, value, **options):
        expected = flattened(value)
        found = self.read(self.saved(value, **options))
        self.assertEqual(sorted(expected), sorted(found))
        for name, tensor in expected.items():
            with self.subTest(name):
                self.assertEqual(tensor.dtype, found[name].dtype)
                self.assertEqual(tensor.shape, found[name].shape)
                self.assertTrue(torch.equal(bits(tensor), bits(found[name])))

    def refuse(self, value, **options):
        return self.run_program("read", self.saved(value, **options), self.path("out"), status=65)

    def test_models_and_their_optimizers_are_read(self):
        for name in ["resnet18", "mobilenet_v3_small", "shufflenet_v2_x0_5"]:
            model = torchvision.models.get_model(name, weights=None)
            optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
            model(torch.randn(2, 3, 64, 64)).sum().backward()
            optimizer.step()
            with self.subTest(name):
                self.compare(model.state_dict())
                self.compare({"epoch": 3, "arch": name, "state_dict": model.state_dict(),
                              "optimizer": optimizer.state_dict(), "best": 0.5, "args": None})

    def test_every_dtype_is_read(self):
        for dtype in DTYPES:
            self.compare({"a": torch.randint(0, 2, (3, 5)).to(dtype),
                          "b": torch.zeros(0, 4, dtype=dtype), "c": torch.ones((), dtype=dtype)})
        self.compare({"nan": torch.tensor([float("nan"), -0.0, float("inf")])})

    def test_every_protocol_is_read(self):
        value = {"a": torch.randn(300, 3), "b": [torch.randn(2)], "big": 1 << 70, "x": b"\xff\x00",
                 "numbers": [1, -1, 255, 256, 65535, 65536, -(1 << 31), 1 << 40, 0.5, None, True]}
        for protocol in range(2, 6):
            self.compare(value, pickle_protocol=protocol)

    def test_views_are_read_in_their_own_order(self):
        base = torch.randn(6, 8)
        packed = torch.randn(2, 3, 4, 5)
        self.compare({"base": base, "transposed": base.t(), "rows": base[1:3], "columns": base[:, 2:5],
                      "every second": base[::2, 1::3], "diagonal": base.diagonal(),
                      "expanded": base[:, :1].expand(6, 7), "scalar": base[3, 4],
                      "expanded scalar": base[0, 0].expand(3, 3), "unsqueezed": base[2:3, None].mT,
                      "channels last": packed.contiguous(memory_format=torch.channels_last),
                      "permuted": packed.permute(3, 1, 0, 2)[1:, :, 1:],
                      "empty": base[3:3], "unfolded": base.unfold(1, 3, 2)})

    def test_shared_storages_and_parameters_are_read(self):
        weight = torch.nn.Parameter(torch.randn(4, 4))
        self.compare({"weight": weight, "tied": weight, "half": weight.data[:2],
                      "frozen": torch.nn.Parameter(torch.randn(2), requires_grad=False)})

    def test_nested_containers_are_read(self):
        self.compare(collections.OrderedDict(
            a={"b": [torch.ones(1), (torch.ones(2), {"c": torch.ones(3)})]}, size=torch.Size([1, 2]),
            dtype=torch.bfloat16, device=torch.device("cpu"), empty={}, none=[]))
        self.compare([torch.ones(2), torch.zeros(3)])
        self.compare(torch.ones(2))

    def test_files_without_checksums_are_read(self):
        torch.serialization.set_crc32_options(False)
        try:
            self.compare({"a": torch.randn(3, 3).t()})
        finally:
            torch.serialization.set_crc32_options(True)

    def test_the_part_that_is_a_model_is_chosen(self):
        tensor = torch.ones(1)
        state = {"layer.weight": tensor, "layer.bias": tensor}
        optimizer = {"state": {0: {"exp_avg": tensor}}}
        wrapped = {f"module._orig_mod.{key}": value for key, value in state.items()}
        for value, part, stripped, others in [
                (state, "", "", []),
                ({"state_dict": state, "optimizer": optimizer}, "state_dict", "", ["optimizer"]),
                ({"model": wrapped, "model_ema": state}, "model", "module._orig_mod.", ["model_ema"]),
                ({"state_dict": wrapped, "best": tensor}, "state_dict", "module._orig_mod.", []),
                ({"anything": state, "epoch": 1}, "anything", "", []),
                ({"state_dict_ema": state, "optimizer": optimizer}, "state_dict_ema", "",
                 ["optimizer"])]:
            found = json.loads(self.run_program("part", self.saved(value)))
            self.assertEqual({"part": part, "stripped": stripped, "others": others,
                              "names": sorted(state)}, found)
        path = self.saved({"one": state, "two": {"three": wrapped}})
        self.assertIn("has tensors below one, two", self.run_program("part", path, status=65))
        self.assertEqual("two.three", json.loads(self.run_program("part", path, "two.three"))["part"])
        self.assertIn('holds no tensor below "four"',
                      self.run_program("part", path, "four", status=65))

    def test_pickles_with_code_are_refused_and_not_run(self):
        made = self.path("made")
        for call, arguments, name in [
                (os.system, [f"touch {made}"], f"{os.system.__module__}.system"),
                (eval, [f"open({made!r}, 'w')"], "eval"),
                (exec, [f"open({made!r}, 'w')"], "exec"),
                (open, [made, "w"], "io.open"),
                (os.mkdir, [made], f"{os.mkdir.__module__}.mkdir"),
                (subprocess.check_call, [["touch", made]], ".check_call"),
                (torch.load, [made], "torch.serialization.load")]:
            for protocol in range(2, 6):
                error = self.refuse({"a": torch.ones(2), "b": Trap(call, *arguments)},
                                    pickle_protocol=protocol)
                self.assertIn("refuses to run", error)
                self.assertIn(name, error)
                self.assertRegex(error, r"at byte \d+\n")
        self.assertFalse(os.path.exists(made))

    def test_values_that_are_not_plain_tensors_are_refused_by_name(self):
        for value, name in [
                (torch.nn.Linear(2, 2), "torch.nn.modules.linear.Linear"),
                (torch.eye(2).to_sparse(), "torch._utils._rebuild_sparse_tensor"),
                (torch.zeros(2, dtype=torch.complex128), "torch.ComplexDoubleStorage"),
                (torch.quantize_per_tensor(torch.ones(2), 1, 0, torch.qint8), "_rebuild_qtensor"),
                (torch.ones(2).numpy(), "numpy"),
                ({1, 2}, "set")]:
            error = self.refuse({"a": value})
            self.assertIn(name, error)
        self.assertIn("has 7 values, where 6 are read", self.refuse({"a": torch.ones(
            2, dtype=torch.complex64).conj()}))

    def test_other_containers_are_refused_with_what_to_do(self):
        error = self.refuse({"a": torch.ones(2)}, _use_new_zipfile_serialization=False)
        self.assertIn("was saved by PyTorch before 1.6", error)
        self.assertIn("torch.save(torch.load(FILE, weights_only=True), FILE)", error)
        with open(self.path("b.pt"), "wb") as file:
            pickle.dump({"a": 1}, file, protocol=4)
        self.assertIn("is not a file of torch.save",
                      self.run_program("read", self.path("b.pt"), self.path("out"), status=65))
        torch.jit.script(torch.nn.Linear(2, 2)).save(self.path("c.pt"))
        self.assertIn("TorchScript",
                      self.run_program("read", self.path("c.pt"), self.path("out"), status=65))
        for compression in [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2]:
            packed = self.changed({"a": torch.ones(1000)}, compression=compression)
            self.assertIn("is compressed",
                          self.run_program("read", packed, self.path("out"), status=65))
        big = self.changed({"a": torch.ones(2)}, byteorder=b"big")
        self.assertIn('byte order "big"', self.run_program("read", big, self.path("out"), status=65))
        missing = self.changed({"a": torch.ones(2)}, **{"data/0": None})
        self.assertIn("is not there", self.run_program("read", missing, self.path("out"), status=65))
        short = self.changed({"a": torch.ones(2)}, **{"data/0": b"1234"})
        self.assertIn("the archive has 4",
                      self.run_program("read", short, self.path("out"), status=65))

    def changed(self, value, compression=zipfile.ZIP_STORED, **replaced):
        """A file of torch.save packed again by Python's zipfile, with other entries."""
        buffer = io.BytesIO()
        torch.save(value, buffer)
        with zipfile.ZipFile(buffer) as archive, zipfile.ZipFile(
                self.path("changed.pt"), "w", compression) as other:
            for entry in archive.infolist():
                data = replaced.get(entry.filename.split("/", 1)[1], archive.read(entry))
                if data is not None:
                    other.writestr(entry.filename, data)
        return self.path("changed.pt")

    def test_mutated_files_are_refused_or_read_right(self):
        view = torch.randn(5, 4)
        value = {"state_dict": {"a": view.t(), "b": view[1:], "c": torch.nn.Parameter(torch.ones(3))},
                 "optimizer": {"state": {0: {"step": torch.tensor(3.0)}}, "param_groups": [{"lr": 1.0}]}}
        path = self.saved(value)
        refused = int(self.run_program("mutate", path, "10000", "1"))
        self.assertGreater(refused, 5000)
        self.assertLess(refused, 10000)  # what fills up to an alignment may change

    def test_torch_reads_written_files(self):
        state = {f"layer.{i}.{dtype}": torch.randint(0, 2, (i, 3)).to(dtype)
                 for i in range(3) for dtype in DTYPES}
        state |= {"scalar": torch.tensor(1.5), "nan": torch.tensor([float("nan")]),
                  "": torch.ones(1), "name with é": torch.ones(300, 300),
                  "complex": torch.ones(2, dtype=torch.complex64)}
        safetensors.torch.save_file(state, self.path("in"))
        self.run_program("write", self.path("in"), self.path("out.pt"))
        for mapped in [False, True]:
            found = torch.load(self.path("out.pt"), weights_only=True, mmap=mapped)
            self.assertIs(type(found), dict)
            self.assertEqual(sorted(state), sorted(found))
            for name, tensor in state.items():
                self.assertEqual(tensor.dtype, found[name].dtype)
                self.assertEqual(tensor.shape, found[name].shape)
                self.assertTrue(found[name].is_contiguous())
                self.assertTrue(torch.equal(bits(tensor), bits(found[name])), name)
        with zipfile.ZipFile(self.path("out.pt")) as archive:
            self.assertIsNone(archive.testzip())
        again = self.read(self.path("out.pt"))
        self.assertTrue(all(torch.equal(bits(state[name]), bits(again[name])) for name in state))


if __name__ == "__main__":
    unittest.main()
