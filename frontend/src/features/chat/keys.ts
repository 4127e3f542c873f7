import type { KeyboardEvent } from "react";

/** Enter alone, and not the Enter that ends the composing of a character (229 in Safari). */
export function isSendKey({ key, shiftKey, keyCode, nativeEvent }: KeyboardEvent): boolean {
  return key === "Enter" && !shiftKey && !nativeEvent.isComposing && keyCode !== 229;
}
