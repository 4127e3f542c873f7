const CODE = /(^|\n)[ \t]*(`{3,}|~{3,})[\s\S]*?(?:\n[ \t]*\2|$)|`[^`\n]+`/g;
const BRACKETS = /\\\[([\s\S]+?)\\\]/g;
const PARENTHESES = /\\\(([\s\S]+?)\\\)/g;
// As Pandoc has it, so that prices stay prices: no space inside the dollars, no digit after them.
const DOLLARS = /(?<![\\$\w])\$(?![\s$])([^$\n]*[^\s$\\])\$(?![\d$])/g;

function inProse(text: string): string {
  return text
    .replace(BRACKETS, (_, formula: string) => `\n$$\n${formula.trim()}\n$$\n`)
    .replace(PARENTHESES, (_, formula: string) => `$$${formula.trim()}$$`)
    .replace(DOLLARS, (_, formula: string) => `$$${formula}$$`);
}

/** Rewrites `\(…\)`, `\[…\]` and `$…$`, which models write, as `$$…$$`; code stays as it is. */
export function withMathDelimiters(text: string): string {
  if (!text.includes("$") && !text.includes("\\(") && !text.includes("\\[")) return text;
  let result = "";
  let end = 0;
  for (const code of text.matchAll(CODE)) {
    result += inProse(text.slice(end, code.index)) + code[0];
    end = code.index + code[0].length;
  }
  return result + inProse(text.slice(end));
}
