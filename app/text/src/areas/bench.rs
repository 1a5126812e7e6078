//! The benchmark.

table! {
    /// The form and the results.
    BenchTexts {
        /// Positions before the prompt.
        context = "Context before the prompt";
        /// A choice of it.
        no_context = "None";
        /// The button.
        measure = "Measure";
        /// The button meanwhile.
        stop = "Stop";
        /// How often.
        runs = "Measured runs";
        /// The type of the KV cache.
        cache = "KV cache";
        /// The box to tick.
        kernels = "Time each kind of kernel";
        /// What to measure.
        workloads = "Length of prompt / answer, in tokens";
        /// A choice of it.
        own = "Your own";
        /// A field of it.
        own_prompt = "Tokens of the prompt";
        /// A field of it.
        own_answer = "Tokens of the answer";
        /// The choice of a model.
        model = "Model";
        /// A choice of it.
        link = "A link";
        /// A choice of it.
        file = "A file on this device";
        /// The field for a file.
        gguf = "GGUF file";
        /// How long all kernels took.
        in_kernels(time: Millis, clock: Text) = "{ $time } in GPU programs (kernels), measured by { $clock }.";
        /// The heading of its kernels.
        decode = "One token of an answer";
        /// The same, after some context.
        decode_after(depth: Count) = "One token of an answer after { $depth } tokens of context";
        /// The heading of its kernels.
        prefill(tokens: Count) = "{ $tokens } tokens of a prompt";
        /// The same, after some context.
        prefill_after(tokens: Count, depth: Count) = "{ $tokens } tokens of a prompt after { $depth } tokens of context";
        /// The table, for screen readers.
        kernels_table = "Table of kernels";
        /// A column.
        kernel = "Kernels";
        /// A column.
        share = "Share";
        /// A column.
        time = "Time";
        /// A column.
        dispatches = "Dispatches";
        /// A column.
        bytes = "Bytes";
        /// A column.
        streaming = "Memory speed used";
        /// The heading of the page.
        title = "Benchmark";
        /// Below the heading.
        about = "How fast this device reads a prompt and writes an answer, measured on this device alone.";
        /// Nothing can be shown.
        stopped = "Stopped before anything was fully measured.";
        /// The bar, for screen readers.
        measuring = "Measuring";
        /// The results, for screen readers.
        results = "Results";
        /// The button.
        copy = "Copy as JSON";
        /// Opens a list.
        device = "Device and limits";
        /// Opens a list.
        method = "How it was measured";
        /// How fast the memory is.
        streams(adapter: Text, rate: Rate) = "{ $adapter }. A simple test reads its memory at { $rate }.";
        /// The table, for screen readers.
        results_table = "Table of results";
        /// A column.
        workload = "Prompt / answer";
        /// A column.
        prefill_pace = "Prompt, tokens/s";
        /// A column.
        decode_pace = "Answer, tokens/s";
        /// A column.
        first_token = "First token";
        /// A column.
        read = "Memory read per token";
        /// How fast the model was loaded.
        load_rates(load: Rate, percent: Rounded, read: Rate, upload: Rate) = "{ $load }, { $percent }% of what the slower step reaches alone: reading the file { $read }, copying to the GPU { $upload }.";
        /// A row.
        browser = "Browser";
        /// A row.
        driver = "Driver";
        /// A row.
        loading = "Loading";
        /// A row.
        loading_again = "Loading again from this device";
        /// A row.
        weights = "Weights on the GPU";
        /// A row.
        allocated = "GPU memory used in all";
        /// A row.
        features = "Features";
        /// The title of a chart.
        chart_prefill = "Reading a prompt, tokens per second";
        /// The title of a chart.
        chart_decode = "Writing an answer, tokens per second";
    }
}
