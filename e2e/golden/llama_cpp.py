"""A small ctypes driver for a prebuilt llama.cpp: load, decode, logits, quantize.

The library is the CPU build of llama.cpp 0.5.0 in the npm package `@node-llama-cpp/linux-x64`. Struct layouts are those of
that release's `llama.h`; `Library` checks them against the library's own defaults before it uses them, so that another
release fails with a sentence instead of reading the wrong bytes. Only numpy is needed.

    from llama_cpp import Library
    with Library().load("model.gguf") as model:
        logits = model.context(cache="f32").logits([1, 2, 3])   # numpy, [positions, vocabulary]
"""

import ctypes as c
import os
import pathlib
import subprocess

import numpy as np

PACKAGE = "@node-llama-cpp/linux-x64"
PACKAGE_VERSION = "3.22.1"
HERE = pathlib.Path(__file__).resolve().parent
OUT = HERE.parent / "out" / "golden"

# `enum ggml_type` of cache types, and `enum llama_ftype` of the file types that quantization can write.
CACHE_TYPES = {"f32": 0, "f16": 1, "q4_0": 2, "q8_0": 8}
FILE_TYPES = {
    "F32": 0, "F16": 1, "Q4_0": 2, "Q4_1": 3, "Q8_0": 7, "Q5_0": 8, "Q5_1": 9, "Q2_K": 10, "Q3_K_S": 11, "Q3_K_M": 12,
    "Q3_K_L": 13, "Q4_K_S": 14, "Q4_K_M": 15, "Q5_K_S": 16, "Q5_K_M": 17, "Q6_K": 18, "IQ4_NL": 25, "IQ4_XS": 30,
    "BF16": 32,
}
TENSOR_TYPES = {
    "F32": 0, "F16": 1, "Q4_0": 2, "Q4_1": 3, "Q5_0": 6, "Q5_1": 7, "Q8_0": 8, "Q2_K": 10, "Q3_K": 11, "Q4_K": 12,
    "Q5_K": 13, "Q6_K": 14, "IQ4_NL": 20, "IQ4_XS": 23, "BF16": 30,
}


class ModelParams(c.Structure):
    """`struct llama_model_params`"""
    _fields_ = [
        ("devices", c.c_void_p), ("tensor_buft_overrides", c.c_void_p),
        ("n_gpu_layers", c.c_int32), ("split_mode", c.c_int), ("load_mode", c.c_int), ("lazy_mode", c.c_int),
        ("main_gpu", c.c_int32), ("tensor_split", c.c_void_p),
        ("progress_callback", c.c_void_p), ("progress_callback_user_data", c.c_void_p), ("kv_overrides", c.c_void_p),
        ("vocab_only", c.c_bool), ("check_tensors", c.c_bool), ("use_extra_bufts", c.c_bool), ("no_host", c.c_bool),
        ("no_alloc", c.c_bool), ("load_mtp", c.c_bool),
    ]


class ContextParams(c.Structure):
    """`struct llama_context_params`"""
    _fields_ = [
        ("n_ctx", c.c_uint32), ("n_batch", c.c_uint32), ("n_ubatch", c.c_uint32), ("n_seq_max", c.c_uint32),
        ("n_rs_seq", c.c_uint32), ("n_outputs_max", c.c_uint32), ("n_outputs_max_per_seq", c.c_uint32),
        ("n_threads", c.c_int32), ("n_threads_batch", c.c_int32),
        ("ctx_type", c.c_int), ("rope_scaling_type", c.c_int), ("pooling_type", c.c_int), ("attention_type", c.c_int),
        ("flash_attn_type", c.c_int),
        ("rope_freq_base", c.c_float), ("rope_freq_scale", c.c_float), ("yarn_ext_factor", c.c_float),
        ("yarn_attn_factor", c.c_float), ("yarn_beta_fast", c.c_float), ("yarn_beta_slow", c.c_float),
        ("yarn_orig_ctx", c.c_uint32), ("defrag_thold", c.c_float),
        ("cb_eval", c.c_void_p), ("cb_eval_user_data", c.c_void_p), ("type_k", c.c_int), ("type_v", c.c_int),
        ("abort_callback", c.c_void_p), ("abort_callback_data", c.c_void_p),
        ("embeddings", c.c_bool), ("offload_kqv", c.c_bool), ("no_perf", c.c_bool), ("op_offload", c.c_bool),
        ("swa_full", c.c_bool), ("kv_unified", c.c_bool),
        ("samplers", c.c_void_p), ("n_samplers", c.c_size_t), ("ctx_other", c.c_void_p),
    ]


