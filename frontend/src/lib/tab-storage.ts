import type { StateStorage } from "zustand/middleware";

/** sessionStorage for what may be lost: where the browser refuses it, nothing is kept. */
export const tabStorage: StateStorage = {
  getItem(key) {
    try {
      return sessionStorage.getItem(key);
    } catch {
      return null;
    }
  },
  setItem(key, value) {
    try {
      sessionStorage.setItem(key, value);
    } catch {
      // Full or forbidden: the store itself still has it.
    }
  },
  removeItem(key) {
    try {
      sessionStorage.removeItem(key);
    } catch {
      // Nothing was kept there.
    }
  },
};
