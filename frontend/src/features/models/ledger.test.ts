import { expect, test } from "vitest";
import { aLedger, anEngine, someMemory } from "@/test/fixtures";
import { sharesOf } from "./ledger";

const engine = anEngine({ memory: someMemory({ total: 30 }), resident_bytes: 12 });

test("what models were promised and haven't touched is told apart from what they hold", () => {
  const ledger = aLedger({ total: 100, free: 50, promised: 18 });
  expect(sharesOf({ ledger, engines: [engine] })).toEqual({
    models: 12,
    promised: 18,
    others: 20,
    free: 50,
  });
});

test.each([
  ["nothing is loaded", { total: 100, free: 60, promised: 0 }, []],
  ["everything is taken", { total: 100, free: 0, promised: 40 }, [engine]],
  ["the figures are of different moments", { total: 40, free: 30, promised: 25 }, [engine]],
])("the shares add up to the whole when %s", (_, ledger, engines) => {
  const { models, promised, others, free } = sharesOf({ ledger: aLedger(ledger), engines });
  expect(models + promised + others + free).toBe(ledger.total);
  expect(Math.min(models, promised, others, free)).toBeGreaterThanOrEqual(0);
});
