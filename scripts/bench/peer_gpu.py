"""The peer of gpu_models.py: a training loop in PyTorch as it is usually written for one GPU.

    python scripts/bench/peer_gpu.py torchvision.models:resnet50 --mode compile --batch 256

Prints one JSON line: samples a second after the warmup, the peak of allocated memory, and the time
when the first step had ended. A constructor of transformers is a language model's configuration;
its samples are rows of random tokens.
"""
import argparse
import importlib
import io
import itertools
import json
import os
import resource
import tarfile
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    """The JPEGs of tar shards, the encoded bytes in memory."""

    def __init__(self, shards, image_size):
        from torchvision import transforms
        self.samples = []
        for shard in shards:
            with tarfile.open(shard) as tar:
                members = {member.name: tar.extractfile(member).read() for member in tar}
            for name, data in members.items():
                stem, suffix = name.rsplit(".", 1)
                if suffix in ("jpg", "jpeg"):
                    self.samples.append((data, int(members[stem + ".cls"])))
        self.transform = transforms.Compose([
            transforms.RandomResizedCrop(image_size), transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))])

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        from PIL import Image
        data, label = self.samples[index]
        return self.transform(Image.open(io.BytesIO(data)).convert("RGB")), label


def is_text(options):
    return options.constructor.startswith("transformers:")


def batches(options):
    """Endless batches of images and labels on the device."""
    device = options.device
    if is_text(options):
        tokens = torch.randint(50257, (options.batch, options.context + 1), device=device)
        yield from itertools.repeat((tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()))
    if not options.data:
        images = torch.randn(options.batch, 3, options.image_size, options.image_size,
                             device=device).to(memory_format=torch.channels_last)
        labels = torch.randint(1000, (options.batch,), device=device)
        yield from itertools.repeat((images, labels))
    cuda = device == "cuda"
    loader = DataLoader(Images(options.data, options.image_size), options.batch, shuffle=True,
                        drop_last=True, num_workers=os.cpu_count() if cuda else 0, pin_memory=cuda,
                        persistent_workers=cuda)
    while True:
        for images, labels in loader:
            yield (images.to(device, non_blocking=True, memory_format=torch.channels_last),
                   labels.to(device, non_blocking=True))


class Logits(torch.nn.Module):
    """A model of transformers that returns nothing but its logits."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, tokens):
        return self.model(tokens, use_cache=False).logits.flatten(0, 1)


def make_text_model(name, options):
    import transformers
    config = getattr(transformers, name)(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    if options.device == "cpu":
        config.n_layer = 1  # only to see that it starts
    return Logits(transformers.AutoModelForCausalLM.from_config(config, attn_implementation="sdpa"))


def make_image_model(module, name, options):
    sizes = {} if module.startswith("torchvision") else {"img_size": options.image_size}
    if options.device == "cpu" and sizes:
        sizes["depth"] = 1  # only to see that it starts
    model = getattr(importlib.import_module(module), name)(num_classes=1000, **sizes)
    return model.to(memory_format=torch.channels_last)


def make_model(options):
    module, name = options.constructor.split(":")
    model = (make_text_model(name, options) if is_text(options)
             else make_image_model(module, name, options)).to(options.device)
    if options.mode == "eager":
        return model
    # Without a GPU a compiler would only cost time.
    return torch.compile(model, backend="inductor" if options.device == "cuda" else "eager")


def peak_memory_bytes(device):
    if device == "cuda":
        return torch.cuda.max_memory_allocated()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("constructor", help="module:function")
    parser.add_argument("--mode", choices=["eager", "compile"], default="eager")
    parser.add_argument("--data", nargs="*", default=[], help="shards; none: synthetic")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda")
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--context", type=int, default=1024, help="tokens of a row")
    parser.add_argument("--optimizer", choices=["sgd", "adamw"], default="sgd")
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--warmup", type=int, default=20)
    parser.add_argument("--steps", type=int, default=60)
    options = parser.parse_args()

    torch.manual_seed(1234)
    torch.backends.cudnn.benchmark = True
    model = make_model(options)
    optimizer = (torch.optim.SGD(model.parameters(), options.lr, momentum=0.9, fused=True)
                 if options.optimizer == "sgd"
                 else torch.optim.AdamW(model.parameters(), options.lr, fused=True))
    criterion = torch.nn.CrossEntropyLoss()
    model.train()
    first_step = begin = 0.0
    total = options.warmup + options.steps
    for step, (images, labels) in enumerate(itertools.islice(batches(options), total), 1):
        # CPUs without AVX-512 emulate bf16, which takes minutes.
        with torch.autocast(options.device, torch.bfloat16, enabled=options.device == "cuda"):
            loss = criterion(model(images), labels.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step == 1:
            loss.item()
            first_step = time.time()
        if step in (options.warmup, total):
            loss.item()  # waits for the device
            if step == options.warmup:
                begin = time.perf_counter()
    seconds = time.perf_counter() - begin
    print(json.dumps({"samples_per_s": options.steps * options.batch / seconds,
                      "first_step": first_step,
                      "memory_bytes": peak_memory_bytes(options.device)}))


if __name__ == "__main__":
    main()
