// How long the search takes in WebAssembly:
//   cargo build -p potluck-planner --example wasm --profile web --target wasm32-unknown-unknown
//   node app/planner/benches/search.mjs target/wasm32-unknown-unknown/web/examples/wasm.wasm
import { readFile } from "node:fs/promises";

const { instance } = await WebAssembly.instantiate(await readFile(process.argv[2]));
const { memory, potluck_cases, potluck_search, potluck_name, potluck_name_length } = instance.exports;

const name = (index) =>
  new TextDecoder().decode(new Uint8Array(memory.buffer, potluck_name(index), potluck_name_length(index)));

// Processor time beside time on the clock, because other programs may share the processor.
const spent = (usage) => (usage.user + usage.system) / 1e3;

console.log("room                        median ms   CPU ms        found");
for (let index = 0; index < potluck_cases(); index++) {
  const times = [];
  const cpu = [];
  let found = NaN;
  for (let run = 0; run < 5; run++) {
    const [started, before] = [performance.now(), process.cpuUsage()];
    found = potluck_search(index);
    times.push(performance.now() - started);
    cpu.push(spent(process.cpuUsage(before)));
  }
  const median = (values) => values.sort((a, b) => a - b)[2].toFixed(1);
  console.log(name(index).padEnd(26), median(times).padStart(10), median(cpu).padStart(8), found.toFixed(2).padStart(12));
}
