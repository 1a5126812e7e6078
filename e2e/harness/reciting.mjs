// Models that recite: each answers with the same text, whatever it is asked and however it is sampled. They run in the real
// engine, so tests can stream any text through a real room.
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

const HIDDEN = 256;
const HEAD = 64;
const INSIDE = 256;
const CONTEXT = 65_536;
const EOS = 256;
const FIRST = 257;

const F32 = 0;
const F16 = 1;
/** Halves that stand for 1 and -1. */
const [ONE, MINUS_ONE] = [0x3c00, 0xbc00];

const NORMAL = 1;
const CONTROL = 3;
const UNUSED = 5;

/** A text in tokens of this many characters. */
export function chunks(text, length) {
  const letters = Array.from(text);
  return Array.from({ length: Math.ceil(letters.length / length) }, (_, at) => letters.slice(at * length, (at + 1) * length).join(''));
}

/** A text in words, each with the white space in front of it; long ones are cut. */
const words = (text) => (text.match(/\s*\S+|\s+$/g) ?? []).flatMap((word) => chunks(word, 24));

/** Writes a model that recites `text` and ends, or begins again with `loop`. `parts` are its tokens. */
export function write(path, { name = 'Reciting', text = '', parts = words(text), loop = false }) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, model(name, parts, loop));
  return path;
}

function model(name, parts, loop) {
  const rows = Math.ceil((FIRST + parts.length) / HEAD) * HEAD;
  const code = codes();
  const own = Array.from({ length: parts.length + 1 }, code);
  // What follows a token is in its embedding: the first piece behind all tokens that are no piece.
  const embedding = new Uint16Array(rows * HIDDEN);
  const output = new Uint16Array(rows * HIDDEN);
  for (let token = 0; token < rows; token += 1) {
    const piece = token - FIRST;
    const next = piece >= 0 && piece < parts.length ? piece + 1 : 0;
    embedding.set(own[loop && next === parts.length ? 0 : next], token * HIDDEN);
    if (piece >= 0 && piece < parts.length) output.set(own[piece], token * HIDDEN);
  }
  output.set(own[parts.length], EOS * HIDDEN);
  const ones = new Float32Array(HIDDEN).fill(1);
  const zeros = (cols, rows) => [F16, [cols, rows], new Uint16Array(cols * rows)];
  const tensors = {
    'token_embd.weight': [F16, [HIDDEN, rows], embedding],
    'blk.0.attn_norm.weight': [F32, [HIDDEN], ones],
    'blk.0.attn_q.weight': zeros(HIDDEN, HEAD),
    'blk.0.attn_k.weight': zeros(HIDDEN, HEAD),
    'blk.0.attn_v.weight': zeros(HIDDEN, HEAD),
    'blk.0.attn_output.weight': zeros(HEAD, HIDDEN),
    'blk.0.ffn_norm.weight': [F32, [HIDDEN], ones],
    'blk.0.ffn_gate.weight': zeros(HIDDEN, INSIDE),
    'blk.0.ffn_up.weight': zeros(HIDDEN, INSIDE),
    'blk.0.ffn_down.weight': zeros(INSIDE, HIDDEN),
    'output_norm.weight': [F32, [HIDDEN], ones],
    'output.weight': [F16, [HIDDEN, rows], output],
  };
  return gguf({ ...shape(name, rows), ...tokenizer(parts, rows) }, tensors);
}

/** Rows of 1 and -1 from a fixed seed: the product of two different ones is far below that of a row with itself. */
function codes() {
  let state = 1;
  const bit = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state >>> 31;
  };
  return () => Uint16Array.from({ length: HIDDEN }, () => (bit() ? ONE : MINUS_ONE));
}

const u32 = (value) => ({ type: 4, bytes: numbers(Uint32Array, value) });
const f32 = (value) => ({ type: 6, bytes: numbers(Float32Array, value) });
const flag = (value) => ({ type: 7, bytes: Buffer.from([Number(value)]) });
const string = (value) => ({ type: 8, bytes: text(value) });
const array = (item, values) => ({
  type: 9,
  bytes: Buffer.concat([numbers(Uint32Array, item('').type), size(values.length), ...values.map((value) => item(value).bytes)]),
});

