import { expect, test } from "vitest";
import { aLedger, anEngine, someMemory } from "@/test/fixtures";
import { fitOf, freeWithout, heldBytes, mostFor } from "./fit";

const GIB = 1024 ** 3;

test.each([
  [4 * GIB, "fits"],
  [7.5 * GIB, "tight"],
  [8 * GIB + 1, "too_large"],
] as const)("%d bytes in 8 GiB: %s", (total, fit) => {
  expect(fitOf(someMemory({ total }), 8 * GIB)).toBe(fit);
});

test("nothing is claimed of a model whose need, or of a machine whose room, is not known", () => {
  expect(fitOf(null, 8 * GIB)).toBe("unknown");
  expect(fitOf(someMemory(), null)).toBe("unknown");
});

test("an engine gives back what it was promised, or what it holds if that is more", () => {
  const memory = someMemory({ total: 30 });
  expect(heldBytes(anEngine({ memory, resident_bytes: 10 }))).toBe(30);
  expect(heldBytes(anEngine({ memory, resident_bytes: 40 }))).toBe(40);
  expect(heldBytes(anEngine({ memory, status: { state: "failed", error: {} } }))).toBe(0);
});

const loaded = (model: string, changes: object = {}) =>
  anEngine({ model, memory: someMemory({ total: 10 }), resident_bytes: null, ...changes });
const ledger = aLedger({ free: 100 });

test("what leaves gives its memory back", () => {
  const engines = [loaded("a chat"), loaded("a voice")];
  expect(freeWithout([], { ledger, engines })).toBe(100);
  expect(freeWithout(["a voice", "not loaded"], { ledger, engines })).toBe(110);
});

test("a load can make all others leave but the pinned ones, and the model itself", () => {
  const engines = [loaded("a chat"), loaded("pinned", { pinned: true })];
  expect(mostFor("another", { ledger, engines })).toBe(110);
  expect(mostFor("pinned", { ledger, engines })).toBe(120);
});
