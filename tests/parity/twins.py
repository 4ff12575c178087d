"""The same models in Python, and the parity program run on the same tensors."""

import functools
import json
import math
import pathlib

import torch
import torchvision
from safetensors.torch import load_file, save_file
from timm.models import resnet as timm_resnet
from timm.models.convnext import ConvNeXt
from timm.models.vision_transformer import VisionTransformer

from parity import served

IMAGE_SIZE = 32
NUM_CLASSES = 10


# Width, depth and heads.
VITS = {"vit_tiny": (192, 12, 3), "vit_small": (384, 12, 6), "vit_base": (768, 12, 12),
        "vit_large": (1024, 24, 16)}
# Blocks and widths of the stages.
CONVNEXTS = {"convnext_tiny": ((3, 3, 9, 3), (96, 192, 384, 768)),
             "convnext_small": ((3, 3, 27, 3), (96, 192, 384, 768)),
             "convnext_base": ((3, 3, 27, 3), (128, 256, 512, 1024))}
# Blocks of the stages, groups and their width.
RESNETS = {"resnet18": ((2, 2, 2, 2), 1, 64), "resnet34": ((3, 4, 6, 3), 1, 64),
           "resnet50": ((3, 4, 6, 3), 1, 64), "resnet101": ((3, 4, 23, 3), 1, 64),
           "resnet152": ((3, 8, 36, 3), 1, 64), "resnext50_32x4d": ((3, 4, 6, 3), 32, 4),
           "resnext101_32x8d": ((3, 4, 23, 3), 32, 8), "wide_resnet50_2": ((3, 4, 6, 3), 1, 128),
           "wide_resnet101_2": ((3, 4, 23, 3), 1, 128)}


def group_norm(channels, eps=1e-5, device=None, dtype=None):
    return torch.nn.GroupNorm(math.gcd(channels, 32), channels, eps, device=device, dtype=dtype)


def peer_vit(name, num_classes, image_size, patch_size=None, depth=None, dropout=0.0, drop_path=0.0,
             layer_scale=0.0, pool="token", dim=None, heads=None, in_channels=3):
    width, blocks, all_heads = VITS[name]
    return VisionTransformer(
        img_size=image_size, in_chans=in_channels,
        patch_size=patch_size or (4 if name == "vit_tiny" else 16),
        embed_dim=dim or width, depth=depth or blocks, num_heads=heads or all_heads,
        num_classes=num_classes, pos_drop_rate=dropout, proj_drop_rate=dropout,
        drop_path_rate=drop_path, init_values=layer_scale or None, class_token=pool == "token",
        global_pool=pool)


def peer_convnext(name, num_classes, patch_size=4, drop_path=0.0, layer_scale=1e-6, in_channels=3):
    depths, dims = CONVNEXTS[name]
    model = ConvNeXt(in_chans=in_channels, num_classes=num_classes, depths=depths, dims=dims,
                     drop_path_rate=drop_path, ls_init_value=layer_scale or None)
    if patch_size != 4:  # timm's would change what follows too
        model.stem[0] = torch.nn.Conv2d(in_channels, dims[0], patch_size, patch_size)
        torch.nn.init.trunc_normal_(model.stem[0].weight, std=0.02)
        torch.nn.init.zeros_(model.stem[0].bias)
    return model


def with_channels(model, module, name, channels):
    """torchvision's `model`, which has no argument for it, with another first convolution."""
    conv = getattr(module, name)
    if channels != conv.in_channels:
        other = torch.nn.Conv2d(channels, conv.out_channels, conv.kernel_size, conv.stride,
                                conv.padding, bias=False)
        torch.nn.init.kaiming_normal_(other.weight, mode="fan_out", nonlinearity="relu")
        setattr(module, name, other)
    return model


def peer_resnet(name, num_classes, stem="7x7", norm="batch", zero_init_residual=False,
                in_channels=3):
    norms = {"norm_layer": group_norm} if norm == "group" else {}
    if stem == "7x7":
        model = getattr(torchvision.models, name)(
            num_classes=num_classes, zero_init_residual=zero_init_residual, **norms)
        return with_channels(model, model, "conv1", in_channels)
    layers, groups, width = RESNETS[name]
    block = timm_resnet.BasicBlock if name in ("resnet18", "resnet34") else timm_resnet.Bottleneck
    return timm_resnet.ResNet(block, layers, in_chans=in_channels, num_classes=num_classes,
                              stem_type="deep", stem_width=32, avg_down=True, cardinality=groups, base_width=width,
                              zero_init_last=zero_init_residual, **norms)


def peer_model(name, num_classes=NUM_CLASSES, image_size=IMAGE_SIZE, **options):
    """The model `name` of torchvision or timm, initialised by it; `options` are the recipe's."""
    if name in VITS:
        return peer_vit(name, num_classes, image_size, **options)
    if name in CONVNEXTS:
        return peer_convnext(name, num_classes, **options)
    if name in RESNETS:
        return peer_resnet(name, num_classes, **options)
    if options.pop("norm", "batch") == "group":
        options["norm_layer"] = functools.partial(group_norm, eps=0.001)
    channels = options.pop("in_channels", 3)
    model = getattr(torchvision.models, name)(num_classes=num_classes, **options)
    return with_channels(model, model.features[0], "0", channels)