class QuantizeParams(c.Structure):
    """`struct llama_model_quantize_params`"""
    _fields_ = [
        ("nthread", c.c_int32), ("ftype", c.c_int), ("output_tensor_type", c.c_int), ("token_embedding_type", c.c_int),
        ("allow_requantize", c.c_bool), ("quantize_output_tensor", c.c_bool), ("only_copy", c.c_bool), ("pure", c.c_bool),
        ("keep_split", c.c_bool), ("dry_run", c.c_bool),
        ("imatrix", c.c_void_p), ("kv_overrides", c.c_void_p), ("tt_overrides", c.c_void_p), ("prune_layers", c.c_void_p),
        ("max_buf_size", c.c_size_t),
    ]


class TensorOverride(c.Structure):
    """`struct llama_model_tensor_override`"""
    _fields_ = [("pattern", c.c_char_p), ("type", c.c_int)]


class Batch(c.Structure):
    """`struct llama_batch`"""
    _fields_ = [
        ("n_tokens", c.c_int32), ("token", c.POINTER(c.c_int32)), ("embd", c.POINTER(c.c_float)),
        ("pos", c.POINTER(c.c_int32)), ("n_seq_id", c.POINTER(c.c_int32)), ("seq_id", c.POINTER(c.POINTER(c.c_int32))),
        ("logits", c.POINTER(c.c_int8)),
    ]


def library_folder():
    """The folder of the prebuilt library; installs the npm package on first use. `POTLUCK_LLAMA_CPP` names another."""
    given = os.environ.get("POTLUCK_LLAMA_CPP")
    if given:
        return pathlib.Path(given)
    folder = OUT / "node_modules" / PACKAGE / "bins" / "linux-x64"
    if not folder.is_dir():
        OUT.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(OUT),
                        f"{PACKAGE}@{PACKAGE_VERSION}"], check=True)
    return folder


