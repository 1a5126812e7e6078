/* llama.cpp's own prefill and decode rates, taken as llama-bench takes them. LIBS is the folder of a release's libraries:
 *   gcc -O2 -o llama_cpp llama_cpp.c LIBS/libllama*.so LIBS/libggml.*so LIBS/libggml-base.so -Wl,--allow-shlib-undefined
 *   LD_LIBRARY_PATH=LIBS ./llama_cpp PROMPT ANSWER RUNS LIBS MODEL.gguf
 * It declares the few functions that it needs. The structs of parameters are passed on with their defaults; their first fields have
 * been the ones below for long, and room for more does no harm, because such structs travel in memory. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct model_params { void *devices, *overrides; int32_t n_gpu_layers; char rest[1024]; };
struct context_params { uint32_t n_ctx, n_batch, n_ubatch; char rest[1024]; };
struct batch { int32_t n_tokens; int32_t *token; float *embd; int32_t *pos, *n_seq_id; int32_t **seq_id; int8_t *logits; };
void ggml_backend_load_all_from_path(const char *);
void llama_backend_init(void);
struct model_params llama_model_default_params(void);
struct context_params llama_context_default_params(void);
void *llama_model_load_from_file(const char *, struct model_params);
void *llama_init_from_model(void *, struct context_params);
const void *llama_model_get_vocab(const void *);
int32_t llama_vocab_n_tokens(const void *);
struct batch llama_batch_get_one(int32_t *, int32_t);
int32_t llama_decode(void *, struct batch);
void llama_synchronize(void *);
void *llama_get_memory(const void *);
void llama_memory_clear(void *, _Bool);

static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec * 1e-9; }

static void run(void *context, int32_t *tokens, int32_t count) {
    if (llama_decode(context, llama_batch_get_one(tokens, count))) { fprintf(stderr, "llama_decode failed\n"); exit(1); }
    llama_synchronize(context);
}

int main(int argc, char **argv) {
    if (argc != 6) { fprintf(stderr, "llama_cpp PROMPT ANSWER RUNS LIBRARIES MODEL\n"); return 2; }
    int prompt = atoi(argv[1]), answer = atoi(argv[2]), runs = atoi(argv[3]);
    ggml_backend_load_all_from_path(argv[4]);
    llama_backend_init();
    struct model_params with = llama_model_default_params();
    with.n_gpu_layers = 999;
    void *model = llama_model_load_from_file(argv[5], with);
    if (!model) { fprintf(stderr, "%s: not loaded\n", argv[5]); return 1; }
    struct context_params as = llama_context_default_params();
    as.n_ctx = prompt + answer; as.n_batch = as.n_ubatch = prompt;
    void *context = llama_init_from_model(model, as);
    if (!context) { fprintf(stderr, "no context\n"); return 1; }
    int words = llama_vocab_n_tokens(llama_model_get_vocab(model));
    int32_t *tokens = malloc(sizeof *tokens * (prompt + answer));
    for (int i = 0; i < prompt + answer; i++) tokens[i] = rand() % words;
    for (int i = -1; i < runs; i++) { /* the first one warms up */
        llama_memory_clear(llama_get_memory(context), 1);
        double start = now();
        run(context, tokens, prompt);
        double first = now();
        for (int j = 0; j < answer; j++) run(context, tokens + prompt + j, 1);
        double end = now();
        if (i >= 0) printf("run %d: prefill %.1f tok/s, decode %.1f tok/s\n", i + 1, prompt / (first - start), answer / (end - first));
        fflush(stdout);
    }
    return 0;
}
