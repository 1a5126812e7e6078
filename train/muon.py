"""Muon: momentum whose update is made orthogonal by Newton-Schulz steps, for stacks of matrices of one shape."""

import torch


def orthogonalize(g, steps=5):
    """The nearest (about) orthogonal matrices to a stack g [n, rows, columns]."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = g.bfloat16() if g.is_cuda else g.float()
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    flipped = x.shape[-2] > x.shape[-1]
    if flipped:
        x = x.mT
    for _ in range(steps):
        y = x @ x.mT
        x = a * x + (b * y + c * (y @ y)) @ x
    return (x.mT if flipped else x).to(g.dtype)


class Muon(torch.optim.Optimizer):
    """Parameters are matrices or stacks of matrices; those of one shape are updated together."""

    def __init__(self, parameters, lr=0.02, momentum=0.95, decay=0.01):
        super().__init__(list(parameters), dict(lr=lr, momentum=momentum, decay=decay))

    @torch.no_grad()
    def step(self):
        """One update."""
        for group in self.param_groups:
            shapes = {}
            for p in group["params"]:
                if p.grad is not None:
                    shapes.setdefault(p.shape[-2:], []).append(p)
            for shape, parameters in shapes.items():
                updates = []
                for p in parameters:
                    state = self.state[p]
                    if not state:
                        state["momentum"] = torch.zeros_like(p)
                    state["momentum"].lerp_(p.grad, 1 - group["momentum"])
                    updates.append(p.grad.lerp(state["momentum"], group["momentum"]).reshape(-1, *shape))
                update = orthogonalize(torch.cat(updates)) * max(1.0, shape[0] / shape[1]) ** 0.5
                for p, part in zip(parameters, update.split([u.shape[0] for u in updates])):
                    p.mul_(1 - group["lr"] * group["decay"]).add_(part.view_as(p), alpha=-group["lr"])