const numbers = (kind, ...values) => Buffer.from(kind.from(values).buffer);
const size = (value) => numbers(BigUint64Array, BigInt(value));
const text = (value) => Buffer.concat([size(Buffer.byteLength(value)), Buffer.from(value)]);

const shape = (name, rows) => ({
  'general.architecture': string('llama'),
  'general.name': string(name),
  'general.license': string('CC0-1.0'),
  'llama.block_count': u32(1),
  'llama.context_length': u32(CONTEXT),
  'llama.embedding_length': u32(HIDDEN),
  'llama.feed_forward_length': u32(INSIDE),
  'llama.attention.head_count': u32(1),
  'llama.attention.head_count_kv': u32(1),
  'llama.attention.key_length': u32(HEAD),
  'llama.attention.value_length': u32(HEAD),
  'llama.attention.layer_norm_rms_epsilon': f32(1e-5),
  'llama.rope.freq_base': f32(10_000),
  'llama.rope.dimension_count': u32(HEAD),
  'llama.vocab_size': u32(rows),
});

function tokenizer(parts, rows) {
  const bytes = Array.from({ length: 256 }, (_, byte) => byteLevel(Buffer.from([byte])));
  const own = parts.map((part) => byteLevel(Buffer.from(part)));
  const rest = Array.from({ length: rows - FIRST - own.length }, (_, index) => `<unused${index}>`);
  const kinds = [...bytes.map(() => NORMAL), CONTROL, ...own.map(() => NORMAL), ...rest.map(() => UNUSED)];
  return {
    'tokenizer.ggml.model': string('gpt2'),
    'tokenizer.ggml.pre': string('qwen2'),
    'tokenizer.ggml.tokens': array(string, [...bytes, '<|im_end|>', ...own, ...rest]),
    'tokenizer.ggml.token_type': array(u32, kinds),
    'tokenizer.ggml.merges': array(string, []),
    'tokenizer.ggml.eos_token_id': u32(EOS),
    'tokenizer.ggml.add_bos_token': flag(false),
    'tokenizer.chat_template': string('{% for message in messages %}{{ message.content }}\n\n{% endfor %}'),
  };
}

/** Bytes as vocabularies of byte-level BPE spell them: each as a character that can be seen. */
function byteLevel(bytes) {
  const isSeen = (byte) => (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte !== 0xad);
  const hidden = Array.from({ length: 256 }, (_, byte) => byte).filter((byte) => !isSeen(byte));
  return Array.from(bytes, (byte) => String.fromCodePoint(isSeen(byte) ? byte : 256 + hidden.indexOf(byte))).join('');
}

function gguf(metadata, tensors) {
  const parts = [Buffer.from('GGUF'), numbers(Uint32Array, 3), size(Object.keys(tensors).length), size(Object.keys(metadata).length)];
  for (const [key, { type, bytes }] of Object.entries(metadata)) parts.push(text(key), numbers(Uint32Array, type), bytes);
  let offset = 0;
  for (const [name, [kind, dims, values]] of Object.entries(tensors)) {
    parts.push(text(name), numbers(Uint32Array, dims.length), ...dims.map(size), numbers(Uint32Array, kind), size(offset));
    offset += padded(values.byteLength);
  }
  const fill = (length) => Buffer.alloc(padded(length) - length);
  parts.push(fill(parts.reduce((sum, part) => sum + part.length, 0)));
  for (const [, , values] of Object.values(tensors)) {
    parts.push(Buffer.from(values.buffer, values.byteOffset, values.byteLength), fill(values.byteLength));
  }
  return Buffer.concat(parts);
}

/** Tensors begin at multiples of this many bytes. */
const padded = (length) => Math.ceil(length / 32) * 32;
