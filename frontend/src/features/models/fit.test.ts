import { expect, test } from "vitest";
import { anEngine, aSystem, someMemory } from "@/test/fixtures";
import { fitOf, freeBytes, heldBytes } from "./fit";

const GIB = 1024 ** 3;

test.each([
  [4 * GIB, "fits"],
  [7.5 * GIB, "tight"],
  [8 * GIB + 1, "too_large"],
] as const)("%d bytes in 8 GiB: %s", (total, fit) => {
  expect(fitOf(someMemory({ total }), 8 * GIB)).toBe(fit);
});

test("nothing is claimed of a model whose need, or of a device whose room, is not known", () => {
  expect(fitOf(null, 8 * GIB)).toBe("unknown");
  expect(fitOf(someMemory(), null)).toBe("unknown");
});

test("what is free is asked of the device that would hold the weights", () => {
  const system = aSystem({
    devices: [
      {
        id: "CUDA0",
        name: "A card",
        kind: "cuda",
        total_bytes: 24 * GIB,
        free_bytes: 20 * GIB,
        is_usable: true,
      },
    ],
  });
  expect(freeBytes("cpu", system)).toBe(8 * GIB);
  expect(freeBytes("A card", system)).toBe(20 * GIB);
  expect(freeBytes("Another card", system)).toBeNull();
});

test("a pinned engine keeps its memory, the others give theirs back", () => {
  const engines = [
    anEngine({ resident_bytes: 100 }),
    anEngine({ resident_bytes: null, memory: someMemory({ total: 30 }) }),
    anEngine({ resident_bytes: 1000, pinned: true }),
  ];
  expect(heldBytes(engines)).toBe(130);
});
