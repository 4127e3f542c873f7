import { create } from "zustand";

export type ThemeChoice = "system" | "light" | "dark";
export type Theme = "light" | "dark";

// The name is also in public/theme.js, which runs before this code is there.
const KEY = "eloquio-theme";
const systemIsDark = window.matchMedia("(prefers-color-scheme: dark)");

function stored(): ThemeChoice {
  try {
    const value = localStorage.getItem(KEY);
    return value === "light" || value === "dark" ? value : "system";
  } catch {
    return "system";
  }
}

function store(choice: ThemeChoice): void {
  try {
    if (choice === "system") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, choice);
  } catch {
    // Storage is blocked: the choice holds until the page is closed.
  }
}

const themeOf = (choice: ThemeChoice): Theme =>
  choice === "system" ? (systemIsDark.matches ? "dark" : "light") : choice;

type ThemeState = { choice: ThemeChoice; theme: Theme; choose: (choice: ThemeChoice) => void };

export const useTheme = create<ThemeState>((set) => {
  const initial = stored();
  return {
    choice: initial,
    theme: themeOf(initial),
    choose(choice) {
      store(choice);
      set({ choice, theme: themeOf(choice) });
    },
  };
});

function show({ theme }: ThemeState): void {
  document.documentElement.dataset.theme = theme;
}

show(useTheme.getState());
useTheme.subscribe(show);
systemIsDark.addEventListener("change", () => {
  const { choice } = useTheme.getState();
  if (choice === "system") useTheme.setState({ theme: themeOf(choice) });
});
