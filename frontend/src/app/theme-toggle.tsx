import { Moon, Sun } from "lucide-react";
import { useTheme } from "@/lib/theme";
import { IconButton } from "@/ui/icon-button";

type Props = { side?: "bottom" | "right" };

export function ThemeToggle({ side = "bottom" }: Props) {
  const { theme, choose } = useTheme();
  const isDark = theme === "dark";
  return (
    <IconButton
      label={isDark ? "Use the light theme" : "Use the dark theme"}
      side={side}
      onClick={() => choose(isDark ? "light" : "dark")}
    >
      {isDark ? <Sun aria-hidden /> : <Moon aria-hidden />}
    </IconButton>
  );
}