class Library:
    """llama.cpp with its CPU backends loaded."""

    def __init__(self, folder=None, verbose=False):
        folder = pathlib.Path(folder) if folder else library_folder()
        found = sorted(folder.glob("libllama.v*.so")) or sorted(folder.glob("libllama.so"))
        ggml = sorted(folder.glob("libggml.v*.so")) or sorted(folder.glob("libggml.so"))
        if not found or not ggml:
            raise RuntimeError(f"No libllama in {folder}.")
        self.folder = folder
        self.lib = lib = c.CDLL(str(found[0]))
        self.ggml = c.CDLL(str(ggml[0]))
        lib.llama_version.restype = c.c_char_p
        self.version = lib.llama_version().decode()
        lib.llama_model_default_params.restype = ModelParams
        lib.llama_context_default_params.restype = ContextParams
        lib.llama_model_quantize_default_params.restype = QuantizeParams
        lib.llama_model_load_from_file.restype = c.c_void_p
        lib.llama_model_load_from_file.argtypes = [c.c_char_p, ModelParams]
        lib.llama_init_from_model.restype = c.c_void_p
        lib.llama_init_from_model.argtypes = [c.c_void_p, ContextParams]
        lib.llama_model_get_vocab.restype = c.c_void_p
        lib.llama_model_get_vocab.argtypes = [c.c_void_p]
        lib.llama_vocab_n_tokens.argtypes = [c.c_void_p]
        lib.llama_batch_init.restype = Batch
        lib.llama_batch_init.argtypes = [c.c_int32, c.c_int32, c.c_int32]
        lib.llama_batch_free.argtypes = [Batch]
        lib.llama_decode.argtypes = [c.c_void_p, Batch]
        lib.llama_get_logits_ith.restype = c.POINTER(c.c_float)
        lib.llama_get_logits_ith.argtypes = [c.c_void_p, c.c_int32]
        lib.llama_get_memory.restype = c.c_void_p
        lib.llama_get_memory.argtypes = [c.c_void_p]
        lib.llama_memory_clear.argtypes = [c.c_void_p, c.c_bool]
        lib.llama_free.argtypes = [c.c_void_p]
        lib.llama_model_free.argtypes = [c.c_void_p]
        lib.llama_tokenize.argtypes = [c.c_void_p, c.c_char_p, c.c_int32, c.POINTER(c.c_int32), c.c_int32, c.c_bool, c.c_bool]
        lib.llama_detokenize.argtypes = [c.c_void_p, c.POINTER(c.c_int32), c.c_int32, c.c_char_p, c.c_int32, c.c_bool, c.c_bool]
        lib.llama_model_quantize.restype = c.c_uint32
        lib.llama_model_quantize.argtypes = [c.c_char_p, c.c_char_p, c.POINTER(QuantizeParams)]
        self._check_layouts()
        if not verbose:
            self._quiet = c.CFUNCTYPE(None, c.c_int, c.c_char_p, c.c_void_p)(self._log)
            lib.llama_log_set(self._quiet, None)
            self.ggml.ggml_log_set(self._quiet, None)
        self.ggml.ggml_backend_load_all_from_path(str(folder).encode())
        lib.llama_backend_init()

    @staticmethod
    def _log(level, text, _data):
        # 4 is GGML_LOG_LEVEL_ERROR: what explains a failure stays visible.
        if level == 4:
            print("llama.cpp:", text.decode(errors="replace").rstrip())

    def _check_layouts(self):
        """The defaults have fixed values at known places; another layout would show others."""
        model = self.lib.llama_model_default_params()
        context = self.lib.llama_context_default_params()
        quantize = self.lib.llama_model_quantize_default_params()
        fits = (
            model.n_gpu_layers == -1 and model.load_mode == -1 and model.lazy_mode == 1 and model.use_extra_bufts
            and context.n_ctx == 512 and context.n_batch == 2048 and context.rope_scaling_type == -1
            and context.yarn_beta_slow == -1 and context.type_k == 1 and context.type_v == 1 and context.offload_kqv
            and not context.n_samplers and not context.ctx_other
            and quantize.quantize_output_tensor and not quantize.pure and quantize.max_buf_size == 8 << 30
        )
        if not fits:
            raise RuntimeError(f"llama.cpp {self.version} lays out its parameters otherwise than 0.5.0 (llama_cpp.py).")

    def load(self, path, repack=True, vocab_only=False):
        """Opens a GGUF file. `repack` False keeps weights as they are in memory (slower, and plain arithmetic);
        `vocab_only` reads the tokenizer alone."""
        return Model(self, path, repack, vocab_only)

    def quantize(self, source, target, kind, pure=False, overrides=None, requantize=False, threads=0):
        """Writes `target` as file type `kind` (a key of FILE_TYPES). `overrides` maps tensor name patterns (regular
        expressions) to TENSOR_TYPES keys; `pure` gives every matrix the default type of `kind`."""
        params = self.lib.llama_model_quantize_default_params()
        params.nthread, params.ftype = threads, FILE_TYPES[kind]
        params.pure, params.allow_requantize = pure, requantize
        rows = [TensorOverride(p.encode(), TENSOR_TYPES[t]) for p, t in (overrides or {}).items()]
        # The list ends with a null pattern.
        table = (TensorOverride * (len(rows) + 1))(*rows, TensorOverride(None, 0))
        if rows:
            params.tt_overrides = c.cast(table, c.c_void_p)
        status = self.lib.llama_model_quantize(str(source).encode(), str(target).encode(), c.byref(params))
        if status != 0:
            raise RuntimeError(f"llama.cpp could not quantize {source} to {kind}: status {status}.")


