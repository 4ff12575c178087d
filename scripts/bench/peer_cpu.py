"""The peer of cpu_models.py and zero3_step.py: a training loop in PyTorch DDP, or FSDP2, as it is
usually written for a CPU.

    torchrun --nproc-per-node 2 scripts/bench/peer_cpu.py '{"name": "resnet18"}' --image-size 32

Rank 0 prints one JSON line: samples a second over all ranks, after the warmup.
"""
import argparse
import contextlib
import json
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def make_model(model, image_size):
    """The model of a recipe from the package that is its source."""
    name = model["name"]
    if name == "resnet18":
        from torchvision.models import resnet18
        return resnet18(num_classes=10).to(memory_format=torch.channels_last)
    if name == "vit_tiny":
        from timm.models.vision_transformer import VisionTransformer
        return VisionTransformer(img_size=image_size, patch_size=model["patch_size"], embed_dim=192,
                                 depth=12, num_heads=3, num_classes=10)
    if name == "convnext_tiny":
        from timm.models.convnext import convnext_tiny
        return convnext_tiny(num_classes=10).to(memory_format=torch.channels_last)
    if name == "gpt2":
        from transformers import GPT2Config, GPT2LMHeadModel
        return GPT2LMHeadModel(GPT2Config(
            vocab_size=model["vocab_size"], n_positions=model["positions"], n_embd=model["dim"],
            n_layer=model["depth"], n_head=model["heads"], resid_pdrop=0.0, embd_pdrop=0.0,
            attn_pdrop=0.0, use_cache=False))
    if name == "llama":
        from transformers import LlamaConfig, LlamaForCausalLM
        return LlamaForCausalLM(LlamaConfig(
            vocab_size=model["vocab_size"], max_position_embeddings=model["positions"],
            hidden_size=model["dim"], num_hidden_layers=model["depth"],
            num_attention_heads=model["heads"], num_key_value_heads=model["kv_heads"],
            intermediate_size=model["hidden"], tie_word_embeddings=model["tied"], use_cache=False))
    raise ValueError(name)


def make_batch(model, image_size, size):
    """Inputs and targets; a text's targets are its own next tokens."""
    if not image_size:
        tokens = torch.randint(model["vocab_size"], (size, model["positions"] + 1))
        return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
    images = torch.randn(size, 3, image_size, image_size).to(memory_format=torch.channels_last)
    return images, torch.randint(10, (size,))


def spread(model, sharded):
    """The model over all ranks: as copies, or in parts of each block and of the rest."""
    if not sharded:
        return DistributedDataParallel(model, gradient_as_bucket_view=True)
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    inner = model.transformer.h if hasattr(model, "transformer") else model.model.layers
    for block in inner:
        fully_shard(block, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=json.loads, help="the model of a recipe")
    parser.add_argument("--image-size", type=int, default=0, help="0: text")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--warmup", type=int, default=6)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--mode", choices=["default", "fused", "compile"], default="default")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--sharded", action="store_true", help="FSDP2 in place of DDP; text alone")
    options = parser.parse_args()

    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    torch.manual_seed(1234)
    model = spread(make_model(options.model, options.image_size), options.sharded)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3,
                                  fused=True if options.mode != "default" else None)
    run_model = torch.compile(model) if options.mode == "compile" else model
    inputs, targets = make_batch(options.model, options.image_size, options.batch)
    autocast = (torch.autocast("cpu", torch.bfloat16) if options.precision == "bf16"
                else contextlib.nullcontext())

    begin = 0.0
    model.train()
    for step in range(options.warmup + options.steps):
        if step == options.warmup:
            begin = time.perf_counter()
        with autocast:
            output = run_model(inputs)
            logits = output if options.image_size else output.logits
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, -2), targets.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        loss.item()  # a loop shows its loss
    if dist.get_rank() == 0:
        seconds = time.perf_counter() - begin
        samples = options.steps * options.batch * dist.get_world_size()
        print(json.dumps({"samples_per_s": samples / seconds}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
