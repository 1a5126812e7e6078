"""A second reference for some models of architectures/: float64 in numpy, written from the models' own descriptions.

`python3 e2e/golden/architectures.py --exact [NAME ...]` prints how far llama.cpp's logits are from these.
"""

import gguf
import numpy as np

# As in exact.py.
LARGEST_DIFFERENCE = 1e-4


def silu(x):
    return x / (1 + np.exp(-x))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


class Exact:
    """A file of architectures/ in float64."""

    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        self.name = reader.fields["general.architecture"].contents()
        prefix = self.name + "."
        self.keys = {key.removeprefix(prefix): field.contents() for key, field in reader.fields.items()}
        self.w = {tensor.name: tensor.data.astype(np.float64) for tensor in reader.tensors}
        self.hidden, self.blocks = self.keys["embedding_length"], self.keys["block_count"] - self.keys.get("nextn_predict_layers", 0)
        self.heads, self.kv_heads = self.keys["attention.head_count"], self.keys["attention.head_count_kv"]
        self.head = self.keys["attention.key_length"]
        self.window = self.keys.get("attention.sliding_window")

    def product(self, x, name):
        y = x @ self.w[f"{name}.weight"].T
        return y + self.w[f"{name}.bias"] if f"{name}.bias" in self.w else y

    def rms(self, x):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(self.keys["attention.layer_norm_rms_epsilon"]).astype(np.float64))

    def norm(self, x, name):
        return self.rms(x) * self.w[f"{name}.weight"]

    def yarn(self, frequency, dims, base):
        """Frequencies and the length of rotated vectors (YaRN, arXiv 2309.00071, as Transformers computes it)."""
        keys = self.keys
        if keys.get("rope.scaling.type") != "yarn":
            return frequency, 1.0
        factor, original = keys["rope.scaling.factor"], keys["rope.scaling.original_context_length"]
        turns = lambda n: dims * np.log(original / (n * 2 * np.pi)) / (2 * np.log(base))
        low, high = max(np.floor(turns(32)), 0), min(np.ceil(turns(1)), dims - 1)
        ramp = np.clip((np.arange(dims // 2) - low) / max(high - low, 0.001), 0, 1)
        return frequency / factor * ramp + frequency * (1 - ramp), 0.1 * np.log(factor) + 1

    def rope(self, x, dims=None, base=None, linear=1.0, neighbours=False, length=None):
        """Rotates the first `dims` of each head: neighbours, or dimension i with i + dims / 2."""
        dims = dims or x.shape[-1]
        base = base or self.keys["rope.freq_base"]
        frequency, yarn_length = self.yarn(base ** (-np.arange(dims // 2) * 2.0 / dims) / linear, dims, base)
        angle = np.arange(len(x))[:, None, None] * frequency
        length = length or yarn_length
        cos, sin = np.cos(angle) * length, np.sin(angle) * length
        first, second = (slice(0, dims, 2), slice(1, dims, 2)) if neighbours else (slice(0, dims // 2), slice(dims // 2, dims))
        a, b = x[..., first], x[..., second]
        out = x.copy()
        out[..., first], out[..., second] = a * cos - b * sin, a * sin + b * cos
        return out

    def split(self, x, count):
        return x.reshape(len(x), count, -1)

    def attend(self, q, k, v, scale, window=None, sinks=None):
        """Softmax attention; a sink is one more score of a head, without a value."""
        rows = np.arange(len(q))
        seen = rows[None, :] <= rows[:, None]
        if window:
            seen &= rows[:, None] - rows[None, :] < window
        out = np.empty((len(q), q.shape[1], v.shape[2]))
        for head in range(q.shape[1]):
            own = head // (q.shape[1] // k.shape[1])
            scores = np.where(seen, q[:, head] @ k[:, own].T * scale, -np.inf)
            if sinks is not None:
                scores = np.concatenate([scores, np.full((len(q), 1), sinks[head])], 1)
            out[:, head] = softmax(scores)[:, :len(q)] @ v[:, own]
        return out.reshape(len(q), -1)

    def swiglu(self, x, block, suffix=""):
        gate, up = (self.product(x, f"{block}ffn_{part}{suffix}") for part in ("gate", "up"))
        return self.product(silu(gate) * up, f"{block}ffn_down{suffix}")

    def mixture(self, x, block, chosen, weights, activation):
        """The sum of the chosen experts' answers."""
        matrix = lambda part: self.w[f"{block}ffn_{part}_exps.weight"]
        bias = lambda part, expert: self.w[f"{block}ffn_{part}_exps.bias"][expert] if f"{block}ffn_{part}_exps.bias" in self.w else 0
        out = np.zeros_like(x)
        for row, (experts, shares) in enumerate(zip(chosen, weights)):
            for expert, share in zip(experts, shares):
                gate, up = (x[row] @ matrix(part)[expert].T + bias(part, expert) for part in ("gate", "up"))
                out[row] += share * (activation(gate, up) @ matrix("down")[expert].T + bias("down", expert))
        return out

    def best(self, scores, count):
        return np.argsort(-scores, axis=1, kind="stable")[:, :count]

    def logits(self, ids):
        x = self.w["token_embd.weight"][ids]
        if self.name == "gemma3":
            x = x * np.sqrt(self.hidden)
        block = {"gemma3": self.gemma3, "gpt-oss": self.gpt_oss, "deepseek2": self.deepseek2, "qwen35moe": self.qwen35moe}[self.name]
        for number in range(self.blocks):
            x = block(x, f"blk.{number}.", number)
        head = self.w.get("output.weight", self.w["token_embd.weight"])
        return self.norm(x, "output_norm") @ head.T

    def gemma3(self, x, block, number):
        """Gemma 3 (arXiv 2503.19786): five blocks with a window, then one without, whose positions are scaled."""
        slides = number % 6 != 5
        y = self.norm(x, block + "attn_norm")
        turn = {"base": 10000.0} if slides else {"linear": self.keys["rope.scaling.factor"]}
        q, k = (self.rope(self.norm(self.split(self.product(y, f"{block}attn_{part}"), count), f"{block}attn_{part}_norm"), **turn)
                for part, count in (("q", self.heads), ("k", self.kv_heads)))
        v = self.split(self.product(y, block + "attn_v"), self.kv_heads)
        y = self.attend(q, k, v, self.head**-0.5, self.window if slides else None)
        x = x + self.norm(self.product(y, block + "attn_output"), block + "post_attention_norm")
        y = self.norm(x, block + "ffn_norm")
        y = self.product(gelu(self.product(y, block + "ffn_gate")) * self.product(y, block + "ffn_up"), block + "ffn_down")
        return x + self.norm(y, block + "post_ffw_norm")

    def gpt_oss(self, x, block, number):
        """gpt-oss (arXiv 2508.10925): sinks, a window in every other block, clamped SwiGLU, softmax of the chosen."""
        y = self.norm(x, block + "attn_norm")
        q, k, v = (self.split(self.product(y, f"{block}attn_{part}"), count)
                   for part, count in (("q", self.heads), ("k", self.kv_heads), ("v", self.kv_heads)))
        y = self.attend(self.rope(q), self.rope(k), v, self.head**-0.5, self.window if number % 2 == 0 else None,
                        self.w[block + "attn_sinks.weight"])
        x = x + self.product(y, block + "attn_output")
        y = self.norm(x, block + "post_attention_norm")
        scores = self.product(y, block + "ffn_gate_inp")
        chosen = self.best(scores, self.keys["expert_used_count"])
        weights = softmax(np.take_along_axis(scores, chosen, 1))

        def activation(gate, up):
            gate, up = np.minimum(gate, 7), np.clip(up, -7, 7)
            return gate * sigmoid(1.702 * gate) * (up + 1)
        return x + self.mixture(y, block, chosen, weights, activation)

    def deepseek2(self, x, block, number):
        """DeepSeek V2 and V3 (arXiv 2405.04434, 2412.19437), with keys and values unpacked for each head."""
        keys, heads, rank = self.keys, self.heads, self.keys["attention.kv_lora_rank"]
        turned = keys["rope.dimension_count"]
        y = self.norm(x, block + "attn_norm")
        queries = y
        if "attention.q_lora_rank" in keys:
            queries = self.norm(self.product(y, block + "attn_q_a"), block + "attn_q_a_norm")
        q = self.split(self.product(queries, block + ("attn_q_b" if "attention.q_lora_rank" in keys else "attn_q")), heads)
        both = self.product(y, block + "attn_kv_a_mqa")
        packed, position = self.norm(both[:, :rank], block + "attn_kv_a_norm"), both[:, None, rank:]
        if block + "attn_k_b.weight" in self.w:
            plain = np.einsum("tr,hrn->thn", packed, self.w[block + "attn_k_b.weight"])
            v = np.einsum("tr,hvr->thv", packed, self.w[block + "attn_v_b.weight"])
        else:
            plain, v = np.split(self.split(self.product(packed, block + "attn_kv_b"), heads), [q.shape[2] - turned], axis=2)
        # Vectors keep their length (`mscale` equals `mscale_all_dim`), and scores grow instead.
        turn = lambda part: self.rope(part, neighbours=True, length=1.0)
        q = np.concatenate([q[..., :-turned], turn(q[..., -turned:])], 2)
        k = np.concatenate([plain, np.repeat(turn(position), heads, 1)], 2)
        grow = 1.0
        if keys.get("rope.scaling.type") == "yarn":
            grow = keys["rope.scaling.yarn_log_multiplier"] * np.log(keys["rope.scaling.factor"]) + 1
        x = x + self.product(self.attend(q, k, v, grow**2 / np.sqrt(q.shape[2])), block + "attn_output")
        y = self.norm(x, block + "ffn_norm")
        if number < keys["leading_dense_block_count"]:
            return x + self.swiglu(y, block)
        return x + self.deepseek2_experts(y, block) + self.swiglu(y, block, "_shexp")

    def deepseek2_experts(self, y, block):
        keys = self.keys
        scores = y @ self.w[block + "ffn_gate_inp.weight"].T
        scores = sigmoid(scores) if keys["expert_gating_func"] == 2 else softmax(scores)
        by = scores + self.w.get(block + "exp_probs_b.bias", 0)
        if keys.get("expert_group_count", 1) > 1:
            groups = self.split(by, keys["expert_group_count"])
            kept = self.best(np.sort(groups, 2)[:, :, -2:].sum(2), keys["expert_group_used_count"])
            mask = np.full(groups.shape, -np.inf)
            np.put_along_axis(mask, kept[:, :, None], 0, 1)
            by = (groups + mask).reshape(by.shape)
        chosen = self.best(by, keys["expert_used_count"])
        weights = np.take_along_axis(scores, chosen, 1)
        if keys.get("expert_weights_norm"):
            weights = weights / weights.sum(1, keepdims=True)
        return self.mixture(y, block, chosen, weights * keys["expert_weights_scale"], lambda gate, up: silu(gate) * up)

    def qwen35moe(self, x, block, number):
        """Qwen 3.5: three gated delta nets (arXiv 2412.06464), then attention with a gated output."""
        y = self.norm(x, block + "attn_norm")
        x = x + (self.gated_attention(y, block) if number % 4 == 3 else self.delta_net(y, block))
        y = self.norm(x, block + "post_attention_norm")
        scores = softmax(self.product(y, block + "ffn_gate_inp"))
        chosen = self.best(scores, self.keys["expert_used_count"])
        weights = np.take_along_axis(scores, chosen, 1)
        weights /= weights.sum(1, keepdims=True)
        everyone = sigmoid(y @ self.w[block + "ffn_gate_inp_shexp.weight"])[:, None] * self.swiglu(y, block, "_shexp")
        return x + self.mixture(y, block, chosen, weights, lambda gate, up: silu(gate) * up) + everyone

    def gated_attention(self, y, block):
        q, gate = np.split(self.split(self.product(y, block + "attn_q"), self.heads), 2, axis=2)
        k, v = (self.split(self.product(y, f"{block}attn_{part}"), self.kv_heads) for part in "kv")
        turn = lambda part, name: self.rope(self.norm(part, block + name), self.keys["rope.dimension_count"])
        out = self.attend(turn(q, "attn_q_norm"), turn(k, "attn_k_norm"), v, self.head**-0.5)
        return self.product(out * sigmoid(gate.reshape(out.shape)), block + "attn_output")

    def delta_net(self, y, block):
        """One state a head, corrected by each position's key and value."""
        size, key_heads, heads = (self.keys[f"ssm.{name}"] for name in ("state_size", "group_count", "time_step_rank"))
        taps = self.keys["ssm.conv_kernel"]
        mixed = self.product(y, block + "attn_qkv")
        padded = np.concatenate([np.zeros((taps - 1, mixed.shape[1])), mixed])
        mixed = silu(sum(padded[tap:tap + len(y)] * self.w[block + "ssm_conv1d.weight"][:, tap] for tap in range(taps)))
        q, k, v = np.split(mixed, [size * key_heads, 2 * size * key_heads], axis=1)
        unit = lambda part: part / np.sqrt((part * part).sum(-1, keepdims=True) + self.keys["attention.layer_norm_rms_epsilon"])
        q, k, v = unit(self.split(q, key_heads)), unit(self.split(k, key_heads)), self.split(v, heads)
        beta = sigmoid(self.product(y, block + "ssm_beta"))
        fade = np.exp(self.w[block + "ssm_a"] * np.log1p(np.exp(self.product(y, block + "ssm_alpha") + self.w[block + "ssm_dt.bias"])))
        out, state = np.empty_like(v), np.zeros((heads, size, size))
        for t in range(len(y)):
            for head in range(heads):
                key, query = k[t, head % key_heads], q[t, head % key_heads]
                state[head] *= fade[t, head]
                state[head] += np.outer(key, beta[t, head] * (v[t, head] - key @ state[head]))
                out[t, head] = query @ state[head] / np.sqrt(size)
        gate = silu(self.split(self.product(y, block + "attn_gate"), heads))
        return self.product((self.norm(out, block + "ssm_norm") * gate).reshape(len(y), -1), block + "ssm_out")


NAMES = ("gemma3", "gpt-oss", "deepseek2", "deepseek2-lite", "deepseek2-old", "qwen35moe")


def compare(name, path, prompts, theirs):
    exact = Exact(path)
    ours = [exact.logits(ids) for ids in prompts]
    worst = max(float(np.abs(a - b).max()) for a, b in zip(ours, theirs))
    flips = sum(int((a.argmax(1) != b.argmax(1)).sum()) for a, b in zip(ours, theirs))
    print(f"{name}: largest difference {worst:.1e}, {flips} other answers", flush=True)
    if worst > LARGEST_DIFFERENCE or flips:
        raise SystemExit(f"{name}: llama.cpp and float64 disagree.")