def peer_with(state, name, **options):
    """peer_model with the values of `state`, and without the time that it takes to draw others."""
    with torch.device("meta"):
        peer = peer_model(name, **options)
    peer.load_state_dict({key: value.clone() for key, value in state.items()}, strict=True,
                         assign=True)
    return peer


class Twin:
    """Our program for one recipe, with its files in `folder`."""

    def __init__(self, folder, model, options=None, **sections):
        self.folder = pathlib.Path(folder)
        recipe = {
            "seed": 1234,
            "model": {"name": model, **(options or {})},
            "epochs": 1,
            "precision": "fp32",
            "optimizer": {"name": "sgd", "lr": 0.1},
            "output": "unused",
        }
        if "vocab_size" in recipe["model"]:
            recipe["data"] = {"train": {"tokens": "unused.bin"}, "context": 8}
        else:
            recipe["model"].setdefault("num_classes", NUM_CLASSES)
            recipe["data"] = {"train": {"shards": "unused.tar"}, "image_size": IMAGE_SIZE}
        recipe.update(sections)
        self.recipe = self.folder / "recipe.json"
        self.recipe.write_text(json.dumps(recipe))

    def initial_state(self):
        out = self.folder / "initial.safetensors"
        self._run("init", self.recipe, out)
        return load_file(out)

    def shapes(self):
        """Sizes of every parameter and buffer, by its name."""
        lines = [line.split(" ") for line in self._run("shapes", self.recipe).splitlines()]
        return {name: tuple(map(int, filter(None, sizes.split(",")))) for name, sizes in lines}

    def logits(self, state, inputs, **more):
        """inputs: images, or tokens of a language model; `more`: further tensors of the program's
        input."""
        out = self.folder / "logits.safetensors"
        self._run("logits", self.recipe, self._save("weights", state),
                  self._save("input", {"inputs": inputs, **more}), out)
        return load_file(out)["logits"]

    def gradients(self, state, inputs, targets, **more):
        """Of the mean loss over one batch, by the parameters' names."""
        out = self.folder / "gradients.safetensors"
        self._run("gradients", self.recipe, self._save("weights", state),
                  self._save("batch", {"inputs": inputs, "targets": targets, **more}), out)
        return load_file(out)

    def flops(self, state, inputs, targets, **more):
        """FLOPs of forward and backward of the mean loss over one batch, and of forward again."""
        return [int(one) for one in self._run(
            "flops", self.recipe, self._save("weights", state),
            self._save("batch", {"inputs": inputs, "targets": targets, **more})).split()]

    def losses(self, state, inputs, targets, **more):
        """The loss of each step; inputs [steps, batch, ...], targets [steps, batch, ...];
        `more`: further tensors of the program's batches."""
        text = self._run("train", self.recipe, self._save("weights", state),
                         self._save("batches", {"inputs": inputs, "targets": targets, **more}))
        return [float(line) for line in text.splitlines()]

    def mixed(self, images, targets):
        """Images, targets and pairs of the recipe's mix of a batch."""
        out = self.folder / "mixed.safetensors"
        self._run("mix", self.recipe, self._save("batch", {"images": images, "targets": targets}), out)
        mixed = load_file(out)
        return mixed["images"], mixed["targets"], mixed["pairs"]

    def _save(self, name, tensors):
        path = self.folder / f"{name}.safetensors"
        save_file({key: value.detach().contiguous().clone() for key, value in tensors.items()}, path)
        return path

    @staticmethod
    def _run(*words):
        return served.run("parity_program", *words)


def mean_losses(folder, cases):
    """The mean loss and the gradient of the logits of each (key "loss" of a recipe, logits, targets)."""
    words, outs = [], []
    for number, (loss, logits, targets) in enumerate(cases):
        place = pathlib.Path(folder, str(number))
        place.mkdir()
        twin = Twin(place, "mlp", loss=loss)
        outs.append(place / "loss.safetensors")
        words += [twin.recipe, twin._save("batch", {"logits": logits, "targets": targets}), outs[-1]]
    Twin._run("loss", *words)
    return [(found["loss"], found["gradient"]) for found in map(load_file, outs)]


def disturb(state, generator):
    """Moves every tensor away from its initial value, as training does: norms and biases too."""
    result = {}
    for name, value in state.items():
        if name.endswith("num_batches_tracked"):
            result[name] = torch.tensor(17)
        elif name.endswith("running_var"):
            result[name] = value * (0.5 + torch.rand(value.shape, generator=generator))
        else:
            noise = torch.randn(value.shape, generator=generator)
            scale = 0.1 if value.dim() < 2 else 0.1 * value.std().item()
            result[name] = value + scale * noise
    return result


def images(generator, *batch, channels=3):
    return torch.randn(*batch, channels, IMAGE_SIZE, IMAGE_SIZE, generator=generator)
