"""Optimizers in plain Python, for what neither torch.optim nor timm.optim has: each from its paper."""
import torch


class Peer(torch.optim.Optimizer):
    """Calls update(parameter, group, state) for each parameter; what it does in place is the step."""

    def __init__(self, groups, lr):
        super().__init__(groups, {"lr": lr, "weight_decay": 0.0})
        self.steps = 0

    @torch.no_grad()
    def step(self):
        self.steps += 1
        for group in self.param_groups:
            for parameter in group["params"]:
                self.update(parameter, group, self.state[parameter])


class Centralized:
    """Yong et al., 2020, equation 1, in front of another optimizer."""

    def __init__(self, inner):
        self.inner = inner

    def step(self):
        for group in self.inner.param_groups:
            for parameter in group["params"]:
                if parameter.dim() > 1:
                    of_outputs = parameter.grad.flatten(1)
                    mean = of_outputs.mean(1, keepdim=True)
                    parameter.grad = (of_outputs - mean).view_as(parameter)
        self.inner.step()


class Muon:
    """torch.optim.Muon for matrices, kernels as [out, all others]; torch.optim.AdamW for the rest."""

    def __init__(self, groups, lr, adamw_lr=None, **keys):
        matrices, others, self.views = [], [], []
        for group in groups:
            scale = group.get("lr", lr) / lr
            flat = []
            for parameter in group["params"]:
                if parameter.dim() > 1:
                    flat.append(torch.nn.Parameter(parameter.detach().flatten(1)))
                    self.views.append((parameter, flat[-1]))
            rest = [parameter for parameter in group["params"] if parameter.dim() <= 1]
            matrices.append({**group, "params": flat})
            others.append({**group, "params": rest, "lr": (adamw_lr or lr) * scale})
        self.muon = torch.optim.Muon([group for group in matrices if group["params"]], lr, **keys)
        self.adamw = torch.optim.AdamW([group for group in others if group["params"]], lr)

    def step(self):
        for parameter, view in self.views:
            view.grad = parameter.grad.flatten(1)
        self.muon.step()
        self.adamw.step()


class ScheduleFreeAdamW(Peer):
    """Defazio et al., 2024, algorithm 1; weights of the average by lr to a power, as in section 3."""

    def __init__(self, groups, lr, beta1=0.9, beta2=0.999, eps=1e-8, power=2):
        super().__init__(groups, lr)
        self.beta1, self.beta2, self.eps, self.power = beta1, beta2, eps, power

    def update(self, y, group, state):
        z = state.setdefault("z", y.double().clone())
        x = state.setdefault("x", y.double().clone())
        squares = state.setdefault("squares", torch.zeros_like(z))
        gradient, lr = y.grad.double(), group["lr"]
        squares.mul_(self.beta2).add_((1 - self.beta2) * gradient ** 2)
        denominator = (squares / (1 - self.beta2 ** self.steps)).sqrt() + self.eps
        z.sub_(lr * (gradient / denominator + group["weight_decay"] * y))
        weight = lr ** self.power
        state["sum"] = state.get("sum", 0) + weight
        share = weight / state["sum"]
        x.copy_((1 - share) * x + share * z)
        y.copy_((1 - self.beta1) * z + self.beta1 * x)

    def evaluated(self, parameter):
        return self.state[parameter]["x"].to(parameter.dtype)


def code_values(has_signs):
    """Dettmers et al., 2022: dynamic quantization's 256 values."""
    values = [0.0, 1.0]
    for exponent in range(7):
        edges = torch.linspace(0.1, 1, 2 ** (exponent if has_signs else exponent + 1) + 1,
                               dtype=torch.double)
        middles = ((edges[:-1] + edges[1:]) / 2 * 10.0 ** (exponent - 6)).tolist()
        values += middles + ([-value for value in middles] if has_signs else [])
    return torch.tensor(sorted(values), dtype=torch.float)


def rounded(values, has_signs):
    """What `values` become by being kept in 8 bits, in blocks of 256."""
    codes = code_values(has_signs)
    result = torch.empty_like(values).flatten()
    for block, kept in zip(values.flatten().split(256), result.split(256)):
        scale = block.abs().max()
        if scale == 0:
            kept.zero_()
            continue
        nearest = (block / scale).unsqueeze(1).sub(codes).abs().argmin(1)
        if not has_signs:  # a denominator must not become 0
            nearest = torch.where(block > 0, nearest.clamp(min=1), nearest)
        kept.copy_(codes[nearest] * scale)
    return result.view_as(values)


class AdamW8bit(Peer):
    def update(self, parameter, group, state):
        average = state.setdefault("average", torch.zeros_like(parameter))
        squares = state.setdefault("squares", torch.zeros_like(parameter))
        average.mul_(0.9).add_(0.1 * parameter.grad)
        squares.mul_(0.999).add_(0.001 * parameter.grad ** 2)
        denominator = (squares / (1 - 0.999 ** self.steps)).sqrt() + 1e-8
        parameter.mul_(1 - group["lr"] * group["weight_decay"])
        parameter.sub_(group["lr"] / (1 - 0.9 ** self.steps) * average / denominator)
        average.copy_(rounded(average, True))
        squares.copy_(rounded(squares, False))


class Lion8bit(Peer):
    def update(self, parameter, group, state):
        average = state.setdefault("average", torch.zeros_like(parameter))
        direction = (0.9 * average + 0.1 * parameter.grad).sign()
        parameter.mul_(1 - group["lr"] * group["weight_decay"])
        parameter.sub_(group["lr"] * direction)
        average.copy_(rounded(0.99 * average + 0.01 * parameter.grad, True))


class Soap(Peer):
    """Vyas et al., 2024, algorithms 3 and 4, from the identity; squares follow a new basis."""

    def __init__(self, groups, lr, frequency=10, max_dim=10000):
        super().__init__(groups, lr)
        self.frequency, self.max_dim, self.tried = frequency, max_dim, 0

    def leave_out(self):
        self.tried += 1

    def step(self):
        self.tried += 1
        super().step()

    def update(self, parameter, group, state):
        gradient = parameter.grad.double()
        gradient = gradient.flatten(1) if parameter.dim() > 1 else gradient.view(-1, 1)
        average = state.setdefault("average", torch.zeros_like(gradient))
        squares = state.setdefault("squares", torch.zeros_like(gradient))
        sides = [parameter.dim() > 1 and size <= self.max_dim for size in gradient.shape]
        left, right = bases = state.setdefault("bases", [
            torch.eye(size, dtype=torch.double) for size in gradient.shape])
        grams = state.setdefault("grams", [torch.zeros_like(basis) for basis in bases])

        average.mul_(0.95).add_(0.05 * gradient)
        squares.mul_(0.95).add_(0.05 * (left.T @ gradient @ right) ** 2)
        denominator = (squares / (1 - 0.95 ** self.steps)).sqrt() + 1e-8
        change = left.T @ average @ right / (1 - 0.95 ** self.steps) / denominator
        parameter.mul_(1 - group["lr"] * group["weight_decay"])
        parameter.sub_(group["lr"] * (left @ change @ right.T).view_as(parameter))

        grams[0].mul_(0.95).add_(0.05 * gradient @ gradient.T)
        grams[1].mul_(0.95).add_(0.05 * gradient.T @ gradient)
        if self.tried % self.frequency:
            return
        turns = []
        for side, gram in enumerate(grams):
            renewed = torch.linalg.qr(gram @ bases[side])[0] if sides[side] else bases[side]
            turns.append((renewed.T @ bases[side]) ** 2)
            bases[side] = renewed
        squares.copy_(turns[0] @ squares @ turns[1].T)