class Model:
    """An open GGUF file."""

    def __init__(self, library, path, repack, vocab_only):
        self.library = library
        params = library.lib.llama_model_default_params()
        params.vocab_only = vocab_only
        params.use_extra_bufts = repack
        self.handle = library.lib.llama_model_load_from_file(str(path).encode(), params)
        if not self.handle:
            raise RuntimeError(f"llama.cpp could not load {path}.")
        self.vocab = library.lib.llama_model_get_vocab(self.handle)
        self.vocabulary = library.lib.llama_vocab_n_tokens(self.vocab)
        self.contexts = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for context in self.contexts:
            context.close()
        if self.handle:
            self.library.lib.llama_model_free(self.handle)
            self.handle = None

    def context(self, length=512, cache="f32", batch=512, threads=2, flash=False, watch=None):
        """A KV cache of `length` positions whose values have type `cache`. `watch` is called with every tensor computed
        (`ggml_backend_sched_eval_callback`)."""
        context = Context(self, length, cache, batch, threads, flash, watch)
        self.contexts.append(context)
        return context

    def tokenize(self, text, add_special=False, parse_special=True):
        raw = text.encode()
        room = len(raw) + 8
        ids = (c.c_int32 * room)()
        count = self.library.lib.llama_tokenize(self.vocab, raw, len(raw), ids, room, add_special, parse_special)
        if count < 0:
            raise RuntimeError(f"llama.cpp needs {-count} ids for a text of {len(raw)} bytes.")
        return list(ids[:count])

    def ends(self):
        """The ids that end an answer."""
        is_end = self.library.lib.llama_vocab_is_eog
        is_end.restype, is_end.argtypes = c.c_bool, [c.c_void_p, c.c_int32]
        return [id for id in range(self.vocabulary) if is_end(self.vocab, id)]

    def detokenize(self, ids):
        room = 64 * len(ids) + 64
        text = c.create_string_buffer(room)
        count = self.library.lib.llama_detokenize(self.vocab, (c.c_int32 * len(ids))(*ids), len(ids), text, room, False, True)
        if count < 0:
            raise RuntimeError(f"llama.cpp needs {-count} bytes for {len(ids)} ids.")
        return text.raw[:count].decode(errors="replace")


class Context:
    """A conversation: tokens decoded so far."""

    def __init__(self, model, length, cache, batch, threads, flash, watch=None):
        self.model, self.lib, self.batch_size = model, model.library.lib, batch
        params = self.lib.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch = length, batch, batch
        params.n_threads = params.n_threads_batch = threads
        params.type_k = params.type_v = CACHE_TYPES[cache]
        params.flash_attn_type = 1 if flash else 0
        if watch:
            params.cb_eval = c.cast(watch, c.c_void_p)
        self.handle = self.lib.llama_init_from_model(model.handle, params)
        if not self.handle:
            raise RuntimeError("llama.cpp could not make a context.")
        self.position = 0

    def close(self):
        if self.handle:
            self.lib.llama_free(self.handle)
            self.handle = None

    def clear(self):
        """Forgets everything decoded."""
        self.lib.llama_memory_clear(self.lib.llama_get_memory(self.handle), True)
        self.position = 0

    def logits(self, ids):
        """Decodes `ids` after what was decoded before; the logits after each one, float32 [len(ids), vocabulary]."""
        out = np.empty((len(ids), self.model.vocabulary), np.float32)
        for start in range(0, len(ids), self.batch_size):
            chunk = ids[start:start + self.batch_size]
            batch = self.lib.llama_batch_init(len(chunk), 0, 1)
            batch.n_tokens = len(chunk)
            for i, token in enumerate(chunk):
                batch.token[i], batch.pos[i], batch.n_seq_id[i] = int(token), self.position + i, 1
                batch.seq_id[i][0], batch.logits[i] = 0, 1
            status = self.lib.llama_decode(self.handle, batch)
            self.lib.llama_batch_free(batch)
            if status != 0:
                raise RuntimeError(f"llama.cpp could not decode at position {self.position}: status {status}.")
            for i in range(len(chunk)):
                row = self.lib.llama_get_logits_ith(self.handle, i)
                out[start + i] = np.ctypeslib.as_array(row, (self.model.vocabulary,))
            self.position += len(chunk)
        return out
