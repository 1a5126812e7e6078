// Reads texts written by others in WebAssembly, as the page does: node run.mjs FOLDER COUNT FIRST. No text may trap, and none may take
// longer than LIMIT milliseconds on the processor, in the best of three tries: the machine may be busy with other things.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const LIMIT = 50;
const TRIES = 3;
const NAME = 'potluck-fuzz-page';

const [folder, count, first] = process.argv.slice(2);
const { default: init, make, read } = await import(pathToFileURL(join(folder, `${NAME}.js`)));
await init({ module_or_path: await readFile(join(folder, `${NAME}_bg.wasm`)) });

const time = () => {
  const [started, before] = [performance.now(), process.cpuUsage()];
  read();
  const { user, system } = process.cpuUsage(before);
  // Other threads of this program may have worked, too.
  return Math.min(performance.now() - started, (user + system) / 1000);
};

let bytes = 0;
let slowest = { took: 0 };
const tooSlow = [];
const began = performance.now();
const end = Number(first) + Number(count);
for (let number = Number(first); number < end; number++) {
  try {
    bytes += make(number);
    let took = time();
    for (let tried = 1; took > LIMIT && tried < TRIES; tried++) took = Math.min(took, time());
    if (took > slowest.took) slowest = { number, took };
    if (took > LIMIT) tooSlow.push(`${number} (${Math.round(took)} ms)`);
  } catch (error) {
    console.error(`Text ${number} stops the program: ${error}\nWhy: cargo run -p ${NAME} -- ${number}`);
    process.exit(1);
  }
}
const seconds = Math.round((performance.now() - began) / 1000);
console.log(`${count} texts from ${first} on, ${Math.round(bytes / 1e6)} MB, in ${seconds} s: no trap, the slowest is ${slowest.number} with ${slowest.took.toFixed(1)} ms.`);
if (tooSlow.length > 0) {
  console.error(`These take longer than ${LIMIT} ms: ${tooSlow.slice(0, 20).join(', ')}${tooSlow.length > 20 ? ` and ${tooSlow.length - 20} more` : ''}`);
  process.exit(1);
}
