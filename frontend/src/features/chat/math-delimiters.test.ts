import { expect, test } from "vitest";
import { withMathDelimiters } from "./math-delimiters";

test.each([
  ["the root \\(x_1\\) is", "the root $$x_1$$ is"],
  ["so \\[ a = b \\] holds", "so \n$$\na = b\n$$\n holds"],
  ["Euler: $e^{i\\pi}=-1$.", "Euler: $$e^{i\\pi}=-1$$."],
  ["already $$x$$ here", "already $$x$$ here"],
])("%j becomes %j", (text, expected) => {
  expect(withMathDelimiters(text)).toBe(expected);
});

test.each([
  "it costs $5 and $10 there",
  "from $5-$10 a piece",
  "an unfinished $x + y",
  "code `$a$` and `\\(b\\)`",
  "```sh\necho $HOME$\n```",
  "```sh\necho \\(still open",
  "a literal \\$x$",
])("%j stays as it is", (text) => {
  expect(withMathDelimiters(text)).toBe(text);
});
