// Steps that build on each other: after one fails, the rest fail at once instead of waiting in vain.
import { test } from 'node:test';

export function story() {
  let failed = null;
  return (name, step) =>
    test(name, async (context) => {
      if (failed) throw new Error(`not tried, because this failed: ${failed}`);
      try {
        await step(context);
      } catch (error) {
        failed = name;
        throw error;
      }
    });
}
