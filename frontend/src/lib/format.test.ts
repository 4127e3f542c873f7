import { expect, test } from "vitest";
import { formatBytes, formatCount, formatSeconds, formatTokensPerSecond } from "./format";

const MIB = 1024 ** 2;
const GIB = 1024 ** 3;

test.each([
  [0, "0 B"],
  [2048, "2 KiB"],
  [98 * MIB, "98 MiB"],
  [1.25 * GIB, "1.3 GiB"],
  [24 * GIB, "24 GiB"],
])("%d bytes are shown as %s", (bytes, shown) => {
  expect(formatBytes(bytes)).toBe(shown);
});

test.each([
  [0.82, "0.8 s"],
  [42.4, "42 s"],
  [200, "3 min 20 s"],
  [59.6, "1 min 0 s"],
  [7500, "2 h 5 min"],
])("%d seconds are shown as %s", (seconds, shown) => {
  expect(formatSeconds(seconds)).toBe(shown);
});

test("a slow engine's speed keeps its decimal, a fast one's does not", () => {
  expect(formatTokensPerSecond(4.26)).toBe("4.3 tokens/s");
  expect(formatTokensPerSecond(85.4)).toBe("85 tokens/s");
});

test("large counts are grouped", () => {
  expect(formatCount(8192)).toBe("8\u202f192");
  expect(formatCount(512)).toBe("512");
  expect(formatCount(1_048_576)).toBe("1\u202f048\u202f576");
});
