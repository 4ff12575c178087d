"""The peer of first_step.py and train_digits.py: PyTorch DDP as it is usually written.

    torchrun --nproc-per-node 2 scripts/bench/peer_ddp.py --shards digits --steps 84

torchvision's ResNet-18, the same digits from the same tar shards, AdamW, one process a device. Rank
0 prints one JSON line: "first_step" and, for every step after it, "times", both Unix seconds.

A loader worker a rank (--loader-workers 1) and channels_last were tried on two busy cores: both
within 3 % of this.
"""
import argparse
import contextlib
import io
import itertools
import json
import pathlib
import tarfile
import time

import torch
import torch.distributed as dist
from PIL import Image
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler
from torchvision import models, transforms


class Digits(Dataset):
    """All samples of the shards, the encoded images in memory."""

    def __init__(self, folder, image_size):
        self.samples = []
        for shard in sorted(pathlib.Path(folder).glob("train-*.tar")):
            with tarfile.open(shard) as tar:
                members = {member.name: tar.extractfile(member).read() for member in tar}
            for name, data in members.items():
                stem, suffix = name.rsplit(".", 1)
                if suffix == "png":
                    self.samples.append((data, int(members[stem + ".cls"])))
        self.transform = transforms.Compose([
            transforms.Resize(image_size),
            transforms.RandomCrop(image_size, padding=image_size // 8),
            transforms.ToTensor(),
            transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
        ])

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        data, label = self.samples[index]
        return self.transform(Image.open(io.BytesIO(data)).convert("RGB")), label


def endless_batches(loader, sampler):
    for epoch in itertools.count():
        sampler.set_epoch(epoch)
        yield from loader


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shards", required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--image-size", type=int, default=32)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--fused", action="store_true", help="AdamW(fused=True)")
    parser.add_argument("--loader-workers", type=int, default=0)
    options = parser.parse_args()

    dist.init_process_group("gloo")
    torch.manual_seed(1234)
    dataset = Digits(options.shards, options.image_size)
    sampler = DistributedSampler(dataset, shuffle=True, drop_last=True)
    loader = DataLoader(dataset, options.batch, sampler=sampler, drop_last=True,
                        num_workers=options.loader_workers,
                        persistent_workers=options.loader_workers > 0)
    model = DistributedDataParallel(models.resnet18(num_classes=10), gradient_as_bucket_view=True)
    # None is PyTorch's own choice.
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05,
                                  fused=True if options.fused else None)
    criterion = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
    autocast = (torch.autocast("cpu", torch.bfloat16) if options.precision == "bf16"
                else contextlib.nullcontext())

    times = []
    model.train()
    for images, labels in itertools.islice(endless_batches(loader, sampler), options.steps):
        with autocast:
            loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        times.append(time.time())
    if dist.get_rank() == 0:
        print(json.dumps({"first_step": times[0], "times": times[1:], "loss": loss.item()}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
