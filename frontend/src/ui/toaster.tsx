import { Toaster as Sonner } from "sonner";
import { useTheme } from "@/lib/theme";

/** Where `toast(…)` of sonner shows: short news that needs no answer. */
export function Toaster() {
  const theme = useTheme(({ theme }) => theme);
  return (
    <Sonner
      theme={theme}
      position="bottom-right"
      toastOptions={{
        style: {
          background: "var(--popover)",
          color: "var(--popover-foreground)",
          borderColor: "var(--border)",
          borderRadius: "var(--radius)",
          fontFamily: "inherit",
        },
      }}
    />
  );
}
